"""Where the cuts of two operators fall together, so that no task depends on a part of another's neighbour.

A tensor is cut by the tasks that write it and by those that read it. Where each cut of the one is a cut of the other,
every writer triggers one event and every reader waits on one; where they are not, tasks trigger and wait on two, and
`tgraph-normalize` must add empty tasks for them.
"""

from dataclasses import dataclass, field
from functools import reduce

from xdsl.ir import OpResult, SSAValue

from mpkc.dialects.tgraph_operators import signature
from mpkc.dialects.tops.base import Dimension, Grid, Operator
from mpkc.passes.partition_grid import CutOperator, Cuts


@dataclass
class Neighbours:
    """The cuts of operators and of those around them, computed once for all operators that are alike."""

    _dimensions: dict[int, tuple[Dimension, ...]] = field(default_factory=dict[int, tuple[Dimension, ...]])
    _cut: dict[tuple[int, Grid], CutOperator] = field(default_factory=dict[tuple[int, Grid], CutOperator])
    _cuts_of: dict[object, Cuts] = field(default_factory=dict[object, Cuts])
    _numbers: dict[object, int] = field(default_factory=dict[object, int])
    _number_of: dict[Operator, int] = field(default_factory=dict[Operator, int])

    def number(self, op: Operator) -> int:
        """Equal for operators that are alike; signatures are large, and each is asked for many times."""
        if op not in self._number_of:
            self._number_of[op] = self._numbers.setdefault(signature(op), len(self._numbers))
        return self._number_of[op]

    def key(self, op: Operator) -> object:
        """Equal for operators alike that stand between operators alike."""
        return self.number(op), tuple((value, self.number(other), other.grid) for value, other, _ in _around(op))

    def around(self, op: Operator) -> list[tuple[int, Cuts]]:
        """(number of the operand or result, cuts) of each operator that writes an operand or reads a result.

        Of one that has no grid yet the finest cuts that it can have.
        """
        return [(value, self._cuts(other, number)) for value, other, number in _around(op)]

    def cut(self, op: Operator, grid: Grid) -> CutOperator:
        """The operator, cut by a grid."""
        number = self.number(op)
        if (number, grid) not in self._cut:
            if number not in self._dimensions:
                self._dimensions[number] = op.dimensions()
            self._cut[number, grid] = CutOperator(op, self._dimensions[number], grid)
        return self._cut[number, grid]

    def _cuts(self, op: Operator, value: int) -> Cuts:
        key = self.number(op), op.grid, value
        if key not in self._cuts_of:
            cuts = [self.cut(op, grid).cuts(value) for grid in ([op.grid] if op.grid else _finest(op))]
            self._cuts_of[key] = tuple(reduce(int.__or__, of_axis) for of_axis in zip(*cuts, strict=True))
        return self._cuts_of[key]


def fall_together(some: Cuts, others: Cuts) -> bool:
    """Whether in every dimension the cuts of the one are all cuts of the other."""
    return all(a & b in (a, b) for a, b in zip(some, others, strict=True))


def _around(op: Operator) -> list[tuple[int, Operator, int]]:
    """(operand or result of `op`, operator beside it, what it is to that one)."""
    found: list[tuple[int, Operator, int]] = []
    for number, operand in enumerate(op.operands):
        if isinstance(operand, OpResult) and isinstance(operand.op, Operator):
            found.append((number, operand.op, len(operand.op.operands) + operand.index))
    for index, result in enumerate(op.results):
        found += [(len(op.operands) + index, reader, at) for reader, at in _readers(result)]
    return found


def _readers(value: SSAValue) -> list[tuple[Operator, int]]:
    return [(use.operation, use.index) for use in value.uses if isinstance(use.operation, Operator)]


def _finest(op: Operator) -> list[Grid]:
    """For each dimension the grid that cuts it, and only it, as finely as possible."""
    most = [dimension.most for dimension in op.dimensions()]
    return [tuple(parts if at == axis else 1 for at, parts in enumerate(most)) for axis in range(len(most))]
