"""Counts of a task graph, as MPK's table 2 counts them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, Self

import numpy as np
from xdsl.dialects.func import FuncOp

from mpkc.dialects.tgraph_operators import function_named
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tops.base import Operator
from mpkc.runtime.cuda.footprint import Footprint, footprint
from mpkc.runtime.cuda.image import EVENT, task_record
from mpkc.taskgraph import TaskGraph

SCHEDULERS = 4  # scheduler warps of a GPU: a block of them
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
        weight_bytes, cache_bytes, activation_bytes: of weights, of buffers, of what a run computes (docs/memory.md).
        peak_bytes: of all that, and of tasks, events and queues.
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
    weight_bytes: int
    cache_bytes: int
    activation_bytes: int
    peak_bytes: int

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class _Counted(NamedTuple):
    """A task graph as its memory is counted (`Planned`)."""

    func: FuncOp | None
    operators: Sequence[Operator]
    table: Table
    views: int

    @classmethod
    def of(cls, graph: TaskGraph) -> Self:
        func = function_named(graph.op, graph.op.of.root_reference.data) if graph.op.of else None
        views = max((len(op.operands) + len(op.results) for op in graph.operators), default=1)
        return cls(func, graph.operators, graph.table, views)


def memory_of(graphs: Iterable[TaskGraph], workers: int) -> Footprint:
    """What graphs for so many workers need that stand in memory beside each other."""
    return footprint([_Counted.of(graph) for graph in graphs], workers, SCHEDULERS)


def stats_of(graph: TaskGraph, workers: int) -> Stats:
    """Counted from the linearized table; queues are those for so many workers."""
    table, views, memory = graph.table, _Counted.of(graph).views, memory_of([graph], workers)
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
        weight_bytes=memory.weight_bytes,
        cache_bytes=memory.cache_bytes,
        activation_bytes=memory.activation_bytes,
        peak_bytes=memory.peak_bytes,
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
