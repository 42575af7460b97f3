"""sem-rematerialize: compute thresholds again where they are needed, so that fewer registers hold them.

A multiple of a counter that several waits of an iteration start from is one operation, and lives from the first of
them to the last. Where the counter lives as long anyway, to multiply again for each of them takes an operation more and
a register less. What is used the fewest times comes first.

    %t = arith.muli %r, %c6 : i32                            %t = arith.muli %r, %c6 : i32
    %a = arith.subi %t, %c5 : i32                            %a = arith.subi %t, %c5 : i32
    sem.wait "scalar" >= %a : i32                            sem.wait "scalar" >= %a : i32
    sem.inst @M engine "vector" cost 64                ->    sem.inst @M engine "vector" cost 64
    sem.wait "scalar" >= %t : i32                            %u = arith.muli %r, %c6 : i32
    sem.inst @C engine "vector" cost 64                      sem.wait "scalar" >= %u : i32
                                                             sem.inst @C engine "vector" cost 64
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.passes import ModulePass

from mpkc.dialects.engine import is_instruction
from mpkc.dialects.scalars import is_scalar
from mpkc.dialects.sem_needs import needs_of
from mpkc.dialects.sem_streams import MarkerOp, StreamOp, StreamsOp
from mpkc.passes.scalar_folding import constant_of

ITERATIONS = 16  # that a loop is taken to have
CASTS = (arith.IndexCastOp, arith.ExtUIOp, arith.ExtSIOp, arith.TruncIOp)  # which take no operation


def rematerialize(stream: StreamOp, fits: Callable[[], bool]) -> None:
    """Compute values of a verified stream where they are needed, one after the other, in place.

    Args:
        fits: whether the stream needs as few registers as it should.
    """
    while not fits():
        found = _Order(stream).movable()
        if not found:
            return
        min(found, key=lambda each: (each.cost, each.order)).move()


@dataclass(frozen=True)
class _Movable:
    """Cheap operations, each on what the next one computes, and where they can stand.

    Attributes:
        places: the uses of the first, those together that no instruction stands between.
        cost: the operations that it takes more.
    """

    ops: list[Operation]
    order: int
    places: list[list[Use]]
    cost: int

    def move(self) -> None:
        for uses in self.places:
            copies: dict[SSAValue, SSAValue] = {}
            first = uses[0].operation
            assert first.parent is not None
            for op in reversed(self.ops):
                first.parent.insert_op_before(copy := op.clone(copies), first)
                copy.results[0].name_hint = op.results[0].name_hint
            for use in uses:
                use.operation.operands[use.index] = copies[self.ops[0].results[0]]
        for op in self.ops:
            if op.results[0].first_use is None:
                op.detach()
                op.erase()


class _Order:
    """The order of a stream.

    Attributes:
        at: the place of each operation.
        behind: how many instructions come before it.
        of_program: the values that are not there for waits alone.
        full: the places where the most values are there for waits.
    """

    def __init__(self, stream: StreamOp):
        self.at: dict[Operation, int] = {}
        self.behind: dict[Operation, int] = {}
        instructions = 0
        for number, op in enumerate(stream.walk()):
            self.at[op], self.behind[op] = number, instructions
            instructions += is_instruction(op) or bool(op.regions)
        self.of_program = needs_of(stream.body.block, _is_of_the_program).values
        self.full = self.fullest(stream)

    def fullest(self, stream: StreamOp) -> np.ndarray:
        change = np.zeros(len(self.at) + 1, np.int64)
        for op in stream.walk():
            values = [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]
            for value in values:
                if value not in self.of_program and value.first_use is not None and constant_of(value) is None:
                    change[self.at[op]] += 1
                    change[self.last(value)] -= 1
        there = np.cumsum(change)
        return np.flatnonzero(there == there.max())

    def last(self, value: SSAValue) -> int:
        """The place of the last use of a value: for what it is used in a loop around that, the end of the loop."""
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        assert block is not None
        found = 0
        for use in value.uses:
            op = block.find_ancestor_op_in_block(use.operation)
            assert op is not None
            found = max(found, self.at[use.operation] if op is use.operation else self.end(op))
        return found

    def end(self, op: Operation) -> int:
        """The place of the last operation in one with regions."""
        *_, last = op.walk()
        return self.at[last]

    def movable(self) -> list[_Movable]:
        found = (self.look_at(op) for op in self.at if self.is_cheap(op))
        return [each for each in found if each is not None]

    def is_cheap(self, op: Operation) -> bool:
        """Whether it is arithmetic on one value, for waits alone."""
        if not is_scalar(op) or isinstance(op, arith.ConstantOp) or op.results[0] in self.of_program:
            return False
        return op.results[0].first_use is not None and len(_given(op)) == 1

    def look_at(self, op: Operation) -> _Movable | None:
        """An operation that is there where registers are short, and could stand nearer to its uses."""
        begin, last = self.at[op], self.last(op.results[0])
        if not ((begin < self.full) & (self.full < last)).any():
            return None
        ops = [op]
        while not self.lives_on(value := _given(ops[-1])[0], ops[-1], last):
            if not isinstance(value.owner, Operation) or not self.is_cheap(value.owner):
                return None
            ops.append(value.owner)
        places: dict[tuple[Block | None, int], list[Use]] = {}
        for use in sorted(op.results[0].uses, key=lambda use: self.at[use.operation]):
            places.setdefault((use.operation.parent, self.behind[use.operation]), []).append(use)
        if list(places) == [(op.parent, self.behind[op])]:
            return None
        depth, count = _depth(op.parent), sum(not isinstance(each, CASTS) for each in ops)
        cost = count * sum(ITERATIONS ** (_depth(block) - depth) for block, _ in places) - 1
        return _Movable(ops, begin, list(places.values()), cost)

    def lives_on(self, value: SSAValue, op: Operation, last: int) -> bool:
        """Whether a value is needed at or after a place, whatever becomes of `op`."""
        around = value.owner if isinstance(value.owner, Block) else value.owner.parent
        is_index = isinstance(value, BlockArgument) and value.index == 0
        if around is not op.parent or is_index:
            return True  # the next iteration needs it as well, or the end of this one
        return any(self.at[use.operation] >= last for use in value.uses if use.operation is not op)


def _is_of_the_program(op: Operation) -> bool:
    """Whether what an operation needs is needed for more than to know how long to wait."""
    return is_instruction(op) and not isinstance(op, MarkerOp)


def _given(op: Operation) -> list[SSAValue]:
    """What an operation computes with, but constants."""
    return [operand for operand in op.operands if constant_of(operand) is None]


def _depth(block: Block | None) -> int:
    """How many operations stand around a block."""
    depth = 0
    while block is not None and (op := block.parent_op()) is not None:
        block, depth = op.parent, depth + 1
    return depth


@dataclass(frozen=True)
class RematerializePass(ModulePass):
    """Compute thresholds where they are needed, as far as there are any that can.

    Attributes:
        steps: how many values of each stream.
    """

    name = "sem-rematerialize"

    steps: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                for stream in streams.streams.values():
                    left = iter(range(self.steps))
                    rematerialize(stream, lambda left=left: next(left, None) is None)
