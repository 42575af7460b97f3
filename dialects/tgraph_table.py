"""A task graph as arrays: what the passes of tgraph compute with and the runtime stores (docs/tgraph.md)."""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np

from mpkc.dialects.lists import Column, Index, Integers, Lists, column, ranges

EMPTY = -1  # the operator of an empty task


class Form(StrEnum):
    """What a table promises beyond being a task graph."""

    GENERAL = "general"
    NORMALIZED = "normalized"  # a task waits on at most one event and triggers at most one
    LINEAR = "linear"  # normalized, and an event's tasks are a range behind all that trigger it


@dataclass(frozen=True, eq=False)
class Table:
    """Tasks and events by number (MPK, figure 5). All arrays are int32.

    Attributes:
        form: what the table promises.
        task_operator: [tasks] number of the operator; -1 for an empty task.
        task_tile: [tasks] number of the task in its operator's grid, row-major; 0 for an empty task.
        task_device: [tasks] the device that runs it.
        event_device: [events] the device that holds its counter.
        wait_offsets, waits: [tasks + 1], [waiting edges] the events that task t waits on, ascending:
            waits[wait_offsets[t] : wait_offsets[t + 1]].
        trigger_offsets, triggers: the same for the events that a task triggers.
        event_first, event_last: [events] the tasks that wait on an event, both inclusive; linear form only.
        task_worker: [tasks] the worker that a task is assigned to ahead of time, -1 for one that a scheduler hands out
            just in time; linear form only. Absent: all just in time.
    """

    form: Form
    task_operator: Column
    task_tile: Column
    task_device: Column
    event_device: Column
    wait_offsets: Column
    waits: Column
    trigger_offsets: Column
    triggers: Column
    event_first: Column | None = None
    event_last: Column | None = None
    task_worker: Column | None = None

    @classmethod
    def of_lists(
        cls,
        form: Form,
        task: tuple[Integers, Integers, Integers],
        event_device: Integers,
        waits: Lists,
        triggers: Lists,
    ) -> Self:
        """A table from (operator, tile, device) of each task, and the events each waits on and triggers."""
        operator, tile, device = map(column, task)
        table = cls(
            form,
            operator,
            tile,
            device,
            column(event_device),
            waits.offsets,
            waits.items,
            triggers.offsets,
            triggers.items,
        )
        return table.with_ranges() if form is Form.LINEAR else table

    def with_ranges(self) -> Self:
        """The table with event_first and event_last, as its waiting edges give them."""
        return replace(self, event_first=self.waiting.least(), event_last=self.waiting.greatest())

    def assigned(self, worker: Column) -> Self:
        """The table with a worker, or -1, for each task; where all are -1 it has no such column."""
        return replace(self, task_worker=column(worker) if np.any(worker >= 0) else None)

    @property
    def columns(self) -> dict[str, Column]:
        """The arrays by name, those of the linear form only where it is linear."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "form"}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def task_count(self) -> int:
        return len(self.task_operator)

    @property
    def event_count(self) -> int:
        return len(self.event_device)

    @property
    def task(self) -> tuple[Column, Column, Column]:
        """(operator, tile, device) of each task."""
        return self.task_operator, self.task_tile, self.task_device

    @cached_property
    def wait_lists(self) -> Lists:
        """The events that each task waits on."""
        return Lists(self.wait_offsets, self.waits)

    @cached_property
    def trigger_lists(self) -> Lists:
        """The events that each task triggers."""
        return Lists(self.trigger_offsets, self.triggers)

    @cached_property
    def waiting(self) -> Lists:
        """The tasks that wait on each event: OutTasks(e)."""
        return self.wait_lists.transpose(self.event_count)

    @cached_property
    def triggering(self) -> Lists:
        """The tasks that trigger each event: InTasks(e)."""
        return self.trigger_lists.transpose(self.event_count)

    @property
    def triggers_needed(self) -> Column:
        """[events] how many tasks trigger each event."""
        return self.triggering.sizes

    @property
    def task_wait(self) -> Column:
        """[tasks] the one event that a task waits on, or -1; for normalized tables."""
        return _only(self.wait_lists)

    @property
    def task_trigger(self) -> Column:
        """[tasks] the one event that a task triggers, or -1; for normalized tables."""
        return _only(self.trigger_lists)

    @property
    def pair_count(self) -> int:
        """Producer-consumer pairs of tasks that the events stand for, an event at a time."""
        return int(np.sum(self.triggering.sizes.astype(np.int64) * self.waiting.sizes))

    def pairs(self) -> tuple[Index, Index]:
        """(triggering task, waiting task) of every event, event by event: as many as `pair_count`."""
        sources, targets = self.triggering, self.waiting
        event, source = sources.rows, sources.items
        count = targets.sizes[event]
        target = targets.items[ranges(targets.offsets[event], count)]
        return np.repeat(source, count).astype(np.int64), target.astype(np.int64)

    def is_topological(self) -> bool:
        """Whether every task has a larger number than all that it waits for; no event may lack tasks."""
        return bool(np.all(self.triggering.greatest() < self.waiting.least()))

    def levels(self) -> Column:
        """[tasks] events on the longest path to each task; -1 for a task on a cycle or behind one."""
        sizes = np.concatenate((self.trigger_lists.sizes, self.waiting.sizes))
        items = np.concatenate((self.triggers + self.task_count, self.waiting.items))  # tasks, then events
        return Lists.of_sizes(sizes, items).depths()[: self.task_count] // 2


def _only(lists: Lists) -> Column:
    only = np.full(len(lists), -1, dtype=np.int32)
    only[lists.rows] = lists.items
    return only
