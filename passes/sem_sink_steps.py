"""`sem-sink-steps`: compute what a loop passes on to its next iteration at the end, where nothing else needs it.

Computed earlier, it lives beside the value that it follows, and takes a register and a move. Lowering lets both share
one register where the old value is needed no more. Section 6.2 of barrier-free is about what such operations cost.

    scf.for ... iter_args(%t = ...) {                    scf.for ... iter_args(%t = ...) {
      %next = arith.addi %t, %one : i32                    sem.wait "s" >= %t : i32
      sem.wait "s" >= %t : i32                    ->       sem.inst @I ...
      sem.inst @I ...                                      %next = arith.addi %t, %one : i32
      scf.yield %next : i32                                scf.yield %next : i32
"""

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, OpResult, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_streams import StreamsOp


def sink_steps(streams: StreamsOp) -> None:
    """Move steps to the ends of loops, in place."""
    for op in streams.walk():
        if isinstance(op, scf.ForOp):
            _sink(op.body.block)


def _sink(block: Block) -> None:
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    for carried, passed in zip(block.args[1:], end.operands, strict=True):
        if _is_step(passed, carried, block):
            step = passed.owner
            assert not isinstance(step, Block)
            step.detach()
            block.insert_op_before(step, end)


def _is_step(passed: SSAValue, carried: SSAValue, block: Block) -> bool:
    """Whether it is computed in the block from what it follows, for the next iteration alone."""
    return (
        isinstance(passed, OpResult)
        and type(passed.op) in SCALAR_OPS
        and passed.op.parent is block
        and carried in passed.op.operands
        and passed.get_user_of_unique_use() is block.last_op
    )


class SinkStepsPass(ModulePass):
    """Compute what a loop passes on to its next iteration at the end, where nothing else needs it."""

    name = "sem-sink-steps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                sink_steps(streams)
