"""`tgraph-partition`: how many tasks share an operator, and along which dimensions.

MPK, "The MPK compiler decomposes". Each operator gets a grid; one that has a grid keeps it. Among the grids of
0.75 to 2 tasks a worker, the one that loads least is taken, an idle worker counted like the busiest:

    %1 = tops.linear %0, %w : (tensor<1x4096xbf16>, ...) -> tensor<1x4096xbf16>
    %1 = tops.linear %0, %w {grid = array<i64: 1, 128>} : (tensor<1x4096xbf16>, ...) -> tensor<1x4096xbf16>
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mpkc.dialects.lists import Index
from mpkc.dialects.tgraph_operators import operators_in, signature
from mpkc.dialects.tops.argmax import ArgmaxPartialOp, ArgmaxReduceOp
from mpkc.dialects.tops.base import Access, Dimension, Grid, Operator, Tasks, bytes_of_element, shape_of
from mpkc.dialects.tops.embedding import EmbeddingOp


@dataclass(frozen=True)
class PartitionPass(ModulePass):
    """Give every operator without a grid one, and argmax_partial a part for each worker.

    Attributes:
        workers: tasks that run at the same time.
        min_bytes: a task moves at least this much. Starting a task costs about a microsecond, in which one of a
            hundred workers moves 20 to 40 KB.
    """

    name = "tgraph-partition"

    workers: int = 128
    min_bytes: int = 16384

    def __post_init__(self) -> None:
        if self.workers < 1 or self.min_bytes < 0:
            raise ValueError(f"{self.name}: workers is at least 1, min_bytes at least 0")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known: dict[object, Grid] = {}
        for function in op.ops:
            if isinstance(function, FuncOp):
                for operator in operators_in(function):
                    self.partition(operator, known)

    def partition(self, op: Operator, known: dict[object, Grid]) -> None:
        """Give `op` a grid, taken from `known` where an operator like it has been seen."""
        if op.grid is not None:
            return
        if isinstance(op, ArgmaxPartialOp) and feeds_argmax_reduce(op):
            op = op.with_parts(min(self.workers, shape_of(op.x.type, 2, "x")[1]))
        key = signature(op)
        if key not in known:
            known[key] = self.choose(op)
        op.grid = known[key]

    def choose(self, op: Operator) -> Grid:
        """The grid that keeps the busiest worker's loads smallest; then all loads, then idle tasks."""
        dimensions = op.dimensions()
        whole = Tasks(dimensions, (1,) * len(dimensions))
        moved = int(loaded(op, whole)[0] + stored(op, whole)[0])
        most = min(2 * self.workers, max(1, moved // self.min_bytes)) if self.min_bytes else 2 * self.workers
        grids = list(grids_of(dimensions, most))
        least = min(ceil(0.75 * self.workers), max(map(prod, grids)))
        fewest: dict[Grid, Grid] = {}  # more parts along the last dimension do not pay unless they are smaller
        for *outer, parts in (grid for grid in grids if prod(grid) >= least):
            fewest.setdefault((*outer, ceil(dimensions[-1].most / parts)), (*outer, parts))
        return min(fewest.values(), key=lambda grid: self.cost(op, grid))

    def cost(self, op: Operator, grid: Grid) -> tuple[int, int, int, Grid]:
        """What `choose` minimizes; of equal grids the one that cuts later dimensions."""
        loads = loaded(op, Tasks(op.dimensions(), grid))
        busiest = ceil(len(loads) / self.workers) * int(loads.max())
        return busiest, int(loads.sum()), max(0, len(loads) - self.workers), grid


def feeds_argmax_reduce(op: ArgmaxPartialOp) -> bool:
    """Whether the number of parts is nobody else's business."""
    return all(isinstance(use.operation, ArgmaxReduceOp) for result in op.results for use in result.uses)


def loaded(op: Operator, tasks: Tasks) -> Index:
    """Bytes that each task reads: int64 [tasks]. Of its table an embedding reads the rows that it writes."""
    if isinstance(op, EmbeddingOp):
        return stored(op, tasks)
    return touched(op, tasks, (access for access in op.accesses(tasks) if access.mode.reads))


def stored(op: Operator, tasks: Tasks) -> Index:
    """Bytes that each task writes: int64 [tasks]."""
    return touched(op, tasks, (access for access in op.accesses(tasks) if access.mode.writes))


def touched(op: Operator, tasks: Tasks, accesses: Iterable[Access]) -> Index:
    """Bytes of each task's boxes: int64 [tasks]."""
    values = [*op.operands, *op.results]
    total = np.zeros(tasks.count, dtype=np.int64)
    for access in accesses:
        total += np.prod(access.hi - access.lo, axis=1) * bytes_of_element(values[access.value].type)
    return total


def grids_of(dimensions: tuple[Dimension, ...], most: int) -> Iterator[Grid]:
    """Grids of at most `most` tasks: equal parts along all dimensions but the last, any number along the last."""
    *outer, last = dimensions
    heads: list[Grid] = [()]
    for dimension in outer:
        equal = [parts for parts in range(1, dimension.most + 1) if dimension.most % parts == 0]
        heads = [(*head, parts) for head in heads for parts in equal if prod(head) * parts <= most]
    for head in heads:
        for parts in range(1, min(last.most, most // prod(head)) + 1):
            yield (*head, parts)
