"""Whether the counts of DMA queues say which transfers are complete.

Each part of a transfer adds to its semaphore when it arrives, and parts of two transfers in flight arrive in any order.
So a semaphore tells that a transfer is complete only where no other one that it counts is in flight: it counts one
transfer, which waits for its own last run, or several of one loop, each of which waits for the one before it, and the
first for the last run of the last. These are edges of the program, which the other checks hold the streams to.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from mpkc.dialects.engine import is_value, label_of, signal_of
from mpkc.dialects.sem_distance import EVERY, Component
from mpkc.dialects.sem_streams import MarkerOp, ReadOp, StreamsOp
from mpkc.dialects.sem_structure import Instruction, Structure
from mpkc.runtime.verify.report import Check, Failure, checked

CHECK = "transfers"


def check_transfers(structure: Structure, streams: StreamsOp, queues: Collection[str]) -> Check:
    """Check that no two transfers of one semaphore can be in flight.

    Args:
        structure: of the program, with the dependencies of transfers on their own earlier runs.
        queues: the engines that are DMA queues.
    """
    return checked(CHECK, lambda: _look(structure, streams, queues))


def overtaking(structure: Structure, streams: StreamsOp, queues: Collection[str]) -> list[str]:
    """The semaphores whose transfers the dependencies do not keep apart, whatever waits do; see `check_transfers`."""
    counted = _counted(streams, queues)
    return [semaphore for semaphore, names in counted.items() if any(_wrong(structure, semaphore, names))]


def _look(structure: Structure, streams: StreamsOp, queues: Collection[str]) -> tuple[int, int, list[Failure]]:
    counted = _counted(streams, queues)
    failures = [failure for semaphore, names in counted.items() for failure in _wrong(structure, semaphore, names)]
    return sum(map(len, counted.values())), len(failures), failures


def _counted(streams: StreamsOp, queues: Collection[str]) -> dict[str, list[str]]:
    """The transfers that each semaphore counts, in the order of their queue, by label."""
    counted: dict[str, list[str]] = {}
    for engine, stream in streams.streams.items():
        if engine in queues:
            for op in stream.walk():
                semaphore = signal_of(op)
                # A value waits until all have read the last one; reads and markers move nothing.
                if semaphore is not None and not is_value(op) and not isinstance(op, ReadOp | MarkerOp):
                    counted.setdefault(semaphore, []).append(label_of(op) or op.name)
    return counted


def _wrong(structure: Structure, semaphore: str, names: Sequence[str]) -> Iterator[Failure]:
    transfers = [transfer for name in names if (transfer := structure.by_label.get(name)) is not None]
    if not _take_turns(transfers):
        yield Failure(
            CHECK,
            f'semaphore "{semaphore}" counts parts of {", ".join(f"@{name}" for name in names)}: with two in flight, '
            "the count of one may be made of parts of both; give each transfer its own semaphore",
        )
    if transfers and not _waits_for_last_run(transfers[0], transfers[-1]):
        yield _overtaking(names[-1])


def _take_turns(transfers: Sequence[Instruction]) -> bool:
    """Whether transfers, in the order of their queue, are of one loop, each after the one before it."""
    return all(
        before.loop is transfer.loop
        and any(edge.producer is before and not any(edge.distance) for edge in transfer.edges)
        for before, transfer in pairwise(transfers)
    )


def _waits_for_last_run(first: Instruction, last: Instruction) -> bool:
    """Whether each loop around transfers carries a dependency of the first one on the last run of the last one."""
    last_runs = {
        edge.counted.index(1)
        for edge in first.edges
        if edge.producer is last and edge.counted == _last_run(edge.counted)
    }
    return last_runs >= set(range(len(first.counted)))


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
