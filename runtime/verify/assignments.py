"""Trip counts for every loop entry of a program, assigned and not computed: all of them, or some drawn.

A conditional has a choice of its regions as a loop has a choice of its trips. What the text fixes stays as it is: the
trips of a loop with constant bounds, the branch of a constant condition.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue

from mpkc.dialects.scalars import wrap
from mpkc.dialects.sem_structure import Structure, regions_of
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.verify.execution import Iteration
from mpkc.runtime.verify.lanes import Value

Key = tuple[str, Iteration]  # the first region of a loop or conditional, the iteration of the loops around it
Condition = tuple[Key, Callable[[Any, int], Any], int]
MOST = 2  # trips of a loop
ALL, DRAWN = 200, 64


@dataclass
class Assignment:
    """For each entry of a loop or conditional its trips, or its region, in each of `lanes` executions."""

    lanes: int = 1
    columns: dict[Key, Value] = field(default_factory=dict[Key, Value])

    def at(self, name: str, iteration: Iteration) -> Value | None:
        return self.columns.get((name, iteration))

    def lane(self, number: int) -> dict[Key, int]:
        """What is assigned in one execution."""
        return {key: int(v if isinstance(v, int) else v[number]) for key, v in self.columns.items()}


@dataclass(frozen=True)
class Inputs:
    """What the lanes of a run are given: assigned trips, for all engines or by engine; else bindings."""

    assignment: Assignment | Mapping[str, Assignment] | None = None
    bindings: Sequence[Bindings] = ()

    @property
    def agree(self) -> bool:
        """Whether all engines have the same trips."""
        return not isinstance(self.assignment, Mapping)

    def trips(self, engine: str, lane: int) -> dict[str, int]:
        """The assigned trips of each entry of a loop, and the region of each conditional, in one lane."""
        given = self.assignment
        assignment = given[engine] if isinstance(given, Mapping) else given
        lanes = assignment.lane(lane) if assignment else {}
        return {f"{name}{list(iteration) if iteration else ''}": trips for (name, iteration), trips in lanes.items()}

    def arguments(self, lane: int) -> dict[str, int] | None:
        """The arguments in one lane; None where trips are assigned."""
        if not self.bindings:
            return None
        return {name: int(value[0]) for name, value in self.bindings[lane].values.items() if len(value) == 1}


def assignments(structure: Structure, rng: np.random.Generator, most: int = MOST) -> Assignment:
    """Every assignment of 0 to `most` trips to each entry where these are at most ALL, else DRAWN random ones."""
    drawing = _Drawing(structure, most)
    if drawing.count(structure.loops[0].block) <= ALL:
        drawing.fill(structure.loops[0].block, (), ())
    else:
        drawing.rng, drawing.found.lanes = rng, DRAWN
        drawing.fill(structure.loops[0].block, (), ())
    return drawing.found


def disagreeing(
    assignment: Assignment, engines: Sequence[str], rng: np.random.Generator, most: int = MOST
) -> Mapping[str, Assignment]:
    """Drawn assignments by engine: each engine has other trips than `assignment` at some of its entries."""
    changed: dict[str, Assignment] = {}
    for engine in engines:
        columns = dict(assignment.columns)
        for key, column in columns.items():
            if isinstance(column, np.ndarray):
                other = rng.integers(0, most + 1, len(column))
                columns[key] = np.where(rng.random(len(column)) < 0.1, np.minimum(other, column.max()), column)
        changed[engine] = Assignment(assignment.lanes, columns)
    return changed


class _Drawing:
    """Walks the entries of a program in program order and chooses at each; all choices where there is no `rng`."""

    def __init__(self, structure: Structure, most: int):
        self.names = {loop.block: loop.name for loop in structure.loops}
        self.most = most
        self.rng: np.random.Generator | None = None
        self.found = Assignment()
        self.children: dict[Block, list[Operation]] = {}
        for loop in structure.loops[1:]:
            if (block := loop.op.parent) is not None:
                inside = self.children.setdefault(block, [])
                if not inside or inside[-1] is not loop.op:
                    inside.append(loop.op)

    def count(self, block: Block) -> int:
        """The assignments of `block`, at most ALL + 1."""
        total = 1
        for op in self.children.get(block, ()):
            total = min(total * self._count(op), ALL + 1)
        return total

    def _count(self, op: Operation) -> int:
        counts = [self.count(region.block) for _, region in regions_of(op)]
        match op:
            case scf.ForOp():
                fixed = _fixed(op)
                trips = range(self.most + 1) if fixed is None else [min(fixed, ALL)]
                return sum(counts[0] ** n for n in trips)
            case scf.WhileOp():
                return sum(counts[0] ** (n + 1) * counts[1] ** n for n in range(self.most + 1))
            case _:
                regions = _region_count(op)
                return sum(counts) + regions - len(counts) if _fixed(op) is None else max(counts, default=1)

    def fill(self, block: Block, iteration: Iteration, conditions: Sequence[Condition]) -> None:
        for op in self.children.get(block, ()):
            regions = regions_of(op)
            key = (self.names[regions[0][1].block], iteration)
            fixed = _fixed(op)
            choices = self.most + 1 if isinstance(op, scf.ForOp | scf.WhileOp) else _region_count(op)
            self._choose(key, fixed, choices, conditions)
            if isinstance(op, scf.ForOp):
                for n in range(self.most if fixed is None else fixed):
                    self.fill(op.body.block, (*iteration, n + 1), (*conditions, (key, np.greater, n)))
            elif isinstance(op, scf.WhileOp):
                for n in range(self.most + 1):
                    entered = (*conditions, (key, np.greater, n - 1))
                    self.fill(op.before_region.block, (*iteration, n + 1), entered)
                    self.fill(op.after_region.block, (*iteration, n + 1), (*conditions, (key, np.greater, n)))
            else:
                for number, (_, region) in enumerate(regions):
                    self.fill(region.block, iteration, (*conditions, (key, np.equal, number)))

    def _choose(self, key: Key, fixed: int | None, choices: int, conditions: Sequence[Condition]) -> None:
        found = self.found
        if fixed is not None:
            found.columns[key] = fixed
        elif self.rng is not None:
            found.columns[key] = self.rng.integers(0, choices, found.lanes)
        else:
            mask = np.ones(found.lanes, np.bool_)
            for other, compare, number in conditions:
                mask &= compare(found.columns[other], number)
            copies = np.where(mask, choices, 1)
            origin = np.repeat(np.arange(found.lanes), copies)
            found.columns = {k: v if isinstance(v, int) else v[origin] for k, v in found.columns.items()}
            found.columns[key] = np.arange(len(origin)) - (np.cumsum(copies) - copies)[origin]
            found.lanes = len(origin)


def _region_count(op: Operation) -> int:
    """How many ways a conditional has; one without an else branch has two."""
    return 2 if isinstance(op, scf.IfOp) else len(op.regions)


def _fixed(op: Operation) -> int | None:
    """The trips or the region that constants give `op`."""
    if isinstance(op, scf.ForOp):
        lower, upper, step = (_constant(value) for value in (op.lb, op.ub, op.step))
        if lower is None or upper is None or step is None:
            return None
        return max(0, -((lower - upper) // step))
    if isinstance(op, scf.WhileOp):
        return None
    value = _constant(op.operands[0])
    if value is None:
        return None
    if isinstance(op, scf.IfOp):
        return 0 if value else 1
    labels = list(op.cases.iter_values()) if isinstance(op, scf.IndexSwitchOp) else []
    return labels.index(value) if value in labels else len(labels)


def _constant(value: SSAValue) -> int | None:
    match value:
        case OpResult(op=arith.ConstantOp(value=IntegerAttr() as constant)):
            return wrap(constant.value.data, value.type)
        case _:
            return None
