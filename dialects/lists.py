"""Lists of integers of many rows in two arrays (CSR), and what can be done to all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = npt.NDArray[np.int32]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Index: TypeAlias = npt.NDArray[np.int64]

BITS, LOW = 32, 2**32 - 1  # of the value in a pair


def column(values: Integers | Sequence[int]) -> Column:
    """The values as the columns of a table store them."""
    return np.ascontiguousarray(values, dtype=np.int32)


def ranges(first: Integers, count: Integers) -> Index:
    """first[0], first[0] + 1, ... (count[0] of them), then the same of first[1], and so on."""
    ends = np.cumsum(count, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(first - (ends - count), count)


def fresh(*keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether a row's keys differ from those of the row before; true for the first row."""
    change = np.ones(len(keys[0]), dtype=bool)
    np.not_equal(keys[0][1:], keys[0][:-1], out=change[1:])
    for key in keys[1:]:
        change[1:] |= key[1:] != key[:-1]
    return change


def ascending(keys: Integers, values: Integers) -> Index:
    """The pairs (key, value) in ascending order, a key above the BITS of its value; all are 0 to 2^31 - 1.

    NumPy sorts integers many times as fast as it finds the order of others that they would bring along.
    """
    pairs = keys.astype(np.int64)
    pairs <<= BITS
    pairs |= values
    if not bool(np.all(pairs[1:] > pairs[:-1])):
        pairs.sort()
    return pairs


def order_of(keys: Integers) -> Column:
    """The rows in the order of their keys, which are 0 to 2^31 - 1; those of equal keys as they stand."""
    pairs = ascending(keys, np.arange(len(keys), dtype=np.int32))
    pairs &= LOW
    return pairs.astype(np.int32)


def distinct(*keys: Integers) -> tuple[Index, Index]:
    """Rows of equal keys: the first row of each group, and the group of each row.

    Groups are numbered in the lexicographic order of their keys.
    """
    order = np.lexsort(keys[::-1])
    change = fresh(*(key[order] for key in keys))
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(change) - 1
    return order[change], group


def grouped(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Index]:
    """The different values, ascending, and the number of each row's among them.

    The time that this takes is that of sorting the runs of equal values side by side, not all of them.
    """
    change = fresh(values)
    found, number = np.unique(values[change], return_inverse=True)
    return found, np.repeat(number, np.diff(np.flatnonzero(change), append=len(values)))


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of integers for each of a number of rows.

    Attributes:
        offsets: int32 [rows + 1]; row r holds items[offsets[r] : offsets[r + 1]].
        items: int32 [offsets[rows]].
    """

    offsets: Column
    items: Column

    @classmethod
    def of_sizes(cls, sizes: Integers, items: Integers) -> "Lists":
        """Lists of these sizes, one after the other."""
        offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
        np.cumsum(sizes, dtype=np.int32, out=offsets[1:])
        return cls(offsets, column(items))

    @classmethod
    def of_pairs(cls, rows: Integers, items: Integers, count: int) -> "Lists":
        """`count` lists from pairs (row, item) in any order: ascending, each pair once."""
        pairs = ascending(rows, items)
        once = fresh(pairs)
        if not once.all():
            pairs = pairs[once]
            rows = pairs >> BITS
        pairs &= LOW
        return cls.of_sizes(np.bincount(rows, minlength=count), pairs)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Column:
        return self.items[self.offsets[row] : self.offsets[row + 1]]

    @cached_property
    def sizes(self) -> Column:
        """The length of each list."""
        return np.diff(self.offsets)

    @cached_property
    def rows(self) -> Column:
        """The row of each item."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)

    def take(self, rows: Integers) -> Column:
        """The items of these rows, one list after the other."""
        return self.items[ranges(self.offsets[rows], self.sizes[rows])]

    def where(self, kept: npt.NDArray[np.bool_]) -> "Lists":
        """The lists without the items that are not kept."""
        before = np.zeros(len(kept) + 1, dtype=np.int32)
        np.cumsum(kept, dtype=np.int32, out=before[1:])
        return Lists(before[self.offsets], self.items[kept])

    def in_order(self) -> "Lists":
        """The lists, each ascending."""
        descends = (self.items[1:] < self.items[:-1]) & (self.rows[1:] == self.rows[:-1])
        return Lists.of_pairs(self.rows, self.items, len(self)) if descends.any() else self

    def transpose(self, count: int) -> "Lists":
        """The rows that hold each of the integers 0 to count - 1, ascending."""
        if len(self.items) == count:  # perhaps each of them stands once
            place = np.full(count, -1, dtype=np.int32)
            place[self.items] = self.rows
            if not bool(np.any(place < 0)):
                return Lists(np.arange(count + 1, dtype=np.int32), place)
        rows = ascending(self.items, self.rows) & LOW
        return Lists.of_sizes(np.bincount(self.items, minlength=count), rows)

    def least(self) -> Column:
        """The smallest item of each list; no list may be empty."""
        return np.minimum.reduceat(self.items, self.offsets[:-1]) if len(self) else self.items

    def greatest(self) -> Column:
        """The largest item of each list; no list may be empty."""
        return np.maximum.reduceat(self.items, self.offsets[:-1]) if len(self) else self.items

    def depths(self) -> Column:
        """[rows] edges on the longest path to each row, an edge leading from a row to each of its items.

        -1 for a row on a cycle or behind one.
        """
        depth = np.full(len(self), -1, dtype=np.int32)
        left = np.bincount(self.items, minlength=len(self)).astype(np.int32)
        ready = np.flatnonzero(left == 0)
        steps = count()
        while len(ready):
            depth[ready] = next(steps)
            ready = _released(self, ready, left)
        return depth


def _released(lists: Lists, rows: Integers, left: Column) -> Integers:
    """Take one from what each item of these rows has left, for every time it occurs; those with nothing left."""
    if len(rows) <= NARROW:
        released: list[int] = []
        for row in rows.tolist():
            for item in lists[row].tolist():
                left[item] -= 1
                if left[item] == 0:
                    released.append(item)
        return column(released)
    items = lists.take(rows)
    np.subtract.at(left, items, np.ones(len(items), dtype=left.dtype))
    done = items[left[items] == 0]
    ticket = -1 - np.arange(len(done), dtype=left.dtype)
    left[done] = ticket  # where an item stands several times, one of them wins
    return done[left[done] == ticket]


NARROW = 16  # up to so many rows a loop is faster than arrays, which matters in graphs that are deep
