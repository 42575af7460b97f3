"""Which grids of an operator are worth looking at, and what each costs.

MPK, "To discover an effective strategy". The tile functions stream what a task loads through a ring of pages
(runtime/cuda/include/mpk/tile.h): a step holds one page of each operand that comes in tiles, whatever the size of the
task, so pages bound an operator's step and no grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

from mpkc.dialects.tops.base import Access, Dimension, Grid, Mode, Operator, bytes_of_element
from mpkc.passes.partition_cuts import Neighbours, fall_together
from mpkc.passes.partition_grid import CutOperator, Cuts

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
        whole = CutOperator(op, op.dimensions(), (1,) * len(op.dimensions()))
        moved = whole.loads.total + sum(_stored(op, access) for access in whole.accesses)
        return min(2 * self.workers, max(1, moved // self.min_bytes) if self.min_bytes else 2 * self.workers)


def _stored(op: Operator, access: Access) -> int:
    value = [*op.operands, *op.results][access.value]
    return int(access.elements.sum()) * bytes_of_element(value.type) if access.mode is Mode.WRITE else 0


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


def candidate(cut: CutOperator, workers: int, around: Sequence[tuple[int, Cuts]] = ()) -> Candidate:
    """A grid and what it costs; `around` as `Neighbours.around` gives it."""
    apart = sum(not fall_together(cut.cuts(value), cuts) for value, cuts in around)
    return Candidate(apart, cut.loads.total, cut.loads.busiest(workers), len(cut.loads.each), cut.grid)


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
    balanced = _balanced(op, wide, bounds.workers, neighbours) if wide else grids
    around = neighbours.around(op)
    found = [candidate(neighbours.cut(op, grid), bounds.workers, around) for grid in balanced]
    exceptions = min(each.apart for each in found)
    found = [each for each in found if each.apart == exceptions]
    if not wide:
        return sorted(found, key=lambda each: (each.busiest, each))
    limit = (1 + SLACK) * min(each.busiest for each in found)
    return sorted(each for each in found if each.busiest <= limit)


def _balanced(op: Operator, grids: list[Grid], workers: int, neighbours: Neighbours) -> list[Grid]:
    """The grids whose busiest worker loads at most CUTS_SLACK more than with the best of them.

    That depends on the size of the largest part along the last dimension, not on how many parts there are.
    """
    last = op.dimensions()[-1].most
    alike: dict[object, list[Grid]] = {}
    for grid in grids:
        alike.setdefault((grid[:-1], ceil(last / grid[-1]), ceil(prod(grid) / workers)), []).append(grid)
    busiest = {key: neighbours.cut(op, same[0]).loads.busiest(workers) for key, same in alike.items()}
    limit = (1 + CUTS_SLACK) * min(busiest.values())
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
