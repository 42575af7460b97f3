"""What depends on what in a compiled program: by operator, and task by task."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from mpkc.dialects.lists import Lists, distinct
from mpkc.dialects.tgraph_operators import OperatorInfo, task_name
from mpkc.dialects.tgraph_table import EMPTY, Table
from mpkc.drawing import Diagram, Edge, Node
from mpkc.taskgraph import TaskGraph

MOST_NODES = 2000  # of a drawing


@dataclass(frozen=True)
class OperatorNode:
    """An operator of the program.

    Attributes:
        number: its place in program order.
        info: its kind and grid.
        after: how many events order its tasks behind those of each earlier operator, by that one's number.
    """

    number: int
    info: OperatorInfo
    after: dict[int, int]


def operator_nodes(graph: TaskGraph) -> list[OperatorNode]:
    """Every operator; an event that goes through empty tasks counts for the operators at its ends."""
    infos = graph.infos
    counts = Counter[tuple[int, int]]()
    for sources, targets in operators_of_events(graph.table):
        counts.update(pair for pair in product(sources, targets) if pair[0] != pair[1])
    after: list[dict[int, int]] = [{} for _ in infos]
    for (source, target), count in sorted(counts.items()):
        after[target][source] = count
    return [OperatorNode(number, info, after[number]) for number, info in enumerate(infos)]


def operators_of_events(table: Table) -> list[tuple[set[int], set[int]]]:
    """For each event the operators whose tasks trigger it, directly or through empty tasks, and those that wait."""
    sources, targets = (_operators(lists, table) for lists in (table.triggering, table.waiting))
    wait, trigger = table.task_wait, table.task_trigger
    for task in np.flatnonzero(table.task_operator == EMPTY).tolist():  # ascending: what is before it is settled
        if wait[task] >= 0 and trigger[task] >= 0:
            sources[trigger[task]] |= sources[wait[task]]
    return list(zip(sources, targets, strict=True))


def _operators(tasks: Lists, table: Table) -> list[set[int]]:
    """The operators in each list of tasks."""
    operator = table.task_operator[tasks.items]
    first, _ = distinct(tasks.rows, operator)
    rows: list[int] = tasks.rows[first].tolist()
    numbers: list[int] = operator[first].tolist()
    found = [set[int]() for _ in range(len(tasks))]
    for row, number in zip(rows, numbers, strict=True):
        if number != EMPTY:
            found[row].add(number)
    return found


def operator_diagram(nodes: Sequence[OperatorNode], title: str) -> Diagram:
    """A box an operator; arrows carry the number of their events."""
    place = {node.number: at for at, node in enumerate(nodes)}
    boxes = [
        Node(
            node.info.name,
            (f"{node.number} {node.info.kind}", f"{grid(node.info)}: {tasks(node.info)}"),
            node.info.kind,
        )
        for node in nodes
    ]
    edges = [
        Edge(place[source], at, str(count))
        for at, node in enumerate(nodes)
        for source, count in node.after.items()
        if source in place
    ]
    return Diagram(title, boxes, edges)


@dataclass(frozen=True)
class TaskRow:
    """A task of the table.

    Attributes:
        number, name, kind: its number, how messages call it, what it does.
        wait, trigger: the events that it waits on and triggers; None for none.
        needed: how many tasks trigger the event that it waits on; 0 for none.
    """

    number: int
    name: str
    kind: str
    wait: int | None
    trigger: int | None
    needed: int


def task_rows(graph: TaskGraph, operators: range) -> list[TaskRow]:
    """The tasks of these operators and the empty tasks between them, in the order of the table."""
    table, infos = graph.table, graph.infos
    wait, trigger, needed = table.task_wait.tolist(), table.task_trigger.tolist(), table.triggers_needed.tolist()
    inside = (table.task_operator >= operators.start) & (table.task_operator < operators.stop)
    chosen = np.flatnonzero(inside | _empty_between(table, inside))

    def row(task: int) -> TaskRow:
        operator, tile = int(table.task_operator[task]), int(table.task_tile[task])
        kind = "empty" if operator == EMPTY else infos[operator].kind
        name = task_name(infos, task, operator, tile)
        event = _known(wait[task])
        return TaskRow(task, name, kind, event, _known(trigger[task]), 0 if event is None else needed[event])

    return [row(task) for task in chosen.tolist()]


def _empty_between(table: Table, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which tasks are empty and wait on or trigger an event of a task that is `inside`."""
    events = np.zeros(table.event_count + 1, dtype=bool)  # the last one stands for none
    for column in (table.task_wait, table.task_trigger):
        events[column[inside]] = True
    events[-1] = False
    return (table.task_operator == EMPTY) & (events[table.task_wait] | events[table.task_trigger])


def _known(event: int) -> int | None:
    return None if event < 0 else event


def task_diagram(rows: Sequence[TaskRow], title: str) -> Diagram:
    """A box a task and a dot an event; the first arrow from it carries the number of tasks that trigger it.

    Raises:
        ValueError: where there are too many to see anything.
    """
    events = sorted({event for row in rows for event in (row.wait, row.trigger) if event is not None})
    if len(rows) + len(events) > MOST_NODES:
        raise ValueError(
            f"{len(rows):,} tasks and {len(events):,} events are too many to draw, {MOST_NODES:,} is the most: "
            "choose operators with --operators FIRST:LAST"
        )
    place = {event: len(rows) + at for at, event in enumerate(events)}
    nodes = [Node(row.name, (row.name,), row.kind) for row in rows]
    nodes += [Node(f"event {event}", (), "event") for event in events]
    waits = [
        Edge(place[row.wait], at, "" if at and rows[at - 1].wait == row.wait else str(row.needed))
        for at, row in enumerate(rows)
        if row.wait is not None
    ]
    triggers = [Edge(at, place[row.trigger]) for at, row in enumerate(rows) if row.trigger is not None]
    return Diagram(title, nodes, [*waits, *triggers])


def grid(info: OperatorInfo) -> str:
    """The grid of an operator, such as 1x12."""
    return "x".join(map(str, info.grid))


def tasks(info: OperatorInfo) -> str:
    """How many tasks an operator has, in words."""
    return f"{info.count} task{'s' if info.count > 1 else ''}"
