"""At which distances two parts of a buffer overlap, as vectors over the loops that two instructions share.

A dependency at distance e is enforced by a wait at a distance that is lexicographically at most e, and positive only
where e is at least as large: a wait into an iteration before the first is not owed (barrier-free, section 4.2). So the
distances that are carried by one loop need their lexicographic minimum, and another vector for what is below its
positive components.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from mpkc.dialects.sem_distance import EVERY, Component
from mpkc.dialects.sem_structure import Loop
from mpkc.passes.integer_system import Bound, System
from mpkc.passes.tile_accesses import Region, Span, Step
from mpkc.passes.tile_integers import Affine, Integers, Quotient, Symbol, Trip


@dataclass(frozen=True)
class Distance:
    """A class of dependencies between two instructions, those that one wait enforces.

    Attributes:
        vector: the distance of the wait, a component for each counted loop that they share.
        least: what each component of a dependency of the class is at least; -inf where nothing bounds it.
        first: in loops around the consumer, the iterations, from 0, before which it is no consumer.
    """

    vector: tuple[Component, ...]
    least: tuple[Bound, ...]
    first: tuple[tuple[Loop, int], ...] = ()

    @property
    def carrier(self) -> int:
        """Which of the shared loops carries it."""
        return next(at for at, component in enumerate(self.vector) if component)


class Distances:
    """The distances between the regions of a program, found once for regions of one kind in the same loops."""

    def __init__(self, integers: Integers):
        self._integers = integers
        self._found: dict[tuple[object, ...], tuple[Distance | None, tuple[Distance, ...]]] = {}

    def between(
        self, source: Region, sink: Region, common: Sequence[Loop], consumer: Loop
    ) -> tuple[Distance | None, tuple[Distance, ...]]:
        """How the region `sink` of a consumer meets the region `source` of a producer.

        Args:
            common: the loops that they share, root first.
            consumer: the loop that the consumer stands in.

        Returns:
            The class of distance 0, None if they do not meet in one iteration; the classes that loops carry.
        """
        key = (source.spans, source.flat, sink.spans, sink.flat, common[-1], consumer)
        if key not in self._found:
            shared = tuple(loop for loop in common if loop.counted)
            inner = tuple(loop for loop in consumer.path[len(common) :] if loop.counted)
            within = _Meeting(self._integers, source, sink, shared, inner, len(shared)).within_iteration()
            carried = [
                distance
                for level in range(len(shared))
                for distance in _Meeting(self._integers, source, sink, shared, inner, level).carried()
            ]
            self._found[key] = within, tuple(carried)
        return self._found[key]


class _Meeting:
    """Two regions of one buffer, by iterations that agree on the first `level` loops and differ in the next.

    Variables of the system are the iterations of each side, what else is not known, and for the loops from `level`
    on the distance: the consumer's iteration minus the producer's.
    """

    def __init__(
        self,
        integers: Integers,
        source: Region,
        sink: Region,
        shared: tuple[Loop, ...],
        inner: tuple[Loop, ...],
        level: int,
    ):
        self.integers, self.shared, self.inner, self.level = integers, shared, inner, level
        self.system = System()
        self.differ = frozenset(shared[level:])
        self.iterations: dict[tuple[Loop, bool], int] = {}
        self.unknowns: dict[tuple[Symbol, bool], int] = {}
        self.pairs: dict[tuple[Symbol, Symbol], int] = {}
        self.distances = {loop: self._distance(loop) for loop in shared[level:]}
        if source.flat or sink.flat:
            source, sink = source.flattened(), sink.flattened()
        for produced, consumed in zip(source.spans, sink.spans, strict=False):
            self._meet(produced, consumed)

    def within_iteration(self) -> Distance | None:
        """The class of distance 0, where the regions meet in one iteration."""
        if not self.system.feasible():
            return None
        zero = (0,) * len(self.shared)
        return Distance(zero, zero, self._first(self.system))

    def carried(self) -> list[Distance]:
        """The classes that the loop `level` carries."""
        return self._classes(self.system.within([(self.distances[self.shared[self.level]], 1, inf)]))

    def _classes(self, system: System) -> list[Distance]:
        variables = list(self.distances.values())
        carried = system.lowest(variables[0])
        if carried is None:
            return []
        lowest = self._lowest(system)
        vector = _lawful(lowest)
        bounds = [system.lowest(variable) for variable in variables]
        least = [-inf if bound is None else bound for bound in bounds]
        found = list[Distance]()
        for at, component in enumerate(vector):
            if at and isinstance(component, int) and component > 0:
                least[at] = max(least[at], component)
                found += self._classes(system.within([(variables[at], -inf, component - 1)]))
        zeros = (0,) * self.level
        here = Distance((*zeros, *vector), (*zeros, *least), self._first(system))
        return [here, *(distance for distance in found if distance.vector != here.vector)]

    def _lowest(self, system: System) -> list[Component]:
        """The lexicographically least distance from `level` on; `*` where it reaches all iterations there are."""
        vector = list[Component]()
        for loop, variable in self.distances.items():
            low = system.lowest(variable)
            if low is None or low <= -self._last(system, loop) or low == -inf:
                return vector + list[Component]([EVERY]) * (len(self.distances) - len(vector))
            vector.append(int(low))
            system = system.within([(variable, low, low)])
        return vector

    def _last(self, system: System, loop: Loop) -> Bound:
        """The last iteration, from 0, of a loop in which the producer can be; 1 at least."""
        trips = self.integers.trips(loop)
        last = inf if trips is None else trips - 1
        variable, narrowed = self.iterations.get((loop, False)), system.propagated()
        if variable is not None and narrowed is not None:
            last = min(last, narrowed.upper[variable])
        return max(last, 1)

    def _first(self, system: System) -> tuple[tuple[Loop, int], ...]:
        """The first iterations of the consumer, in loops in which the producer stands elsewhere."""
        loops = (*self.shared[self.level + 1 :], *self.inner)
        variables = [(loop, self.iterations.get((loop, True))) for loop in loops]
        lowest = [(loop, system.lowest(variable)) for loop, variable in variables if variable is not None]
        return tuple((loop, int(low)) for loop, low in lowest if low is not None and low > 0)

    def _distance(self, loop: Loop) -> int:
        trips = self.integers.trips(loop)
        return self.system.variable() if trips is None else self.system.variable(1 - trips, trips - 1)

    def _meet(self, produced: Span, consumed: Span) -> None:
        """There is a place in both spans."""
        for span, side in ((produced, False), (consumed, True)):
            self._inside(span, side)
        if produced.start is None or consumed.start is None:
            return
        terms, constant = self._difference(consumed.start, produced.start)
        steps = (*produced.steps, *consumed.steps)
        if any(step.stride is None for step in steps):
            return
        if len({step.stride for step in steps}) <= 1 and max(len(produced.steps), len(consumed.steps)) <= 1:
            # Both go by the same stride: the difference is that of two counts.
            count = self.system.variable(-sum(map(_last_of, consumed.steps)), sum(map(_last_of, produced.steps)))
            terms[count] = -(steps[0].stride or 0) if steps else 0
        else:
            for step, sign in [(s, -1) for s in produced.steps] + [(s, 1) for s in consumed.steps]:
                count = self.system.variable(0, _last_of(step))
                terms[count] = sign * (step.stride or 0)
        self.system.constrain(terms, -constant, -constant)

    def _inside(self, span: Span, side: bool) -> None:
        """The span lies in the buffer: what does not is an error when it runs."""
        if span.start is None or span.extent is None or not span.start.terms:
            return
        if any(isinstance(symbol, Quotient) for symbol, _ in span.start.terms):
            return
        reach = sum((step.stride or 0) * _last_of(step) for step in span.steps if step.count is not None)
        terms = {self._variable(symbol, side): coefficient for symbol, coefficient in span.start.terms}
        self.system.constrain(terms, -span.start.constant, span.extent - 1 - reach - span.start.constant)

    def _difference(self, consumed: Affine, produced: Affine) -> tuple[dict[int, int], int]:
        """`consumed - produced` as coefficients of variables, and a constant."""
        terms: dict[int, int] = {}

        def add(variable: int, coefficient: int) -> None:
            terms[variable] = terms.get(variable, 0) + coefficient

        left = dict(produced.terms)
        for symbol, coefficient in consumed.terms:
            other = self._partner(symbol, coefficient, left)
            if other is None:
                add(self._variable(symbol, True), coefficient)
                continue
            left[other] -= coefficient
            if not self._agree(symbol) or other is not symbol:
                add(self._pair(symbol, other), coefficient)
        for symbol, coefficient in left.items():
            if coefficient:
                add(self._variable(symbol, False), -coefficient)
        return terms, consumed.constant - produced.constant

    def _partner(self, symbol: Symbol, coefficient: int, left: Mapping[Symbol, int]) -> Symbol | None:
        """A symbol of the producer that differs from the consumer's by something simple."""
        if left.get(symbol) and (self._agree(symbol) or left[symbol] == coefficient):
            return symbol if self._agree(symbol) or isinstance(symbol, Trip | Quotient) else None
        if isinstance(symbol, Quotient):
            for other, there in left.items():
                if isinstance(other, Quotient) and other.divisor == symbol.divisor and there == coefficient:
                    return other
        return None

    def _pair(self, symbol: Symbol, other: Symbol) -> int:
        """The variable of the consumer's `symbol` minus the producer's `other`."""
        if isinstance(symbol, Trip) and symbol.loop in self.distances:
            return self.distances[symbol.loop]
        if (symbol, other) not in self.pairs:
            difference = self.pairs[symbol, other] = self.system.variable()
            if isinstance(symbol, Quotient) and isinstance(other, Quotient):
                terms, constant = self._difference(symbol.dividend, other.dividend)
                terms[difference] = terms.get(difference, 0) - symbol.divisor
                most = symbol.divisor - 1
                self.system.constrain(terms, -most - constant, most - constant)
        return self.pairs[symbol, other]

    def _agree(self, symbol: Symbol) -> bool:
        """Whether both sides see the same number."""
        return symbol.varies <= frozenset(self.shared[: self.level])

    def _variable(self, symbol: Symbol, side: bool) -> int:
        """The variable of what one side, the consumer's if `side`, sees of a symbol."""
        if isinstance(symbol, Trip):
            return self._iteration(symbol.loop, side)
        key = (symbol, side and not self._agree(symbol))
        if key not in self.unknowns:
            self.unknowns[key] = self.system.variable(-inf if symbol.least is None else symbol.least)
            if isinstance(symbol, Quotient):
                terms = {self._variable(inside, side): c for inside, c in symbol.dividend.terms}
                terms[self.unknowns[key]] = -symbol.divisor
                constant = symbol.dividend.constant
                self.system.constrain(terms, -constant, symbol.divisor - 1 - constant)
        return self.unknowns[key]

    def _iteration(self, loop: Loop, side: bool) -> int:
        """The variable of the iteration of a loop, from 0, on one side."""
        own = loop not in self.shared or loop in self.differ
        key = (loop, side and own)
        if key not in self.iterations:
            trips = self.integers.trips(loop)
            last = inf if trips is None else trips - 1
            self.iterations[key] = self.system.variable(0, last)
            if loop in self.differ:
                self.iterations[loop, not side] = self.system.variable(0, last)
                produced, consumed = self.iterations[loop, False], self.iterations[loop, True]
                self.system.constrain({consumed: 1, produced: -1, self.distances[loop]: -1}, 0, 0)
        return self.iterations[key]


def _lawful(lowest: Sequence[Component]) -> tuple[Component, ...]:
    """A vector that is at most `lowest` and within the rules: one negative component, and no `*` behind it."""
    for at, component in enumerate(lowest):
        if isinstance(component, int) and component < 0:
            rest = lowest[at + 1 :]
            if any(r == EVERY or r < 0 for r in rest):
                return (*lowest[:at], component - 1, *(0 for _ in rest))
    return tuple(lowest)


def _last_of(step: Step) -> Bound:
    return inf if step.count is None else step.count - 1
