"""Linear forms and their refutation, step by step as proofs/checker/Linear.v has them.

What is found here, Coq finds as well: a certificate whose hints hold by these functions is accepted by its checker.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd

FUEL = 60
Terms = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Form:
    """`sum(a * x for x, a in terms) + constant`; variables are numbers, in order."""

    terms: Terms
    constant: int

    def __add__(self, other: "Form") -> "Form":
        return combine(1, self, other)

    def __sub__(self, other: "Form") -> "Form":
        return combine(-1, other, self)

    def scaled(self, factor: int) -> "Form":
        """`factor * self`."""
        return combine(factor, self, ZERO) if factor else ZERO

    def shifted(self, number: int) -> "Form":
        """`self + number`."""
        return Form(self.terms, self.constant + number)

    @property
    def negation(self) -> "Form":
        """What is 0 or more where `self` is not."""
        return self.scaled(-1).shifted(-1)

    def mentions(self, variable: int) -> bool:
        return any(x == variable for x, _ in self.terms)

    def coefficient(self, variable: int) -> int:
        return next((a for x, a in self.terms if x == variable), 0)

    def value(self, values: Mapping[int, int]) -> int:
        return self.constant + sum(a * values[x] for x, a in self.terms)

    def substituted(self, form_of: Callable[[int], "Form"]) -> "Form":
        found = number(self.constant)
        for x, a in reversed(self.terms):
            found = form_of(x).scaled(a) + found
        return found

    def divided(self, k: int) -> "Form | None":
        """`self / k`, rounded down, where `k` divides the coefficients."""
        if k <= 0 or any(a % k for _, a in self.terms):
            return None
        return Form(tuple((x, a // k) for x, a in self.terms), self.constant // k)

    @property
    def tightened(self) -> "Form":
        """A stronger form of the constraint that it is 0 or more."""
        divisor = gcd(*(a for _, a in self.terms)) if self.terms else 0
        return (self.divided(divisor) or self) if divisor > 1 else self

    @property
    def trivial(self) -> bool:
        return not self.terms and self.constant >= 0

    @property
    def absurd(self) -> bool:
        return not self.terms and self.constant < 0


def number(value: int) -> Form:
    return Form((), value)


def variable(x: int) -> Form:
    return Form(((x, 1),), 0)


ZERO = number(0)


def combine(factor: int, f: Form, g: Form) -> Form:
    """`factor * f + g`."""
    terms = dict(g.terms)
    for x, a in f.terms:
        terms[x] = terms.get(x, 0) + factor * a
    return Form(tuple(sorted((x, a) for x, a in terms.items() if a)), factor * f.constant + g.constant)


def entails(facts: Sequence[Form], goal: Form) -> bool:
    """Whether the goal is 0 or more where all facts are; it may be without being found."""
    return goal.trivial or contradict(facts, [goal.negation])


def contradict(facts: Sequence[Form], news: Sequence[Form]) -> bool:
    """Whether facts and news can't all be 0 or more."""
    return _contradict(tuple(facts), tuple(news))


@cache
def _contradict(facts: tuple[Form, ...], news: tuple[Form, ...]) -> bool:
    tight = [form.tightened for form in news]
    return any(form.absurd for form in tight) or _refute(_related(tight, list(facts)))


def _related(chosen: list[Form], left: list[Form]) -> list[Form]:
    variables = _variables(chosen)
    for _ in range(FUEL):
        more = [form for form in left if any(x in variables for x, _ in form.terms)]
        if not more:
            return chosen
        left = [form for form in left if not any(x in variables for x, _ in form.terms)]
        variables |= _variables(more)
        chosen = more + chosen
    return chosen + left


def _variables(forms: Iterable[Form]) -> dict[int, None]:
    return {x: None for form in forms for x, _ in form.terms}


def _refute(forms: list[Form]) -> bool:
    for _ in range(FUEL):
        if any(form.absurd for form in forms):
            return True
        variables = list(_variables(forms))
        if not variables:
            return False
        forms = _eliminate(min(variables, key=lambda x: _cost(x, forms)), forms)
    return any(form.absurd for form in forms)


def _cost(x: int, forms: Sequence[Form]) -> int:
    above = sum(form.coefficient(x) > 0 for form in forms)
    below = sum(form.coefficient(x) < 0 for form in forms)
    return above * below - above - below


def _eliminate(x: int, forms: Sequence[Form]) -> list[Form]:
    sides = [(form.coefficient(x), form) for form in forms]
    found = [form for a, form in sides if not a]
    for a, above in sides:
        for b, below in sides:
            if a > 0 > b:
                resolved = combine(-b, above, below.scaled(a)).tightened
                if not resolved.trivial:
                    found.append(resolved)
    return found
