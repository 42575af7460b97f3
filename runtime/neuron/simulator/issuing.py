"""Steps of the instructions that enter the pipeline: they wait, issue, and read and write on their way."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mpkc.runtime.machine import Timing
from mpkc.runtime.neuron.isa import Issued, Nop, Opaque, Read, Register
from mpkc.runtime.neuron.simulator.engines import STOP, EngineState, Step
from mpkc.runtime.neuron.simulator.memory import Part, Touched
from mpkc.runtime.neuron.simulator.opaque import OpaqueExecution
from mpkc.runtime.neuron.simulator.simulation import Flight, Simulation
from mpkc.runtime.neuron.simulator.tiles import Captured, TileEffect
from mpkc.runtime.neuron.simulator.values import Mailbox

Body = Callable[[EngineState, "tuple[int, int] | None"], None]
"""Issues an instruction; given the semaphore and the threshold that its wait has seen, if it had to see one."""


def issued_step(simulation: Simulation, engine: EngineState, at: int, issued: Issued, body: Body) -> Step:
    """The step of an instruction: its wait, then its body."""
    after = at + 1
    ordered = isinstance(issued, Read) or simulation.shares(issued)  # what it reads, or goes behind, must have happened
    if issued.wait is None:

        def step_at_once(engine: EngineState) -> int:
            if ordered and simulation.is_behind(engine):
                return simulation.resume(engine, engine.time)
            body(engine, None)
            return after

        return step_at_once

    number, semaphore = issued.wait.semaphore, simulation.semaphores[issued.wait.semaphore]
    threshold, cost = _threshold(issued.wait.threshold, engine.registers), simulation.machine.costs.wait
    explain = simulation.options.explain

    def step(engine: EngineState) -> int:
        if engine.arrival is None:
            engine.arrival = engine.time
        needed = semaphore.compared(threshold())
        if (ordered or needed > 0) and simulation.is_behind(engine):
            return simulation.resume(engine, engine.time)
        if needed > 0:
            semaphore.advance(engine.time)
            if not semaphore.reaches(needed):
                return _block(simulation, engine, issued, needed)
            if engine.blocked is not None:
                engine.blocked = None
                del semaphore.waiting[engine]
        issue = max(engine.arrival + cost, engine.time)
        engine.wait += issue - engine.arrival - cost
        engine.control += cost
        engine.time = issue
        if explain:
            simulation.passed(engine, issued, needed if needed > 0 else None)
        body(engine, (number, needed) if needed > 0 else None)
        return after

    return step


def _threshold(operand: Register | int, registers: list[int]) -> Callable[[], int]:
    if isinstance(operand, Register):
        at = operand.number
        return lambda: registers[at]
    return lambda: operand


def _block(simulation: Simulation, engine: EngineState, issued: Issued, needed: int) -> int:
    """Wait until an update reaches the threshold; those that are on their way may."""
    assert issued.wait is not None
    semaphore = simulation.semaphores[issued.wait.semaphore]
    engine.blocked = (issued, semaphore, needed)
    semaphore.waiting[engine] = needed
    when = semaphore.next_time(needed) if semaphore.may_reach(needed) else None
    return STOP if when is None else simulation.resume(engine, when)


def nop_body(simulation: Simulation, nop: Nop) -> Body:
    """NOP: it takes a register operation, and retires behind all before it."""
    cost = simulation.machine.costs.register

    def body(engine: EngineState, seen: tuple[int, int] | None) -> None:
        simulation.launch(engine, nop, cost, cost, seen)
        engine.control += cost

    return body


def read_body(simulation: Simulation, engine: EngineState, read: Read, mailbox: Mailbox) -> Body:
    """READ: as a NOP that takes what is in a mailbox."""
    cost, registers, dest = simulation.machine.costs.register, engine.registers, read.dest.number

    def body(engine: EngineState, seen: tuple[int, int] | None) -> None:
        registers[dest] = mailbox.read(engine.name)
        flight = simulation.launch(engine, read, cost, cost, seen)
        engine.control += cost
        _touch_mailbox(simulation, flight, mailbox, write=False)

    return body


def opaque_body(simulation: Simulation, opaque: Opaque, mailbox: Mailbox | None) -> Body:
    """INST and VALUE: hashes where values are asked for; a VALUE writes its mailbox when it retires."""
    cost = float(opaque.cost)
    latency = cost if opaque.latency is None else float(opaque.latency)
    values, instructions = simulation.options.values, simulation.opaque

    def body(engine: EngineState, seen: tuple[int, int] | None) -> None:
        number = mailbox.take_turn() if mailbox is not None else 0
        flight = simulation.launch(engine, opaque, cost, latency, seen)
        engine.busy += cost
        if mailbox is not None:
            _touch_mailbox(simulation, flight, mailbox, write=True)
            _deliver(simulation, flight, mailbox, number)
        if values:
            execution = instructions.issue(opaque.label or "", engine.name, flight.iteration, opaque.after)
            _execute(simulation, flight, execution)

    return body


def _execute(simulation: Simulation, flight: Flight, execution: OpaqueExecution) -> None:
    read, written = simulation.times(flight)
    simulation.at(read, lambda _: simulation.opaque.read(execution), flight)
    simulation.at(max(written), lambda _: simulation.opaque.write(execution), flight)


def _deliver(simulation: Simulation, flight: Flight, mailbox: Mailbox, number: int) -> None:
    simulation.at(flight.retire, lambda _: mailbox.write(number, None), flight)


def _touch_mailbox(simulation: Simulation, flight: Flight, mailbox: Mailbox, write: bool) -> None:
    if flight.issue is not None and simulation.detector is not None:
        touched = Touched(Part(mailbox.name, 0, (1,), (1,)), None, write, at_retirement=write)
        simulation.detector.touch(flight.issue, [touched])


def tile_body(
    simulation: Simulation,
    tile: Issued,
    timing: Callable[[], Timing],
    effect: TileEffect | None,
    mailbox: Mailbox | None,
) -> Body:
    """An instruction on tiles; without an effect where values are not asked for. TENSOR_LOAD writes its mailbox."""

    def body(engine: EngineState, seen: tuple[int, int] | None) -> None:
        timed = timing()
        captured = effect.capture() if effect is not None else None
        number = mailbox.take_turn() if mailbox is not None else 0
        flight = simulation.launch(engine, tile, timed.cost, timed.latency, seen, timed.transfer)
        engine.busy += timed.cost
        if mailbox is not None:
            _touch_mailbox(simulation, flight, mailbox, write=True)
        if effect is not None and captured is not None:
            _TileExecution(simulation, effect, captured, mailbox, number).begin(flight)
        elif mailbox is not None:
            _deliver(simulation, flight, mailbox, number)

    return body


class _TileExecution:
    """One execution of a tile instruction on its way through the pipeline."""

    def __init__(
        self, simulation: Simulation, effect: TileEffect, captured: Captured, mailbox: Mailbox | None, number: int
    ):
        self.simulation, self.effect, self.captured = simulation, effect, captured
        self.mailbox, self.number = mailbox, number
        self.result: Any = None

    def begin(self, flight: Flight) -> None:
        simulation = self.simulation
        read, written = simulation.times(flight)
        if simulation.detector is not None:
            simulation.at(flight.start, self.touch, flight)
        simulation.at(read, self.read, flight)
        if self.mailbox is not None:
            simulation.at(flight.retire, self.deliver, flight)
            return
        for share, time in enumerate(written):
            simulation.at(time, partial(self.write, share=share), flight)

    def touch(self, flight: Flight) -> None:
        assert self.simulation.detector is not None
        assert flight.issue is not None
        self.simulation.detector.touch(flight.issue, self.effect.touched(self.captured))

    def read(self, flight: Flight) -> None:
        self.result = self.effect.read(self.captured)

    def write(self, flight: Flight, share: int) -> None:
        self.effect.write(self.captured, self.result, share, len(flight.parts))

    def deliver(self, flight: Flight) -> None:
        assert self.mailbox is not None
        self.mailbox.write(self.number, self.result)
