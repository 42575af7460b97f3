"""Which boxes of two lists overlap: a join whose work grows with its answer, not with the product of the lists."""

import numpy as np

from mpkc.dialects.tgraph_lists import Index, distinct, ranges
from mpkc.dialects.tops.base import Access

Boxes = tuple[Index, Index]  # lo and hi, both [boxes, rank]


def overlaps(a: Access | Boxes, b: Access | Boxes) -> tuple[Index, Index]:
    """Pairs (i, j), ascending, for which box i of `a` and box j of `b` share an element.

    Goes axis by axis: boxes that are alike in the axes so far are one group, and only children of pairs of groups
    that overlap are compared, by sorting them along the next axis.
    """
    (a_lo, a_hi), (b_lo, b_hi) = _boxes(a), _boxes(b)
    a_group, b_group = np.zeros(len(a_lo), dtype=np.int64), np.zeros(len(b_lo), dtype=np.int64)
    i = j = np.zeros(1, dtype=np.int64)
    for axis in range(a_lo.shape[1]):
        a_first, a_group_next = distinct(a_group, a_lo[:, axis], a_hi[:, axis])
        b_first, b_group_next = distinct(b_group, b_lo[:, axis], b_hi[:, axis])
        a_pair, a_child = _children(a_group[a_first], i)
        b_pair, b_child = _children(b_group[b_first], j)
        at, bt = _intervals(
            (a_pair, a_lo[a_first[a_child], axis], a_hi[a_first[a_child], axis]),
            (b_pair, b_lo[b_first[b_child], axis], b_hi[b_first[b_child], axis]),
        )
        i, j = a_child[at], b_child[bt]
        a_group, b_group = a_group_next, b_group_next
    return _tasks(a_group, b_group, i, j)


def _boxes(boxes: Access | Boxes) -> Boxes:
    return (boxes.lo, boxes.hi) if isinstance(boxes, Access) else boxes


def _children(parents: Index, groups: Index) -> tuple[Index, Index]:
    """For each of `groups`, its place in that list with each child; `parents` (ascending) holds each child's group."""
    first = np.searchsorted(parents, groups, side="left")
    count = np.searchsorted(parents, groups, side="right") - first
    return np.repeat(np.arange(len(groups)), count), ranges(first, count)


def _intervals(a: tuple[Index, Index, Index], b: tuple[Index, Index, Index]) -> tuple[Index, Index]:
    """Pairs of intervals (segment, lo, hi) of equal segment that overlap: one starts within the other."""
    span = int(max(a[2].max(initial=0), b[2].max(initial=0))) + 1
    a_lo, a_hi = a[0] * span + a[1], a[0] * span + a[2]
    b_lo, b_hi = b[0] * span + b[1], b[0] * span + b[2]
    inside_a = _starts_within(a_lo, a_hi, b_lo, b_hi, side="left")
    inside_b = _starts_within(b_lo, b_hi, a_lo, a_hi, side="right")
    return np.concatenate((inside_a[0], inside_b[1])), np.concatenate((inside_a[1], inside_b[0]))


def _starts_within(lo: Index, hi: Index, start: Index, end: Index, side: str) -> tuple[Index, Index]:
    """(outer, inner): inner starts at or behind (side left), or behind (right), outer's lo and before its hi."""
    raise NotImplementedError
