"""`tgraph-prune`: drop the events whose order longer paths keep.

Works on tables as tgraph-build makes them, one event a pair of tasks, and is exact: what is left is the transitive
reduction, task by task. Without it, a residual input makes a join of every task that reads it.

    A -> B, B -> C, A -> C        A -> B, B -> C
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Column, Index, Lists
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.table_pass import TablePass

Bits: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class PrunePass(TablePass):
    """Drop every event whose two tasks are ordered by a longer path."""

    name = "tgraph-prune"

    def rewrite(self, op: TableOp, table: Table) -> Table:
        if table.pair_count != table.event_count:
            raise OpError(op, "has events of several pairs of tasks: run tgraph-prune before the passes that fuse")
        sources, targets = table.pairs()
        kept = np.flatnonzero(~redundant(sources, targets, table.levels()))
        events = np.arange(len(kept))
        return Table.of_lists(
            table.form,
            table.task,
            table.event_device[kept],
            Lists.of_pairs(targets[kept], events, table.task_count),
            Lists.of_pairs(sources[kept], events, table.task_count),
        )


def redundant(sources: Index, targets: Index, level: Column) -> npt.NDArray[np.bool_]:
    """Which edges a path of at least two edges doubles.

    Args:
        sources, targets: the edges, each once; task numbers.
        level: [tasks] edges on the longest path to each task.

    A doubled edge spans at least two levels, so those of one level are settled. For the others, the tasks that each
    task is reachable from are sets of bits, one bit a source, carried forward level by level: from the sources of
    one level, up to the last level that an edge of theirs reaches.
    """
    wrong = np.zeros(len(sources), dtype=bool)
    span = level[targets] - level[sources]
    suspects = np.flatnonzero(span > 1)
    suspects = suspects[np.lexsort((sources[suspects], level[sources[suspects]]))]
    graph = _Levels(sources, targets, level)
    for group in np.split(suspects, _starts(level[sources[suspects]])):
        for part in np.split(group, _starts(_rank(sources[group]) // BATCH)):
            if len(part):
                wrong[part] = graph.doubled(sources[part], targets[part])
    return wrong


BATCH = 1024  # sources whose bits are carried at once


def _starts(keys: npt.NDArray[np.integer]) -> Index:
    """Where a new key begins in a list of equal keys side by side, but for the first."""
    return np.flatnonzero(keys[1:] != keys[:-1]) + 1


def _rank(ascending: Index) -> Index:
    """The number of each value among the distinct ones."""
    fresh = np.ones(len(ascending), dtype=np.int64)
    fresh[1:] = ascending[1:] != ascending[:-1]
    return np.cumsum(fresh) - 1


class _Levels:
    """The edges of a graph, sorted by the level of their target."""

    def __init__(self, sources: Index, targets: Index, level: Column):
        self.level = level
        order = np.lexsort((targets, level[targets]))
        self.sources, self.targets = sources[order], targets[order]
        depth = int(level.max(initial=0)) + 1
        self.edges = np.searchsorted(level[self.targets], np.arange(depth + 1))
        self.tasks = np.argsort(level, kind="stable")
        self.place = np.empty_like(self.tasks)
        self.place[self.tasks] = np.arange(len(self.tasks))
        self.first_task = np.searchsorted(level[self.tasks], np.arange(depth + 1))

    def doubled(self, sources: Index, targets: Index) -> npt.NDArray[np.bool_]:
        """Which edges, all from tasks of one level, double a path of at least two edges."""
        origin, bit = np.unique(sources, return_inverse=True)
        low, high = int(self.level[sources[0]]), int(self.level[targets].max())
        base = self.first_task[low]
        place = self.place - base
        words = -(-len(origin) // 64)
        near = np.zeros((self.first_task[high + 1] - base, words), dtype=np.uint64)  # reachable, or the task itself
        far = np.zeros_like(near)  # reachable over at least two edges
        mask = np.left_shift(np.uint64(1), (np.arange(len(origin)) % 64).astype(np.uint64))
        near[place[origin], np.arange(len(origin)) // 64] = mask
        for step in range(low + 1, high + 1):
            edges = slice(self.edges[step], self.edges[step + 1])
            self._carry(edges, low, place, near, far)
        word = far[place[targets], bit // 64]
        return (word & mask[bit]) != 0

    def _carry(self, edges: slice, low: int, place: Index, near: Bits, far: Bits) -> None:
        sources, targets = self.sources[edges], self.targets[edges]
        inside = self.level[sources] >= low
        sources, targets = sources[inside], targets[inside]
        if not len(sources):
            return
        starts = np.concatenate(([0], _starts(targets)))
        rows = place[targets[starts]]
        bits = near[place[sources]]
        near[rows] = np.bitwise_or.reduceat(bits, starts)
        direct = self.level[sources] == low  # of the origins themselves only the tasks behind them count
        bits[direct] = 0
        far[rows] = np.bitwise_or.reduceat(bits, starts)
