"""In which order an engine runs what it keeps of a block.

Instructions and control flow stay in textual order. What computes integers, and reads of values, stand right before
the first operation that needs them: a read makes the engine wait, so it must not come earlier.
"""

from xdsl.dialects import memref, scf
from xdsl.ir import Block, Operation

from mpkc.passes.semaphores.needs import Marker, Read, Source
from mpkc.passes.semaphores.slices import Slice

Item = Operation | Source


class Layout:
    """The order of each block on one engine; `place` is that of an item in its block.

    Args:
        sources: of this engine: its instructions by operation, its reads by what is read, its markers by what they
            stand behind.
    """

    def __init__(
        self,
        kept: Slice,
        instructions: dict[Operation, Source],
        reads: dict[Operation, Read],
        markers: dict[Operation, list[Marker]],
    ):
        self.kept = kept
        self.instructions, self.reads, self.markers = instructions, reads, markers
        self.blocks: dict[Block, list[Item]] = {}
        self.place: dict[Item, int] = {}

    def of(self, block: Block) -> list[Item]:
        """Scalar operations and control flow as operations, the rest as sources; without the terminator."""
        found = self.blocks.get(block)
        if found is None:
            found = self.blocks[block] = self._order(block)
            self.place.update((item, index) for index, item in enumerate(found))
        return found

    def _order(self, block: Block) -> list[Item]:
        ops = list(block.ops)
        place = {op: index for index, op in enumerate(ops)}
        kept = self.kept
        before: list[list[Item]] = [[] for _ in ops]
        at: dict[Operation, int] = {}
        for index in reversed(range(len(ops))):
            op = ops[index]
            if not op.results or (op not in kept.scalars and op not in kept.reads):
                continue
            uses = [self._use(user.operation, block, place, at) for result in op.results for user in result.uses]
            first = min((use for use in uses if use is not None), default=None)
            if first is None:
                continue
            at[op] = first
            before[first].append(op if op in kept.scalars else self.reads[op])
        items: list[Item] = []
        for index, op in enumerate(ops):
            items += reversed(before[index])
            if (source := self.instructions.get(op)) is not None:
                items.append(source)
            elif op.regions and op in kept.control:
                items.append(op)
            if self.markers:
                items += self.markers.get(op, ())
        return items

    def _use(self, user: Operation, block: Block, place: dict[Operation, int], at: dict[Operation, int]) -> int | None:
        """Where in `block` the engine needs an operand of `user`; None where it does not keep that use."""
        if not self._kept(user):
            return None
        child = user
        while child.parent is not block:
            parent = child.parent_op()
            assert parent is not None, "a value is used where it is defined"
            child = parent
        return at.get(child, place[child])

    def _kept(self, user: Operation) -> bool:
        if user in self.instructions:
            return True
        if user in self.kept.control or user in self.kept.scalars:
            return not isinstance(user, memref.AllocOp)
        return isinstance(user, scf.YieldOp | scf.ConditionOp) and user.parent_op() in self.kept.control
