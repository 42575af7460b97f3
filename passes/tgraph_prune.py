"""`tgraph-prune`: drop the events whose order longer paths keep.

Works on tables as tgraph-build makes them, one event a pair of tasks, and is exact: what is left is the transitive
reduction, task by task. Without it, a residual input makes a join of every task that reads it.

    A -> B, B -> C, A -> C        A -> B, B -> C
"""

from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Column, Index, Integers, Lists, column, fresh
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.event_fusion import alike
from mpkc.passes.table_pass import TablePass

Bits: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class PrunePass(TablePass):
    """Drop every event whose two tasks are ordered by a longer path."""

    name = "tgraph-prune"

    def rewrite(self, op: TableOp, table: Table) -> Table:
        waits, triggers = table.wait_lists, table.trigger_lists
        if not len(waits.items) == len(triggers.items) == table.event_count:
            raise OpError(op, "has events of several pairs of tasks: run tgraph-prune before the passes that fuse")
        target = np.empty(table.event_count, dtype=np.int32)
        target[waits.items] = waits.rows
        dropped = triggers.items[redundant(Lists(triggers.offsets, target[triggers.items]))]
        kept = np.ones(table.event_count, dtype=np.bool_)
        kept[dropped] = False
        number = np.cumsum(kept, dtype=np.int32) - 1
        left_waits, left_triggers = (lists.where(kept[lists.items]) for lists in (waits, triggers))
        return Table.of_lists(
            table.form,
            table.task,
            table.event_device[kept],
            Lists(left_waits.offsets, number[left_waits.items]),
            Lists(left_triggers.offsets, number[left_triggers.items]),
        )


def redundant(successors: Lists) -> npt.NDArray[np.bool_]:
    """[edges] whether a path of at least two edges doubles each edge: of a task to one of its successors, each once.

    A doubled edge spans at least two levels, which settles those that span one. For the others, sets of sources are
    carried forward along bundles of edges, a bit a source, from a batch of sources of one level up to the last level
    that one of their edges in question reaches. So the work is that of the paths between, not of the whole graph.
    """
    level = successors.depths()
    doubled = np.zeros(len(successors.items), dtype=np.bool_)
    suspects = np.flatnonzero(level[successors.items] - np.repeat(level, successors.sizes) > 1)
    if not len(suspects):
        return doubled
    sources, targets = successors.rows[suspects], successors.items[suspects]
    order = np.lexsort((sources, level[sources]))
    suspects, sources, targets = suspects[order], sources[order], targets[order]
    of_level = level[sources]
    batch = _rank(of_level, (_rank(sources) - _rank(sources)[np.searchsorted(of_level, of_level)]) // BATCH)
    bundles = Bundles.of(successors, level)
    for part in np.split(np.arange(len(suspects)), np.flatnonzero(fresh(batch // COPIES))[1:]):
        doubled[suspects[part]] = _doubled(bundles, batch[part] % COPIES, sources[part], targets[part])
    return doubled


BATCH = 512  # sources whose bits are carried together
COPIES = 16  # batches that are carried at the same time, each on a copy of the graph


def _rank(*keys: Integers) -> Index:
    """The number of each row's group of equal keys side by side."""
    return np.cumsum(fresh(*keys)) - 1


@dataclass(frozen=True)
class Bundles:
    """The edges of a graph, those of tasks of one level with the same targets in another level as one.

    Attributes:
        leaving: the bundles of each task.
        targets: the tasks that each leads to.
        level: [bundles] of these tasks.
        of_task: [tasks] the level of each.
    """

    leaving: Lists
    targets: Lists
    level: Column
    of_task: Column

    @property
    def tasks(self) -> int:
        return len(self.of_task)

    @classmethod
    def of(cls, successors: Lists, level: Column) -> Self:
        """The bundles of a graph: the successors of each task, and the level of each task."""
        by_level = np.argsort(level, kind="stable").astype(np.int32)
        rank = np.empty_like(by_level)
        rank[by_level] = np.arange(len(level), dtype=np.int32)
        edges = Lists(successors.offsets, rank[successors.items]).in_order()
        targets = by_level[edges.items]
        start = np.flatnonzero(fresh(edges.rows, level[targets]))
        lists = Lists(column(np.append(start, len(targets))), targets)
        source = edges.rows[start]
        same = alike(lists, level[source])
        kept = np.flatnonzero(same == np.arange(len(same)))
        leaving = Lists.of_pairs(source, np.searchsorted(kept, same), len(level))
        targets = Lists.of_sizes(lists.sizes[kept], lists.take(kept))
        return cls(leaving, targets, level[lists.items[lists.offsets[kept]]], level)


def _doubled(bundles: Bundles, copy: Index, sources: Integers, targets: Integers) -> npt.NDArray[np.bool_]:
    """Which edges double a path of at least two edges; those of a copy, which ascends, are from tasks of one level."""
    origins, place = np.unique(copy * bundles.tasks + sources, return_inverse=True)
    of_copy = np.flatnonzero(fresh(copy))
    bit = place - place[of_copy][copy]
    word, mask = bit // 64, np.left_shift(np.uint64(1), (bit % 64).astype(np.uint64))
    near = np.zeros((len(origins), int(word.max()) + 1), dtype=np.uint64)
    near[place, word] = mask
    waves = _Waves(bundles, bundles.of_task[sources[of_copy]], np.maximum.reduceat(bundles.of_task[targets], of_copy))
    waves.send(origins, near, direct=True)
    step, asked_nodes = bundles.of_task[targets] - waves.low[copy], copy * bundles.tasks + targets
    doubled = np.zeros(len(sources), dtype=bool)
    for here in range(1, int(step.max()) + 1):
        if here in waves.arriving:
            nodes, near, far = waves.meet(here)
            asked = np.flatnonzero(step == here)
            bits = far[np.searchsorted(nodes, asked_nodes[asked]), word[asked]]
            doubled[asked] = (bits & mask[asked]) != 0
            waves.send(nodes, near, direct=False)
    return doubled


Arrival: TypeAlias = tuple[Integers, Bits, bool]


@dataclass
class _Waves:
    """Bits on their way along the edges of copies of a graph; task t of copy c is node c * tasks + t.

    Attributes:
        low, high: [copies] the level that bits start from, and the last that they are sent to.
        arriving: by how many levels above `low` they arrive at: nodes, their bits, whether straight from an origin.
    """

    bundles: Bundles
    low: Column
    high: Column
    arriving: dict[int, list[Arrival]] = field(default_factory=dict[int, list[Arrival]])

    def send(self, nodes: Integers, bits: Bits, direct: bool) -> None:
        """Along each edge of the nodes, their bits."""
        leaving, targets = self.bundles.leaving, self.bundles.targets
        copy, task = np.divmod(nodes, self.bundles.tasks)
        rows = np.repeat(np.arange(len(nodes)), leaving.sizes[task])
        bundle, copy = leaving.take(task), copy[rows]
        level = self.bundles.level[bundle]
        step = level - self.low[copy]
        order = np.lexsort((bundle, copy, step))
        order = order[level[order] <= self.high[copy[order]]]
        if not len(order):
            return
        start = np.flatnonzero(fresh(bundle[order], copy[order]))
        bits = np.bitwise_or.reduceat(bits[rows[order]], start)
        first = order[start]
        bundle, copy, step = bundle[first], copy[first], step[first]
        for part in np.split(np.arange(len(first)), np.flatnonzero(fresh(step))[1:]):
            sizes = targets.sizes[bundle[part]]
            arrived = np.repeat(copy[part] * self.bundles.tasks, sizes) + targets.take(bundle[part])
            self.arriving.setdefault(int(step[part[0]]), []).append(
                (arrived, np.repeat(bits[part], sizes, axis=0), direct)
            )

    def meet(self, here: int) -> tuple[Integers, Bits, Bits]:
        """The nodes that bits arrive at, all bits that arrive, and those that do not come straight from an origin."""
        edges = self.arriving.pop(here)
        nodes = np.concatenate([nodes for nodes, _, _ in edges])
        bits = np.concatenate([bits for _, bits, _ in edges])
        direct = np.repeat([direct for _, _, direct in edges], [len(nodes) for nodes, _, _ in edges])
        order = np.argsort(nodes)
        nodes, bits, direct = nodes[order], bits[order], direct[order]
        start = np.flatnonzero(fresh(nodes))
        near = np.bitwise_or.reduceat(bits, start)
        bits[direct] = 0
        return nodes[start], near, np.bitwise_or.reduceat(bits, start)
