"""What each execution asks of the other engines, as prefixes of what they run (barrier-free, section 4).

Engines retire in order. So the state of an engine is how many of its slots have retired, and what an execution waits
for is, for each engine, a slot that must have retired: the last one among all that its dependencies, or its waits,
need. Slots are numbered from 0; -1 stands for nothing, FAR for what never comes.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerType

from mpkc.dialects.engine import signal_of
from mpkc.dialects.sem_streams import BarrierOp, StreamsOp, threshold_type
from mpkc.dialects.sem_structure import Edge, Structure, up_to
from mpkc.runtime.verify.execution import Iteration, Slot
from mpkc.runtime.verify.lanes import Array, Value, spread, unsigned
from mpkc.runtime.verify.runs import ProgramRun, StreamRun, name_of

FAR = 1 << 30
Flags = npt.NDArray[np.bool_]


@dataclass
class Executions:
    """Those of one instruction, or all that signal one semaphore.

    Attributes:
        engine: the number of the engine that they run on.
        rows: the slots, in order.
        active: the lanes of each; [slots, lanes].
        place: the slot of the n-th in a lane, for n from 0 to one more than there are; [slots + 2, lanes].
        count: how many there are in the lane before each slot, and in all; [slots + 1, lanes].
    """

    engine: int
    rows: npt.NDArray[np.int64]
    active: Flags
    place: Array = field(init=False)
    count: Array = field(init=False)

    def __post_init__(self) -> None:
        slots, lanes = self.active.shape
        self.count = counts(self.active)
        self.place = np.full((slots + 2, lanes), FAR, np.int32)
        self.place[0] = -1
        number, lane = np.nonzero(self.active)
        self.place[self.count[number + 1, lane], lane] = self.rows[number]

    def nth(self, n: Array) -> Array:
        """The slots of the n-th executions; n: [..., lanes]."""
        return self.place[np.minimum(n, len(self.rows) + 1), np.arange(n.shape[-1])]


def activity(slots: Sequence[Slot], lanes: int) -> Flags:
    """The lanes of each slot; [slots, lanes]."""
    active = np.ones((len(slots), lanes), np.bool_)
    for row, slot in zip(active, slots, strict=True):
        if slot.mask is not None:
            row[:] = slot.mask
    return active


def counts(active: Flags) -> Array:
    """How many are active before each slot, and in all; [slots + 1, lanes]."""
    count = np.zeros((len(active) + 1, active.shape[1]), np.int64)
    np.cumsum(active, axis=0, out=count[1:])
    return count


@dataclass
class Instruction:
    """The executions of one instruction of the program on its engine, and their iterations."""

    executions: Executions
    iterations: Sequence[Iteration]


class Specification:
    """What a program asks: condition (1) for each execution and dependency.

    Args:
        views: by engine, the program as that engine runs it; one object for all where they agree.

    Attributes:
        slots: what each engine runs, in order.
        need: by engine; [slots, engines, lanes].
    """

    def __init__(self, structure: Structure, views: Mapping[str, ProgramRun]):
        self.structure, self.views = structure, views
        self.engines = list(views)
        self.lanes = next(iter(views.values())).lanes
        engine_of = {i.op: i.engine for i in structure.instructions}
        self.slots = {
            engine: [slot for slot in view.slots if engine_of[slot.op] == engine] for engine, view in views.items()
        }
        self.active = {engine: activity(slots, self.lanes) for engine, slots in self.slots.items()}
        self.instructions: dict[str, Instruction] = {}
        for number, engine in enumerate(self.engines):
            self._group(number, engine)
        self._seen: dict[tuple[str, str], tuple[Sequence[Iteration], Array]] = {}
        self.need = {
            engine: np.full((len(slots), len(self.engines), self.lanes), -1, np.int32)
            for engine, slots in self.slots.items()
        }
        for edge in structure.edges:
            self._require(edge)

    def _group(self, number: int, engine: str) -> None:
        rows: dict[str, list[int]] = {}
        for row, slot in enumerate(self.slots[engine]):
            rows.setdefault(name_of(slot.op), []).append(row)
        for name, own in rows.items():
            iterations = [self.slots[engine][row].iteration for row in own]
            executions = Executions(number, np.array(own), self.active[engine][own])
            self.instructions[name] = Instruction(executions, iterations)

    def seen(self, engine: str, name: str) -> tuple[Sequence[Iteration], Array]:
        """The iterations in which `engine` thinks that an instruction runs, and how often it has before each."""
        view, found = self.views[engine], self.instructions.get(name)
        if found and self.views[self.engines[found.executions.engine]] is view:
            return found.iterations, found.executions.count
        key = (engine, name)
        if key not in self._seen:
            slots = [slot for slot in view.slots if name_of(slot.op) == name]
            self._seen[key] = [slot.iteration for slot in slots], counts(activity(slots, self.lanes))
        return self._seen[key]

    def owed(self, edge: Edge, iterations: Sequence[Iteration]) -> Array:
        """The retirements that the consumer needs in each iteration, 0 for none; [iterations, lanes]."""
        known, count = self.seen(edge.consumer.engine, name_of(edge.producer.op))
        targets = [edge.target(iteration) for iteration in iterations]
        return count[[0 if target is None else bisect_right(known, up_to(target)) for target in targets]]

    def _require(self, edge: Edge) -> None:
        consumer = self.instructions.get(name_of(edge.consumer.op))
        if consumer is None or edge.never_owed:
            return
        owed = self.owed(edge, consumer.iterations)
        producer = self.instructions.get(name_of(edge.producer.op))
        number = self.engines.index(edge.producer.engine)
        needed = producer.executions.nth(owed) if producer else np.where(owed > 0, FAR, -1)
        need = self.need[edge.consumer.engine]
        rows = consumer.executions.rows
        need[rows, number] = np.maximum(need[rows, number], needed)


class Implementation:
    """What streams ask: their waits, and their barriers.

    Attributes:
        need: by engine; [slots, engines, lanes].
        semaphores: the executions that signal each.
        highest: by semaphore, the highest count that it reaches in any lane.
    """

    def __init__(self, streams: StreamsOp, runs: Mapping[str, StreamRun]):
        self.streams, self.engines = streams, list(runs)
        self.lanes = next(iter(runs.values())).lanes
        self.slots = {engine: run.slots for engine, run in runs.items()}
        self.active = {engine: activity(slots, self.lanes) for engine, slots in self.slots.items()}
        self.signed, self.type = streams.signed, threshold_type(streams.counters)
        self.need = {
            engine: np.full((len(slots), len(self.engines), self.lanes), -1, np.int32)
            for engine, slots in self.slots.items()
        }
        self.semaphores: dict[str, Executions] = {}
        self._find_signals()
        self._barriers = {
            engine: [row for row, slot in enumerate(slots) if isinstance(slot.op, BarrierOp)]
            for engine, slots in self.slots.items()
        }
        self.highest = {name: int(signals.count[-1].max()) for name, signals in self.semaphores.items()}
        self._epochs: dict[str, Array] = {}
        if any(self._barriers.values()):
            self._read_barriers()
        for engine in self.engines:
            self._require(engine)

    def threshold(self, value: Value) -> Value:
        """A threshold as its wait compares it."""
        return value if self.signed else unsigned(value, self.type)

    def _find_signals(self) -> None:
        rows: dict[str, tuple[str, list[int]]] = {}
        for engine, slots in self.slots.items():
            for row, slot in enumerate(slots):
                if (signal := signal_of(slot.op)) is not None:
                    rows.setdefault(signal, (engine, []))[1].append(row)
        for signal, (engine, own) in rows.items():
            number = self.engines.index(engine)
            self.semaphores[signal] = Executions(number, np.array(own), self.active[engine][own])

    def _require(self, engine: str) -> None:
        waits: dict[str, tuple[list[int], list[Array]]] = {}
        for row, slot in enumerate(self.slots[engine]):
            for semaphore, value in slot.waits:
                rows, thresholds = waits.setdefault(semaphore, ([], []))
                rows.append(row)
                thresholds.append(spread(self.threshold(value), IntegerType(64), self.lanes))
        for semaphore, (rows, thresholds) in waits.items():
            self._wait(engine, semaphore, rows, np.array(thresholds))

    def _wait(self, engine: str, semaphore: str, rows: Sequence[int], thresholds: Array) -> None:
        signals = self.semaphores.get(semaphore)
        if signals is None:
            needed, number = np.where(thresholds > 0, FAR, -1), self._signaller(semaphore, engine)
        elif semaphore in self._epochs:
            needed, number = self._since_reset(engine, semaphore, rows, thresholds), signals.engine
        else:
            needed, number = signals.nth(_count(thresholds, signals)), signals.engine
        need = self.need[engine]
        for row, slot in zip(rows, needed, strict=True):
            np.maximum(need[row, number], slot, out=need[row, number])

    def _signaller(self, semaphore: str, otherwise: str) -> int:
        """The engine with an instruction that would signal a semaphore, if it ran."""
        for engine, stream in self.streams.streams.items():
            if any(signal_of(op) == semaphore for op in stream.walk()):
                return self.engines.index(engine)
        return self.engines.index(otherwise)

    def _resets(self, engine: str, semaphore: str, rows: Sequence[int]) -> Array:
        """How often barriers have reset a semaphore before each of `rows` of an engine; [rows, lanes]."""
        found = [
            row
            for row in self._barriers[engine]
            if isinstance(op := self.slots[engine][row].op, BarrierOp) and semaphore in {s.data for s in op.semaphores}
        ]
        return counts(self.active[engine][found])[np.searchsorted(found, rows)]

    def _read_barriers(self) -> None:
        for among in self._meetings():
            barriers = [
                Executions(number, np.array(rows, np.int64), self.active[engine][rows])
                for number, engine in enumerate(self.engines)
                if (rows := [row for row in self._barriers[engine] if self._meeting(engine, row) == among])
                or engine in among
            ]
            self._meet(barriers)
        for semaphore, signals in self.semaphores.items():
            engine = self.engines[signals.engine]
            epoch = self._resets(engine, semaphore, signals.rows.tolist())
            most = int(self._resets(engine, semaphore, [len(self.slots[engine])]).max())
            if most:
                # The signals before each reset, by its number; [resets + 2, lanes].
                before = np.array([((epoch < n) & signals.active).sum(axis=0) for n in range(most + 2)])
                self._epochs[semaphore] = before
                self.highest[semaphore] = int(np.diff(before, axis=0).max())

    def _meetings(self) -> set[frozenset[str]]:
        """The sets of engines that meet at barriers."""
        return {self._meeting(engine, row) for engine, rows in self._barriers.items() for row in rows}

    def _meeting(self, engine: str, row: int) -> frozenset[str]:
        op = self.slots[engine][row].op
        assert isinstance(op, BarrierOp)
        return frozenset(self.engines if op.engine_names is None else op.engine_names)

    def _meet(self, barriers: Sequence[Executions]) -> None:
        """The n-th barrier of one engine is the n-th of each: all before it must have retired, its own as well."""
        for own in barriers:
            need = self.need[self.engines[own.engine]]
            for other in barriers:
                if len(own.rows):
                    meeting = other.nth(own.count[1:])
                    need[own.rows, other.engine] = np.where(meeting == FAR, FAR, meeting - 1)

    def _since_reset(self, engine: str, semaphore: str, rows: Sequence[int], thresholds: Array) -> Array:
        """The slots that bring a semaphore to its thresholds before it is reset again; [rows, lanes]."""
        signals, before, lanes = self.semaphores[semaphore], self._epochs[semaphore], np.arange(self.lanes)
        epoch = np.minimum(self._resets(engine, semaphore, rows), len(before) - 2)
        count = _count(thresholds, signals)
        total = before[epoch, lanes] + count
        return np.where(count == 0, -1, np.where(total > before[epoch + 1, lanes], FAR, signals.nth(total)))


def _count(thresholds: Array, signals: Executions) -> Array:
    """How many signals reach each threshold: none where it is not positive, too many where it is too high."""
    return thresholds.clip(0, len(signals.rows) + 1).astype(np.int64)


Observation = tuple[str, str, Iteration, tuple[tuple[str, bytes], ...], str | None, bytes]


def observations(implementation: Implementation) -> list[Observation]:
    """The engine, the instruction, its iteration, its waits and its signal, of each slot.

    A wait is the semaphore and the thresholds in all lanes, 0 where it holds anyway; it is left out where it always
    does, and so is a signal that nobody waits for.
    """
    found: list[Observation] = []
    for engine, slots in implementation.slots.items():
        for slot, active in zip(slots, implementation.active[engine], strict=True):
            waits: dict[str, Array] = {}
            for semaphore, value in slot.waits:
                threshold = spread(implementation.threshold(value), IntegerType(64), implementation.lanes)
                waits[semaphore] = np.maximum(waits.get(semaphore, 0), np.where(active, threshold, 0))
            told = tuple((name, at.tobytes()) for name, at in sorted(waits.items()) if at.any())
            found.append((engine, name_of(slot.op), slot.iteration, told, signal_of(slot.op), active.tobytes()))
    waited = {name for observation in found for name, _ in observation[3]}
    return [(*each[:4], each[4] if each[4] in waited else None, each[5]) for each in found]


def accumulated(need: Array, active: Flags) -> Array:
    """What each slot and all before it on its engine ask; [slots, engines, lanes]."""
    return np.maximum.accumulate(np.where(active[:, None, :], need, -1), axis=0)


def blocked(needs: Sequence[tuple[Array, Flags]]) -> Array:
    """Where each engine stops in one maximal run: how many of its slots retire; [engines, lanes].

    One run tells: whatever order the engines go in, they stop at the same slots.

    Args:
        needs: what the slots of each engine ask, and the lanes that they run in.
    """
    cumulative: list[Array] = []
    for number, (need, active) in enumerate(needs):
        own, order = need[:, number], np.arange(len(need))[:, None]
        need = need.copy()
        need[:, number] = np.where(own < order, -1, FAR)  # what stands before it retires by itself
        cumulative.append(accumulated(need, active))
    lanes = needs[0][1].shape[1]
    reached = np.full((len(needs), lanes), -1, np.int64)
    while True:
        before = reached.copy()
        for number, need in enumerate(cumulative):
            reached[number] = (need <= reached).all(axis=1).sum(axis=0) - 1
        if (before == reached).all():
            return reached + 1
