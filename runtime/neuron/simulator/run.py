"""Runs ISA programs (docs/isa.md).

Engines issue in order and are pipelined: the next instruction issues `cost` ns after one, which retires `latency` ns
after its issue, and not before those ahead of it. What it writes becomes visible at some time in between.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from mpkc.dialects.wording import counted
from mpkc.runtime.bindings import Bindings, Scalar, bindings_of
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import (
    ArgumentRef,
    Instruction,
    Issued,
    Iteration,
    Nop,
    Opaque,
    Program,
    Read,
    SizeRef,
    Tile,
)
from mpkc.runtime.neuron.simulator.control import control_step, end_step, iteration_step
from mpkc.runtime.neuron.simulator.deadlocks import deadlock_of
from mpkc.runtime.neuron.simulator.engines import EngineState, Step
from mpkc.runtime.neuron.simulator.issuing import Body, issued_step, nop_body, opaque_body, read_body, tile_body
from mpkc.runtime.neuron.simulator.memory import allocate
from mpkc.runtime.neuron.simulator.races import RaceDetector
from mpkc.runtime.neuron.simulator.report import Result, Usage
from mpkc.runtime.neuron.simulator.simulation import Options, Simulation
from mpkc.runtime.neuron.simulator.tiles import TileEffect, timing
from mpkc.runtime.neuron.simulator.values import Given, Input, Mailbox
from mpkc.runtime.reference.elements import Array


def simulate(
    program: Program,
    machine: Machine,
    bindings: Bindings | Mapping[str, Scalar | Sequence[Scalar]] | None = None,
    inputs: Mapping[str, Input] | None = None,
    *,
    values: bool = True,
    races: bool = False,
    explain: bool = False,
    timeline: bool = False,
    seed: int | None = None,
    limit: int = 100_000_000,
) -> Result:
    """Run a program that was read from ISA text.

    Args:
        bindings: a number for each integer argument, and for each VALUE one for each of its executions.
        inputs: an array for each far buffer, of its shape and its elements' storage type; numbers for arguments that
            `bindings` leaves out. Arrays are not changed.
        values: whether to compute what instructions write; without it there is time alone. A value that TENSOR_LOAD
            takes from memory must then be bound.
        races: whether to look for races; needs values.
        explain: whether to list the waits.
        timeline: whether to list every instruction with its times.
        seed: chooses at what time between issue and retirement each instruction reads and writes, and in what order
            the parts of DMA transfers arrive. By default reads are as early and writes as late as can be.
        limit: instructions after which a program is said to run forever.

    Raises:
        ValueError: a binding or an input that is missing, unknown or of the wrong type; an update on a DMA queue that
            is not one for each part; a semaphore or an engine that the machine has not.
        MachineError: where the machine does not say what an instruction costs.
    """
    if races and not values:
        raise ValueError("races are looked for in a simulation with values")
    if not isinstance(bindings, Bindings):
        bindings = bindings_of(bindings or {})
    _check_machine(program, machine)
    given = Given(program, bindings, inputs or {})
    simulation = Simulation(program, machine, Options(values, races, explain, timeline, seed, limit))
    memory = allocate(program.buffers, given.arrays) if values else {}
    mailboxes = _mailboxes(program, given, values)
    if races:
        sizes = {name: flat.size for name, flat in memory.items()} | dict.fromkeys(mailboxes, 1)
        simulation.detector = RaceDetector(len(program.engines), sizes)
    assembler = _Assembler(simulation, given, memory, mailboxes)
    for engine in simulation.engines:
        assembler.assemble(engine)
    simulation.run()
    return _result(simulation, given, memory, mailboxes)


def _check_machine(program: Program, machine: Machine) -> None:
    for engine in program.engines:
        if not machine.has_engine(engine.name):
            raise ValueError(f"{machine.name} has no engine {engine.name}; there are: {', '.join(machine.engines)}")
        most = machine.limits.registers
        if most is not None and engine.registers > most:
            raise ValueError(
                f"engine {engine.name} uses {counted(engine.registers, 'register')}, and {machine.name} has {most}"
            )
        parts = machine.dma.parts if machine.dma and engine.name in machine.dma.queues else None
        for issued in engine.instructions:
            amount = issued.update.amount if isinstance(issued, Issued) and issued.update else parts
            if parts is not None and amount != parts:
                raise ValueError(
                    f"ISA line {issued.line}: {engine.name} is a DMA queue of {machine.name}: an update on it is one "
                    f"for each of {parts} parts, +={parts}, not {amount}"
                )
    most = machine.limits.semaphores
    if most is not None and len(program.semaphores) > most:
        raise ValueError(
            f"the program uses {counted(len(program.semaphores), 'semaphore')}, and {machine.name} has {most}"
        )


def _mailboxes(program: Program, given: Given, values: bool) -> dict[str, Mailbox]:
    loaded = {
        item.label
        for engine in program.engines
        for item in engine.instructions
        if isinstance(item, Tile) and item.label
    }
    mailboxes: dict[str, Mailbox] = {}
    for value in program.values:
        bound = {engine.name: given.values(value.name, engine.name) for engine in program.engines}
        present = {engine: found for engine, found in bound.items() if found is not None}
        from_memory = value.name in loaded and values
        if from_memory and present:
            raise ValueError(f"{value.name} comes from memory in a simulation with values: it cannot be bound")
        if value.name in loaded and not values and not present:
            raise ValueError(f"{value.name} comes from memory: bind it, {value.name}=1,2,..., or simulate with values")
        complete = {engine.name: present.get(engine.name, ()) for engine in program.engines}
        mailboxes[value.name] = Mailbox(value.name, None if from_memory else complete)
    return mailboxes


class _Assembler:
    """Turns the items of a stream into the steps of its engine."""

    def __init__(
        self, simulation: Simulation, given: Given, memory: Mapping[str, Array], mailboxes: Mapping[str, Mailbox]
    ):
        self.simulation, self.given, self.memory, self.mailboxes = simulation, given, memory, mailboxes
        self.buffers = {buffer.name: buffer for buffer in simulation.program.buffers}

    def assemble(self, engine: EngineState) -> None:
        """Give the engine its code."""
        arguments = self.given.arguments(engine.name)
        engine.code = [self.step(engine, at, item, arguments) for at, item in enumerate(engine.items)]
        engine.code.append(end_step)

    def step(
        self,
        engine: EngineState,
        at: int,
        item: Instruction | Iteration,
        arguments: Mapping[str, int | float],
    ) -> Step:
        match item:
            case Iteration():
                return iteration_step(item, at + 1)
            case Issued():
                return issued_step(self.simulation, engine, at, item, self.body(engine, item, arguments))
            case _:
                return control_step(self.simulation, engine, at, item, partial(self.source, arguments))

    def source(self, arguments: Mapping[str, int | float], reference: ArgumentRef | SizeRef) -> int:
        """The number that a REGISTER_MOVE takes."""
        if isinstance(reference, ArgumentRef):
            return int(arguments[reference.name])
        buffer = self.buffers[reference.buffer]
        size = buffer.shape[reference.axis]
        if size is None and buffer.name not in self.given.arrays:
            raise ValueError(f"the far buffer {buffer.name} has no input, which says how large it is")
        return self.given.arrays[buffer.name].shape[reference.axis] if size is None else size

    def body(self, engine: EngineState, issued: Issued, arguments: Mapping[str, int | float]) -> Body:
        simulation = self.simulation
        match issued:
            case Nop():
                return nop_body(simulation, issued)
            case Read(_, value):
                return read_body(simulation, engine, issued, self.mailboxes[value])
            case Opaque():
                mailbox = self.mailboxes[issued.label] if issued.is_value and issued.label else None
                return opaque_body(simulation, issued, mailbox)
            case Tile(opcode):
                times = timing(issued, engine.name, self.buffers, simulation.machine, engine.registers)
                effect = None
                if simulation.options.values:
                    effect = TileEffect(issued, engine.name, self.buffers, self.memory, arguments, engine.registers)
                mailbox = self.mailboxes[issued.label] if opcode == "TENSOR_LOAD" and issued.label else None
                return tile_body(simulation, issued, times, effect, mailbox)
            case _:
                raise AssertionError(f"no instruction that is issued: {issued}")


def _result(
    simulation: Simulation, given: Given, memory: Mapping[str, Array], mailboxes: Mapping[str, Mailbox]
) -> Result:
    engines = simulation.engines
    timeline = simulation.options.timeline
    return Result(
        time_ns=max((max(engine.time, engine.retired) for engine in engines), default=0.0),
        deadlock=None if simulation.fault else deadlock_of(simulation),
        fault=simulation.fault,
        engines={engine.name: Usage(engine.busy, engine.wait, engine.control) for engine in engines},
        instructions=simulation.steps - sum(engine.free for engine in engines),
        waits=tuple(wait for engine in engines for wait in engine.waits),
        executions=simulation.opaque.trace(),
        races=simulation.detector.races if simulation.detector else (),
        buffers={name: memory[name].reshape(array.shape) for name, array in given.arrays.items() if name in memory},
        left={name: left for name, mailbox in mailboxes.items() if (left := mailbox.left)},
        spans={engine.name: tuple(engine.spans) for engine in engines} if timeline else {},
        handshakes={engine.name: tuple(engine.pauses) for engine in engines} if timeline else {},
    )
