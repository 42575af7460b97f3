"""Steps of what an engine does by itself: registers, branches, iterations, handshakes."""

from collections.abc import Callable

from mpkc.runtime.neuron.alu import CONDITIONS, binary, unary, wrapped
from mpkc.runtime.neuron.isa import (
    INDEX_BITS,
    Alu,
    AluOp,
    ArgumentRef,
    Branch,
    Condition,
    Drain,
    Handshake,
    Instruction,
    Iteration,
    Move,
    Operand,
    Register,
    Reset,
    SizeRef,
)
from mpkc.runtime.neuron.simulator.engines import STOP, EngineState, Step
from mpkc.runtime.neuron.simulator.simulation import Simulation


def control_step(
    simulation: Simulation,
    engine: EngineState,
    at: int,
    instruction: Instruction,
    source: Callable[[ArgumentRef | SizeRef], int],
) -> Step:
    """The step of an instruction that does not enter the pipeline.

    Args:
        at: its place in the code.
        source: the value of an argument or a size.
    """
    registers, cost = engine.registers, simulation.machine.costs.register
    match instruction:
        case Move(dest, ArgumentRef() | SizeRef() as given):
            return _compute(dest, _value(source(given), registers), at + 1, registers, cost)
        case Move(dest, int() | Register() as operand):
            return _compute(dest, _value(operand, registers), at + 1, registers, cost)
        case Alu(dest):
            return _compute(dest, _alu(instruction, registers), at + 1, registers, cost)
        case Branch():
            target, cost = engine.targets[instruction.target], simulation.machine.costs.branch
            return _branch(instruction, at + 1, target, registers, cost)
        case Drain():
            return _drain(at + 1, cost)
        case Handshake(engines):
            return _handshake(simulation, engines)
        case Reset(semaphores):
            return _reset(simulation, semaphores, at + 1, cost)
        case _:
            raise AssertionError(f"no control instruction: {instruction}")


def iteration_step(directive: Iteration, after: int) -> Step:
    """The step of `.iteration`, which takes no time."""
    loop, depth = directive.loop, directive.depth

    def step(engine: EngineState) -> int:
        engine.begin(loop, depth)
        return after

    return step


def end_step(engine: EngineState) -> int:
    """The step behind the last instruction."""
    engine.ended = True
    return STOP


def _value(operand: Operand, registers: list[int]) -> Callable[[], int]:
    if isinstance(operand, Register):
        at = operand.number
        return lambda: registers[at]
    number = wrapped(operand, INDEX_BITS)
    return lambda: number


def _alu(alu: Alu, registers: list[int]) -> Callable[[], int]:
    """What computes the result; the usual shapes of operands without a call for each of them."""
    op, bits = alu.op, alu.bits
    match alu.operands:
        case condition, left, right:
            return _select(*(_value(operand, registers) for operand in (condition, left, right)))
        case (operand,):
            single, get = unary(op, bits), _value(operand, registers)
            return lambda: single(get())
        case Register(left), Register(right):
            compute = binary(op, bits)
            return lambda: compute(registers[left], registers[right])
        case Register(left), int(number):
            compute, right = binary(op, bits), wrapped(number, bits)
            return lambda: compute(registers[left], right)
        case left, right:
            compute, first, second = binary(op, bits), _value(left, registers), _value(right, registers)
            return lambda: compute(first(), second())
        case _:
            raise AssertionError(f"{AluOp.SELECT} alone has three operands")


def _select(condition: Callable[[], int], left: Callable[[], int], right: Callable[[], int]) -> Callable[[], int]:
    return lambda: left() if condition() else right()


def _compute(dest: Register, compute: Callable[[], int], after: int, registers: list[int], cost: float) -> Step:
    number = dest.number

    def step(engine: EngineState) -> int:
        registers[number] = compute()
        engine.time += cost
        engine.control += cost
        return after

    return step


def _branch(branch: Branch, after: int, target: int, registers: list[int], cost: float) -> Step:
    if branch.condition is Condition.ALWAYS:
        holds = _value(1, registers)
    else:
        holds = _alu(Alu(Register(0), CONDITIONS[branch.condition], branch.operands, branch.bits), registers)

    def step(engine: EngineState) -> int:
        engine.time += cost
        engine.control += cost
        return target if holds() else after

    return step


def _drain(after: int, cost: float) -> Step:
    def step(engine: EngineState) -> int:
        idle = max(0.0, engine.retired - engine.time)
        engine.wait += idle
        engine.time += idle + cost
        engine.control += cost
        engine.drained()
        return after

    return step


def _handshake(simulation: Simulation, engines: tuple[str, ...]) -> Step:
    """The last engine that comes lets all go on."""
    met = frozenset(engines or (engine.name for engine in simulation.engines))

    def step(engine: EngineState) -> int:
        simulation.come_to_handshake(engine, met)
        return STOP

    return step


def _reset(simulation: Simulation, semaphores: tuple[int, ...], after: int, cost: float) -> Step:
    def step(engine: EngineState) -> int:
        if simulation.is_behind(engine):
            return simulation.resume(engine, engine.time)
        for number in semaphores:
            simulation.semaphores[number].reset(engine.time, engine.clock)
            if number in simulation.transfers:
                simulation.transfers[number].reset(engine.clock)
        engine.time += cost
        engine.control += cost
        return after

    return step
