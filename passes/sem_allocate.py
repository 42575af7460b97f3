"""`sem-allocate`: give a program its semaphores, and each engine its stream (barrier-free, sections 5 and 6).

Every engine waits for exactly what its instructions depend on: thresholds are computed from counters of iterations that
it keeps itself. Only what is waited for signals.

    scf.for %i = %c0 to %n step %c1 {                scf.for ... {                 scf.for ... iter_args(%r = ...) {
      sem.inst @P engine "e0" ...               ->     sem.inst @P ...               %r1 = arith.addi %r, %c1
      sem.inst @C engine "e1" ...                        {signal = "e0.i"}           sem.wait "e0.i" >= %r1
          after [@P offset 0]                        }                               sem.inst @C ...
    }                                                                              }
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness
from xdsl.passes import ModulePass

from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.dialects.sem_structure import Structure, structure_of
from mpkc.passes.semaphores.fit import fitted_plan
from mpkc.passes.semaphores.needs import MOST_HISTORY
from mpkc.passes.semaphores.plan import Plan
from mpkc.passes.semaphores.streams import write_streams

KINDS = ("barrier", "per-instruction", "per-loop", "per-engine")


@dataclass(frozen=True)
class Allocation:
    """The streams of a program, and the plan that they follow."""

    streams: StreamsOp
    plan: Plan


def allocate(
    program: sem.ProgramOp | tile.KernelOp,
    kind: str = "per-loop",
    counters: str = "ui32",
    semaphores: int | None = None,
    history: int = MOST_HISTORY,
    structure: Structure | None = None,
    parts: int = 1,
    shifted: int = 0,
) -> Allocation:
    """Allocate semaphores for a verified sem.program or tile.kernel, which is left as it is.

    Args:
        kind: one of KINDS, for what no attribute `semaphores` says otherwise for.
        counters: the arithmetic of semaphores: `ui` or `si` and the number of bits.
        semaphores: how many there are; None for as many as needed.
        history: the registers that the history of one loop may take; beyond them, a marker stands for it.
        structure: that of the program, where it is known already.
        parts: the most that one update adds to a semaphore of the machine, where it counts parts of transfers.
        shifted: how many iterations back registers may hold what was, where a mask could tell it as well.

    Raises:
        OpError: what can't be allocated, and why.
        ValueError: counters that are none.
    """
    type_ = counter_type(counters)
    largest = (1 << (type_.width.data - (type_.signedness.data is Signedness.SIGNED))) - 1
    if largest < parts:
        least = f"{counters[:2]}{parts.bit_length() + (type_.signedness.data is Signedness.SIGNED)}"
        raise OpError(
            program,
            f"semaphores of {counters} hold {largest} at most, and each transfer adds its {parts} parts: use {least} "
            "or wider",
        )
    limit = largest // parts
    plan = fitted_plan(structure or structure_of(program), kind, limit, semaphores, history, shifted)
    return Allocation(write_streams(plan, program.sym_name.data, type_, program.attributes), plan)


def counter_type(counters: str) -> IntegerType:
    """The type of `ui32`, `si16`, ...; ValueError where it is none."""
    signs = {"ui": Signedness.UNSIGNED, "si": Signedness.SIGNED}
    bits = counters[2:]
    if counters[:2] not in signs or not bits.isdecimal() or not 2 <= int(bits) <= 64:
        raise ValueError(f"counters of type {counters!r}: use ui or si and a number of bits from 2 to 64, such as ui32")
    return IntegerType(int(bits), signs[counters[:2]])


@dataclass(frozen=True)
class AllocatePass(ModulePass):
    """Replace each multi-engine program by its streams.

    Attributes:
        kind: barrier, per-instruction, per-loop or per-engine.
        counters: ui or si and a number of bits.
    """

    name = "sem-allocate"

    kind: str = "per-loop"
    counters: str = "ui32"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in list(op.ops):
            if isinstance(program, sem.ProgramOp | tile.KernelOp):
                if self.kind not in KINDS:
                    raise OpError(program, f"unknown kind of semaphores '{self.kind}': use {', '.join(KINDS)}")
                streams = allocate(program, self.kind, self.counters).streams
                op.body.block.insert_op_before(streams, program)
                program.detach()
                program.erase()
