"""Merging events that have the same set of tasks on one side."""

from itertools import count

import numpy as np
import numpy.typing as npt

from mpkc.dialects.lists import Column, Index, Integers, Lists, fresh, grouped, order_of
from mpkc.dialects.tgraph_table import Form, Table


def fuse(table: Table, tasks: Lists) -> Table:
    """One event for those of a device whose lists in `tasks` are equal, numbered by the first of them."""
    same = alike(tasks, table.event_device)
    kept = same == np.arange(len(same), dtype=np.int32)
    merged = (np.cumsum(kept, dtype=np.int32) - 1)[same]
    waits, triggers = table.wait_lists, table.trigger_lists
    form = Form.NORMALIZED if table.form is Form.LINEAR else table.form
    return Table.of_lists(
        form,
        table.task,
        table.event_device[kept],
        Lists.of_pairs(waits.rows, merged[waits.items], table.task_count),
        Lists.of_pairs(triggers.rows, merged[triggers.items], table.task_count),
    )


def alike(lists: Lists, key: Integers) -> Column:
    """For each ascending list, the first list that is equal to it and has an equal key; no list may be empty.

    Lists are told apart by a hash; that those it finds alike are equal is then checked, so the answer is exact.
    """
    head, single = lists.items[lists.offsets[:-1]], lists.sizes == 1
    order = order_of(head)  # equal lists start alike: most stand side by side then
    change = fresh(head[order], key[order], single[order]) | ~single[order]  # lists of one item need no hash
    runs, sizes = order[change], np.diff(np.flatnonzero(change), append=len(order))
    for seed in count():
        first = _first_of_equals(_digests(lists, key, seed)[runs])
        if _equal(lists, key, runs, runs[first]):
            same = np.empty_like(order)
            same[order] = np.repeat(runs[first], sizes)
            return same
    raise AssertionError("count() does not end")


def _first_of_equals(values: npt.NDArray[np.uint64]) -> Index:
    """For each value the first place where it stands."""
    found, number = grouped(values)
    first = np.empty(len(found), dtype=np.int64)
    first[number[::-1]] = np.arange(len(values))[::-1]  # the last to be put there stays
    return first[number]


def _equal(lists: Lists, key: Integers, some: Column, others: Column) -> bool:
    """Whether some lists and their keys equal others."""
    apart = some != others
    some, others = some[apart], others[apart]
    if not all(np.array_equal(each[some], each[others]) for each in (lists.sizes, key)):
        return False
    parts = 1 + int(lists.sizes[some].sum(dtype=np.int64)) // PART
    return all(
        np.array_equal(lists.take(mine), lists.take(its))
        for mine, its in zip(np.array_split(some, parts), np.array_split(others, parts), strict=True)
    )


PART = 2**17  # items that are compared at once, so that they stay in the cache


def _digests(lists: Lists, key: Integers, seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each list and its key."""
    if not len(lists):
        return np.zeros(0, dtype=np.uint64)
    of_item, of_key = (mixed(np.arange(int(each.max()) + 1), own) for each, own in ((lists.items, seed), (key, ~seed)))
    return np.add.reduceat(of_item[lists.items], lists.offsets[:-1]) ^ of_key[key]


def mixed(items: Integers, seed: int) -> npt.NDArray[np.uint64]:
    """Each integer as 64 bits that look random (the finalizer of splitmix64)."""
    bits = items.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
