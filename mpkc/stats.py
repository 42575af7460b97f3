"""Counts of a task graph, as MPK's table 2 counts them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mpkc.runtime.cuda.image import EVENT, task_record
from mpkc.taskgraph import TaskGraph

SPECIAL_EVENTS = 3  # termination, the launch of all tasks, the end of the graph


@dataclass(frozen=True)
class Stats:
    """All integers; bytes are of the successor encodings, and of one descriptor.

    Attributes:
        operators: tensor operators.
        tasks: without the two special ones, with empty ones.
        events: with the three special ones.
        pairs: producer-consumer pairs that the events stand for, and one a task for the launch of all tasks.
        dependency_pairs: those between tasks.
        empty_tasks: what normalization added.
        explicit_bytes: 4 for each successor of an event, were they listed.
        range_bytes: 8 for each event: its first and last task.
        event_bytes, task_bytes: of one record on the device.
    """

    operators: int
    tasks: int
    events: int
    pairs: int
    dependency_pairs: int
    empty_tasks: int
    explicit_bytes: int
    range_bytes: int
    event_bytes: int
    task_bytes: int

    def to_json(self) -> dict[str, int]:
        return asdict(self)


def stats_of(graph: TaskGraph) -> Stats:
    """Counted from the linearized table."""
    table = graph.table
    views = max((len(op.operands) + len(op.results) for op in graph.operators), default=1)
    tasks, events = table.task_count, table.event_count + SPECIAL_EVENTS
    return Stats(
        operators=len(graph.infos),
        tasks=tasks,
        events=events,
        pairs=table.pair_count + tasks,
        dependency_pairs=table.pair_count,
        empty_tasks=int(np.count_nonzero(table.task_operator < 0)),
        explicit_bytes=4 * (tasks + len(table.waits)),
        range_bytes=8 * events,
        event_bytes=EVENT.itemsize,
        task_bytes=task_record(views).itemsize,
    )


@dataclass(frozen=True)
class OperatorRow:
    """One kind of operator in a graph: how often it stands there, and over which grids its tasks lie."""

    name: str
    count: int
    grids: Sequence[str]
    tasks: int


def operator_rows(graph: TaskGraph) -> list[OperatorRow]:
    """The operators of a graph, gathered by kind, in the order in which they first occur."""
    rows: dict[str, list[tuple[int, ...]]] = {}
    for info in graph.infos:
        rows.setdefault(info.kind, []).append(info.grid)
    return [
        OperatorRow(
            name,
            len(grids),
            ["x".join(map(str, grid)) for grid in dict.fromkeys(grids)],
            sum(int(np.prod(grid)) for grid in grids),
        )
        for name, grids in rows.items()
    ]
