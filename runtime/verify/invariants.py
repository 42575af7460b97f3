"""Candidates for invariants of loops: linear relations that hold on all runs seen.

They relate what a loop carries to ghost counters, and are not guessed from how an allocator writes its counters: these
may be folded, scaled, hoisted and shared as clean-up likes. Which of them hold on every way is for a proof to say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import OpResult, SSAValue

from mpkc.runtime.verify.ghosts import Ghosts, State
from mpkc.runtime.verify.integers import Value, as_integer, choose
from mpkc.runtime.verify.observed import Head
from mpkc.runtime.verify.requirements import Form

PRIME = (1 << 61) - 1
LARGEST_DIVISOR = 16

Samples: TypeAlias = Sequence[tuple[State, Sequence[Value]]]


@dataclass(frozen=True)
class Candidate:
    """A linear form of columns that is 0, or 0 or more; see `Columns`."""

    terms: tuple[tuple[int, int], ...]
    equal: bool

    def holds(self, columns: Sequence[Value]) -> Value:
        """Whether it does, in numbers or as a term."""
        total: Value = 0
        for index, factor in self.terms:
            total = total + factor * columns[index]
        return total == 0 if self.equal else total >= 0


class Columns:
    """The integers that relations at the head of a loop are sought between: 1, ghosts, what follows from ghosts, and
    what the loop carries.

    Attributes:
        changing: the numbers of those that change in the loop.
    """

    def __init__(self, ghosts: Ghosts, head: Head):
        self.ghosts, self.head = ghosts, head
        self.keys = [key for key in ghosts.initial() if key[0] != "known" and key != ("entries", ghosts.root)]
        self.place = {key: index + 1 for index, key in enumerate(self.keys)}
        self.masked = sorted(self._masked(), key=str)
        covers = {(cover.member.name, cover.target): cover for r in ghosts.requirements for cover in r.covers}
        self.covers = list(covers.values())
        written = {self.place[key] for key in head.counters if key in self.place}
        self.first_argument = 1 + len(self.keys) + 2 * len(self.masked) + 2 * len(self.covers)
        self.changing = written | set(range(self.first_argument, self.first_argument + len(head.arguments)))

    def _masked(self) -> set[tuple[object, ...]]:
        """What history registers hold: a counter as it was j iterations back, 0 before there was one."""
        found: set[tuple[object, ...]] = set()
        for requirement in self.ghosts.requirements:
            for cover in requirement.covers:
                target = cover.target
                if target.form is Form.BACK:
                    found |= {(target.loop, self.ghosts.quantity(cover.member), j) for j in range(target.k + 1)}
        return found

    def of(self, state: State, arguments: Sequence[Value]) -> list[Value]:
        """All columns in one state at the head."""
        ghosts = self.ghosts
        found: list[Value] = [1, *(state[key] for key in self.keys)]
        for loop, quantity, j in self.masked:
            begun = state["iteration", loop] > j
            found += (choose(begun, 1, 0), choose(begun, ghosts.past(state, loop, quantity, j), 0))  # pyright: ignore
        for cover in self.covers:
            owed = ghosts.signals(state, cover)
            found += (choose(owed > 0, 1, 0), owed)
        return [*found, *(as_integer(argument) for argument in arguments)]


def candidates(columns: Columns, samples: Samples) -> list[Candidate]:
    """What holds in all samples and says something of what changes in the loop."""
    rows = list(dict.fromkeys(tuple(columns.of(state, arguments)) for state, arguments in samples))
    found = [*_equations(rows, columns.changing), *_inequalities(columns)]
    return [candidate for candidate in found if all(candidate.holds(row) for row in rows)]


def _inequalities(columns: Columns) -> Iterator[Candidate]:
    """What is carried is not negative, and at most what it is compared with."""
    for index, argument in enumerate(columns.head.arguments, columns.first_argument):
        yield Candidate(((index, 1),), False)
        for bound in _compared_with(argument):
            yield Candidate(((0, bound), (index, -1)), False)


def _compared_with(argument: SSAValue) -> Iterator[int]:
    """The constants that a carried value is compared with."""
    for use in argument.uses:
        if isinstance(use.operation, arith.CmpiOp):
            for operand in use.operation.operands:
                match operand:
                    case OpResult(op=arith.ConstantOp(value=IntegerAttr(value=constant))):
                        yield constant.data
                    case _:
                        pass


def _equations(rows: Sequence[tuple[int, ...]], wanted: set[int]) -> Iterator[Candidate]:
    """The wanted columns as linear forms of earlier ones: from a basis of the space that the rows span."""
    if not rows:
        return
    basis: dict[int, list[int]] = {}
    for row in rows:
        _extend(basis, row)
    pivots = sorted(basis)
    for column in sorted(wanted - set(pivots)):
        factors = {pivot: basis[pivot][column] for pivot in pivots if pivot < column and basis[pivot][column]}
        found = _small(list(factors.values()))
        if found is not None:
            divisor, numbers = found
            terms = tuple((pivot, -number) for pivot, number in zip(factors, numbers, strict=True))
            yield Candidate((*terms, (column, divisor)), True)


def _extend(basis: dict[int, list[int]], row: Sequence[int]) -> None:
    """Add a row to a basis in reduced echelon form, modulo a prime."""
    left = [int(value) % PRIME for value in row]
    for pivot, vector in basis.items():
        if factor := left[pivot]:
            left = [(a - factor * b) % PRIME for a, b in zip(left, vector, strict=True)]
    pivot = next((index for index, value in enumerate(left) if value), None)
    if pivot is None:
        return
    inverse = pow(left[pivot], -1, PRIME)
    left = [value * inverse % PRIME for value in left]
    for other, vector in basis.items():
        if factor := vector[pivot]:
            basis[other] = [(a - factor * b) % PRIME for a, b in zip(vector, left, strict=True)]
    basis[pivot] = left


def _small(residues: Sequence[int]) -> tuple[int, list[int]] | None:
    """A small common divisor and small numbers, whose quotients have these residues."""
    for divisor in range(1, LARGEST_DIVISOR + 1):
        numbers = [(residue * divisor + PRIME // 2) % PRIME - PRIME // 2 for residue in residues]
        if all(abs(number) < 1 << 20 for number in numbers):
            return divisor, numbers
    return None
