"""What a grid makes an operator load, and which grids are worth looking at.

MPK, "To discover an effective strategy": a task loads the regions that its operator declares from device memory into
shared memory, each once; what several tasks read is loaded by each of them. The tile functions stream them through
a ring of pages (runtime/cuda/include/mpk/tile.h): a step holds one page of each operand that comes in tiles, whatever
the size of the task, so pages bound an operator's step and no grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from mpkc.dialects.lists import Index
from mpkc.dialects.tops.base import Access, Dimension, Grid, Mode, Operator, Tasks, bytes_of_element
from mpkc.passes.partition_cuts import Cuts, Neighbours, cuts_of, fall_together

# How much more than with the best balanced grid the busiest worker may load: so that fewer bytes are loaded in all,
# and so that cuts fall together with those of other operators.
SLACK, CUTS_SLACK = 1 / 32, 1 / 8


@dataclass(frozen=True)
class Bounds:
    """How finely an operator may be cut.

    Attributes:
        workers: tasks that run at the same time.
        min_bytes: a task moves at least this much.
    """

    workers: int
    min_bytes: int

    def most(self, op: Operator) -> int:
        """The most tasks: 2 a worker, and no more than what the operator moves is worth."""
        accesses = op.accesses(Tasks(op.dimensions(), (1,) * len(op.dimensions())))
        moved = _loads(op, accesses).total + sum(_stored(op, access) for access in accesses)
        return min(2 * self.workers, max(1, moved // self.min_bytes) if self.min_bytes else 2 * self.workers)


def _stored(op: Operator, access: Access) -> int:
    value = [*op.operands, *op.results][access.value]
    return int(access.elements.sum()) * bytes_of_element(value.type) if access.mode is Mode.WRITE else 0


@dataclass(frozen=True)
class Loads:
    """Bytes from device memory: int64 [tasks], the most that each task loads; and by all of them together."""

    each: Index
    total: int

    def busiest(self, workers: int) -> int:
        """Of the worker that loads most, where each has as many tasks as another or one less."""
        return ceil(len(self.each) / workers) * int(self.each.max())


@dataclass(frozen=True, order=True)
class Candidate:
    """A grid, in the order in which grids are preferred.

    Attributes:
        apart: operators around this one whose cuts do not fall together with the grid's.
        bytes: all tasks together load.
        busiest: bytes that the busiest worker loads.
        tasks: how many.
        grid: the number of parts along each dimension.
    """

    apart: int
    bytes: int
    busiest: int
    tasks: int
    grid: Grid


def loaded(op: Operator, grid: Grid) -> Loads:
    """What the tasks of a grid load."""
    return _loads(op, op.accesses(Tasks(op.dimensions(), grid)))


def _loads(op: Operator, accesses: Sequence[Access]) -> Loads:
    values = [*op.operands, *op.results]
    each, total = np.zeros(len(accesses[0].lo), dtype=np.int64), 0
    for access in accesses:
        if access.mode.reads:
            size = bytes_of_element(values[access.value].type)
            moved, together = _moved(access)
            each += moved * size
            total += together * size
    return Loads(each, total)


def _moved(access: Access) -> tuple[Index, int]:
    """Elements that each task, and that all tasks together move."""
    if access.moved is not None:
        return access.moved.each, access.moved.total
    elements = access.elements
    return elements, int(elements.sum())


def candidate(op: Operator, grid: Grid, workers: int, around: Sequence[tuple[int, Cuts]] = ()) -> Candidate:
    """A grid and what it costs; `around` as `Neighbours.around` gives it."""
    accesses = op.accesses(Tasks(op.dimensions(), grid))
    loads, own = _loads(op, accesses), {value: cuts_of(accesses, value) for value, _ in around}
    apart = sum(not fall_together(own[value], cuts) for value, cuts in around)
    return Candidate(apart, loads.total, loads.busiest(workers), len(loads.each), grid)


def candidates(op: Operator, bounds: Bounds, neighbours: Neighbours) -> list[Candidate]:
    """The grids that `tgraph-partition` chooses from, the one that it takes first.

    An operator is wide enough where 0.75 tasks a worker are possible, none of which moves less than `min_bytes`. Of
    the grids of 0.75 to 2 tasks a worker its candidates are those

    * cut where the operators around are, with as few exceptions as the grids have whose busiest worker loads at most
      1/8 more than with the best of them;
    * of those, the ones whose busiest worker loads at most 1/32 more than with the best of them.

    The one that loads fewest bytes is taken; of equal ones, the one whose busiest worker loads least. Operators that
    are not wide enough can't keep the workers busy: there the smallest of the largest tasks comes first, then bytes.
    """
    grids = list(_grids(op.dimensions(), bounds.most(op)))
    wide = [grid for grid in grids if prod(grid) >= 0.75 * bounds.workers]
    balanced = _balanced(op, wide, bounds.workers, CUTS_SLACK) if wide else grids
    around = neighbours.around(op)
    found = [candidate(op, grid, bounds.workers, around) for grid in balanced]
    exceptions = min(each.apart for each in found)
    found = [each for each in found if each.apart == exceptions]
    if not wide:
        return sorted(found, key=lambda each: (each.busiest, each))
    limit = (1 + SLACK) * min(each.busiest for each in found)
    return sorted(each for each in found if each.busiest <= limit)


def _balanced(op: Operator, grids: list[Grid], workers: int, slack: float) -> list[Grid]:
    """The grids whose busiest worker loads at most `slack` more than with the best of them.

    That depends on the size of the largest part along the last dimension, not on how many parts there are.
    """
    last = op.dimensions()[-1].most
    alike: dict[object, list[Grid]] = {}
    for grid in grids:
        alike.setdefault((grid[:-1], ceil(last / grid[-1]), ceil(prod(grid) / workers)), []).append(grid)
    busiest = {key: loaded(op, same[0]).busiest(workers) for key, same in alike.items()}
    limit = (1 + slack) * min(busiest.values())
    return [grid for key, same in alike.items() if busiest[key] <= limit for grid in same]


def _grids(dimensions: tuple[Dimension, ...], most: int) -> Iterator[Grid]:
    """Grids of at most `most` tasks: equal parts along all dimensions but the last, any number along the last."""
    *outer, last = dimensions
    heads: list[Grid] = [()]
    for dimension in outer:
        equal = [parts for parts in range(1, min(dimension.most, most) + 1) if dimension.most % parts == 0]
        heads = [(*head, parts) for head in heads for parts in equal if prod(head) * parts <= most]
    for head in heads:
        for parts in range(1, min(last.most, most // prod(head)) + 1):
            yield (*head, parts)
