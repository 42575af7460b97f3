"""A race detector by vector clocks over the elements of memory, in the style of FastTrack.

It does not know what depends on what. An execution is known to another where its retirement happened before the
other's issue: by an update that a wait has seen, by a drain, by a handshake, or by a chain of these and of issue order.
Instructions of an engine retire in order, so what an engine knows is one number for each engine: how many of its
first executions have retired. For each element and engine the last reader and the last writer are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpkc.runtime.neuron.simulator.memory import Touched
from mpkc.runtime.neuron.simulator.report import Access, Race

Clock: TypeAlias = NDArray[np.int32]
"""[engines] how many of the first executions of each are known to have retired."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One execution, and what its engine knew when it issued.

    Attributes:
        engine, index: its place: that of the engine in the program, and its own among the engine's.
        access: it, for reports; whether it writes is filled in.
    """

    engine: int
    index: int
    clock: Clock
    access: Access


class _Shadow:
    """[engines, elements] the number, from 1, of the last execution of each engine that read or wrote each element."""

    def __init__(self, engines: int, elements: int):
        self.reads = np.zeros((engines, elements), np.int32)
        self.writes = np.zeros((engines, elements), np.int32)


class RaceDetector:
    """Looks at every access as its instruction issues, or reads the rows that it goes to.

    Args:
        elements: of each buffer.
    """

    def __init__(self, engines: int, elements: Mapping[str, int]):
        self.shadows = {name: _Shadow(engines, count) for name, count in elements.items()}
        self.issues: list[list[Access]] = [[] for _ in range(engines)]
        self.found: dict[tuple[Any, ...], Race] = {}

    @property
    def races(self) -> tuple[Race, ...]:
        """The races so far, one for each pair of instructions and buffer, in the order in which they were found."""
        return tuple(self.found.values())

    def issue(self, issue: Issue) -> None:
        """An execution issues; those of an engine come in order."""
        assert issue.index == len(self.issues[issue.engine])
        self.issues[issue.engine].append(issue.access)

    def touch(self, issue: Issue, accesses: Sequence[Touched]) -> None:
        """All that an execution reads and writes."""
        for access in accesses:
            shadow = self.shadows[access.part.buffer]
            if not access.at_retirement:
                self._check(issue, access, shadow.writes, earlier_writes=True)
            if access.write:
                self._check(issue, access, shadow.reads, earlier_writes=False)
        for access in accesses:
            shadow = self.shadows[access.part.buffer]
            mine = access.part.of((shadow.writes if access.write else shadow.reads)[issue.engine])
            mine[... if access.rows is None else access.rows] = issue.index + 1

    def unordered(self, semaphore: str, count: int, waiter: Access, transfer: Access) -> None:
        """A wait has taken a count of a DMA queue for what it is not: a transfer may have added to it."""
        self._add(Race(semaphore, count, count, waiter, replace(transfer, write=True), 1))

    def _check(self, issue: Issue, access: Touched, shadow: NDArray[np.int32], earlier_writes: bool) -> None:
        part, rows = access.part, access.rows
        last = part.of(shadow) if rows is None else part.of(shadow)[:, rows]
        unknown = last > issue.clock.reshape(-1, *(1 for _ in part.sizes))
        if not unknown.any():
            return
        elements = part.elements() if rows is None else part.elements()[rows]
        for engine, where in enumerate(unknown):
            if where.any():
                other = self.issues[engine][int(last[engine][where].max()) - 1]
                self._report(issue, part.buffer, elements[where], replace(other, write=earlier_writes), access.write)

    def _report(self, issue: Issue, buffer: str, elements: NDArray[Any], earlier: Access, write: bool) -> None:
        later = replace(issue.access, write=write)
        self._add(Race(buffer, int(elements.min()), int(elements.max()), earlier, later, 1))

    def _add(self, race: Race) -> None:
        a, b = race.earlier, race.later
        key = (race.buffer, a.engine, a.line, a.write, b.engine, b.line, b.write)
        known = self.found.setdefault(key, race)
        if known is not race:
            self.found[key] = replace(known, count=known.count + 1)
