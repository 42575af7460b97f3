"""The bounded exhaustive check of streams against their program (barrier-free, section 7.3).

The program and the streams run side by side, for every assignment of few trips to the loops, or for given bindings. For
each execution of each instruction, what its waits ask of each engine is compared with what condition (1) asks:

* EARLY: the waits are satisfied before the dependencies are: a race.
* LATE: they are not yet satisfied when the dependencies are: too much waiting, or a deadlock.

Whether an instruction may issue depends on its own engine's counters and on how much each other engine has retired,
nothing else. So this covers every interleaving; and whether all engines end is decided by one maximal run.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from xdsl.ir import Operation

from mpkc.dialects.engine import is_value
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_streams import BarrierOp, MarkerOp, ReadOp, StreamsOp
from mpkc.dialects.sem_structure import Edge, Structure, structure_of
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.verify.assignments import Assignment, assignments, disagreeing
from mpkc.runtime.verify.execution import Iteration, Slot, sites_of
from mpkc.runtime.verify.lanes import Array
from mpkc.runtime.verify.prefixes import (
    FAR,
    Executions,
    Flags,
    Implementation,
    Specification,
    accumulated,
    blocked,
)
from mpkc.runtime.verify.report import WaitFailure
from mpkc.runtime.verify.runs import Integers, ProgramRun, StreamRun, name_of

CHECK = "product"
SHOWN = 5  # failures of a kind that one comparison describes


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


def check_product(
    program: ProgramOp,
    streams: StreamsOp,
    bindings: Sequence[Bindings] = (),
    rescued: Collection[Rescue] = (),
    seed: int = 0,
    barriers: bool = False,
) -> list[WaitFailure]:
    """Compare the waits of `streams` with the dependencies of `program`.

    Args:
        bindings: runs to compare, all at once; where there are none, assigned trips, all of 0 to 2 for each entry of a
            loop where that makes at most 200, else 64 drawn by `seed`. Streams that are optimized for the bounds of the
            program need bindings.
        rescued: dependencies whose waits may be late.
        barriers: whether barriers are allowed; what waits at one may be late.

    Returns:
        What is wrong, the first of it in detail; nothing where all is exact.

    Raises:
        OpError: a binding that is missing, a division by zero, a loop that does not end.
    """
    if bindings:
        return Product(program, bindings=bindings).check(streams, rescued, barriers)
    structure = structure_of(program)
    assigned = assignments(structure, np.random.default_rng(seed))
    return Product(program, assigned, structure=structure).check(streams, rescued, barriers)


class Product:
    """A program in many executions, to compare streams with.

    Args:
        assignment: trips, the same on all engines, or by engine: then engines that disagree block where the program
            says that they do.
        bindings: without an assignment, the integers of each execution.
    """

    def __init__(
        self,
        program: ProgramOp,
        assignment: Assignment | Mapping[str, Assignment] | None = None,
        bindings: Sequence[Bindings] = (),
        structure: Structure | None = None,
    ):
        self.structure = structure or structure_of(program)
        self.integers, self.assignment = Integers(bindings), assignment
        engines, sites = self.structure.engines, sites_of(self.structure)
        if isinstance(assignment, Mapping):
            views = {
                engine: ProgramRun(self.structure, sites, assignment[engine].lanes, self.integers, assignment[engine])
                for engine in engines
            }
        else:
            lanes = assignment.lanes if assignment else len(bindings)
            views = dict.fromkeys(engines, ProgramRun(self.structure, sites, lanes, self.integers, assignment))
        self.agree = not isinstance(assignment, Mapping)
        self.specification = Specification(self.structure, views)

    @property
    def executions(self) -> int:
        """The executions of instructions, in all runs."""
        return sum(int(active.sum()) for active in self.specification.active.values())

    def check(
        self, streams: StreamsOp, rescued: Collection[Rescue] = (), barriers: bool = False, strict: bool = False
    ) -> list[WaitFailure]:
        """What is wrong with `streams`.

        Args:
            rescued, barriers: see `check_product`.
            strict: whether each wait must be exact by itself, also where an earlier one of its engine, or a barrier,
                already holds the instruction back.
        """
        views, parts = self.specification.views, streams.streams
        if sorted(parts) != sorted(views):
            return [WaitFailure(CHECK, f"there are streams of {list(parts)}, and the program has {list(views)}")]
        runs = {engine: StreamRun(streams, parts[engine], view) for engine, view in views.items()}
        return _Comparison(self, Implementation(streams, runs), runs, rescued, barriers, strict).failures


@dataclass
class _Comparison:
    product: Product
    implementation: Implementation
    runs: Mapping[str, StreamRun]
    rescued: Collection[Rescue]
    barriers: bool
    strict: bool
    inexact: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.specification = self.product.specification
        self.engines = self.specification.engines
        self.markers = {rescue.marker for rescue in self.rescued}
        self.rows = {
            engine: [row for row, slot in enumerate(slots) if not _is_extra(slot.op)]
            for engine, slots in self.implementation.slots.items()
        }

    @cached_property
    def failures(self) -> list[WaitFailure]:
        if different := list(self._sequences()):
            return different
        found = [*self._counts(), *self._extras()]
        self._bounds()
        for engine in self.engines:
            found += self._compare(engine)
        if not found and self.inexact:
            found += self._deadlocks()
        return found

    def _sequences(self) -> Iterator[WaitFailure]:
        """Each engine runs what the program says, in that order."""
        for engine in self.engines:
            wanted = self.specification.slots[engine]
            slots = self.implementation.slots[engine]
            found = [slots[row] for row in self.rows[engine]]
            for number in range(max(len(wanted), len(found))):
                want = wanted[number] if number < len(wanted) else None
                have = found[number] if number < len(found) else None
                if want and have and _same(want, have):
                    continue
                yield WaitFailure(
                    CHECK,
                    f'engine "{engine}" runs {_told(have)} where the program runs {_told(want)}',
                    instruction=name_of((want or have or wanted[0]).op),
                    engine=engine,
                )
                break

    def _counts(self) -> Iterator[WaitFailure]:
        """No semaphore counts higher than its bits hold."""
        bits = self.implementation.type.width.data - self.implementation.signed
        for semaphore, highest in self.implementation.highest.items():
            if highest >> bits:
                yield WaitFailure(
                    CHECK,
                    f'semaphore "{semaphore}" counts to {highest}, and holds {(1 << bits) - 1}',
                    semaphore=semaphore,
                )

    def _extras(self) -> Iterator[WaitFailure]:
        """Barriers and markers are named by remarks."""
        allowed = self.barriers or None in self.markers
        for engine, slots in self.implementation.slots.items():
            for slot in slots:
                if isinstance(slot.op, BarrierOp) and not allowed:
                    yield WaitFailure(CHECK, f'engine "{engine}" has a barrier that no remark names', engine=engine)
                    return
                if isinstance(slot.op, MarkerOp) and slot.waits and name_of(slot.op) not in self.markers:
                    yield WaitFailure(
                        CHECK, f"@{name_of(slot.op)} waits, and no remark names it", name_of(slot.op), engine
                    )
                    return

    # What the slots of each engine must ask at least, and may ask at most, in numbers of the implementation.

    def _bounds(self) -> None:
        self.least = {e: np.full_like(need, -1) for e, need in self.implementation.need.items()}
        for engine in self.engines:
            for number, other in enumerate(self.engines):
                need = self.specification.need[engine][:, number]
                # Places of the other engine's slots; what never comes, and nothing, stay what they are.
                places = np.array([*self.rows[other], FAR, -1], np.int32)
                self.least[engine][self.rows[engine], number] = places[np.minimum(need, len(places) - 2)]
        self.most = {engine: least.copy() for engine, least in self.least.items()}
        for engine, slots in self.implementation.slots.items():
            extra = [row for row, slot in enumerate(slots) if isinstance(slot.op, BarrierOp | MarkerOp)]
            self.most[engine][extra] = FAR
            self.inexact |= bool(extra)
        for rescue in self.rescued:
            for edge in self.product.structure.by_label[rescue.consumer].edges:
                if edge.producer.label == rescue.producer:
                    self._rescue(edge, rescue)
        for instruction in self.product.structure.instructions:
            if is_value(instruction.op):
                self._bound_reads(name_of(instruction.op), instruction.engine)

    def _rescue(self, edge: Edge, rescue: Rescue) -> None:
        """The wait for `edge` may be late, at most until its marker retires as often as the target says."""
        self.inexact = True
        engine, other = edge.consumer.engine, edge.producer.engine
        number, active = self.engines.index(other), self.implementation.active[other]
        markers = [
            (row, slot)
            for row, slot in enumerate(self.implementation.slots[other])
            if name_of(slot.op) == rescue.marker and isinstance(slot.op, MarkerOp)
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
        written = self.specification.instructions.get(name)
        number = self.engines.index(engine)
        for reader, (other, run) in enumerate(self.runs.items()):
            reads = [
                row for row in run.versions if isinstance(op := run.slots[row].op, ReadOp) and op.source.data == name
            ]
            if not reads:
                continue
            self.inexact = True
            lanes = self.specification.lanes
            versions = np.array([np.broadcast_to(run.versions[row], lanes) for row in reads])
            if written is None:
                continue
            places = np.array([*self.rows[engine], FAR, -1], np.int32)
            needed = places[np.minimum(written.executions.nth(versions), len(places) - 2)]
            self.least[other][reads, number] = needed
            self.most[other][reads, number] = needed
            self._bound_next(written.executions, engine, other, reader, reads, versions)

    def _bound_next(
        self, written: Executions, engine: str, other: str, reader: int, reads: list[int], versions: Array
    ) -> None:
        active = self.implementation.active[other][reads]
        # [executions of the value, reads, lanes]: the reads of what was written before
        earlier = (versions <= written.count[:-1][:, None]) & active
        last = np.where(earlier, np.array(reads, np.int32)[:, None], -1).max(axis=1)
        must = np.where(earlier & (versions > 0), np.array(reads, np.int32)[:, None], -1).max(axis=1)
        rows = np.array(self.rows[engine])[written.rows]
        self.most[engine][rows, reader] = np.maximum(self.most[engine][rows, reader], last)
        if other != engine:
            self.least[engine][rows, reader] = np.maximum(self.least[engine][rows, reader], must)

    def _compare(self, engine: str) -> Iterator[WaitFailure]:
        need, active = self.implementation.need[engine], self.implementation.active[engine]
        least, most = self.least[engine], self.most[engine]
        early = (need < least) & active[:, None]
        late = (need > most) & active[:, None]
        if not early.any() and not late.any():
            return
        self.inexact = True
        if not self.strict:
            checked = np.array([not isinstance(s.op, BarrierOp | MarkerOp) for s in self.implementation.slots[engine]])
            early &= accumulated(need, active) < least
            late &= need > accumulated(np.where(checked[:, None, None], most, -1), active)
        if not self.product.agree:
            reachable = _reachable(least, active)
            early, late = early & reachable, late & reachable
        yield from self._describe(engine, "EARLY", early)
        yield from self._describe(engine, "LATE", late)

    def _describe(self, engine: str, what: str, wrong: Flags) -> Iterator[WaitFailure]:
        places = np.argwhere(wrong)
        shown: set[tuple[int, int]] = set()
        for row, number, lane in places.tolist():
            if (row, number) in shown:
                continue
            shown.add((row, number))
            if len(shown) > SHOWN:
                return
            yield self._failure(engine, what, row, number, lane)

    def _failure(self, engine: str, what: str, row: int, number: int, lane: int) -> WaitFailure:
        implementation, slot = self.implementation, self.implementation.slots[engine][row]
        other = self.engines[number]
        need = int(implementation.need[engine][row, number, lane])
        bound = int((self.least if what == "EARLY" else self.most)[engine][row, number, lane])
        wait = next(
            (
                (semaphore, _in_lane(implementation.threshold(value), lane))
                for semaphore, value in slot.waits
                if (signals := implementation.semaphores.get(semaphore)) is None or signals.engine == number
            ),
            None,
        )
        waits = [
            f'"{semaphore}" >= {_in_lane(implementation.threshold(value), lane)}' for semaphore, value in slot.waits
        ]
        owed = self._owed(slot, lane)
        message = (
            f'{what}: {_told(slot)} on engine "{engine}" waits until engine "{other}" has retired '
            f"{self._place(other, need, lane)}, and {'must' if what == 'EARLY' else 'may only'} wait until it has "
            f"retired {self._place(other, bound, lane)}; waits: {', '.join(waits) or 'none'}; owed: {owed or 'nothing'}"
            f"{self._trips_told(engine, lane)}"
        )
        return WaitFailure(
            CHECK,
            message,
            instruction=name_of(slot.op),
            engine=engine,
            iteration=slot.iteration,
            trips=self._trips(engine, lane),
            bindings=self._bindings(lane),
            semaphore=wait[0] if wait else None,
            threshold=wait[1] if wait else None,
        )

    def _owed(self, slot: Slot, lane: int) -> str:
        """What the dependencies of a slot owe in a lane, as condition (1) counts it."""
        instruction = self.product.structure.by_op.get(
            next((i.op for i in self.product.structure.instructions if name_of(i.op) == name_of(slot.op)), slot.op)
        )
        edges = instruction.edges if instruction else []
        told: list[str] = []
        for edge in edges:
            owed = int(self.specification.owed(edge, [slot.iteration])[0, lane])
            if edge.target(slot.iteration) is not None:
                told.append(f"@{name_of(edge.producer.op)} x {owed}")
        return ", ".join(told)

    def _place(self, engine: str, row: int, lane: int) -> str:
        if row >= FAR:
            return "what it never runs"
        if row < 0:
            return "nothing"
        return _told(self.implementation.slots[engine][row])

    def _trips(self, engine: str, lane: int) -> dict[str, int]:
        assignment = self.product.assignment
        if isinstance(assignment, Mapping):
            assignment = assignment[engine]
        if assignment is None:
            return {}
        return {
            f"{name}{list(iteration) if iteration else ''}": trips
            for (name, iteration), trips in assignment.lane(lane).items()
        }

    def _bindings(self, lane: int) -> dict[str, int] | None:
        if not self.product.integers.bindings:
            return None
        values = self.product.integers.bindings[lane].values
        return {name: int(value[0]) for name, value in values.items() if len(value) == 1}

    def _trips_told(self, engine: str, lane: int) -> str:
        trips = self._trips(engine, lane)
        return f"; trips: {', '.join(f'{name}={n}' for name, n in trips.items())}" if trips else ""

    def _deadlocks(self) -> Iterator[WaitFailure]:
        """Where the program ends, the streams end."""
        implementation, specification = self.implementation, self.specification
        stopped = blocked([(implementation.need[e], implementation.active[e]) for e in self.engines])
        ends = np.array([len(implementation.slots[e]) for e in self.engines])[:, None]
        stuck = (stopped < ends).any(axis=0)
        if not stuck.any():
            return
        reached = blocked([(specification.need[e], specification.active[e]) for e in self.engines])
        all_slots = np.array([len(specification.slots[e]) for e in self.engines])[:, None]
        wrong = np.flatnonzero(stuck & ~(reached < all_slots).any(axis=0))
        for lane in wrong[:1].tolist():
            for number, engine in enumerate(self.engines):
                row = int(stopped[number, lane])
                if row < len(implementation.slots[engine]):
                    slot = implementation.slots[engine][row]
                    yield WaitFailure(
                        CHECK,
                        f'a deadlock: {_told(slot)} on engine "{engine}" waits forever{self._trips_told(engine, lane)}',
                        instruction=name_of(slot.op),
                        engine=engine,
                        iteration=slot.iteration,
                        trips=self._trips(engine, lane),
                    )


def disagreeing_product(program: ProgramOp, seed: int) -> Product:
    """A program whose engines disagree on trip counts, in drawn ways."""
    structure, rng = structure_of(program), np.random.default_rng(seed)
    assigned = assignments(structure, rng)
    return Product(program, disagreeing(assigned, structure.engines, rng), structure=structure)


def _reaches(edge: Edge, consumer: Iteration, marker: Iteration) -> bool:
    """Whether an execution of a marker lies in or before the target of `edge`, in the loops around the marker."""
    target = [i - d if isinstance(d, int) else math.inf for i, d in zip(consumer, edge.counted, strict=False)]
    target = target[: len(marker)]
    return all(t > 0 for t in target) and marker <= tuple(target)


def _is_extra(op: Operation) -> bool:
    """Whether the allocator has added the instruction `op`."""
    return isinstance(op, BarrierOp | MarkerOp | ReadOp)


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
    if isinstance(slot.op, BarrierOp):
        return "a barrier"
    return f"@{name_of(slot.op)}{list(slot.iteration)}"


def _in_lane(value: int | Array, lane: int) -> int:
    return int(value if isinstance(value, int) else value[lane])


def _reachable(least: Array, active: Flags) -> Flags:
    """The slots that no earlier one of the engine blocks for good; [slots, 1, lanes]."""
    never = ((least == FAR).any(axis=1)) & active
    before = np.zeros_like(never)
    before[1:] = np.logical_or.accumulate(never, axis=0)[:-1]
    return ~before[:, None]
