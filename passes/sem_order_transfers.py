"""`sem-order-transfers`: let no two transfers be in flight whose completion one semaphore counts.

A DMA queue completes a transfer in parts, one on each of several DMA engines, and each part adds its share to the
semaphore of the transfer when it has arrived. With two in flight on one semaphore, the count of one may be made of
parts of both. So each transfer that something waits for gets a semaphore of its own, and waits until its last run is
complete: all of its earlier iterations, and those of earlier trips. Transfers that run once, as unrolling leaves them,
take turns where a queue has many: semaphores rotate among them, and each waits for the last one with its semaphore.

    scf.for ... {                                      scf.for ... {
      scf.for ... {                                      scf.for ... {
        sem.inst @T engine "q" ...               ->        sem.inst @T engine "q" ... after [@T distance [0, 1],
        sem.inst @C engine "e" after [@T offset 0]             @T distance [1, *]] {semaphores = "per-instruction"}
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from mpkc.dialects import sem, tile
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, distance, offset
from mpkc.dialects.sem_structure import Instruction, structure_of
from mpkc.passes.semaphores.groups import TURN

ROTATING = 8  # semaphores of a queue, among transfers that run once


def order_transfers(program: sem.ProgramOp | tile.KernelOp, queues: Collection[str]) -> None:
    """Order the transfers of DMA queues after themselves, where an instruction depends on them.

    Args:
        queues: the engines that are DMA queues.
    """
    structure = structure_of(program)
    producers = dict.fromkeys(edge.producer for edge in structure.edges if edge.producer.engine in queues)
    for queue in queues:
        transfers = sorted((each for each in producers if each.engine == queue), key=lambda each: each.order)
        once = [transfer for transfer in transfers if transfer.loop.parent is None]
        if len(once) > ROTATING:
            _rotate(once)
            transfers = [transfer for transfer in transfers if transfer.loop.parent is not None]
        for transfer in transfers:
            _set(transfer, "after", ArrayAttr([*_written(transfer), *_missing(transfer)]))
            transfer.op.attributes["semaphores"] = StringAttr("per-instruction")


def _rotate(transfers: Sequence[Instruction]) -> None:
    """Let transfers that run once take turns with a few semaphores; each waits for the last one with its own."""
    for number, transfer in enumerate(transfers):
        if number >= ROTATING:
            last = transfers[number - ROTATING].label
            assert last is not None, "what is depended on has a label"
            known = {edge.producer.label for edge in transfer.edges}
            _set(transfer, "after", ArrayAttr([*_written(transfer), *([] if last in known else [offset(last, 0)])]))
        transfer.op.attributes["semaphores"] = StringAttr("per-loop")
        transfer.op.attributes[TURN] = IntegerAttr(number % ROTATING, 64)


def _written(transfer: Instruction) -> list[AfterAttr]:
    return [edge.after for edge in transfer.edges]


def _missing(transfer: Instruction) -> list[AfterAttr]:
    """The dependencies of a transfer on all its earlier runs, one for each loop that may carry it."""
    assert transfer.label is not None, "what is depended on has a label"
    depth = len(transfer.counted)
    known = {edge.counted for edge in transfer.edges if edge.producer is transfer}
    found: list[AfterAttr] = []
    for at in reversed(range(depth)):
        inner: list[Component] = [EVERY] * (depth - at - 1)
        components = (*([0] * at), 1, *inner)
        if components not in known:
            found.append(distance(transfer.label, *components))
    return found


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
