"""Lists of integers of many rows in two arrays (CSR), and what can be done to all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = npt.NDArray[np.int32]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Index: TypeAlias = npt.NDArray[np.int64]


def column(values: Integers | Sequence[int]) -> Column:
    """The values as the columns of a table store them."""
    return np.ascontiguousarray(values, dtype=np.int32)


def ranges(first: Integers, count: Integers) -> Index:
    """first[0], first[0] + 1, ... (count[0] of them), then the same of first[1], and so on."""
    ends = np.cumsum(count, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(first - (ends - count), count)


def distinct(*keys: Integers) -> tuple[Index, Index]:
    """Rows of equal keys: the first row of each group, and the group of each row.

    Groups are numbered in the lexicographic order of their keys.
    """
    order = np.lexsort(keys[::-1])
    change = np.zeros(len(order), dtype=bool)
    change[:1] = True
    for key in keys:
        change[1:] |= key[order[1:]] != key[order[:-1]]
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(change) - 1
    return order[change], group


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
    def of_pairs(cls, rows: Integers, items: Integers, count: int) -> "Lists":
        """`count` lists from pairs (row, item) in any order: ascending, each pair once."""
        span = int(items.max(initial=0)) + 1
        keys = rows.astype(np.int64) * span + items  # one array sorts faster than two
        if not bool(np.all(keys[1:] > keys[:-1])):
            keys = np.sort(keys)
            keys = keys[np.diff(keys, prepend=-1) > 0]
        rows, items = np.divmod(keys, span)
        sizes = np.bincount(rows, minlength=count)
        return cls(column(np.concatenate(([0], np.cumsum(sizes)))), column(items))

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

    def transpose(self, count: int) -> "Lists":
        """The rows that hold each of the integers 0 to count - 1, ascending."""
        order = np.argsort(self.items, kind="stable")
        sizes = np.bincount(self.items, minlength=count)
        return Lists(column(np.concatenate(([0], np.cumsum(sizes)))), self.rows[order])

    def least(self) -> Column:
        """The smallest item of each list; no list may be empty."""
        return np.minimum.reduceat(self.items, self.offsets[:-1]) if len(self) else self.items

    def greatest(self) -> Column:
        """The largest item of each list; no list may be empty."""
        return np.maximum.reduceat(self.items, self.offsets[:-1]) if len(self) else self.items
