"""Which tasks depend on each other because their values stand in the same bytes of the activation pool.

A place that is used again makes the tasks that write it wait for all tasks that touched what stood there: write after
read, and write after write. Only the values that stood there last count: what stood there before them is already
behind those that wrote them.
"""

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_dependencies import Dependency, Pairs, Regions
from mpkc.dialects.tgraph_operators import kind_of
from mpkc.dialects.tops.base import Access, Operator
from mpkc.dialects.tops.memory import ByteRanges, Span, spans

Touches = Mapping[SSAValue, Sequence[tuple[int, Access]]]  # operators, in program order, and what they do to a value


def memory_dependencies(
    operators: Sequence[Operator], regions: Regions, known: Sequence[Dependency] = ()
) -> list[Dependency]:
    """The dependencies that reuse of memory brings between partitioned operators, given in program order.

    `value` and `before` of each are what stood there first, `after` is the write to what stands there next. They are
    exact to the byte.

    Args:
        known: dependencies that are kept anyway; those of two operators that they put wholly in order are left out.

    Raises:
        OpError: at an operator whose result is put on bytes that somebody still needs.
    """
    found: list[Dependency] = []
    if not (at := spans(operators)):
        return found
    after = fully_after(operators, known)
    touches, owners, overlaps = touching(operators, regions), _Owners(), _ByteOverlaps(at)
    for number, op in enumerate(operators):
        for result in op.results:
            if result not in at:
                continue
            (_, write), *_ = touches[result]
            for value in owners.replace(at[result], result):
                for earlier, access in touches[value]:
                    if earlier >= number:
                        raise OpError(op, _still_needed(at, value, result, operators[earlier], earlier))
                    if not after[earlier] >> number & 1:
                        pairs = overlaps.between(access, value, write, result)
                        found.append(Dependency(value, earlier, number, access, write, *pairs))
    return found


def touching(operators: Sequence[Operator], regions: Regions) -> Touches:
    """The accesses to each value by operator, in program order; of a result, its producer's is the first."""
    found: defaultdict[SSAValue, list[tuple[int, Access]]] = defaultdict(list)
    for number, op in enumerate(operators):
        values = [*op.operands, *op.results]
        for access in regions.accesses(op):
            found[values[access.value]].append((number, access))
    return found


def fully_after(operators: Sequence[Operator], found: Sequence[Dependency]) -> list[int]:
    """Of each operator, as bits of an integer, operators none of whose tasks can start before all of its tasks ended.

    Bit j of number i is set where a path of dependencies leads from i to j on which first every task has a
    successor, then every two tasks depend on each other, then every task has a predecessor.
    """
    shape = _Shape([op.tasks().count for op in operators])
    outgoing: dict[int, list[Dependency]] = {number: [] for number in range(len(operators))}
    for each in found:
        outgoing[each.producer].append(each)
    reached, after = [0] * len(operators), [0] * len(operators)  # reached: paths lead to every task of theirs
    for number in reversed(range(len(operators))):
        reached[number] = 1 << number
        for each in outgoing[number]:
            every_source, every_target, every_pair = shape.of(each)
            if every_pair:
                after[number] |= reached[each.consumer]
            if every_source:
                after[number] |= after[each.consumer]
            if every_target:
                reached[number] |= reached[each.consumer]
    return after


@dataclass
class _Shape:
    """How completely pairs of tasks cover the tasks of their operators; overlaps that are shared are counted once."""

    counts: Sequence[int]
    known: dict[tuple[int, int], tuple[bool, bool, bool]] = field(
        default_factory=dict[tuple[int, int], tuple[bool, bool, bool]]
    )

    def of(self, each: Dependency) -> tuple[bool, bool, bool]:
        """Whether every task of the producer, every task of the consumer, and every two of them are in a pair."""
        key = id(each.sources), id(each.targets)
        if key not in self.known:
            producers, consumers = self.counts[each.producer], self.counts[each.consumer]
            self.known[key] = (
                np.count_nonzero(np.bincount(each.sources)) == producers,
                np.count_nonzero(np.bincount(each.targets)) == consumers,
                len(each.sources) == producers * consumers,
            )
        return self.known[key]


@dataclass
class _Owners:
    """The value that was put last on each byte of the pool: disjoint spans, ascending."""

    held: list[tuple[Span, SSAValue]] = field(default_factory=list[tuple[Span, SSAValue]])

    def replace(self, span: Span, value: SSAValue) -> list[SSAValue]:
        """Put `value` on a span; the values that stood there."""
        lo, hi = span
        gone = [owner for (start, stop), owner in self.held if start < hi and lo < stop]
        self.held = sorted([*self._without(lo, hi), (span, value)], key=lambda each: each[0])
        return list(dict.fromkeys(gone))

    def _without(self, lo: int, hi: int) -> Generator[tuple[Span, SSAValue]]:
        for (start, stop), owner in self.held:
            if start < min(stop, lo):
                yield (start, min(stop, lo)), owner
            if max(start, hi) < stop:
                yield (max(start, hi), stop), owner


@dataclass
class _ByteOverlaps:
    """Overlaps of accesses to values in the pool, computed once for all whose places differ alike."""

    at: Mapping[SSAValue, Span]
    ranges: dict[int, ByteRanges] = field(default_factory=dict[int, ByteRanges])
    known: dict[tuple[int, int, int], Pairs] = field(default_factory=dict[tuple[int, int, int], Pairs])

    def between(self, before: Access, first: SSAValue, after: Access, second: SSAValue) -> Pairs:
        """The tasks of the one and of the other access that touch a common byte."""
        distance = self.at[second][0] - self.at[first][0]
        key = id(before), id(after), distance
        if key not in self.known:
            self.known[key] = self._of(before, first).overlaps(self._of(after, second).moved(distance))
        return self.known[key]

    def _of(self, access: Access, value: SSAValue) -> ByteRanges:
        if id(access) not in self.ranges:
            self.ranges[id(access)] = ByteRanges.of_access(access, value)
        return self.ranges[id(access)]


def _still_needed(at: Mapping[SSAValue, Span], old: SSAValue, new: SSAValue, user: Operator, number: int) -> str:
    (lo, hi), (start, stop) = at[old], at[new]
    return (
        f"puts a result on bytes {start} to {stop} of the pool, but bytes {lo} to {hi} hold a value that "
        f"{kind_of(user)}_{number} still needs: give one of them another place"
    )
