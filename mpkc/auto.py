"""`auto`: the semaphores that an expert would choose, by simulated time (barrier-free, section 8.2, RQ3).

The choices are those of the paper's experts: which producers have a semaphore of their own and which share one, which
loops get barriers, and whether registers keep thresholds from one iteration to the next. Each candidate is compiled
and simulated on the machine, within its budgets, with as few iterations of every loop as show its steady state. From
the best of the plain kinds, one loop and one group of producers after another is tried with other semaphores, as long
as that is faster, or as fast with fewer semaphores and registers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue

from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import Loop, structure_of
from mpkc.passes.scalar_folding import constant_of
from mpkc.passes.semaphores.bounds import trips as trips_of
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.emit import Emission
from mpkc.runtime.neuron.isa import Buffer, Program
from mpkc.runtime.neuron.simulator import simulate
from mpkc.runtime.reference.elements import Array

EngineProgram = sem.ProgramOp | tile.KernelOp

PLAIN = ("barrier", "per-loop", "per-instruction", "per-engine")
STEADY = (16, 8, 4)
"""Iterations of a loop that are simulated, the most first."""
MOST_EXECUTIONS = 5_000
"""Instructions of one simulation, about."""
STEADY_NAME = "steady.iterations"
"""Of an argument that a program has only here."""
SIZE = 4096
"""Of far buffers, along an axis that is only known at run time."""
SAME = 1.002
"""Times that differ by less are the same."""


@dataclass(frozen=True)
class Choice:
    """What semaphores a program gets.

    Attributes:
        kind: of what `of` says nothing of.
        lean: whether registers keep what masks and counters of their own would tell.
        of: kinds of loops and instructions, by their number in the order of the program.
    """

    kind: str
    lean: bool
    of: Mapping[int, str] = field(default_factory=dict[int, str])

    def given_to(self, program: EngineProgram) -> EngineProgram:
        """A copy of a program in which its operations ask for these semaphores."""
        copy = program.clone()
        copy.attributes["semaphores"] = StringAttr(self.kind)
        for number, op in enumerate(copy.walk()):
            if (kind := self.of.get(number)) is not None:
                op.attributes["semaphores"] = StringAttr(kind)
        return copy


@dataclass(frozen=True, order=True)
class Cost:
    """What is compared, in this order."""

    time_ns: float
    semaphores: int
    registers: int
    code: int

    def beats(self, other: "Cost") -> bool:
        """Whether it is faster by more than chance, or as fast and smaller."""
        if self.time_ns * SAME < other.time_ns:
            return True
        smaller = (self.semaphores, self.registers, self.code) < (other.semaphores, other.registers, other.code)
        return smaller and self.time_ns < other.time_ns * SAME


Compile = Callable[[EngineProgram, Choice], Emission]
"""Compiles a program in which `Choice.of` is written down; raises OpError where it does not fit."""

NOTHING = Cost(inf, 0, 0, 0)


def choose(program: EngineProgram, machine: Machine, compile_: Compile) -> Choice:
    """The choice for a program whose dependencies are written down.

    Raises:
        OpError: where no kind of semaphores fits, or none comes to its end in the simulator.
    """
    return _Search(program, machine, compile_).run()


class _Search:
    """Simulates candidates, each once.

    Attributes:
        short: the program with fewer iterations.
        known: the costs of what was tried.
        refusal: the last error of a candidate that does not fit.
    """

    def __init__(self, program: EngineProgram, machine: Machine, compile_: Compile):
        self.program, self.machine, self.compile = program, machine, compile_
        self.short, self.most = _shortened(program)
        self.known: dict[tuple[str, bool, frozenset[tuple[int, str]]], Cost] = {}
        self.refusal: OpError | None = None

    def run(self) -> Choice:
        best = self.least(Choice(kind, lean) for kind in PLAIN for lean in (False, True))
        if self.cost(best) == NOTHING:
            raise self.refusal or OpError(self.program, "no kind of semaphores comes to an end in the simulator")
        for numbers, kinds in _parts(self.short):
            others = ({**best.of, **dict.fromkeys(numbers, kind)} for kind in kinds)
            best = self.least([best, *(replace(best, of=of) for of in others)])
        return best

    def least(self, choices: Iterable[Choice]) -> Choice:
        first, *others = choices
        for other in others:
            if self.cost(other).beats(self.cost(first)):
                first = other
        return first

    def cost(self, choice: Choice) -> Cost:
        key = choice.kind, choice.lean, frozenset(choice.of.items())
        if key not in self.known:
            self.known[key] = self.simulated(choice)
        return self.known[key]

    def simulated(self, choice: Choice) -> Cost:
        try:
            emitted = self.compile(choice.given_to(self.short), choice)
        except OpError as err:
            self.refusal = err
            return NOTHING
        program = emitted.program
        sizes = {buffer.name: _sized(buffer) for buffer in program.buffers if None in buffer.shape}
        result = simulate(
            program, self.machine, _numbers(program, self.most), sizes, values=False, limit=50 * MOST_EXECUTIONS
        )
        if not result.ok:
            return NOTHING
        code = program.code_bytes(self.machine.instruction_bytes)
        return Cost(result.time_ns, len(program.semaphores), emitted.added_registers, code)


def _parts(program: EngineProgram) -> Iterator[tuple[list[int], Sequence[str]]]:
    """What may have other semaphores than the rest, and which: loops, the innermost first, and what shares one."""
    structure = structure_of(program)
    number = {op: at for at, op in enumerate(program.walk())}
    counted = [loop for loop in structure.loops if loop.counted and loop.parent is not None]
    for loop in sorted(counted, key=lambda loop: -loop.depth):
        yield [number[loop.op]], ("barrier",)
    together: dict[tuple[str, Loop], list[int]] = {}
    for instruction in structure.instructions:
        together.setdefault((instruction.engine, instruction.loop), []).append(number[instruction.op])
    for numbers in together.values():
        yield numbers, ("per-loop", "per-instruction")


def _shortened(program: EngineProgram) -> tuple[EngineProgram, int]:
    """A copy of a program in which loops have few iterations, and how many at most."""
    for most in STEADY[:-1]:
        copy, executions = _with_at_most(program, most)
        if executions <= MOST_EXECUTIONS:
            return copy, most
    return _with_at_most(program, STEADY[-1])[0], STEADY[-1]


def _with_at_most(program: EngineProgram, most: int) -> tuple[EngineProgram, int]:
    """A copy in which loops have at most so many iterations, and how many instructions it executes.

    What is known of how often a loop runs, in all of the program's runs, goes on being known.
    """
    copy = program.clone()
    bounds = trips_of(structure_of(copy))
    block = copy.body.block
    steady = block.insert_arg(IndexType(), len(block.args))
    steady.name_hint = STEADY_NAME
    trips: dict[Operation, int] = {}
    for loop, bound in bounds.items():
        if isinstance(op := loop.op, scf.ForOp):
            if bound is not None:
                op.attributes["most"] = IntegerAttr(bound, i64)
            trips[op] = _shorten(op, most, steady)
    executions = (
        prod(trips.get(loop.op, most) for loop in instruction.counted if loop.parent is not None)
        for instruction in structure_of(copy).instructions
    )
    return copy, sum(executions)


def _shorten(op: scf.ForOp, most: int, steady: SSAValue) -> int:
    """Let a loop have at most so many iterations; `steady`, which is as many, where it is not known how many it has."""
    lower, upper, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    ops: list[Operation] = []
    count, trips = steady, most
    if lower is not None and upper is not None and step is not None and step > 0:
        trips = min(most, max(0, -((lower - upper) // step)))
        ops.append(constant := arith.ConstantOp(IntegerAttr(trips, IndexType())))
        count = constant.result
    length = arith.MuliOp(op.step, count)
    end = arith.AddiOp(op.lb, length.result)
    block = op.parent
    assert block is not None
    block.insert_ops_before([*ops, length, end], op)
    op.operands[1] = end.result
    return trips


def _numbers(program: Program, most: int) -> Bindings:
    """Something for every number that a program is given: the iterations of loops, where it is one of those."""
    arguments = {each.name: (1 if each.type == "i1" else most,) for each in program.arguments}
    values = {each.name: (1,) * MOST_EXECUTIONS for each in program.values}
    return Bindings({**arguments, **values})


def _sized(buffer: Buffer) -> Array:
    """An array of some size, that takes no memory."""
    return np.broadcast_to(np.zeros(()), [SIZE if size is None else size for size in buffer.shape])
