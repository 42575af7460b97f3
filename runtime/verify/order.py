"""Which tasks of a graph are ordered by its events: exact, for millions of pairs."""

from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mpkc.dialects.lists import Column, Index, Lists, grouped
from mpkc.dialects.tgraph_table import Table

Mask: TypeAlias = npt.NDArray[np.bool_]
Bits: TypeAlias = npt.NDArray[np.uint64]

BATCH = 512  # nodes whose bits are carried together


@dataclass(frozen=True)
class Order:
    """What a graph's events order, in terms of few nodes: its events, and tasks that fork or join several.

    A task that waits on one event and triggers one adds nothing to the order of others but an edge between the two,
    and most tasks share theirs. So paths are sought between events.

    Attributes:
        leaves, enters: [tasks] the node that each path from a task starts at, and the one that each path to it ends
            at; -1 where there is none.
        successors: the nodes that an edge leads to from each node.
        level: [nodes] ascends along every edge.
    """

    leaves: Index
    enters: Index
    successors: Lists
    level: Column

    @classmethod
    def of(cls, table: Table) -> "Order":
        """The order of a graph that can complete."""
        waits, triggers = table.wait_lists, table.trigger_lists
        branches = np.flatnonzero((waits.sizes > 1) | (triggers.sizes > 1))
        node = np.full(table.task_count, -1, dtype=np.int64)
        node[branches] = table.event_count + np.arange(len(branches))
        enters, leaves = _only(waits, node), _only(triggers, node)
        plain = np.flatnonzero((node < 0) & (enters >= 0) & (leaves >= 0))
        joins, forks = (np.repeat(node[branches], lists.sizes[branches]) for lists in (waits, triggers))
        sources = np.concatenate((enters[plain], waits.take(branches), forks))
        targets = np.concatenate((leaves[plain], joins, triggers.take(branches)))
        count = table.event_count + len(branches)
        depth = table.levels()
        level = np.concatenate((2 * _deepest(table.triggering, depth) + 2, 2 * depth[branches] + 1))
        return cls(leaves, enters, Lists.of_pairs(sources, targets, count), level.astype(np.int32))

    def lacks(self, sources: Index, targets: Index) -> Mask:
        """[pairs] whether no path leads from a source to its target, two different tasks each."""
        start, end = self.leaves[sources], self.enters[targets]
        lacking = (start < 0) | (end < 0)
        open = np.flatnonzero(~lacking & (start != end))
        keys, place = grouped(start[open] * len(self.level) + end[open])
        lacking[open] = ~self._reaches(keys)[place]
        return lacking

    def _reaches(self, keys: Index) -> Mask:
        """[pairs] whether a path leads from one node to another; a pair is source * nodes + target, ascending."""
        count = len(self.level)
        edges = self.successors.rows.astype(np.int64) * count + self.successors.items
        found = np.isin(keys, edges, assume_unique=True)
        sources, targets = np.divmod(keys, max(count, 1))
        suspects = np.flatnonzero(~found & (self.level[targets] > self.level[sources] + 1))
        suspects = suspects[np.lexsort((sources[suspects], self.level[sources[suspects]]))]
        for part in _batches(sources[suspects]):
            mine = suspects[part]
            found[mine] = self._carried(sources[mine], targets[mine])
        return found

    def _carried(self, sources: Index, targets: Index) -> Mask:
        """The same for the pairs of one batch: sets of sources are carried along the edges, a bit a source."""
        origins, bit = np.unique(sources, return_inverse=True)
        word, mask = bit // 64, np.left_shift(np.uint64(1), (bit % 64).astype(np.uint64))
        own = np.zeros((len(origins), len(origins) // 64 + 1), dtype=np.uint64)
        own[bit, word] = mask
        by_level = np.argsort(self.level[targets], kind="stable")
        asked_level = self.level[targets[by_level]]
        found = np.zeros(len(sources), dtype=np.bool_)
        for level, nodes, bits in self._waves(origins, own, int(asked_level[-1])):
            first, last = (np.searchsorted(asked_level, level, side) for side in ("left", "right"))
            asked = by_level[first:last]
            at = np.minimum(np.searchsorted(nodes, targets[asked]), len(nodes) - 1)
            here = nodes[at] == targets[asked]
            found[asked] = here & ((bits[at, word[asked]] & mask[asked]) != 0)
        return found

    def _waves(self, origins: Index, bits: Bits, high: int) -> Generator[tuple[int, Index, Bits]]:
        """(level, nodes, bits that arrive there), level by level up to `high`, of all nodes that bits get to."""
        arriving: defaultdict[int, list[tuple[Index, Bits]]] = defaultdict(list)

        def send(nodes: Index, bits: Bits) -> None:
            levels = self.level[nodes]
            order = np.argsort(levels, kind="stable")[: np.count_nonzero(levels <= high)]
            for part in np.split(order, _changes(levels[order])):
                if len(part):
                    arriving[int(levels[part[0]])].append((nodes[part], bits[part]))

        send(origins, bits)
        for level in range(int(self.level[origins].min()), high + 1):
            if level not in arriving:
                continue
            nodes, bits = _met(arriving.pop(level))
            yield level, nodes, bits
            rows = np.repeat(np.arange(len(nodes)), self.successors.sizes[nodes])
            send(self.successors.take(nodes).astype(np.int64), bits[rows])


def _only(lists: Lists, node: Index) -> Index:
    """[tasks] a task's own node; where it has none, its only item, or -1."""
    only = np.full(len(lists), -1, dtype=np.int64)
    only[lists.rows] = lists.items
    return np.where(node >= 0, node, only)


def _deepest(triggering: Lists, depth: Column) -> Column:
    """[events] the greatest depth of a task that triggers each."""
    if not len(triggering):
        return triggering.items
    return np.maximum.reduceat(depth[triggering.items], triggering.offsets[:-1])


def _batches(sources: Index) -> list[Index]:
    """Places of rows of at most BATCH different sources; equal sources stand side by side."""
    fresh = np.zeros(len(sources), dtype=np.int64)
    fresh[_changes(sources)] = 1
    batch = np.cumsum(fresh) // BATCH
    return [part for part in np.split(np.arange(len(sources)), _changes(batch)) if len(part)]


def _changes(keys: npt.NDArray[np.integer[Any]]) -> Index:
    """Where a row differs from the one before."""
    return np.flatnonzero(keys[1:] != keys[:-1]) + 1


def _met(edges: list[tuple[Index, Bits]]) -> tuple[Index, Bits]:
    """The nodes that edges arrive at, ascending, and all bits that arrive at each."""
    nodes = np.concatenate([nodes for nodes, _ in edges])
    bits = np.concatenate([bits for _, bits in edges])
    order = np.argsort(nodes, kind="stable")
    nodes = nodes[order]
    starts = np.concatenate(([0], _changes(nodes)))
    return nodes[starts], np.bitwise_or.reduceat(bits[order], starts)
