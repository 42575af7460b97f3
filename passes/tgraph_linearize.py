"""`tgraph-linearize`: number the tasks so that those of an event are a range.

MPK, Algorithm 1. The tasks that wait on nothing are numbered first. An event joins a queue when the last of the tasks
that trigger it has been numbered; the first event of the queue gives the next numbers to all its tasks, until the
queue is empty. Events are numbered in the order in which they leave the queue, so their ranges ascend.

    e1 -> tasks {2, 5, 3}        event_first[0] = 1, event_last[0] = 3
"""

from dataclasses import dataclass

import numpy as np

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Column, Lists, column
from mpkc.dialects.tgraph_table import Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.table_pass import TablePass


@dataclass(frozen=True)
class LinearizePass(TablePass):
    """Bring a normalized table into linear form."""

    name = "tgraph-linearize"

    def rewrite(self, op: TableOp, table: Table) -> Table:
        if table.form is Form.GENERAL:
            raise OpError(op, "is not normalized: run tgraph-normalize first")
        return linearized(table)


def linearized(table: Table) -> Table:
    """The tasks and events of a normalized table in the order of Algorithm 1."""
    tasks, events = breadth_first(table)
    event_number = np.empty_like(events)
    event_number[events] = np.arange(len(events), dtype=np.int32)
    return Table.of_lists(
        Form.LINEAR,
        (table.task_operator[tasks], table.task_tile[tasks], table.task_device[tasks]),
        table.event_device[events],
        _picked(table.wait_lists, tasks, event_number),
        _picked(table.trigger_lists, tasks, event_number),
    )


def breadth_first(table: Table) -> tuple[Column, Column]:
    """The tasks and the events of a normalized table in the order in which Algorithm 1 numbers them."""
    trigger = table.task_trigger.tolist()
    left = table.triggers_needed.tolist()
    waiting, bounds = table.waiting.items.tolist(), table.waiting.offsets.tolist()
    tasks: list[int] = np.flatnonzero(table.wait_lists.sizes == 0).tolist()
    queue: list[int] = []

    def number(batch: list[int]) -> None:
        for task in batch:
            event = trigger[task]
            if event >= 0:
                left[event] -= 1
                if left[event] == 0:
                    queue.append(event)

    number(tasks)
    for event in queue:
        batch = waiting[bounds[event] : bounds[event + 1]]
        tasks += batch
        number(batch)
    return column(tasks), column(queue)


def _picked(lists: Lists, rows: Column, number: Column) -> Lists:
    """The lists of these rows in this order, their items renumbered."""
    offsets = np.concatenate(([0], np.cumsum(lists.sizes[rows])))
    return Lists(column(offsets), column(number[lists.take(rows)]))
