"""What symbolic execution knows, and what values may be, by cases; as proofs/checker/Values.v has it."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpkc.certificate.forms import Form, contradict, entails, number, variable
from mpkc.certificate.statements import Expression

Alternative = tuple[list[Form], Form | None]
Waits = tuple[tuple[int, Form], ...]
"""Of each its semaphore and the threshold."""


@dataclass(frozen=True)
class State:
    """What each variable is, what is 0 or more, the waits in front of the next instruction, those that have passed."""

    known: dict[int, Form]
    facts: tuple[Form, ...] = ()
    pending: Waits = ()
    passed: Waits = ()

    def of(self, x: int) -> Form:
        return self.known.get(x) or variable(x)


def assumed(state: State, x: int, taken: bool) -> list[list[Form]]:
    """What holds where a variable is not 0, or is, by cases."""
    form = state.of(x)
    minus = form.scaled(-1)
    cases = [[form.shifted(-1)], [minus.shifted(-1)]] if taken else [[form, minus]]
    return [news for news in cases if not contradict(state.facts, news)]


def same(facts: Sequence[Form], f: Form, g: Form) -> bool:
    """Whether two forms are seen to be the same number."""
    difference = f - g
    if not difference.terms:
        return difference.constant == 0
    return entails(facts, difference) and entails(facts, difference.scaled(-1))


def wrapped(m: int, f: Form) -> list[Alternative]:
    """`f` modulo `m`: as it is, or once too high or low."""
    minus = f.scaled(-1)
    return [
        ([f, minus.shifted(m - 1)], f),
        ([f.shifted(-m), minus.shifted(2 * m - 1)], f.shifted(-m)),
        ([minus.shifted(-1), f.shifted(m)], f.shifted(m)),
        ([f.shifted(-2 * m)], None),
        ([minus.shifted(-m - 1)], None),
    ]


def alternatives(state: State, e: Expression) -> tuple[list[Alternative], int | None]:
    """What an expression may be, by cases, and a bound of it where a case does not tell."""
    of = [state.of(x) for x in e.operands]
    unknown: list[Alternative] = [([], None)]
    match e.kind, of:
        case "Constant", []:
            return [([], number(e.number))], None
        case "Add", [a, b]:
            return wrapped(e.number, a + b), e.number
        case "Sub", [a, b]:
            return wrapped(e.number, a - b), e.number
        case "Mul", [a, b]:
            if not a.terms:
                return wrapped(e.number, b.scaled(a.constant)), e.number
            return (wrapped(e.number, a.scaled(b.constant)) if not b.terms else unknown), e.number
        case "Truncate", [a]:
            return wrapped(e.number, a), e.number
        case "Signed", [a]:
            half = e.number // 2
            return [([a.scaled(-1).shifted(half - 1)], a), ([a.shifted(-half)], a.shifted(-e.number))], None
        case "Divide", [a]:
            quotient = a.divided(e.number)
            return (unknown if quotient is None else [([], quotient)]), None
        case "Maximum", [a, b]:
            return [([a - b], a), ([(b - a).shifted(-1)], b)], None
        case "Minimum", [a, b]:
            return [([a - b], b), ([(b - a).shifted(-1)], a)], None
        case "Select", [c, a, b]:
            return [([c.shifted(-1)], a), ([c.scaled(-1).shifted(-1)], a), ([c, c.scaled(-1)], b)], None
        case "Move", [a]:
            return [([], a)], None
        case "Advance", [a]:
            return [([], a.shifted(e.number))], None
        case "Unknown", []:
            return unknown, e.number
        case _, [a, b]:
            return _compared(e.kind, a, b), 2
        case _:
            raise AssertionError(e)


def _compared(kind: str, a: Form, b: Form) -> list[Alternative]:
    above, below = a - b, b - a
    more, less = above.shifted(-1), below.shifted(-1)
    one, zero = number(1), number(0)
    match kind:
        case "GeU":
            return [([above], one), ([less], zero)]
        case "GtU":
            return [([more], one), ([below], zero)]
        case "Eq":
            return [([above, below], one), ([more], zero), ([less], zero)]
        case _:
            return [([above, below], zero), ([more], one), ([less], one)]
