"""An operator cut by a grid: what its tasks touch, how much they load, and where the cuts of its values are.

MPK, "To discover an effective strategy": a task loads the regions that its operator declares from device memory into
shared memory, each once; what several tasks read is loaded by each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import ceil

import numpy as np

from mpkc.dialects.lists import Index
from mpkc.dialects.tops.base import Access, Dimension, Grid, Operator, Tasks, bytes_of_element

Cuts = tuple[int, ...]  # of each dimension of a value: bit i is set where regions of tasks start at i


@dataclass(frozen=True)
class Loads:
    """Bytes from device memory: int64 [tasks], the most that each task loads; and by all of them together."""

    each: Index
    total: int

    def busiest(self, workers: int) -> int:
        """Of the worker that loads most, where each has as many tasks as another or one less."""
        return ceil(len(self.each) / workers) * int(self.each.max())


@dataclass(frozen=True)
class CutOperator:
    """An operator of these dimensions, cut by a grid. Everything is computed when it is asked for, and once."""

    op: Operator
    dimensions: tuple[Dimension, ...]
    grid: Grid

    @cached_property
    def accesses(self) -> Sequence[Access]:
        """What the tasks touch."""
        return self.op.accesses(Tasks(self.dimensions, self.grid))

    @cached_property
    def loads(self) -> Loads:
        """What the tasks load."""
        values = [*self.op.operands, *self.op.results]
        each, total = np.zeros(len(self.accesses[0].lo), dtype=np.int64), 0
        for access in self.accesses:
            if access.mode.reads:
                size = bytes_of_element(values[access.value].type)
                moved, together = _moved(access)
                each += moved * size
                total += together * size
        return Loads(each, total)

    def cuts(self, value: int) -> Cuts:
        """The cuts of an operand or result, by its number."""
        starts = [tuple(map(_bits, access.lo.T)) for access in self.accesses if access.value == value]
        return tuple(reduce(int.__or__, of_axis) for of_axis in zip(*starts, strict=True))


def loaded(op: Operator, grid: Grid) -> Loads:
    """What the tasks of a grid load."""
    return CutOperator(op, op.dimensions(), grid).loads


def _moved(access: Access) -> tuple[Index, int]:
    """Elements that each task, and that all tasks together move."""
    if access.moved is not None:
        return access.moved.each, access.moved.total
    elements = access.elements
    return elements, int(elements.sum())


def _bits(places: Index) -> int:
    """The integer whose bits at these places are set."""
    if not places.any():  # a dimension that is not cut, as most are
        return 1
    mask = np.zeros(int(places.max()) + 1, dtype=np.bool_)
    mask[places] = True
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
