"""`tgraph-normalize`: at most one event to wait on and one to trigger, for every task.

MPK, "tGraph normalization", figure 6. Where a task T triggers k events, it triggers a new one instead, on which k
empty tasks wait that trigger the k events (6a). Where T waits on k events, k empty tasks wait on these and trigger a
new one, on which T waits (6b). Orders between the tasks that were there stay as they were, no more and no fewer.

    A -> {e1, e2}        A -> e',  e' -> T1 -> e1,  e' -> T2 -> e2
"""

from dataclasses import dataclass

import numpy as np

from mpkc.dialects.lists import Index, Integers, Lists, ranges
from mpkc.dialects.tgraph_table import EMPTY, Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.table_pass import TablePass


@dataclass(frozen=True)
class NormalizePass(TablePass):
    """Give forks and joins empty tasks and events of their own.

    The empty tasks of a join stand before its task and those of a fork behind it, so that a table whose tasks stand
    in an order in which they could run still does. New events, those of joins first, have the numbers behind the old.
    """

    name = "tgraph-normalize"

    def rewrite(self, op: TableOp, table: Table) -> Table:
        return table if table.form is Form.LINEAR else normalized(table)


def normalized(table: Table) -> Table:
    """The table in normalized form."""
    waits, triggers = table.wait_lists, table.trigger_lists
    joins, forks = np.flatnonzero(waits.sizes > 1), np.flatnonzero(triggers.sizes > 1)
    before, behind = np.zeros((2, table.task_count), dtype=np.int64)
    before[joins], behind[forks] = waits.sizes[joins], triggers.sizes[forks]
    room = before + 1 + behind
    place = np.cumsum(room) - room + before  # of each task that was there
    join_tasks = ranges(place[joins] - before[joins], before[joins])
    fork_tasks = ranges(place[forks] + 1, behind[forks])
    join_events = table.event_count + np.arange(len(joins))
    fork_events = table.event_count + len(joins) + np.arange(len(forks))
    each_join, each_fork = np.repeat(join_events, before[joins]), np.repeat(fork_events, behind[forks])
    count = int(room.sum())
    single_wait, single_trigger = waits.sizes[waits.rows] == 1, triggers.sizes[triggers.rows] == 1
    return Table.of_lists(
        Form.NORMALIZED,
        _task_columns(table, place, count, np.repeat(np.arange(table.task_count), room)),
        np.concatenate((table.event_device, table.task_device[joins], table.task_device[forks])),
        _lists(
            count,
            (place[waits.rows[single_wait]], waits.items[single_wait]),
            (place[joins], join_events),
            (join_tasks, waits.take(joins)),
            (fork_tasks, each_fork),
        ),
        _lists(
            count,
            (place[triggers.rows[single_trigger]], triggers.items[single_trigger]),
            (place[forks], fork_events),
            (fork_tasks, triggers.take(forks)),
            (join_tasks, each_join),
        ),
    )


def _task_columns(table: Table, place: Index, count: int, beside: Index) -> tuple[Integers, Integers, Integers]:
    """(operator, tile, device) of all tasks; `beside` is the old task that each stands for or serves."""
    operator, tile = np.full(count, EMPTY), np.zeros(count, dtype=np.int64)
    operator[place], tile[place] = table.task_operator, table.task_tile
    return operator, tile, table.task_device[beside]


def _lists(count: int, *edges: tuple[Integers, Integers]) -> Lists:
    tasks, events = (np.concatenate(side) for side in zip(*edges, strict=True))
    return Lists.of_pairs(tasks, events, count)
