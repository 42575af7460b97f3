"""Invariants of loops that are linear: what a loop carries, in terms of ghost counters.

They are not guessed from how an allocator writes its counters: these may be folded, scaled, hoisted and shared as
clean-up likes. States at the head of a loop span an affine space; what is linear and holds in all of them is a basis of
the relations that hold in that space. It starts with states that runs have seen, and grows by every state that a proof
finds to follow from it, until none does: then it is the least space that is inductive.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, OpResult

from mpkc.dialects.scalars import bits_of
from mpkc.dialects.sem_structure import Loop
from mpkc.runtime.verify.columns import Columns
from mpkc.runtime.verify.ghosts import State
from mpkc.runtime.verify.integers import Value

PRIME = (1 << 127) - 1
LARGEST = 1 << 62

Samples: TypeAlias = Sequence[tuple[State, Sequence[Value]]]


@dataclass(frozen=True)
class Relation:
    """A linear form of columns that is 0, or 0 or more; see `Columns`."""

    terms: tuple[tuple[int, int], ...]
    equal: bool

    def holds(self, columns: Sequence[Value]) -> Value:
        """Whether it does, in numbers or as a term."""
        total: Value = 0
        for index, factor in self.terms:
            total = total + factor * columns[index]
        return total == 0 if self.equal else total >= 0


class Invariant:
    """What is taken to hold at the head of a loop; weakened by each state that it does not hold in.

    Attributes:
        columns: what it speaks of.
        parts: its conjuncts.
    """

    def __init__(self, columns: Columns, samples: Samples, trips: Mapping[str, int]):
        self.columns = columns
        self._basis: dict[int, list[int]] = {}
        self._fixed = False
        self._bounds = list(_inequalities(columns, trips))
        self.parts: list[Relation] = []
        self._start([columns.of(state, arguments) for state, arguments in samples])

    def admit(self, row: Sequence[int]) -> None:
        """Weaken it so that it holds where the columns have these values."""
        if self._fixed:
            self.parts = [part for part in self.parts if part.holds(row)]
            return
        _extend(self._basis, row)
        self._bounds = [bound for bound in self._bounds if bound.holds(row)]
        self.parts = [*_equations(self._basis, len(self.columns)), *self._bounds]

    def restrict(self, parts: Sequence[Relation]) -> None:
        """Keep no more than some of its parts, and never take up others again."""
        self._fixed = True
        self.parts = list(parts)

    def _start(self, rows: Sequence[Sequence[int]]) -> None:
        """Admit rows, of which most follow from few."""
        matrix = np.unique(np.array(rows, dtype=np.int64), axis=0)
        for row in matrix[:1]:
            self.admit(row.tolist())
        while len(matrix):
            factors = np.zeros((len(self.columns), len(self.parts)), dtype=np.int64)
            for number, part in enumerate(self.parts):
                for index, factor in part.terms:
                    factors[index, number] = factor
            totals = matrix @ factors
            equal = np.array([part.equal for part in self.parts], dtype=bool)
            matrix = matrix[np.any(np.where(equal, totals != 0, totals < 0), axis=1)]
            for row in matrix[:: max(len(matrix) // 8, 1)]:
                self.admit(row.tolist())


def _inequalities(columns: Columns, trips: Mapping[str, int]) -> Iterator[Relation]:
    """What is carried is not negative, and at most what anything is compared with; how often inner loops run."""
    constants = sorted(_constants(columns.head.op))
    for index, _ in enumerate(columns.head.arguments, columns.first_argument):
        yield Relation(((index, 1),), False)
        for bound in constants:
            yield Relation(((0, bound), (index, -1)), False)
    for latest, earlier in columns.ordered:
        yield Relation(((latest, 1), (earlier, -1)), False)
    for key in columns.place:
        match key:
            case ("met", Loop() as around, Loop() as loop) if loop is not around:
                yield from _entries(columns, around, loop, trips.get(loop.name) if loop.counted else 1)
            case _:
                pass


def _entries(columns: Columns, barrier: Loop, loop: Loop, most: int | None) -> Iterator[Relation]:
    """A loop runs at most so often in each iteration around it, of those since the last barrier: so many, or less one
    that has not come to the loop, or has come to an iteration of it; or one more, that the barrier stood in."""
    place, around = columns.place, loop.parent
    if most is None or not {("met", barrier, around), ("entries", loop), ("entries", around)} <= place.keys():
        return
    since = ((place["entries", loop], -1), (place["met", barrier, loop], 1))
    allowed = ((place["entries", around], most), (place["met", barrier, around], -most))
    for more in (0, -1, 1):
        yield Relation((*since, *allowed, (0, more * most)), False)
    if ("iteration", loop) in place:
        yield Relation((*since, *allowed, (0, -most), (place["iteration", loop], 1)), False)


def _constants(loop: Operation) -> set[int]:
    """What is compared with in a loop, and one less."""
    found: set[int] = set()
    for op in loop.walk():
        if isinstance(op, arith.CmpiOp):
            for operand in op.operands:
                match operand:
                    case OpResult(op=arith.ConstantOp(value=IntegerAttr(value=constant))):
                        number = constant.data % (1 << bits_of(operand.type))
                        found |= {number, number - 1}
                    case _:
                        pass
    return found


def _equations(basis: dict[int, list[int]], width: int) -> Iterator[Relation]:
    """What is linear and 0 in the space that a basis spans."""
    for column in range(width):
        if column in basis:
            continue
        factors = {pivot: vector[column] for pivot, vector in basis.items() if vector[column]}
        found = _quotients(list(factors.values()))
        if found is not None:
            divisor, numbers = found
            terms = tuple((pivot, -number) for pivot, number in zip(factors, numbers, strict=True))
            yield Relation((*terms, (column, divisor)), True)


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


def _quotients(residues: Sequence[int]) -> tuple[int, list[int]] | None:
    """The least common divisor and the numbers whose quotients have these residues; None where these are large."""
    divisor = 1
    for residue in residues:
        divisor *= _denominator(residue * divisor % PRIME)
    numbers = [(residue * divisor + PRIME // 2) % PRIME - PRIME // 2 for residue in residues]
    return (divisor, numbers) if all(abs(number) < LARGEST for number in (divisor, *numbers)) else None


def _denominator(residue: int) -> int:
    """That of the fraction of least terms that has this residue, by Euclid's algorithm."""
    a, b, x, y = PRIME, residue, 0, 1
    while b >= LARGEST:
        quotient = a // b
        a, b, x, y = b, a - quotient * b, y, x - quotient * y
    return abs(y)
