"""`sem-sink-steps`: compute what a loop passes on to its next iteration at the end, where nothing else needs it.

Computed earlier, it lives beside the value that it follows, and takes a register and a move. Lowering lets both share
one register where the old value is needed no more. What takes a step back again is the value before it. Section 6.2 of
barrier-free is about what such operations cost.

    scf.for ... iter_args(%r = ...) {                    scf.for ... iter_args(%r = ...) {
      %next = arith.addi %r, %one : i32
      %t = arith.addi %next, %minus_one : i32      ->
      sem.wait "s" >= %t : i32                             sem.wait "s" >= %r : i32
      sem.inst @I ...                                      sem.inst @I ...
      scf.yield %next : i32                                %next = arith.addi %r, %one : i32
                                                           scf.yield %next : i32
"""

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.passes.scalar_folding import constant_of


def sink_steps(streams: StreamsOp) -> None:
    """Move steps to the ends of loops, in place."""
    for op in streams.walk():
        if isinstance(op, scf.ForOp):
            _sink(op.body.block)


def _sink(block: Block) -> None:
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    for carried, passed in zip(block.args[1:], end.operands, strict=True):
        if isinstance(passed, OpResult) and _is_step(passed.op, carried, block):
            _take_back(passed, carried)
            if passed.get_user_of_unique_use() is end:
                passed.op.detach()
                block.insert_op_before(passed.op, end)


def _is_step(op: Operation, carried: SSAValue, block: Block) -> bool:
    """Whether it computes what follows a value that the loop of the block carries."""
    return type(op) in SCALAR_OPS and op.parent is block and carried in op.operands


def _take_back(step: OpResult, carried: SSAValue) -> None:
    """Where all that is computed from the step, but for the next iteration, takes it back, use the value before it."""
    by = _added(step.op, carried)
    users = [use.operation for use in step.uses if not isinstance(use.operation, scf.YieldOp)]
    if by is None or any(_added(user, step) != -by for user in users):
        return
    for user in users:
        user.results[0].replace_all_uses_with(carried)
        user.detach()
        user.erase()


def _added(op: Operation, to: SSAValue) -> int | None:
    """The constant that `op` adds to a value."""
    return constant_of(op.rhs) if isinstance(op, arith.AddiOp) and op.lhs is to else None


class SinkStepsPass(ModulePass):
    """Compute what a loop passes on to its next iteration at the end, where nothing else needs it."""

    name = "sem-sink-steps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                sink_steps(streams)
