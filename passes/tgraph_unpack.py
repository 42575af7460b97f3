"""`tgraph-unpack`: from the table of a task graph to its readable form.

Tasks of one operator with consecutive tiles become one operation, and so do consecutive events whose tasks follow one
pattern; with `tasks=true` each task and each event has an operation of its own.

    tgraph.table @g_graph of @g {...}        tgraph.graph @g_graph of @g {
                                               tgraph.tasks @linear_0 operator 0 kind "linear" grid [1, 12]
                                               tgraph.tasks @attention_1 operator 1 kind "attention" grid [1, 3]
                                               tgraph.events @e0 count 3 from @linear_0 each 4 to @attention_1 each 1 }
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, i64
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mpkc.dialects.lists import Index, Lists
from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_rows import EMPTY_KIND, EventOp, EventsOp, TaskOp, TasksOp
from mpkc.dialects.tgraph_selection import SelectionAttr
from mpkc.dialects.tgraph_table import EMPTY
from mpkc.dialects.tgraph_table_op import TableOp


@dataclass(frozen=True)
class UnpackPass(ModulePass):
    """Put a readable graph in the place of each table.

    Attributes:
        tasks: an operation for each task and event, for small graphs.
    """

    name = "tgraph-unpack"

    tasks: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for old in [found for found in op.ops if isinstance(found, TableOp)]:
            unpacked = Unpacked(old)
            rows = unpacked.single_rows() if self.tasks else unpacked.grouped_rows()
            of = old.of.root_reference.data if old.of else None
            graph = GraphOp(old.sym_name.data, of, old.table.form, rows)
            graph.attributes, graph.location = dict(old.attributes), old.location
            for row in rows:
                row.location = old.location
            Rewriter.replace_op(old, graph)


@dataclass(frozen=True)
class Run:
    """Tasks first to end - 1 of the table: one operator's, on one device, with consecutive tiles."""

    first: int
    end: int
    symbol: str = ""


class Symbols:
    """Names that are unique in a graph."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def fresh(self, name: str) -> str:
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name


# One side of an event: (run, first place in it, number of places) of each stretch of consecutive tasks.
Side: TypeAlias = tuple[tuple[int, int, int], ...]


class Unpacked:
    """The rows of a table's readable form."""

    def __init__(self, op: TableOp):
        self.table, self.infos, self.of_function = op.table, op.infos(), op.of is not None
        self.symbols = Symbols()
        real = self.table.task_operator[self.table.task_operator != EMPTY]
        appearance = real[np.sort(np.unique(real, return_index=True)[1])]
        self.numbered = self.of_function or not np.array_equal(appearance, np.arange(len(appearance)))

    def single_rows(self) -> list[Operation]:
        """A row for each task and each event."""
        table = self.table
        tasks = [self._task_symbol(task) for task in range(table.task_count)]
        events = [SymbolRefAttr(self.symbols.fresh(f"e{event}")) for event in range(table.event_count)]
        rows: list[Operation] = []
        for task, symbol in enumerate(tasks):
            words = self._words(task, symbol) | self._worker(task)
            if table.task_tile[task]:
                words["tile"] = _integer(table.task_tile[task])
            for word, lists in (("waits", table.wait_lists), ("triggers", table.trigger_lists)):
                if lists.sizes[task]:
                    words[word] = ArrayAttr([events[int(event)] for event in lists[task]])
            rows.append(TaskOp.create(properties=words))
        for symbol, device in zip(events, table.event_device, strict=True):
            rows.append(EventOp.create(properties={"sym_name": symbol.root_reference} | _device(device)))
        return rows

    def grouped_rows(self) -> list[Operation]:
        """A row for each run of tasks and each group of events that follows a pattern."""
        runs = [Run(run.first, run.end, self._run_symbol(run)) for run in self._runs()]
        rows: list[Operation] = [self._tasks_row(run) for run in runs]
        sides = zip(_sides(self.table.triggering, runs), _sides(self.table.waiting, runs), strict=True)
        events = [
            (int(device), source, target)
            for device, (source, target) in zip(self.table.event_device, sides, strict=True)
        ]
        first = 0
        for _, alike in groupby(events, key=lambda event: (event[0], _shape(event[1]), _shape(event[2]))):
            rows += self._events_rows(first, group := list(alike), runs)
            first += len(group)
        return rows

    def _runs(self) -> list[Run]:
        operator, tile, device = self.table.task
        steps = np.where(operator[1:] == EMPTY, tile[:-1], tile[:-1] + 1)
        broken = (operator[1:] != operator[:-1]) | (device[1:] != device[:-1]) | (tile[1:] != steps)
        bounds = [0, *(np.flatnonzero(broken) + 1).tolist(), len(operator)] if len(operator) else []
        return [Run(first, end) for first, end in pairwise(bounds)]

    def _task_symbol(self, task: int) -> str:
        operator, tile = int(self.table.task_operator[task]), int(self.table.task_tile[task])
        if operator == EMPTY:
            return self.symbols.fresh(f"empty_{task}")
        info = self.infos[operator]
        return self.symbols.fresh(info.name if info.count == 1 else f"{info.name}_{tile}")

    def _run_symbol(self, run: Run) -> str:
        operator = int(self.table.task_operator[run.first])
        if operator != EMPTY and run.end - run.first == self.infos[operator].count:
            return self.symbols.fresh(self.infos[operator].name)
        return self._task_symbol(run.first)

    def _words(self, task: int, symbol: str) -> dict[str, Attribute]:
        """What the row of a task, or of a run that begins with it, says of its operator and device."""
        words: dict[str, Attribute] = {"sym_name": StringAttr(symbol)} | _device(self.table.task_device[task])
        operator = int(self.table.task_operator[task])
        if operator == EMPTY:
            return words | {"kind": StringAttr(EMPTY_KIND)}
        info = self.infos[operator]
        words["kind"] = StringAttr(info.kind)
        if self.numbered:
            words["operator"] = _integer(operator)
        if not self.of_function and info.name != symbol:
            words["name"] = StringAttr(info.name)
        if info.cost is not None:
            words["cost"] = _integer(info.cost)
        return words

    def _worker(self, task: int) -> dict[str, Attribute]:
        """The worker that a task is assigned to, if any."""
        worker = -1 if self.table.task_worker is None else int(self.table.task_worker[task])
        return {"worker": _integer(worker)} if worker >= 0 else {}

    def _tasks_row(self, run: Run) -> Operation:
        words = self._words(run.first, run.symbol)
        count, operator = run.end - run.first, int(self.table.task_operator[run.first])
        grid = (count,) if operator == EMPTY else self.infos[operator].grid
        words["grid"] = DenseArrayBase.from_list(i64, grid)
        if operator != EMPTY and count != self.infos[operator].count:
            tile = int(self.table.task_tile[run.first])
            words["tiles"] = DenseArrayBase.from_list(i64, (tile, tile + count))
        if self.table.task_worker is not None and np.any(self.table.task_worker[run.first : run.end] >= 0):
            workers: list[int] = self.table.task_worker[run.first : run.end].tolist()
            words["workers"] = DenseArrayBase.from_list(i64, workers)
        return TasksOp.create(properties=words)

    def _events_rows(self, first: int, group: Sequence[tuple[int, Side, Side]], runs: Sequence[Run]) -> list[Operation]:
        """One row for events of one shape, or one for each where they follow no pattern."""
        sources = _selections([source for _, source, _ in group], runs)
        targets = _selections([target for _, _, target in group], runs)
        if sources is None or targets is None:
            return [row for at, event in enumerate(group) for row in self._events_rows(first + at, [event], runs)]
        words: dict[str, Attribute] = {"sym_name": StringAttr(self.symbols.fresh(f"e{first}"))} | _device(group[0][0])
        if len(group) > 1:
            words["count"] = _integer(len(group))
        return [EventsOp.create(properties=words | {"from": ArrayAttr(sources), "to": ArrayAttr(targets)})]


def _integer(value: int | np.integer) -> IntegerAttr:
    return IntegerAttr(int(value), i64)


def _device(device: int | np.integer) -> dict[str, Attribute]:
    return {"device": _integer(device)} if device else {}


def _shape(side: Side) -> tuple[tuple[int, int], ...]:
    return tuple((run, count) for run, _, count in side)


def _sides(tasks: Lists, runs: Sequence[Run]) -> Iterator[Side]:
    """The tasks of each event as stretches of runs."""
    first = np.array([run.first for run in runs], dtype=np.int64)
    run = np.searchsorted(first, tasks.items, side="right") - 1
    fresh = np.ones(len(run), dtype=bool)
    fresh[1:] = (tasks.rows[1:] != tasks.rows[:-1]) | (run[1:] != run[:-1]) | (tasks.items[1:] != tasks.items[:-1] + 1)
    starts = np.flatnonzero(fresh)
    counts = np.diff(np.append(starts, len(run)))
    stretches = list(
        zip(
            run[starts].tolist(),
            (tasks.items[starts] - first[run[starts]]).tolist(),
            counts.tolist(),
            strict=True,
        )
    )
    bounds = np.searchsorted(tasks.rows[starts], np.arange(len(tasks) + 1)).tolist()
    return (tuple(stretches[low:high]) for low, high in pairwise(bounds))


def _selections(sides: Sequence[Side], runs: Sequence[Run]) -> list[SelectionAttr] | None:
    """What sides of one shape, an event each, take of every run; None where that is no pattern."""
    selections: list[SelectionAttr] = []
    places = np.array([[place for _, place, _ in side] for side in sides], dtype=np.int64)
    for number, columns in groupby(range(len(sides[0])), key=lambda column: sides[0][column][0]):
        stretches = list(columns)
        counts = [sides[0][column][2] for column in stretches]
        selection = _selection(runs[number], places[:, stretches], counts)
        if selection is None:
            return None
        selections.append(selection)
    return selections


def _selection(run: Run, places: Index, counts: Sequence[int]) -> SelectionAttr | None:
    """What events take of a run: `places` [events, stretches], and the number of tasks of each stretch."""
    size = run.end - run.first
    if np.all(places == places[0]):
        if counts == [size]:
            return SelectionAttr.all_of(run.symbol)
        bounds = [
            bound for place, count in zip(places[0].tolist(), counts, strict=True) for bound in (place, place + count)
        ]
        return SelectionAttr.ranges_of(run.symbol, bounds)
    line = int(places[0, 1] - places[0, 0]) if len(counts) > 1 else size
    if len(set(counts)) > 1 or size != len(counts) * line or line % counts[0]:
        return None
    by = int(np.argmax(places[:, 0] != places[0, 0]))
    selection = SelectionAttr.blocks_of(run.symbol, counts[0], by, line if line < size else 0)
    _, wanted = selection.select(len(places), size)
    return selection if np.array_equal(wanted[:: counts[0]], places.reshape(-1)) else None
