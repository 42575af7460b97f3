"""The rules of a table, each with its message. Everything is checked for all tasks at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.lists import Column, Lists
from mpkc.dialects.tgraph_operators import OperatorInfo, task_name
from mpkc.dialects.tgraph_table import EMPTY, Form, Table


def verify_table(table: Table, infos: Sequence[OperatorInfo]) -> None:
    """Raise VerifyException, naming tasks by operator and tile, unless the table is a graph that can complete."""
    _verify_shapes(table)
    _verify_tasks(table, infos)
    name = _Namer(table, infos)
    _verify_edges("waits", "waits on", table.wait_lists, table.event_count, name)
    _verify_edges("triggers", "triggers", table.trigger_lists, table.event_count, name)
    _refuse(table.triggering.sizes == 0, "event {} is triggered by no task: the tasks that wait on it never start")
    _refuse(table.waiting.sizes == 0, "event {} has no task that waits on it")
    if not table.is_topological():
        _verify_acyclic(table, name)
    if table.form is not Form.GENERAL:
        _verify_normalized(table, name)
    if table.form is Form.LINEAR:
        _verify_linear(table, name)


class _Namer:
    def __init__(self, table: Table, infos: Sequence[OperatorInfo]):
        self.table, self.infos = table, infos

    def __call__(self, task: int) -> str:
        table = self.table
        return task_name(self.infos, task, int(table.task_operator[task]), int(table.task_tile[task]))


def _refuse(wrong: npt.NDArray[np.bool_], message: str) -> None:
    """Raise with the number of the first wrong row in the message."""
    if wrong.any():
        raise VerifyException(message.format(int(np.argmax(wrong))))


def _verify_shapes(table: Table) -> None:
    tasks, events = table.task_count, table.event_count
    lengths = {"task_tile": tasks, "task_device": tasks, "wait_offsets": tasks + 1, "trigger_offsets": tasks + 1}
    if table.form is Form.LINEAR:
        lengths |= {"event_first": events, "event_last": events}
        lengths |= {"task_worker": tasks} if "task_worker" in table.columns else {}
    columns = table.columns
    for name, length in lengths.items():
        if name not in columns:
            raise VerifyException(f"has no {name}, but is linear")
        if len(columns[name]) != length:
            raise VerifyException(f"{name} has {len(columns[name])} elements, but must have {length}")
    for name in ("event_first", "event_last", "task_worker"):
        if table.form is not Form.LINEAR and name in columns:
            raise VerifyException(f"{name} belongs to linear tables")
    for offsets, items in (("wait_offsets", "waits"), ("trigger_offsets", "triggers")):
        at = columns[offsets]
        if at[0] != 0 or at[-1] != len(columns[items]) or np.any(at[1:] < at[:-1]):
            raise VerifyException(f"{offsets} must ascend from 0 to {len(columns[items])}, the length of {items}")


def _verify_tasks(table: Table, infos: Sequence[OperatorInfo]) -> None:
    operator, tile = table.task_operator, table.task_tile
    counts = np.array([info.count for info in infos] + [1], dtype=np.int64)  # the last: an empty task's only tile
    _refuse(
        (operator < EMPTY) | (operator >= len(infos)),
        f"the operator of task {{}} is not -1 (an empty task), nor one of the {len(infos)} operators",
    )
    _refuse((tile < 0) | (tile >= counts[operator]), "the tile of task {} lies outside its operator's grid")
    first = np.cumsum(counts) - counts
    real = operator != EMPTY
    found = np.bincount(first[operator[real]] + tile[real], minlength=int(first[-1]))
    for wrong, what in ((found > 1, "twice"), (found == 0, "in no row")):
        if wrong.any():
            place = int(np.argmax(wrong))
            number = int(np.searchsorted(first, place, side="right")) - 1
            raise VerifyException(f"task {task_name(infos, -1, number, place - int(first[number]))} stands {what}")
    for name in ("task_device", "event_device"):
        _refuse(table.columns[name] < 0, f"{name} of row {{}} is negative")


def _verify_edges(column: str, verb: str, lists: Lists, events: int, name: _Namer) -> None:
    _refuse(
        (lists.items < 0) | (lists.items >= events),
        f"{column} holds at {{}} a number that is none of the {events} events",
    )
    unordered = (lists.items[1:] <= lists.items[:-1]) & (lists.rows[1:] == lists.rows[:-1])
    if unordered.any():
        at = int(np.argmax(unordered))
        event = int(lists.items[at + 1])
        raise VerifyException(f"{name(int(lists.rows[at]))} {verb} event {event} twice or out of order")


def _verify_acyclic(table: Table, name: _Namer) -> None:
    cycle = find_cycle(table)
    if cycle:
        chain = " -> ".join(map(name, [*cycle, cycle[0]]))
        raise VerifyException(f"can't complete: tasks wait for each other: {chain}")


def find_cycle(table: Table) -> list[int]:
    """Tasks of a cycle, each before the one that waits for it; none where the graph can complete."""
    stuck = table.levels() < 0
    if not stuck.any():
        return []
    task, path, place = int(np.argmax(stuck)), list[int](), dict[int, int]()
    while task not in place:
        place[task] = len(path)
        path.append(task)
        producers = table.triggering.take(table.wait_lists[task])
        task = int(producers[stuck[producers]][0])
    cycle = path[place[task] :][::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def _verify_normalized(table: Table, name: _Namer) -> None:
    for verb, lists in (("waits on", table.wait_lists), ("triggers", table.trigger_lists)):
        many = lists.sizes > 1
        if many.any():
            task = int(np.argmax(many))
            raise VerifyException(
                f"is {table.form}, but {name(task)} {verb} {lists.sizes[task]} events: run tgraph-normalize first"
            )


def _verify_linear(table: Table, name: _Namer) -> None:
    first, last = table.event_first, table.event_last
    assert first is not None
    assert last is not None
    _refuse(
        (table.waiting.least() != first)
        | (table.waiting.greatest() != last)
        | (table.waiting.sizes != last - first + 1),
        "the tasks that wait on event {} are not the range from event_first to event_last",
    )
    starts = table.wait_lists.sizes == 0
    late = starts[1:] & ~starts[:-1]
    if late.any():
        raise VerifyException(
            f"is linear, but {name(int(np.argmax(late)) + 1)} waits on nothing and is not at the front"
        )
    if table.task_worker is not None:
        _verify_launch(table, table.task_worker, first, name)
    early = table.triggering.greatest() >= first
    if early.any():
        event = int(np.argmax(early))
        task = int(table.triggering.greatest()[event])
        raise VerifyException(f"is linear, but {name(task)} triggers event {event} and stands behind its tasks")


def _verify_launch(table: Table, worker: Column, first: Column, name: _Namer) -> None:
    _refuse(worker < -1, "the worker of task {} is below -1, which stands for just in time")
    wait = table.task_wait
    ahead = (worker >= 0) & (wait < 0)
    if ahead.any():
        raise VerifyException(f"{name(int(np.argmax(ahead)))} waits on nothing, so it can't be assigned ahead of time")
    mixed = (wait >= 0) & ((worker >= 0) != (worker[first[wait]] >= 0))
    if mixed.any():
        task = int(np.argmax(mixed))
        raise VerifyException(f"event {wait[task]} has tasks of both launch modes, {name(task)} among them")
