"""Which bytes of the activation pool a task touches, and which tasks touch the same."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from mpkc.dialects.lists import Index, Lists, distinct, ranges
from mpkc.dialects.tops.base import Access, Operator, bytes_of, bytes_of_element, shape_of
from mpkc.dialects.tops.overlap import overlaps
from mpkc.dialects.tops.pool import OWN, place_of

Span: TypeAlias = tuple[int, int]  # first and past-the-end byte of the pool


def spans(operators: Iterable[Operator]) -> dict[SSAValue, Span]:
    """The bytes of each result that has a place in the pool."""
    return {
        result: (offset, offset + bytes_of(result.type))
        for op in operators
        for result, offset in zip(op.results, place_of(op), strict=True)
        if offset != OWN
    }


@dataclass(frozen=True)
class ByteRanges:
    """The byte ranges that the tasks of an access touch; tasks with the same box share theirs.

    Attributes:
        group: int64 [tasks] the number of each task's box.
        of: int64 [ranges] the box that each range is a part of.
        lo, hi: int64 [ranges] first and past-the-end byte.
    """

    group: Index
    of: Index
    lo: Index
    hi: Index

    @classmethod
    def of_access(cls, access: Access, value: SSAValue) -> "ByteRanges":
        """Those of `value`, which stands row-major from byte 0 on: exact, one range for what is contiguous."""
        shape = shape_of(value.type, access.lo.shape[1], "a value in the pool")
        first, group = distinct(*access.lo.T, *access.hi.T)
        lo, hi = access.lo[first], access.hi[first]
        strides = np.cumprod([bytes_of_element(value.type), *reversed(shape[1:])], dtype=np.int64)[::-1]
        last = len(shape) - 1
        while last > 0 and np.all(lo[:, last] == 0) and np.all(hi[:, last] == shape[last]):
            last -= 1
        of, at = np.arange(len(first)), np.zeros(len(first), dtype=np.int64)
        for axis in range(last):
            extent = np.maximum(hi[of, axis] - lo[of, axis], 0)
            at = np.repeat(at, extent) + ranges(lo[of, axis], extent) * strides[axis]
            of = np.repeat(of, extent)
        return cls(group, of, at + lo[of, last] * strides[last], at + hi[of, last] * strides[last])

    def moved(self, distance: int) -> "ByteRanges":
        """The same, so many bytes further on."""
        return replace(self, lo=self.lo + distance, hi=self.hi + distance)

    def overlaps(self, other: "ByteRanges") -> tuple[Index, Index]:
        """Pairs (i, j), ascending, of tasks of `self` and of `other` that touch a byte in common."""
        least = min(self.lo.min(initial=0), other.lo.min(initial=0))  # intervals may not start below 0
        x, y = overlaps(
            (self.lo[:, None] - least, self.hi[:, None] - least),
            (other.lo[:, None] - least, other.hi[:, None] - least),
        )
        x, y = self.of[x], other.of[y]
        first, _ = distinct(x, y)
        mine, its = self._members, other._members
        x, y = x[first], y[first]
        of_pair = np.repeat(np.arange(len(x)), mine.sizes[x])
        i, y = mine.take(x), y[of_pair]
        i, j = np.repeat(i, its.sizes[y]).astype(np.int64), its.take(y).astype(np.int64)
        order = np.lexsort((j, i))
        return i[order], j[order]

    @property
    def _members(self) -> Lists:
        return Lists.of_pairs(self.group, np.arange(len(self.group)), int(self.group.max(initial=-1)) + 1)
