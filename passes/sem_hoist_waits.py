"""sem-hoist-waits: wait in front of a loop for what each of its iterations would wait for again (barrier-free, 8.2).

Semaphores only grow: once one has reached a threshold, to ask again costs time and tells nothing. A wait goes in front
of an scf.for that does not change its threshold, surely has an iteration, and does nothing before it that others could
see; from there in front of the loop around that, if the same holds. A wait that an instruction comes before stays: in
front of the loop it would hold back that instruction, too. So does one whose semaphore is reset in the loop.

    scf.for %k = %c0 to %c16 step %c1 {                             sem.wait "dma" >= %tile : i32
      sem.iteration "k" depth 2                                     scf.for %k = %c0 to %c16 step %c1 {
      sem.wait "dma" >= %tile : i32                          ->       sem.iteration "k" depth 2
      sem.inst @M engine "tensor" cost 64                             sem.inst @M engine "tensor" cost 64
    }                                                               }
"""

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mpkc.dialects.sem_streams import BarrierOp, IterationOp, StreamsOp, WaitOp, begins_with_instruction, is_between
from mpkc.passes.scalar_folding import constant_of


def hoist_waits(streams: StreamsOp) -> None:
    """Move waits of streams in front of loops, in place."""
    loops = [op for op in streams.walk() if isinstance(op, scf.ForOp)]
    for loop in reversed(loops):  # those inside of one before it
        if _surely_runs(loop) and begins_with_instruction(loop):
            reset = _reset_in(loop)
            for wait in list(_first_waits(loop)):
                if wait.semaphore.data not in reset and not loop.is_ancestor(wait.threshold.owner):
                    wait.detach()
                    assert loop.parent is not None
                    loop.parent.insert_op_before(wait, loop)


def _surely_runs(loop: scf.ForOp) -> bool:
    lower, upper = constant_of(loop.lb), constant_of(loop.ub)
    return lower is not None and upper is not None and lower < upper


def _first_waits(loop: scf.ForOp) -> Iterator[WaitOp]:
    """The waits of an iteration that come before all else that is done in it."""
    for op in loop.body.block.ops:
        if isinstance(op, WaitOp):
            yield op
        elif not is_between(op) and not isinstance(op, IterationOp):
            return


def _reset_in(loop: scf.ForOp) -> set[str]:
    return {name.data for op in loop.walk() if isinstance(op, BarrierOp) for name in op.semaphores}


class HoistWaitsPass(ModulePass):
    """Wait in front of loops for what their iterations would wait for again."""

    name = "sem-hoist-waits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                hoist_waits(streams)
