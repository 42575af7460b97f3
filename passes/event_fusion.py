"""Merging events that have the same set of tasks on one side."""

from itertools import count

import numpy as np
import numpy.typing as npt

from mpkc.dialects.lists import Column, Index, Lists, distinct
from mpkc.dialects.tgraph_table import Form, Table


def fuse(table: Table, tasks: Lists) -> Table:
    """One event for those of a device whose lists in `tasks` are equal, numbered by the first of them."""
    first, group = alike(tasks, table.event_device)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    merged = number[group]
    waits, triggers = table.wait_lists, table.trigger_lists
    form = Form.NORMALIZED if table.form is Form.LINEAR else table.form
    return Table.of_lists(
        form,
        table.task,
        table.event_device[np.sort(first)],
        Lists.of_pairs(waits.rows, merged[waits.items], table.task_count),
        Lists.of_pairs(triggers.rows, merged[triggers.items], table.task_count),
    )


def alike(lists: Lists, device: Column) -> tuple[Index, Index]:
    """Groups of equal ascending lists with equal devices: the first of each group, and the group of each list.

    Lists are told apart by a hash; that those of a group are equal is then checked, so the answer is exact.
    """
    for seed in count():
        digests = np.add.reduceat(mixed(lists.items, seed), lists.offsets[:-1]) if len(lists) else lists.items
        first, group = distinct(device, lists.sizes, digests)
        if np.array_equal(lists.take(first[group]), lists.items):
            return first, group
    raise AssertionError("count() does not end")


def mixed(items: Column, seed: int) -> npt.NDArray[np.uint64]:
    """Each integer as 64 bits that look random (the finalizer of splitmix64)."""
    bits = items.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
