"""What a program asks and what its streams ask, execution by execution (mpkc.runtime.verify.product)."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from xdsl.ir import Operation

from mpkc.dialects.engine import is_value
from mpkc.dialects.sem_streams import BarrierOp, MarkerOp, ReadOp
from mpkc.dialects.sem_structure import Edge
from mpkc.runtime.verify.assignments import Inputs
from mpkc.runtime.verify.execution import Iteration, Slot
from mpkc.runtime.verify.lanes import Array
from mpkc.runtime.verify.prefixes import FAR, Executions, Flags, Implementation, Specification, accumulated, blocked
from mpkc.runtime.verify.report import WaitFailure
from mpkc.runtime.verify.runs import StreamRun, name_of

CHECK = "product"
SHOWN = 5  # failures of one kind on one engine that are described


@dataclass(frozen=True)
class Rescue:
    """What a remark says of a dependency that has no exact wait.

    Attributes:
        producer, consumer: the labels of its ends.
        marker: the marker that stands for the producer: the wait may be late until that retires as often as the
            target iteration says. None for a barrier.
    """

    producer: str
    consumer: str
    marker: str | None = None


@dataclass
class Comparison:
    """Finds what is wrong with an implementation.

    Attributes:
        rows: by engine, the slots of the instructions of the program.
        patient: whether any wait may be late, as long as all engines end.
        least, most: by engine, what each slot must ask and may ask; [slots, engines, lanes].
        inexact: whether anything was found, or allowed, by which the streams block where the program does not.
    """

    specification: Specification
    implementation: Implementation
    runs: Mapping[str, StreamRun]
    inputs: Inputs
    rescued: Collection[Rescue]
    barriers: bool
    strict: bool
    patient: bool = False
    inexact: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.engines = self.specification.engines
        self.rows = {
            engine: [row for row, slot in enumerate(slots) if type(slot.op) not in _EXTRA]
            for engine, slots in self.implementation.slots.items()
        }
        self.least: dict[str, Array] = {}
        self.most: dict[str, Array] = {}

    def failures(self) -> list[WaitFailure]:
        """What is wrong: the order of the instructions, else the waits, else a deadlock."""
        if different := list(self._orders()):
            return different
        found = [*self._counts(), *self._unnamed()]
        self._set_bounds()
        for engine in self.engines:
            found += self._compare(engine)
        if not found and self.inexact:
            found += self._deadlocks()
        return found

    # What does not depend on waits.

    def _orders(self) -> Iterator[WaitFailure]:
        """Each engine runs what the program says, in that order."""
        for engine in self.engines:
            wanted, slots = self.specification.slots[engine], self.implementation.slots[engine]
            found = [slots[row] for row in self.rows[engine]]
            for number in range(max(len(wanted), len(found))):
                want = wanted[number] if number < len(wanted) else None
                have = found[number] if number < len(found) else None
                if want and have and _same(want, have):
                    continue
                message = f'engine "{engine}" runs {_told(have)} where the program runs {_told(want)}'
                if want and have and (want.op, want.iteration) == (have.op, have.iteration):
                    message += ", for other trips"
                instruction = want or have
                assert instruction is not None
                yield WaitFailure(CHECK, message, name_of(instruction.op), engine, instruction.iteration)
                break

    def _counts(self) -> Iterator[WaitFailure]:
        """No semaphore counts higher than its bits hold."""
        bits = self.implementation.type.width.data - self.implementation.signed
        for name, highest in self.implementation.highest.items():
            if highest >> bits:
                message = f'semaphore "{name}" counts to {highest}, and holds {(1 << bits) - 1}'
                yield WaitFailure(CHECK, message, semaphore=name)

    def _unnamed(self) -> Iterator[WaitFailure]:
        """Barriers, and markers that wait, are allowed where remarks name them."""
        markers = {rescue.marker for rescue in self.rescued}
        for engine, slots in self.implementation.slots.items():
            for slot in slots:
                if isinstance(slot.op, BarrierOp) and not self.barriers and None not in markers:
                    yield WaitFailure(CHECK, f'engine "{engine}" has a barrier that no remark names', engine=engine)
                    return
                if isinstance(slot.op, MarkerOp) and slot.waits and name_of(slot.op) not in markers:
                    name = name_of(slot.op)
                    yield WaitFailure(CHECK, f"the marker @{name} waits, and no remark names it", name, engine)
                    return

    # What each slot must ask at least, and may ask at most, in slots of the implementation.

    def _set_bounds(self) -> None:
        for engine, need in self.implementation.need.items():
            least = np.full_like(need, -1)
            for number, other in enumerate(self.engines):
                least[self.rows[engine], number] = self._place(other, self.specification.need[engine][:, number])
            self.least[engine], self.most[engine] = least, least.copy()
            slots = self.implementation.slots[engine]
            if self.patient:
                self.most[engine][:] = FAR
                self.inexact = True
            if extra := [row for row, slot in enumerate(slots) if isinstance(slot.op, BarrierOp | MarkerOp)]:
                self.most[engine][extra] = FAR
                self.inexact = True
        for rescue in self.rescued:
            for edge in self.specification.structure.by_label[rescue.consumer].edges:
                if edge.producer.label == rescue.producer:
                    self._rescue(edge, rescue)
        for instruction in self.specification.structure.instructions:
            if is_value(instruction.op) and name_of(instruction.op) in self.specification.instructions:
                self._bound_reads(name_of(instruction.op), instruction.engine)

    def _place(self, engine: str, slots: Array) -> Array:
        """Slots of an engine in the program as slots in its stream; nothing, and what never comes, stay as they are."""
        places = np.array([*self.rows[engine], FAR, -1], np.int32)
        return places[np.minimum(slots, len(places) - 2)]

    def _rescue(self, edge: Edge, rescue: Rescue) -> None:
        """The wait for `edge` may be late, at most until its marker retires as often as the target says."""
        self.inexact = True
        engine, other = edge.consumer.engine, edge.producer.engine
        number, active = self.engines.index(other), self.implementation.active[other]
        markers = [
            (row, slot)
            for row, slot in enumerate(self.implementation.slots[other])
            if isinstance(slot.op, MarkerOp) and name_of(slot.op) == rescue.marker
        ]
        for row in self.rows[engine]:
            slot = self.implementation.slots[engine][row]
            if name_of(slot.op) != rescue.consumer or edge.never_owed:
                continue
            most = self.most[engine][row, number]
            if rescue.marker is None:
                most[:] = FAR
            for place, marker in markers:
                if _reaches(edge, slot.iteration, marker.iteration):
                    np.maximum(most, np.where(active[place], place, -1), out=most)

    def _bound_reads(self, name: str, engine: str) -> None:
        """A read waits for the value before it; the value after it waits for the read."""
        written, number = self.specification.instructions[name].executions, self.engines.index(engine)
        for reader, (other, run) in enumerate(self.runs.items()):
            reads = [
                row for row in run.versions if isinstance(op := run.slots[row].op, ReadOp) and op.source.data == name
            ]
            if not reads:
                continue
            self.inexact = True
            versions = np.array([np.broadcast_to(run.versions[row], self.specification.lanes) for row in reads])
            needed = self._place(engine, written.nth(versions))
            self.least[other][reads, number] = needed
            self.most[other][reads, number] = needed
            last, must = self._last_reads(written, other, np.array(reads, np.int32)[:, None], versions)
            rows = np.array(self.rows[engine])[written.rows]
            self.most[engine][rows, reader] = np.maximum(self.most[engine][rows, reader], last)
            if other != engine:  # on its own engine, control waits for the read
                self.least[engine][rows, reader] = np.maximum(self.least[engine][rows, reader], must)

    def _last_reads(self, written: Executions, engine: str, reads: Array, versions: Array) -> tuple[Array, Array]:
        """The last read before each execution of a value, and the last that reads one of it; [executions, lanes]."""
        active = self.implementation.active[engine][reads[:, 0]]
        earlier = (versions <= written.count[:-1][:, None]) & active  # [executions, reads, lanes]
        return np.where(earlier, reads, -1).max(axis=1), np.where(earlier & (versions > 0), reads, -1).max(axis=1)

    # Comparing.

    def _compare(self, engine: str) -> Iterator[WaitFailure]:
        need, active = self.implementation.need[engine], self.implementation.active[engine]
        least, most = self.least[engine], self.most[engine]
        early = (need < least) & active[:, None]
        late = (need > most) & active[:, None]
        if not early.any() and not late.any():
            return
        self.inexact = True
        if not self.strict:
            checked = [not isinstance(slot.op, BarrierOp | MarkerOp) for slot in self.implementation.slots[engine]]
            early &= accumulated(need, active) < least
            late &= need > accumulated(np.where(np.array(checked)[:, None, None], most, -1), active)
            if late.any():
                late &= need > self._implied[engine]
        if not self.inputs.agree:
            reachable = _reachable(least, active)
            early, late = early & reachable, late & reachable
        yield from self._describe(engine, "EARLY", early)
        yield from self._describe(engine, "LATE", late)

    @cached_property
    def _implied(self) -> dict[str, Array]:
        """What must have retired anyway where each slot issues: what it needs, what that needed, and so on."""
        reached = {
            engine: accumulated(self.least[engine], self.implementation.active[engine]) for engine in self.engines
        }
        while True:
            before = sum(int(found.sum()) for found in reached.values())
            for found in reached.values():
                for number, other in enumerate(self.engines):
                    np.maximum(found, _at(reached[other], found[:, number]), out=found)
            if sum(int(found.sum()) for found in reached.values()) == before:
                return reached

    def _describe(self, engine: str, what: str, wrong: Flags) -> Iterator[WaitFailure]:
        shown: set[tuple[int, int]] = set()
        for row, number, lane in np.argwhere(wrong).tolist():
            if (row, number) not in shown and len(shown) < SHOWN:
                shown.add((row, number))
                yield self._failure(engine, what, row, number, lane)

    def _failure(self, engine: str, what: str, row: int, number: int, lane: int) -> WaitFailure:
        slot, other = self.implementation.slots[engine][row], self.engines[number]
        waits = [(semaphore, _in_lane(self.implementation.threshold(value), lane)) for semaphore, value in slot.waits]
        semaphores = self.implementation.semaphores
        wait = next((w for w in waits if w[0] in semaphores and semaphores[w[0]].engine == number), (None, None))
        needs = self.implementation.need[engine][row, number, lane]
        bound = (self.least if what == "EARLY" else self.most)[engine][row, number, lane]
        told = ", ".join(f'"{semaphore}" >= {threshold}' for semaphore, threshold in waits)
        message = (
            f'{what}: {_told(slot)} on "{engine}" waits until "{other}" has retired {self._slot(other, needs)}, and '
            f"{'has to' if what == 'EARLY' else 'may only'} wait until it has retired {self._slot(other, bound)}; "
            f"waits: {told or 'none'}; owed: {self._owed(slot, lane)}"
        )
        return self._at(engine, slot, lane, message, wait)

    def _at(
        self, engine: str, slot: Slot, lane: int, message: str, wait: tuple[str | None, int | None] = (None, None)
    ) -> WaitFailure:
        trips = self.inputs.trips(engine, lane)
        if trips:
            message += f"; trips: {', '.join(f'{name}={count}' for name, count in trips.items())}"
        name, bindings = name_of(slot.op), self.inputs.arguments(lane)
        return WaitFailure(CHECK, message, name, engine, slot.iteration, trips, bindings, *wait)

    def _owed(self, slot: Slot, lane: int) -> str:
        """What the dependencies of a slot owe in a lane, as condition (1) counts it."""
        instruction = self.specification.structure.by_label.get(name_of(slot.op))
        owed = [
            f"@{name_of(edge.producer.op)} x {self.specification.owed(edge, [slot.iteration])[0, lane]}"
            for edge in (instruction.edges if instruction else ())
            if edge.target(slot.iteration) is not None
        ]
        return ", ".join(owed) or "nothing"

    def _slot(self, engine: str, row: int) -> str:
        if row >= FAR:
            return "what it never runs"
        return _told(self.implementation.slots[engine][row]) if row >= 0 else "nothing"

    def _deadlocks(self) -> Iterator[WaitFailure]:
        """Where the program ends, the streams end."""
        implementation, specification = self.implementation, self.specification
        stopped = blocked([(implementation.need[e], implementation.active[e]) for e in self.engines])
        stuck = stopped < np.array([len(implementation.slots[e]) for e in self.engines])[:, None]
        if not stuck.any():
            return
        reached = blocked([(specification.need[e], specification.active[e]) for e in self.engines])
        ended = (reached == np.array([len(specification.slots[e]) for e in self.engines])[:, None]).all(axis=0)
        for lane in np.flatnonzero(stuck.any(axis=0) & ended)[:1].tolist():
            for number, engine in enumerate(self.engines):
                if stuck[number, lane]:
                    slot = implementation.slots[engine][int(stopped[number, lane])]
                    message = f'a deadlock: {_told(slot)} on "{engine}" waits forever'
                    yield self._at(engine, slot, lane, message)


_EXTRA: frozenset[type[Operation]] = frozenset({BarrierOp, MarkerOp, ReadOp})
"""What streams have and their program has not."""


def _reaches(edge: Edge, consumer: Iteration, marker: Iteration) -> bool:
    """Whether an execution of a marker lies in or before the target of `edge`, as far as its carrier counts.

    The marker stands in the carrier; behind a loop of one trip that clean-up has opened, its iteration goes on.
    """
    depth = edge.carrier.depth if edge.carrier else 0
    target = [i - d if isinstance(d, int) else math.inf for i, d in zip(consumer, edge.counted, strict=False)][:depth]
    return all(t > 0 for t in target) and marker[:depth] <= tuple(target)


def _at(reached: Array, slots: Array) -> Array:
    """What is needed up to some slots of an engine, nothing for those that never come; [slots, engines, lanes]."""
    if not len(reached):
        return np.full((len(slots), 1, 1), -1, np.int32)
    known = (slots >= 0) & (slots < len(reached))
    found = reached[np.where(known, slots, 0), :, np.arange(slots.shape[1])].transpose(0, 2, 1)
    return np.where(known[:, None], found, -1)


def _same(a: Slot, b: Slot) -> bool:
    if name_of(a.op) != name_of(b.op) or a.iteration != b.iteration:
        return False
    if a.mask is None or b.mask is None:
        other = b.mask if a.mask is None else a.mask
        return other is None or bool(other.all())
    return a.mask is b.mask or bool((a.mask == b.mask).all())


def _told(slot: Slot | None) -> str:
    if slot is None:
        return "nothing more"
    return "a barrier" if isinstance(slot.op, BarrierOp) else f"@{name_of(slot.op)}{list(slot.iteration)}"


def _in_lane(value: int | Array, lane: int) -> int:
    return int(value if isinstance(value, int) else value[lane])


def _reachable(least: Array, active: Flags) -> Flags:
    """The slots that no earlier one of the engine blocks for good; [slots, 1, lanes]."""
    never = ((least == FAR).any(axis=1)) & active
    before = np.zeros_like(never)
    before[1:] = np.logical_or.accumulate(never, axis=0)[:-1]
    return ~before[:, None]
