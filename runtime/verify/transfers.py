"""Whether the counts of DMA queues say which transfers are complete.

Each part of a transfer adds to its semaphore when it arrives, and parts of two transfers in flight arrive in any order.
So a semaphore tells that a transfer is complete only where no other one that it counts is in flight: it counts one
transfer, which waits for its own last run, or several that run once, each of which waits for the one before it. These
are edges of the program, which the other checks hold the streams to.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise

from mpkc.dialects.engine import is_value, label_of, signal_of
from mpkc.dialects.sem_distance import EVERY, Component
from mpkc.dialects.sem_streams import MarkerOp, ReadOp, StreamsOp
from mpkc.dialects.sem_structure import Structure
from mpkc.runtime.verify.report import Check, Failure, checked

CHECK = "transfers"


def check_transfers(structure: Structure, streams: StreamsOp, queues: Collection[str]) -> Check:
    """Check that no two transfers of one semaphore can be in flight.

    Args:
        structure: of the program, with the dependencies of transfers on their own earlier runs.
        queues: the engines that are DMA queues.
    """
    return checked(CHECK, lambda: _look(structure, streams, queues))


def _look(structure: Structure, streams: StreamsOp, queues: Collection[str]) -> tuple[int, int, list[Failure]]:
    counted: dict[str, list[str]] = {}
    for engine, stream in streams.streams.items():
        if engine in queues:
            for op in stream.walk():
                semaphore = signal_of(op)
                # A value waits until all have read the last one; reads and markers move nothing.
                if semaphore is not None and not is_value(op) and not isinstance(op, ReadOp | MarkerOp):
                    counted.setdefault(semaphore, []).append(label_of(op) or op.name)
    failures = [
        Failure(
            CHECK,
            f'semaphore "{semaphore}" counts parts of {", ".join(f"@{name}" for name in transfers)}: with two in '
            "flight, the count of one may be made of parts of both; give each transfer its own semaphore",
        )
        for semaphore, transfers in counted.items()
        if not _take_turns(structure, transfers)
    ]
    for transfers in counted.values():
        failures += [_overtaking(name) for name in transfers if not _waits_for_itself(structure, name)]
    return sum(map(len, counted.values())), len(failures), failures


def _take_turns(structure: Structure, names: Sequence[str]) -> bool:
    """Whether transfers, in the order of their queue, run once and wait for the one before, if there are several."""
    found = [structure.by_label.get(name) for name in names]
    if len(found) == 1:
        return True
    return all(transfer is not None and transfer.loop.parent is None for transfer in found) and all(
        any(edge.producer is before for edge in transfer.edges)
        for before, transfer in pairwise(found)
        if transfer is not None
    )


def _waits_for_itself(structure: Structure, name: str) -> bool:
    """Whether each loop around a transfer carries a dependency on its last run."""
    transfer = structure.by_label.get(name)
    if transfer is None:
        return True
    last_runs = {
        edge.counted.index(1)
        for edge in transfer.edges
        if edge.producer is transfer and edge.counted == _last_run(edge.counted)
    }
    return last_runs >= set(range(len(transfer.counted)))


def _last_run(components: tuple[Component, ...]) -> tuple[Component, ...] | None:
    """The distance to the last run in the loop that carries it: 0 outside, 1, and every iteration inside."""
    if 1 not in components:
        return None
    at = components.index(1)
    inside: list[Component] = [EVERY] * (len(components) - at - 1)
    return (*([0] * at), 1, *inside)


def _overtaking(name: str) -> Failure:
    return Failure(
        CHECK,
        f"@{name} may be in flight twice, and its semaphore counts parts of both runs: let it wait for its last run "
        "(sem-order-transfers)",
    )
