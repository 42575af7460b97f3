"""Which regions of two lists overlap: a join whose work grows with its answer, not with the product of the lists."""

from math import gcd, lcm
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mpkc.dialects.lists import Index, distinct, ranges

Boxes: TypeAlias = tuple[Index, Index]  # lo and hi, both [boxes, rank]; a box without elements overlaps nothing


def overlaps(a: Boxes, b: Boxes) -> tuple[Index, Index]:
    """Pairs (i, j), ascending, for which box i of `a` and box j of `b` share an element; int64.

    Goes axis by axis: boxes that are alike in the axes so far are one group, and only children of groups that
    overlap are compared, by sorting their ends along the next axis.
    """
    a_kept, a_lo, a_hi = _with_elements(a)
    b_kept, b_lo, b_hi = _with_elements(b)
    a_group, b_group = np.zeros(len(a_lo), dtype=np.int64), np.zeros(len(b_lo), dtype=np.int64)
    i = j = np.zeros(1, dtype=np.int64)  # the pairs of groups that overlap so far
    for axis in range(a_lo.shape[1]):
        a_first, a_next = distinct(a_group, a_lo[:, axis], a_hi[:, axis])
        b_first, b_next = distinct(b_group, b_lo[:, axis], b_hi[:, axis])
        a_pair, a_child = _members(a_group[a_first], i)
        b_pair, b_child = _members(b_group[b_first], j)
        a_at, b_at = a_first[a_child], b_first[b_child]
        x, y = _intersecting(a_pair, a_lo[a_at, axis], a_hi[a_at, axis], b_pair, b_lo[b_at, axis], b_hi[b_at, axis])
        i, j = a_child[x], b_child[y]
        a_group, b_group = a_next, b_next
    x, y = _members_of_both(a_group, i, b_group, j)
    order = np.lexsort((y, x))
    return a_kept[x[order]], b_kept[y[order]]


def stepped_overlaps(a: Boxes, a_step: tuple[int, ...], b: Boxes, b_step: tuple[int, ...]) -> tuple[Index, Index]:
    """`overlaps` of boxes of which only every step-th index of each dimension counts; () is 1 everywhere."""
    i, j = overlaps(a, b)
    if not a_step and not b_step:
        return i, j
    ones = (1,) * a[0].shape[1]
    common = np.ones(len(i), dtype=bool)
    for axis, (p, q) in enumerate(zip(a_step or ones, b_step or ones, strict=True)):
        ends = (a[0][i, axis], a[1][i, axis], b[0][j, axis], b[1][j, axis])
        common &= _meet(p, q, *ends)
    return i[common], j[common]


def _meet(p: int, q: int, a_lo: Index, a_hi: Index, b_lo: Index, b_hi: Index) -> npt.NDArray[np.bool_]:
    """Whether a_lo, a_lo + p, ... below a_hi and b_lo, b_lo + q, ... below b_hi have a number in common.

    The numbers of both progressions without ends are lcm(p, q) apart, or none where gcd(p, q) does not divide the
    distance of their starts (Chinese remainder theorem).
    """
    divisor, period = gcd(p, q), lcm(p, q)
    distance = b_lo - a_lo
    steps = distance // divisor * pow(p // divisor, -1, q // divisor) % (q // divisor)
    common = a_lo + p * steps
    first = common + -((common - np.maximum(a_lo, b_lo)) // period) * period
    return (distance % divisor == 0) & (first < np.minimum(a_hi, b_hi))


def _with_elements(boxes: Boxes) -> tuple[Index, Index, Index]:
    lo, hi = boxes
    kept = np.flatnonzero(np.all(lo < hi, axis=1))
    return kept, lo[kept], hi[kept]


def _members(group_of: Index, groups: Index) -> tuple[Index, Index]:
    """(place in `groups`, member) for every member of each of `groups`; `group_of` ascends."""
    first = np.searchsorted(group_of, groups, side="left")
    count = np.searchsorted(group_of, groups, side="right") - first
    return np.repeat(np.arange(len(groups), dtype=np.int64), count), ranges(first, count)


def _intersecting(
    a_segment: Index, a_lo: Index, a_hi: Index, b_segment: Index, b_lo: Index, b_hi: Index
) -> tuple[Index, Index]:
    """Pairs of intervals of one segment that intersect: those of `b` that start in one of `a`, and the reverse."""
    span = int(max(a_hi.max(initial=0), b_hi.max(initial=0))) + 1
    a_base, b_base = a_segment * span, b_segment * span
    outer_a, inner_b = _starting_in(a_base + a_lo, a_base + a_hi, b_base + b_lo, "left")
    outer_b, inner_a = _starting_in(b_base + b_lo, b_base + b_hi, a_base + a_lo, "right")
    return np.concatenate((outer_a, inner_a)), np.concatenate((inner_b, outer_b))


def _starting_in(lo: Index, hi: Index, start: Index, side: str) -> tuple[Index, Index]:
    """(interval, start) for every start from lo on ("left") or behind it ("right"), and before hi."""
    order = np.argsort(start, kind="stable")
    ascending = start[order]
    first = np.searchsorted(ascending, lo, side="left" if side == "left" else "right")
    count = np.maximum(np.searchsorted(ascending, hi, side="left") - first, 0)
    return np.repeat(np.arange(len(lo), dtype=np.int64), count), order[ranges(first, count)]


def _members_of_both(a_group: Index, i: Index, b_group: Index, j: Index) -> tuple[Index, Index]:
    """Every pair of a member of group i[k] and one of group j[k]."""
    a_order, b_order = np.argsort(a_group, kind="stable"), np.argsort(b_group, kind="stable")
    pair, a_member = _members(a_group[a_order], i)
    again, b_member = _members(b_group[b_order], j[pair])
    return a_order[a_member[again]], b_order[b_member]
