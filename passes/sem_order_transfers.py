"""`sem-order-transfers`: let no two transfers be in flight whose completion one semaphore counts.

A DMA queue completes a transfer in parts, one on each of several DMA engines, and each part adds its share to the
semaphore of the transfer when it has arrived. With two in flight on one semaphore, the count of one may be made of
parts of both. So each transfer that something waits for gets a semaphore of its own, and waits until its last run is
complete: all of its earlier iterations, and those of earlier trips.

    scf.for ... {                                      scf.for ... {
      scf.for ... {                                      scf.for ... {
        sem.inst @T engine "q" ...               ->        sem.inst @T engine "q" ... after [@T distance [0, 1],
        sem.inst @C engine "e" after [@T offset 0]             @T distance [1, *]] {semaphores = "per-instruction"}
"""

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from mpkc.dialects import sem, tile
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, distance
from mpkc.dialects.sem_structure import Instruction, structure_of


def order_transfers(program: sem.ProgramOp | tile.KernelOp, queues: Collection[str]) -> None:
    """Order the transfers of DMA queues after themselves, where an instruction depends on them.

    Args:
        queues: the engines that are DMA queues.
    """
    structure = structure_of(program)
    producers = {edge.producer: None for edge in structure.edges if edge.producer.engine in queues}
    for transfer in producers:
        _set(transfer, "after", ArrayAttr([*_written(transfer), *_missing(transfer)]))
        transfer.op.attributes["semaphores"] = StringAttr("per-instruction")


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
