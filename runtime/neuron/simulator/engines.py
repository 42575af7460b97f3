"""The engines of the simulator: their state, and their code as one Python function for each instruction."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

import numpy as np

from mpkc.runtime.neuron.isa import Engine, Instruction, Issued, Iteration, Label
from mpkc.runtime.neuron.simulator.races import Clock
from mpkc.runtime.neuron.simulator.report import ExecutedWait, Span
from mpkc.runtime.neuron.simulator.semaphores import Release, Semaphore

STOP = -1
"""What a step gives where the engine can't go on for now."""

Step: TypeAlias = "Callable[[EngineState], int]"
"""Executes one instruction; gives the place of the next one, or STOP."""


class EngineState:
    """One engine.

    Attributes:
        source: its stream.
        items, targets: the instructions and directives of its stream, and the place among them that each label is.
        code: a step for each of the items, and one for the end.
        at: the place in its code where it is.
        time: when it is there, in ns.
        due, ticket: when it goes on, and the event that is for; infinite where nothing is planned.
        synchronized: the last time up to which everything else in the program had happened.
        retired: when the last instruction that it issued retires.
        arrival: when it came to the wait at which it is; None where it is at none.
        blocked: what it waits for: an instruction's semaphore with the threshold, or its handshake of that number.
        busy, wait, control: see `report.Usage`.
        issued: how many instructions it has issued.
        clock: what it knows of retirements (see `races`).
        free: how many of its steps were no instructions: directives, and waits that were tried again.
        iteration, loops: the number and the name of the current iteration of each counted loop, outermost first.
        trips: how many iterations of each loop it has begun.
        chains: when each DMA engine is done with its part of the last transfer, where this one is a DMA queue.
    """

    def __init__(self, source: Engine, index: int, engines: int, parts: int):
        self.source, self.name, self.index = source, source.name, index
        self.registers = [0] * source.registers
        self.items: list[Instruction | Iteration] = []
        self.targets: dict[str, int] = {}
        for item in source.body:
            if isinstance(item, Label):
                self.targets[item.name] = len(self.items)
            else:
                self.items.append(item)
        self.code: list[Step] = []
        self.at = self.issued = self.handshakes = self.free = 0
        self.time = self.retired = self.busy = self.wait = self.control = 0.0
        self.due, self.ticket, self.synchronized = inf, -1, -1.0
        self.arrival: float | None = None
        self.blocked: tuple[Issued, Semaphore, int] | None = None
        self.ended = False
        self.clock: Clock = np.zeros(engines, np.int32)
        self.iteration: list[int] = []
        self.loops: list[str] = []
        self.trips: dict[str, int] = {}
        self.chains = [0.0] * parts
        self.waits: list[ExecutedWait] = []
        self.spans: list[Span] = []
        self.pauses: list[Span] = []

    @property
    def line(self) -> int:
        """Where it is in the text; 0 at the end and at a directive."""
        item = self.items[self.at] if self.at < len(self.items) else None
        return item.line if isinstance(item, Instruction) else 0

    def begin(self, loop: str, depth: int) -> None:
        """An iteration of a loop begins; depth 0 is not counted in iterations."""
        self.free += 1
        self.trips[loop] = self.trips.get(loop, 0) + 1
        if not depth:
            return
        iteration, loops = self.iteration, self.loops
        if len(loops) >= depth and loops[depth - 1] == loop:
            iteration[depth - 1] += 1
            del iteration[depth:], loops[depth:]
        else:
            del iteration[depth - 1 :], loops[depth - 1 :]
            missing = depth - 1 - len(loops)  # of loops around it that are not kept, since they run once
            iteration += [1] * (missing + 1)
            loops += [""] * missing + [loop]

    def learn(self, release: Release) -> None:
        """An update has been seen: its instruction has retired, with all before it, and with all that it knew of."""
        np.maximum(self.clock, release.clock, out=self.clock)
        self.clock[release.engine] = max(self.clock[release.engine], release.index + 1)

    def drained(self) -> None:
        """All that it has issued has retired."""
        self.clock[self.index] = self.issued
