"""Which tasks depend on each other: where the regions overlap that their operators declare.

MPK, "MPK uses events to capture dependencies between tasks". Of a tensor, a reader depends on its producer; of a buffer
(memref), any two accesses depend on each other one of which writes, in program order.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import SSAValue

from mpkc.dialects.lists import BITS, LOW, Index, ascending, fresh
from mpkc.dialects.tgraph_operators import signature
from mpkc.dialects.tops.base import Access, Operator
from mpkc.dialects.tops.overlap import stepped_overlaps

Pairs = tuple[Index, Index]


@dataclass(frozen=True)
class Dependency:
    """Two accesses of a value, one of which writes, and which tasks of the two operators touch the same elements.

    Attributes:
        value: the tensor or buffer.
        producer, consumer: numbers of the operators, in program order.
        before, after: what they do to it.
        sources, targets: int64 [pairs] tasks of the producer and of the consumer, by their place in the grid.
    """

    value: SSAValue
    producer: int
    consumer: int
    before: Access
    after: Access
    sources: Index
    targets: Index


@dataclass
class Regions:
    """Regions and overlaps, computed once for all operators that are alike, as the layers of a model are."""

    _of_operator: dict[Operator, list[Access]] = field(default_factory=dict[Operator, list[Access]])
    _regions: dict[object, list[Access]] = field(default_factory=dict[object, list[Access]])
    _overlaps: dict[tuple[int, int], Pairs] = field(default_factory=dict[tuple[int, int], Pairs])

    def accesses(self, op: Operator) -> list[Access]:
        """What the tasks of a partitioned operator touch."""
        if op not in self._of_operator:
            key = signature(op), op.grid
            if key not in self._regions:
                self._regions[key] = op.accesses(op.tasks())
            self._of_operator[op] = self._regions[key]
        return self._of_operator[op]

    def overlaps(self, before: Access, after: Access) -> Pairs:
        """The tasks of the one and of the other, both accesses of `accesses`, that touch a common element."""
        key = id(before), id(after)
        if key not in self._overlaps:
            self._overlaps[key] = stepped_overlaps(
                (before.lo, before.hi), before.step, (after.lo, after.hi), after.step
            )
        return self._overlaps[key]


def dependencies(operators: Sequence[Operator], regions: Regions) -> list[Dependency]:
    """Every dependency between partitioned operators, given in program order; by consumer."""
    found: list[Dependency] = []
    writes: defaultdict[SSAValue, list[tuple[int, Access]]] = defaultdict(list)
    reads: defaultdict[SSAValue, list[tuple[int, Access]]] = defaultdict(list)
    for number, op in enumerate(operators):
        values = [*op.operands, *op.results]
        accesses = [(values[access.value], access) for access in regions.accesses(op)]
        for value, access in accesses:
            earlier = writes[value] + reads[value] if access.mode.writes else writes[value]
            for producer, before in earlier:
                found.append(Dependency(value, producer, number, before, access, *regions.overlaps(before, access)))
        for value, access in accesses:
            (writes if access.mode.writes else reads)[value].append((number, access))
    return found


def first_tasks(operators: Sequence[Operator]) -> Index:
    """int64 [operators + 1] the number of each operator's first task, where tasks stand operator by operator."""
    return np.cumsum([0, *(op.tasks().count for op in operators)], dtype=np.int64)


def task_pairs(operators: Sequence[Operator], found: Iterable[Dependency]) -> Pairs:
    """(producer, consumer) of these dependencies, each pair once: by consumer's, then producer's operator, then task.

    Tasks are numbered operator by operator, as `first_tasks` says.
    """
    first = first_tasks(operators)
    grouped: defaultdict[tuple[int, int], list[Pairs]] = defaultdict(list)
    for each in found:
        grouped[each.consumer, each.producer].append((each.sources, each.targets))
    pairs = [
        (sources + first[producer], targets + first[consumer])
        for consumer, producer in sorted(grouped)
        for sources, targets in [_each_once(grouped[consumer, producer])]
    ]
    none = np.zeros(0, dtype=np.int64)
    sources, targets = zip(*pairs, strict=True) if pairs else ((none,), (none,))
    return np.concatenate(sources), np.concatenate(targets)


def _each_once(lists: list[Pairs]) -> Pairs:
    if len(lists) == 1:
        return lists[0]
    pairs = ascending(*(np.concatenate(side) for side in zip(*lists, strict=True)))
    pairs = pairs[fresh(pairs)]
    return pairs >> BITS, pairs & LOW
