"""`sem-order-transfers`: let no two transfers be in flight whose completion one semaphore counts.

A DMA queue completes a transfer in parts, one on each of several DMA engines, and each part adds its share to the
semaphore of the transfer when it has arrived. With two in flight on one semaphore, the count of one may be made of
parts of both. So each transfer that something waits for gets a semaphore of its own, and waits until its last run is
complete: all of its earlier iterations, and those of earlier trips. Transfers that run once, as unrolling leaves them,
take turns where a queue has many: semaphores rotate among them, and each waits for the last one with its semaphore. So
do those of a loop, where a queue is to have fewer semaphores than it has transfers there.

    scf.for ... {                                      scf.for ... {
      scf.for ... {                                      scf.for ... {
        sem.inst @T engine "q" ...               ->        sem.inst @T engine "q" ... after [@T distance [0, 1],
        sem.inst @C engine "e" after [@T offset 0]             @T distance [1, *]] {semaphores = "per-instruction"}
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from mpkc.dialects import sem, tile
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, distance, offset
from mpkc.dialects.sem_structure import Instruction, Loop, structure_of
from mpkc.passes.semaphores.groups import TURN

ROTATING = 8  # semaphores of a queue, among transfers that run once
NONE: Mapping[str, int] = {}


def order_transfers(
    program: sem.ProgramOp | tile.KernelOp, queues: Collection[str], semaphores: Mapping[str, int] = NONE
) -> None:
    """Order the transfers of DMA queues after themselves, where an instruction depends on them.

    Args:
        queues: the engines that are DMA queues.
        semaphores: how many the transfers of each loop have on a queue; as many as there are where it is not said.
            Where they take turns already, they go on as they do.
    """
    structure = structure_of(program)
    together: dict[tuple[str, Loop], list[Instruction]] = {}
    for producer in sorted(dict.fromkeys(edge.producer for edge in structure.edges), key=lambda each: each.order):
        if producer.engine in queues:
            together.setdefault((producer.engine, producer.loop), []).append(producer)
    for (queue, loop), transfers in together.items():
        taken = {turn for each in transfers if (turn := each.op.attributes.get(TURN)) is not None}
        most = len(taken) or semaphores.get(queue, ROTATING if loop.parent is None else len(transfers))
        if len(transfers) > most:
            _rotate(transfers, most)
        else:
            for transfer in transfers:
                _order(transfer, transfer, _last_runs(transfer))
                transfer.op.attributes["semaphores"] = StringAttr("per-instruction")


def _rotate(transfers: Sequence[Instruction], semaphores: int) -> None:
    """Let transfers of one loop take turns with a few semaphores; each waits for the last one with its own."""
    for turn in range(semaphores):
        sharing = transfers[turn::semaphores]
        for earlier, transfer in pairwise(sharing):
            _order(earlier, transfer, [(0,) * len(transfer.counted)])
        _order(sharing[-1], sharing[0], _last_runs(sharing[-1]))
        for transfer in sharing:
            transfer.op.attributes["semaphores"] = StringAttr("per-loop")
            transfer.op.attributes[TURN] = IntegerAttr(turn, 64)


def _last_runs(transfer: Instruction) -> list[tuple[Component, ...]]:
    """The distances of all runs of a transfer in earlier iterations, one for each loop that may carry them."""
    depth = len(transfer.counted)
    inside: tuple[Component, ...] = (EVERY,) * depth
    return [(*([0] * at), 1, *inside[at + 1 :]) for at in reversed(range(depth))]


def _order(producer: Instruction, transfer: Instruction, distances: Sequence[tuple[Component, ...]]) -> None:
    """Let a transfer depend on another one, or on itself, at distances that it does not have yet."""
    assert producer.label is not None, "what is depended on has a label"
    written = [edge.after for edge in transfer.edges]
    known = {edge.counted for edge in transfer.edges if edge.producer is producer}
    added = [distance(producer.label, *each) if any(each) else offset(producer.label, 0) for each in distances]
    missing = [after for after, each in zip(added, distances, strict=True) if each not in known]
    _set(transfer, "after", ArrayAttr([*written, *missing]))


def _set(transfer: Instruction, name: str, value: ArrayAttr[AfterAttr]) -> None:
    """Set what is a property of some instructions, and a discardable attribute of others."""
    op = transfer.op
    kept = op.properties if isinstance(op, sem.InstOp | sem.ValueOp) else op.attributes
    kept[name] = value


@dataclass(frozen=True)
class OrderTransfersPass(ModulePass):
    """Order the transfers of DMA queues after themselves.

    Attributes:
        queues: the engines that are DMA queues.
    """

    name = "sem-order-transfers"

    queues: tuple[str, ...]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.ops:
            if isinstance(program, sem.ProgramOp | tile.KernelOp):
                order_transfers(program, self.queues)
