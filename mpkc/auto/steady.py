"""How long a program takes, by simulating no more of it than shows its steady state.

Loops run as often as they do where a simulation of that is short. Of longer ones, two lengths are simulated, and what
the rest takes is what the difference of both takes, by the number of instructions. A loop whose iterations are known
only when the program runs has some.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from mpkc.auto.choice import EngineProgram
from mpkc.dialects.sem_structure import structure_of
from mpkc.passes.scalar_folding import constant_of
from mpkc.passes.semaphores.bounds import trips as trips_of
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import Buffer, Program
from mpkc.runtime.neuron.simulator import Result, simulate
from mpkc.runtime.reference.elements import Array

UNKNOWN = 16
"""Iterations of a loop that are not known."""
LENGTHS = (64, 32, 16, 8, 4)
"""Iterations that are left of a longer loop, the most first."""
MOST_EXECUTIONS = 30_000
"""Instructions of one simulation, about."""
STEADY_NAME = "steady.iterations"
"""Of an argument that a program has only here."""
SIZE = 4096
"""Of far buffers, along an axis that is only known at run time."""
STEPS = 50
"""Instructions of all engines for one of the program, at most."""


@dataclass(frozen=True)
class Length:
    """A program whose loops have fewer iterations, or as many.

    Attributes:
        most: iterations of a loop.
        executions: of instructions.
    """

    program: EngineProgram
    most: int
    executions: int


@dataclass(frozen=True)
class Steady:
    """A program to simulate.

    Attributes:
        lengths: the program itself, or two that are shorter, the longer one first.
        executions: of instructions of the program, where unknown loops have UNKNOWN iterations.
    """

    lengths: tuple[Length, ...]
    executions: int

    def time_of(self, simulated: Callable[[Length], float]) -> float:
        """The time of all executions, given that of each length."""
        first, *shorter = self.lengths
        time = simulated(first)
        for length in shorter:
            rate = (time - simulated(length)) / max(first.executions - length.executions, 1)
            time += rate * (self.executions - first.executions)
        return time


def steady(program: EngineProgram) -> Steady:
    """A program, whose dependencies are written down, in lengths that can be simulated."""
    whole = _with_at_most(program, None)
    if whole.executions <= MOST_EXECUTIONS:
        return Steady((whole,), whole.executions)
    lengths = [_with_at_most(program, most) for most in LENGTHS]
    fitting = [length for length in lengths[:-2] if length.executions <= MOST_EXECUTIONS] or lengths[-2:]
    longer = fitting[0]
    shorter = next(length for length in lengths if length.most < longer.most)
    return Steady((longer, shorter), whole.executions)


def simulated(program: Program, machine: Machine, length: Length, timeline: bool = False) -> Result:
    """Simulate what a length of a program was compiled to, time alone."""
    sizes = {buffer.name: _sized(buffer) for buffer in program.buffers if None in buffer.shape}
    limit = STEPS * max(length.executions, 1_000)
    numbers = _numbers(program, length)
    return simulate(program, machine, numbers, sizes, values=False, timeline=timeline, limit=limit)


def _with_at_most(program: EngineProgram, most: int | None) -> Length:
    """A copy in which loops have at most so many iterations, if that is said.

    What is known of how often a loop runs, in all of the program's runs, goes on being known.
    """
    copy = program.clone()
    bounds = trips_of(structure_of(copy))
    block = copy.body.block
    count = block.insert_arg(IndexType(), len(block.args))
    count.name_hint = STEADY_NAME
    trips: dict[Operation, int] = {}
    for loop, bound in bounds.items():
        if isinstance(op := loop.op, scf.ForOp):
            if bound is not None:
                op.attributes["most"] = IntegerAttr(bound, i64)
            trips[op] = _shorten(op, most, count)
    unknown = UNKNOWN if most is None else min(most, UNKNOWN)
    executions = (
        prod(trips.get(loop.op, unknown) for loop in instruction.counted if loop.parent is not None)
        for instruction in structure_of(copy).instructions
    )
    return Length(copy, unknown, sum(executions)) if most is None else Length(copy, most, sum(executions))


def _shorten(op: scf.ForOp, most: int | None, count: SSAValue) -> int:
    """Let a loop have at most so many iterations; `count`, where it is not known how many it has."""
    lower, upper, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    ops: list[Operation] = []
    if lower is not None and upper is not None and step is not None and step > 0:
        trips = max(0, -((lower - upper) // step))
        if most is None or trips <= most:
            return trips
        trips = most
        ops.append(constant := arith.ConstantOp(IntegerAttr(trips, IndexType())))
        count = constant.result
    else:
        trips = min(most or UNKNOWN, UNKNOWN)
    length = arith.MuliOp(op.step, count)
    end = arith.AddiOp(op.lb, length.result)
    block = op.parent
    assert block is not None
    block.insert_ops_before([*ops, length, end], op)
    op.operands[1] = end.result
    return trips


def _numbers(program: Program, length: Length) -> Bindings:
    """Something for every number that a program is given: the iterations of loops, where it is one of those."""
    trips = min(length.most, UNKNOWN)
    arguments = {each.name: (1 if each.type == "i1" else trips,) for each in program.arguments}
    values = {each.name: (1,) * max(length.executions, UNKNOWN) for each in program.values}
    return Bindings({**arguments, **values})


def _sized(buffer: Buffer) -> Array:
    """An array of some size, that takes no memory."""
    return np.broadcast_to(np.zeros(()), [SIZE if size is None else size for size in buffer.shape])
