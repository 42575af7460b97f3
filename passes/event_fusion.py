"""Merging events that have the same set of tasks on one side."""

from itertools import count

import numpy as np
import numpy.typing as npt

from mpkc.dialects.lists import LOW, Index, Integers, Lists, ascending, fresh
from mpkc.dialects.tgraph_table import Form, Table


def fuse(table: Table, tasks: Lists) -> Table:
    """One event for those of a device whose lists in `tasks` are equal, numbered by the first of them."""
    same = alike(tasks, table.event_device)
    kept = same == np.arange(len(same))
    merged = (np.cumsum(kept) - 1)[same]
    waits, triggers = table.wait_lists, table.trigger_lists
    form = Form.NORMALIZED if table.form is Form.LINEAR else table.form
    return Table.of_lists(
        form,
        table.task,
        table.event_device[kept],
        Lists.of_pairs(waits.rows, merged[waits.items], table.task_count),
        Lists.of_pairs(triggers.rows, merged[triggers.items], table.task_count),
    )


def alike(lists: Lists, key: Integers) -> Index:
    """For each ascending list, the first list that is equal to it and has an equal key; no list may be empty.

    Lists are told apart by a hash; that those of a group are equal is then checked, so the answer is exact.
    """
    head = lists.items[lists.offsets[:-1]]
    order = ascending(head, np.arange(len(lists))) & LOW  # equal lists start alike: most stand side by side then
    for seed in count():
        same = np.empty_like(order)
        same[order] = order[first_of_equals(_digests(lists, key, seed)[order])]
        if all(np.array_equal(each[same], each) for each in (head, lists.sizes, key)):
            rest = np.flatnonzero((same != np.arange(len(same))) & (lists.sizes > 1))
            if np.array_equal(lists.take(same[rest]), lists.take(rest)):
                return same
    raise AssertionError("count() does not end")


def first_of_equals(values: npt.NDArray[np.uint64]) -> Index:
    """For each value the first place where it stands; what takes time is the number of runs, not of values."""
    starts = np.flatnonzero(change := fresh(values))
    found, group = np.unique(values[starts], return_inverse=True)
    first = np.empty(len(found), dtype=np.int64)
    first[group[::-1]] = starts[::-1]  # the last to be put there stays
    return first[group][np.cumsum(change) - 1]


def _digests(lists: Lists, key: Integers, seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each list and its key."""
    if not len(lists):
        return np.zeros(0, dtype=np.uint64)
    of_item = mixed(np.arange(int(lists.items.max()) + 1), seed)
    return np.add.reduceat(of_item[lists.items], lists.offsets[:-1]) ^ mixed(key, ~seed)


def mixed(items: Integers, seed: int) -> npt.NDArray[np.uint64]:
    """Each integer as 64 bits that look random (the finalizer of splitmix64)."""
    bits = items.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
