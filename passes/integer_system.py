"""Systems of linear constraints on integers: whether they have a solution, and how low a variable can be.

What is found is exact where a search over few values decides; where it does not, the system counts as having a
solution. So "no solution" can be relied on.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from math import gcd, inf
from typing import TypeAlias

Bound: TypeAlias = float
"""An integer, or an infinity."""

MOST_VALUES = 64  # of a variable that a search tries
MOST_ROUNDS = 64  # of narrowing bounds by each other
MOST_NODES = 2000  # of one search


class System:
    """Integer variables with bounds, and linear constraints on them; variables are numbers from 0."""

    def __init__(self) -> None:
        self.lower: list[Bound] = []
        self.upper: list[Bound] = []
        self._constraints: list[tuple[tuple[tuple[int, int], ...], Bound, Bound]] = []

    def variable(self, lower: Bound = -inf, upper: Bound = inf) -> int:
        """A new variable."""
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def constrain(self, terms: Mapping[int, int], lower: Bound, upper: Bound) -> None:
        """The sum of variables times coefficients is from `lower` to `upper`."""
        present = tuple((variable, coefficient) for variable, coefficient in terms.items() if coefficient)
        if len(present) == 1:
            ((variable, coefficient),) = present
            self._narrow(variable, coefficient, lower, upper)
        else:
            self._constraints.append((present, lower, upper))

    def within(self, bounds: Iterable[tuple[int, Bound, Bound]]) -> "System":
        """The same system with narrower bounds for some variables."""
        narrowed = copy(self)
        narrowed.lower, narrowed.upper = list(self.lower), list(self.upper)
        for variable, lower, upper in bounds:
            narrowed.lower[variable] = max(lower, narrowed.lower[variable])
            narrowed.upper[variable] = min(upper, narrowed.upper[variable])
        return narrowed

    def propagated(self) -> "System | None":
        """The same system with bounds that follow from the constraints; None where there is no solution."""
        system = self.within(())
        return system if system._propagate() else None

    def feasible(self) -> bool:
        """Whether it has a solution."""
        return self._search([MOST_NODES])

    def lowest(self, variable: int) -> Bound | None:
        """The least value of a variable in a solution, or less; -inf where nothing bounds it, None if unsolvable."""
        if not self._constraints:
            return None if self._empty() else self.lower[variable]
        system = self.propagated()
        if system is None:
            return None
        low, high = system.lower[variable], system.upper[variable]
        if not system._undecided():
            return low
        if low == -inf:
            return low if system.feasible() else None
        for value in range(int(low), int(min(high, low + MOST_VALUES)) + 1):
            if system.within([(variable, value, value)]).feasible():
                return value
        return None if high <= low + MOST_VALUES else low + MOST_VALUES + 1

    def _search(self, nodes: list[int]) -> bool:
        if not self._constraints:
            return not self._empty()
        system = self.propagated()
        if system is None:
            return False
        nodes[0] -= 1
        widths = {variable: system.upper[variable] - system.lower[variable] for variable in system._undecided()}
        variable = min(widths, key=widths.__getitem__, default=None)
        if variable is None or widths[variable] > MOST_VALUES or nodes[0] < 0:
            return True
        low = int(system.lower[variable])
        return any(
            system.within([(variable, value, value)])._search(nodes)
            for value in range(low, low + int(widths[variable]) + 1)
        )

    def _empty(self) -> bool:
        return any(low > high for low, high in zip(self.lower, self.upper, strict=True))

    def _undecided(self) -> set[int]:
        """The variables, not fixed, of constraints that some values within their bounds would break."""
        found: set[int] = set()
        for terms, lower, upper in self._constraints:
            least, most = self._range(terms)
            if least < lower or most > upper:
                found.update(v for v, _ in terms if self.lower[v] < self.upper[v])
        return found

    def _range(self, terms: tuple[tuple[int, int], ...]) -> tuple[Bound, Bound]:
        least: Bound = 0
        most: Bound = 0
        for variable, coefficient in terms:
            low, high = self.lower[variable] * coefficient, self.upper[variable] * coefficient
            least, most = least + min(low, high), most + max(low, high)
        return least, most

    def _propagate(self) -> bool:
        for _ in range(MOST_ROUNDS):
            before = (tuple(self.lower), tuple(self.upper))
            for terms, lower, upper in self._constraints:
                if not self._tighten(terms, lower, upper):
                    return False
            if self._empty():
                return False
            if before == (tuple(self.lower), tuple(self.upper)):
                break
        return True

    def _tighten(self, terms: tuple[tuple[int, int], ...], lower: Bound, upper: Bound) -> bool:
        """Narrow the variables of one constraint; False where nothing is left."""
        fixed, step, open_terms = 0, 0, list[tuple[int, int]]()
        for variable, coefficient in terms:
            low, high = self.lower[variable], self.upper[variable]
            if low > high:
                return False
            if low == high:
                fixed += int(low) * coefficient
            else:
                step = gcd(step, coefficient)
                open_terms.append((variable, coefficient))
        lower, upper = lower - fixed, upper - fixed
        if step and lower > -inf and upper < inf and -(-lower // step) * step > upper:
            return False
        if not open_terms:
            return lower <= 0 <= upper
        for at, (variable, coefficient) in enumerate(open_terms):
            least, most = self._range((*open_terms[:at], *open_terms[at + 1 :]))
            self._narrow(variable, coefficient, lower - most, upper - least)
            if self.lower[variable] > self.upper[variable]:
                return False
        return True

    def _narrow(self, variable: int, coefficient: int, lower: Bound, upper: Bound) -> None:
        """Bounds of a variable from those of the variable times a coefficient."""
        if coefficient < 0:
            coefficient, lower, upper = -coefficient, -upper, -lower
        if lower > -inf:
            self.lower[variable] = max(self.lower[variable], -(-lower // coefficient))
        if upper < inf:
            self.upper[variable] = min(self.upper[variable], upper // coefficient)
