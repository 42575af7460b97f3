"""`tgraph-prune`: drop the events whose order longer paths keep.

Works on tables as tgraph-build makes them, one event a pair of tasks, and is exact: what is left is the transitive
reduction, task by task. Without it, a residual input makes a join of every task that reads it.

    A -> B, B -> C, A -> C        A -> B, B -> C
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeAlias

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

    A doubled edge spans at least two levels, which settles those that span one. For the others, sets of sources are
    carried forward along the edges, a bit a source, from a batch of sources of one level up to the last level that
    one of their edges in question reaches. So the work is that of the paths between, not of the whole graph.
    """
    doubled = np.zeros(len(sources), dtype=bool)
    suspects = np.flatnonzero(level[targets] - level[sources] > 1)
    suspects = suspects[np.lexsort((sources[suspects], level[sources[suspects]]))]
    of_level, of_source = level[sources[suspects]], sources[suspects]
    batch = _rank(of_source) - _rank(of_source)[np.searchsorted(of_level, of_level)]
    successors = Lists.of_pairs(sources, targets, len(level))
    for part in np.split(suspects, _changes(of_level, batch // BATCH)):
        if len(part):
            doubled[part] = _doubled(successors, level, sources[part], targets[part])
    return doubled


BATCH = 512  # sources whose bits are carried together


def _changes(*keys: npt.NDArray[np.integer[Any]]) -> Index:
    """Where, in rows that stand by their keys, a row's keys differ from those of the row before."""
    return np.flatnonzero(np.logical_or.reduce([key[1:] != key[:-1] for key in keys])) + 1


def _rank(grouped: Index) -> Index:
    """The number of each row's group of equal values side by side."""
    fresh = np.zeros(len(grouped), dtype=np.int64)
    fresh[_changes(grouped)] = 1
    return np.cumsum(fresh)


def _doubled(successors: Lists, level: Column, sources: Index, targets: Index) -> npt.NDArray[np.bool_]:
    """Which edges, all from tasks of one level, double a path of at least two edges."""
    origins, bit = np.unique(sources, return_inverse=True)
    word, mask = bit // 64, np.left_shift(np.uint64(1), (bit % 64).astype(np.uint64))
    near = np.zeros((len(origins), len(origins) // 64 + 1), dtype=np.uint64)
    near[bit, word] = mask
    low, high = int(level[sources[0]]), int(level[targets].max())
    arriving: defaultdict[int, list[tuple[Index, Bits, bool]]] = defaultdict(list)
    doubled = np.zeros(len(sources), dtype=bool)
    _send(successors, level, high, origins, near, True, arriving)
    for here in range(low + 1, high + 1):
        if here not in arriving:
            continue
        tasks, near, far = _meet(arriving.pop(here))
        asked = np.flatnonzero(level[targets] == here)
        bits = far[np.searchsorted(tasks, targets[asked]), word[asked]]
        doubled[asked] = (bits & mask[asked]) != 0
        _send(successors, level, high, tasks, near, False, arriving)
    return doubled


def _send(
    successors: Lists,
    level: Column,
    high: int,
    tasks: Index,
    bits: Bits,
    direct: bool,
    arriving: defaultdict[int, list[tuple[Index, Bits, bool]]],
) -> None:
    """Along each edge of `tasks` to a level up to `high`, the bits of the task, sorted by the level of arrival."""
    targets = successors.take(tasks)
    rows = np.repeat(np.arange(len(tasks)), successors.sizes[tasks])
    levels = level[targets]
    order = np.argsort(levels, kind="stable")[: np.count_nonzero(levels <= high)]
    for edges in np.split(order, _changes(levels[order])):
        if len(edges):
            arriving[int(levels[edges[0]])].append((targets[edges].astype(np.int64), bits[rows[edges]], direct))


def _meet(edges: list[tuple[Index, Bits, bool]]) -> tuple[Index, Bits, Bits]:
    """The tasks that edges arrive at, all bits that arrive, and those that do not come from an origin itself."""
    targets = np.concatenate([tasks for tasks, _, _ in edges])
    bits = np.concatenate([bits for _, bits, _ in edges])
    direct = np.repeat([direct for _, _, direct in edges], [len(tasks) for tasks, _, _ in edges])
    order = np.argsort(targets, kind="stable")
    targets, bits, direct = targets[order], bits[order], direct[order]
    starts = np.concatenate(([0], _changes(targets)))
    near = np.bitwise_or.reduceat(bits, starts)
    bits[direct] = 0
    return targets[starts], near, np.bitwise_or.reduceat(bits, starts)
