"""The simulator's machine: events in the order of time, engines, semaphores, and what is in the pipelines."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from math import inf
from random import Random

import numpy as np

from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import Issued, Program, Tile
from mpkc.runtime.neuron.simulator.dma import Transfers
from mpkc.runtime.neuron.simulator.engines import STOP, EngineState
from mpkc.runtime.neuron.simulator.memory import Fault
from mpkc.runtime.neuron.simulator.opaque import OpaqueInstructions
from mpkc.runtime.neuron.simulator.races import Issue, RaceDetector
from mpkc.runtime.neuron.simulator.report import Access, ExecutedWait, Span
from mpkc.runtime.neuron.simulator.semaphores import Semaphore
from mpkc.runtime.neuron.text import opcode_of


@dataclass(frozen=True)
class Options:
    """What to look at; see `run.simulate`."""

    values: bool = True
    races: bool = False
    explain: bool = False
    timeline: bool = False
    seed: int | None = None
    limit: int = 100_000_000


@dataclass(frozen=True, slots=True)
class Flight:
    """One instruction in the pipeline.

    Attributes:
        start, retire: when it issued, and when it retires.
        parts: when each part of a transfer has arrived; the retirement alone for everything else.
        issue: it, for the race detector; None where races are not looked for.
    """

    engine: EngineState
    instruction: Issued
    iteration: tuple[int, ...]
    start: float
    retire: float
    parts: tuple[float, ...]
    issue: Issue | None


class Simulation:
    """A program as it runs.

    Engines run one after the other, each ahead of the others as far as nothing that it does depends on them. What
    others must see in the order of time is an event.
    """

    def __init__(self, program: Program, machine: Machine, options: Options):
        self.program, self.machine, self.options = program, machine, options
        self.random = None if options.seed is None else Random(options.seed)
        parts = {queue: machine.dma.parts for queue in machine.dma.queues} if machine.dma else {}
        self.engines = [
            EngineState(engine, at, len(program.engines), parts.get(engine.name, 0))
            for at, engine in enumerate(program.engines)
        ]
        self.semaphores = [Semaphore(name, program.counters) for name in program.semaphores]
        self.transfers = {
            issued.update.semaphore: Transfers(len(engine.chains))
            for engine in self.engines
            for issued in engine.source.instructions
            if engine.chains and isinstance(issued, Issued) and issued.update
        }
        self.dma = [0.0] * (machine.dma.parts if machine.dma else 1)
        self.opaque = OpaqueInstructions()
        self.detector: RaceDetector | None = None
        self.at_handshake: dict[frozenset[str], list[EngineState]] = {}
        self.fault: str | None = None
        self.steps = 0
        self._names_iterations = options.values or options.races or options.explain or options.timeline
        self._keeps_releases = options.races or options.timeline
        self._events: list[tuple[float, int, Callable[[float, int], None]]] = []
        self._ticket = 0
        self._shared = any(each.transfer for each in machine.instructions.values())
        self._runs = {engine: partial(self._run, engine) for engine in self.engines}

    # Time.

    def at(self, time: float, action: Callable[[Flight], None], flight: Flight) -> None:
        """Do something with an instruction in the pipeline at a time."""

        def act(time: float, ticket: int) -> None:
            try:
                action(flight)
            except Fault as err:
                self.stop_at(flight.engine, flight.instruction.line, err)

        self._push(time, act)

    def resume(self, engine: EngineState, time: float) -> int:
        """Let an engine go on at a time, with the instruction at which it is, and at no other time."""
        engine.due, engine.ticket = time, self._ticket
        self._push(time, self._runs[engine])
        return STOP

    def shares(self, instruction: Issued) -> bool:
        """Whether an instruction takes its turn at what all engines share: then it issues in the order of time."""
        return self._shared and isinstance(instruction, Tile)

    def is_behind(self, engine: EngineState) -> bool:
        """Whether something else comes before what the engine does now: then it must `resume` at its own time."""
        events = self._events
        return bool(events) and events[0][0] <= engine.time and engine.synchronized != engine.time

    def run(self) -> None:
        """Run until nothing moves any more, or until something is wrong."""
        for engine in self.engines:
            self.resume(engine, 0.0)
        with np.errstate(all="ignore"):
            while self._events and self.fault is None:
                time, ticket, action = heappop(self._events)
                action(time, ticket)

    def stop_at(self, engine: EngineState, line: int, err: Exception) -> None:
        """Something is wrong with the instruction in that line."""
        self.fault = f"{engine.name}, ISA line {line}: {err}"

    def _push(self, time: float, action: Callable[[float, int], None]) -> None:
        heappush(self._events, (time, self._ticket, action))
        self._ticket += 1

    def _run(self, engine: EngineState, time: float, ticket: int) -> None:
        if engine.ticket != ticket:  # it goes on at another time
            return
        engine.due, engine.ticket = inf, -1
        engine.time = engine.synchronized = time
        code, at, first = engine.code, engine.at, self.steps
        steps, limit = first, self.options.limit
        try:
            while at >= 0:
                engine.at = at
                at = code[at](engine)
                steps += 1
                if steps > limit:
                    raise Fault(f"the engines executed {limit} instructions: the program seems to run forever")
        except (Fault, ArithmeticError) as err:
            self.stop_at(engine, engine.line, err)
        engine.free += 1  # the step that stopped it
        self.steps = steps

    def come_to_handshake(self, engine: EngineState, engines: frozenset[str]) -> None:
        """An engine is at a handshake of these engines; the last one that comes lets all go on."""
        engine.handshakes += 1
        engine.free -= 1  # it stops the engine, and is not tried again
        present = self.at_handshake.setdefault(engines, [])
        present.append(engine)
        if len(present) < len(engines):
            return
        cost, latest = self.machine.costs.barrier, max(each.time for each in present)
        known = np.maximum.reduce([each.clock for each in present])
        for each in present:
            if self.options.timeline:
                each.pauses.append(
                    Span(each.name, "HANDSHAKE", (), each.line, each.time, latest, latest + cost, latest + cost)
                )
            each.wait += latest - each.time
            each.control += cost
            np.copyto(each.clock, known)
            each.at += 1
            self.resume(each, latest + cost)
        del self.at_handshake[engines]

    # The pipeline.

    def launch(
        self,
        engine: EngineState,
        instruction: Issued,
        cost: float,
        latency: float,
        seen: tuple[int, int] | None,
        transfer: float = 0.0,
    ) -> Flight:
        """Issue an instruction.

        Args:
            seen: the semaphore and the threshold of the wait that it has passed; None where nothing was owed.
            transfer: for how long the DMA engines are busy with it.
        """
        start = engine.time
        engine.time = start + cost
        parts = self._parts(engine, start, latency, transfer)
        retire = engine.retired = parts[-1] if len(parts) == 1 else max(parts)
        iteration = tuple(engine.iteration[: instruction.depth]) if self._names_iterations else ()
        index = engine.issued
        engine.issued += 1
        issue = None if self.detector is None else self._issue(self.detector, engine, instruction, iteration, seen)
        flight = Flight(engine, instruction, iteration, start, retire, parts, issue)
        if self.options.timeline:
            engine.spans.append(self._span(flight, seen))
        if instruction.update is not None:
            self._update(flight, instruction.update.semaphore, instruction.update.amount // len(parts), index)
        engine.arrival = None
        return flight

    def times(self, flight: Flight) -> tuple[float, tuple[float, ...]]:
        """When an instruction reads, and when each part of it writes.

        By default that is as early as can be, and as late. With a seed it reads and writes at any time while it is in
        the pipeline: that is how commits of what is in flight overlap.
        """
        random = self.random
        if random is None:
            return flight.start, flight.parts
        parts = flight.parts
        if len(parts) == 1:
            parts = (random.uniform(flight.start, flight.retire),)
        return random.uniform(flight.start, min(parts)), parts

    def _parts(self, engine: EngineState, start: float, latency: float, transfer: float) -> tuple[float, ...]:
        """When each part has arrived; there is one but for DMA queues. No part passes the one before it."""
        chains = engine.chains
        if transfer:
            arrived = self._transfer(start + latency, transfer)
        else:
            arrived = [start + self._varied(latency) for _ in chains] if chains else [start + latency]
        if not chains:
            return (max(engine.retired, *arrived),)
        chains[:] = map(max, arrived, chains)
        return tuple(chains)

    def _transfer(self, begin: float, transfer: float) -> list[float]:
        """When each DMA engine is done with its part of a transfer; they are the same for all queues."""
        self.dma[:] = (max(begin, free) + self._varied(transfer) for free in self.dma)
        return self.dma

    def _varied(self, ns: float) -> float:
        return ns if self.random is None else ns * self.random.uniform(0.5, 1.5)

    def _update(self, flight: Flight, number: int, share: int, index: int) -> None:
        semaphore, signal = self.semaphores[number], self.machine.costs.signal
        for time in flight.parts:
            semaphore.add(time + signal, share)
        if self._keeps_releases:
            clock = None if flight.issue is None else flight.issue.clock
            release = semaphore.release(flight.engine.index, index, share * len(flight.parts), clock)
            if flight.issue is not None and number in self.transfers:
                assert self.detector is not None
                for waiter in self.transfers[number].issue(release):
                    self.detector.unordered(semaphore.name, semaphore.total, waiter.access, flight.issue.access)
        for waiting, threshold in semaphore.waiting.items():
            if semaphore.may_reach(threshold):
                when = semaphore.next_time(threshold)
                if when is not None and when < waiting.due:
                    self.resume(waiting, max(when, waiting.time))

    def _issue(
        self,
        detector: RaceDetector,
        engine: EngineState,
        instruction: Issued,
        iteration: tuple[int, ...],
        seen: tuple[int, int] | None,
    ) -> Issue:
        """Learn what the wait says, and tell the race detector."""
        access = Access(engine.name, name_of(instruction), iteration, instruction.line, False)
        issue = Issue(engine.index, engine.issued - 1, engine.clock, access)
        if seen is not None:
            number, count = seen
            if (transfers := self.transfers.get(number)) is not None:
                release, intruder = transfers.rely(issue, count)
                if intruder is not None:
                    other = detector.issues[intruder.engine][intruder.index]
                    detector.unordered(self.semaphores[number].name, count, issue.access, other)
            else:
                release = self.semaphores[number].release_of(count)
            if release is not None:
                engine.learn(release)
        issue = Issue(issue.engine, issue.index, engine.clock.copy(), access)
        detector.issue(issue)
        return issue

    def _span(self, flight: Flight, seen: tuple[int, int] | None) -> Span:
        engine, instruction = flight.engine, flight.instruction
        arrival = flight.start if engine.arrival is None else engine.arrival
        name, semaphore, cause = name_of(instruction), None, None
        if seen is not None and flight.start > arrival + self.machine.costs.wait:
            semaphore = self.semaphores[seen[0]].name
            release = self.semaphores[seen[0]].release_of(seen[1])
            cause = None if release is None else (self.engines[release.engine].name, release.index)
        return Span(
            engine.name,
            name,
            flight.iteration,
            instruction.line,
            arrival,
            flight.start,
            engine.time,
            flight.retire,
            semaphore,
            cause,
        )

    def passed(self, engine: EngineState, instruction: Issued, threshold: int | None) -> None:
        """A wait has been passed; for reports."""
        if self.options.explain and instruction.wait is not None:
            iteration = tuple(engine.iteration[: instruction.depth])
            name = self.semaphores[instruction.wait.semaphore].name
            wait = ExecutedWait(engine.name, name_of(instruction), iteration, name, threshold, instruction.line)
            engine.waits.append(wait)


def name_of(instruction: Issued) -> str:
    """What reports call it: its label, or its opcode where it has none."""
    return instruction.label or opcode_of(instruction)
