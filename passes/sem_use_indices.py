"""sem-use-indices: where a loop counts as its index does, let the index be the counter (barrier-free, section 8.2).

A loop that is entered once counts its iterations from a constant, as its index does. One of the two is enough: what the
counter is follows from the index, and what it will be from the next index, which the loop computes anyway.

    %r = scf.for %i = ... iter_args(%a = %zero) -> (i32) {        scf.for %i = ... {
      %b = arith.addi %a, %one : i32                                %next = arith.addi %i, %c1 : index
      sem.wait "s" >= %b : i32                               ->     %b = arith.index_cast %next : index to i32
      sem.inst @C engine "e1" cost 64                               sem.wait "s" >= %b : i32
      scf.yield %b : i32                                            sem.inst @C engine "e1" cost 64
    }                                                             }
"""

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.passes import ModulePass

from mpkc.dialects.sem_needs import yield_of
from mpkc.dialects.sem_streams import IterationOp, StreamsOp
from mpkc.passes.scalar_folding import constant_of, integer_attr, integer_like


def use_indices(streams: StreamsOp) -> None:
    """Let indices be the counters of streams, in place; `drop_counters` takes away what nothing needs then."""
    for op in streams.walk():
        if isinstance(op, scf.ForOp):
            for at, start in _counters(op):
                _use_index(op, at, start)


def _counters(op: scf.ForOp) -> Iterator[tuple[int, int]]:
    """The numbers of carried values that count as the index does, and how much more they are."""
    lower, step = constant_of(op.lb), constant_of(op.step)
    if lower is None or step is None:
        return
    for at, (init, arg, back, result) in enumerate(
        zip(op.iter_args, op.body.block.args[1:], yield_of(op.body.block).operands, op.results, strict=True)
    ):
        start = constant_of(init)
        if start is not None and result.first_use is None and _increment(back, arg) == step:
            yield at, start - lower


def _increment(value: SSAValue, counter: SSAValue) -> int | None:
    """What is added to a counter, for all uses of the counter but those of the sum."""
    match value.owner:
        case arith.AddiOp(lhs=lhs, rhs=rhs) if isinstance(value.type, IntegerType):
            if lhs is counter:
                return constant_of(rhs)
            return constant_of(lhs) if rhs is counter else None
        case _:
            return None


def _use_index(op: scf.ForOp, at: int, more: int) -> None:
    """Put what the index tells in the place of a counter, and of what it will be."""
    block = op.body.block
    index, counter, summed = block.args[0], block.args[at + 1], yield_of(block).operands[at].owner
    assert isinstance(summed, arith.AddiOp)
    if _others(summed.result, summed, at):
        following = arith.AddiOp(index, op.step)
        told = [following, *_as_counter(following.result, summed.result, more)]
        block.insert_ops_before(told, summed)
        _take_place(told[-1], summed.result, summed, at)
    if _others(counter, summed, at):
        told = _as_counter(index, counter, more)
        _insert_first(block, told)
        _take_place(told[-1], counter, summed, at)


def _take_place(told: Operation, old: SSAValue, summed: Operation, at: int) -> None:
    told.results[0].name_hint = old.name_hint
    for use in _others(old, summed, at):
        use.operation.operands[use.index] = told.results[0]


def _others(value: SSAValue, summed: Operation, at: int) -> list[Use]:
    """The uses of a counter, or of the sum that it goes on as, but those by which it goes on."""
    return [use for use in value.uses if use.operation is not summed and not _goes_on(use, summed, at)]


def _goes_on(use: Use, summed: Operation, at: int) -> bool:
    return isinstance(use.operation, scf.YieldOp) and use.operation.parent is summed.parent and use.index == at


def _as_counter(index: SSAValue, counter: SSAValue, more: int) -> list[Operation]:
    """What turns an index into a counter of the type of another, which is so much more."""
    counted = arith.IndexCastOp(index, counter.type)
    if not more:
        return [counted]
    number = integer_like(more, counter)
    constant = arith.ConstantOp(integer_attr(number.value, number.type))
    return [counted, constant, arith.AddiOp(counted.result, constant.result)]


def _insert_first(block: Block, ops: list[Operation]) -> None:
    """Behind the directive that an iteration begins with."""
    first = block.first_op
    assert first is not None
    if isinstance(first, IterationOp):
        block.insert_ops_after(ops, first)
    else:
        block.insert_ops_before(ops, first)


class UseIndicesPass(ModulePass):
    """Let the indices of loops be the counters of streams, where they count alike."""

    name = "sem-use-indices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                use_indices(streams)
