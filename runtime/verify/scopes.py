"""Where on its way a proof has something to show, and what it may take for given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Operation

from mpkc.runtime.verify.ghosts import State
from mpkc.runtime.verify.integers import Value
from mpkc.runtime.verify.invariants import Relation
from mpkc.runtime.verify.walks import Goal

Formula: TypeAlias = Any
"""A z3 term of sort Bool, or bool."""
Formulas: TypeAlias = tuple[Formula, ...]

AGES = 1 << 62  # no engine lives to enter a loop so often


@dataclass(frozen=True)
class Bounds:
    """What is known of how often loops run, by name: entries in all, iterations of one run."""

    entries: Mapping[str, int]
    trips: Mapping[str, int]


@dataclass(frozen=True)
class Scope:
    """Where on the way something is: in the iterations that literals stand for, behind conditions."""

    literals: Formulas = ()
    path: Formulas = ()


@dataclass
class Obligation:
    """The invariant of a loop, at one of the places from which its head is reached, where its columns are `row`."""

    op: Operation
    scope: Scope
    row: Sequence[Value]
    formulas: dict[Relation, Formula] = field(default_factory=dict[Relation, Formula])

    def holds(self, part: Relation) -> Formula:
        """Whether a part of the invariant holds there."""
        found = self.formulas.get(part)
        if found is None:
            found = self.formulas[part] = part.holds(self.row)
        return found


@dataclass
class Duty:
    """A goal, in its scope, with the state of the ghosts there."""

    goal: Goal
    scope: Scope
    state: State
