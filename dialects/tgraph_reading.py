"""From the rows of a readable graph to its table."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Index, Lists
from mpkc.dialects.tgraph_operators import OperatorInfo
from mpkc.dialects.tgraph_rows import EventRow, EventsOp, TaskOp, TaskRow, TasksOp
from mpkc.dialects.tgraph_selection import SelectionAttr
from mpkc.dialects.tgraph_table import EMPTY, Form, Table

Edges = list[tuple[Index, Index]]  # tasks and events, an array of each for every row that names some


def read_rows(
    rows: Sequence[Operation], form: Form, infos: tuple[OperatorInfo, ...] | None
) -> tuple[Table, tuple[OperatorInfo, ...]]:
    """The table that the rows of a graph stand for, not yet verified, and its operators.

    Args:
        infos: the operators of the graph's function; None where it has none, and the rows say which there are.

    Raises:
        OpError: at the row that can't be understood, or whose task has an edge twice.
        VerifyException: where operators have the same number.
    """
    for row in rows:
        if not isinstance(row, TaskRow | EventRow):
            raise OpError(row, f"'{row.name}' is neither tasks nor events, so it can't stand in a tgraph.graph")
    task_rows = [row for row in rows if isinstance(row, TaskRow)]
    event_rows = [row for row in rows if isinstance(row, EventRow)]
    tiles = [_tiles(row) for row in task_rows]
    tasks = _Numbers(task_rows, [len(row) for row in tiles])
    events = _Numbers(event_rows, [_event_count(row) for row in event_rows])
    if infos is None:
        infos, operators = _operators_of_rows(task_rows, tiles)
    else:
        operators = [_operator_of_function(row, infos) for row in task_rows]
    triggers, waits = _edges(rows, tasks, events)
    table = Table.of_lists(
        form,
        (tasks.spread(operators), np.concatenate([_NONE, *tiles]), tasks.spread(map(_device, task_rows))),
        events.spread(map(_device, event_rows)),
        _lists("waits on", waits, tasks, events),
        _lists("triggers", triggers, tasks, events),
    )
    workers = [_workers(row, len(places)) for row, places in zip(task_rows, tiles, strict=True)]
    if any(worker is not None for worker in workers):
        free = (np.full(len(places), -1) for places in tiles)
        table = table.assigned(
            np.concatenate([f if worker is None else worker for f, worker in zip(free, workers, strict=True)])
        )
    return table, infos


_NONE = np.zeros(0, dtype=np.int64)


class _Numbers:
    """The numbers of the tasks or events of rows: consecutive, row by row."""

    def __init__(self, rows: Sequence[TaskRow] | Sequence[EventRow], counts: Sequence[int]):
        self.rows = rows
        self.counts = np.array(counts, dtype=np.int64)
        self.total = int(self.counts.sum())
        first = (np.cumsum(self.counts) - self.counts).tolist()
        self.place = {row.symbol: (first[at], counts[at]) for at, row in enumerate(rows)}

    def find(self, user: Operation, symbol: str, what: str) -> tuple[int, int]:
        """First number and count of a row by its symbol; raises OpError at `user` where there is none."""
        if symbol not in self.place:
            raise OpError(user, f"@{symbol} is no {what} of this graph")
        return self.place[symbol]

    def row_of(self, number: int) -> TaskRow | EventRow:
        """The row that a task or event stands in."""
        return self.rows[int(np.searchsorted(np.cumsum(self.counts), number, side="right"))]

    def spread(self, values: "Sequence[int] | map[int]") -> Index:
        """A value for each row, repeated for each of its tasks or events."""
        return np.repeat(np.array(list(values), dtype=np.int64), self.counts)


def _workers(row: TaskRow, count: int) -> Index | None:
    """The worker of each task of a row; None where it says nothing of them."""
    if isinstance(row, TaskOp):
        return None if row.worker is None else np.array([row.worker.value.data], dtype=np.int64)
    assert isinstance(row, TasksOp)
    if row.workers is None:
        return None
    workers = np.array(row.workers.get_values(), dtype=np.int64)
    if len(workers) != count:
        raise OpError(row, f"workers has {len(workers)} numbers, but these are {count} tasks")
    return workers


def _event_count(row: EventRow) -> int:
    count = _integer(row.count, 1) if isinstance(row, EventsOp) else 1
    if count < 1:
        raise OpError(row, f"count is {count}, but a group has at least one event")
    return count


def _device(row: TaskRow | EventRow) -> int:
    return _integer(row.device, 0)


def _integer(attribute: IntegerAttr | None, default: int) -> int:
    return default if attribute is None else attribute.value.data


def _tiles(row: TaskRow) -> Index:
    """The tile of each task of a row."""
    if row.is_empty:
        return _tiles_of_empty(row)
    if isinstance(row, TasksOp):
        count = _count(row)
        first, end = row.tiles.get_values() if row.tiles is not None else (0, count)
        if not 0 <= first < end <= count:
            raise OpError(row, f"tiles {first} to {end} of a grid of {count} tasks: must be an ascending part of it")
        return np.arange(first, end, dtype=np.int64)
    assert isinstance(row, TaskOp)
    return np.array([_integer(row.tile, 0)], dtype=np.int64)


def _tiles_of_empty(row: TaskRow) -> Index:
    meaningless = [word for word in ("operator", "name", "tile", "tiles", "cost") if word in row.properties]
    if meaningless:
        raise OpError(row, f"empty tasks belong to no operator: remove `{meaningless[0]}`")
    return np.zeros(_count(row) if isinstance(row, TasksOp) else 1, dtype=np.int64)


def _count(row: TasksOp) -> int:
    grid = row.grid.get_values()
    if not grid or min(grid) < 1:
        raise OpError(row, f"grid is {list(grid)}, but must be one or more numbers above 0")
    return int(np.prod(grid, dtype=np.int64))


def _operator_of_function(row: TaskRow, infos: Sequence[OperatorInfo]) -> int:
    if row.is_empty:
        return EMPTY
    if row.label is not None or row.cost is not None:
        raise OpError(row, "`name` and `cost` are for graphs that are of no function")
    number = _integer(row.operator, -1)
    if not 0 <= number < len(infos):
        raise OpError(row, f"needs `operator` with a number from 0 to {len(infos) - 1}: which of the function's it is")
    info = infos[number]
    if row.kind.data != info.kind:
        raise OpError(row, f"kind is {row.kind.data}, but operator {number} is {info.kind}")
    if isinstance(row, TasksOp) and tuple(row.grid.get_values()) != info.grid:
        raise OpError(row, f"grid is {list(row.grid.get_values())}, but operator {number} has {list(info.grid)}")
    return number


def _operators_of_rows(rows: Sequence[TaskRow], tiles: Sequence[Index]) -> tuple[tuple[OperatorInfo, ...], list[int]]:
    """The operators that rows of a graph without a function name, and the operator of each row."""
    infos: dict[str, OperatorInfo] = {}
    given: dict[str, int | None] = {}
    for row, places in zip(rows, tiles, strict=True):
        if row.is_empty:
            continue
        name, info = _name(row), _info(row, int(places[-1]) + 1)
        number = None if row.operator is None else row.operator.value.data
        before = infos.setdefault(name, info)
        if (before.kind, before.cost) != (info.kind, info.cost) or given.setdefault(name, number) != number:
            raise OpError(row, f"operator {name} has another kind, cost or number in a row above")
        infos[name] = max(before, info, key=lambda one: one.count)
    return _numbered(rows, infos, given)


def _numbered(
    rows: Sequence[TaskRow], infos: dict[str, OperatorInfo], given: dict[str, int | None]
) -> tuple[tuple[OperatorInfo, ...], list[int]]:
    if any(number is not None for number in given.values()):
        for row in rows:
            if not row.is_empty and not 0 <= _integer(row.operator, -1) < len(infos):
                raise OpError(row, f"needs `operator` with a number below {len(infos)}, as there are so many operators")
        numbers = {name: number for name, number in given.items() if number is not None}
    else:
        numbers = {name: number for number, name in enumerate(infos)}
    if len(set(numbers.values())) != len(infos):
        raise VerifyException("two operators have the same number")
    ordered = sorted(infos, key=lambda name: numbers[name])
    return tuple(infos[name] for name in ordered), [EMPTY if row.is_empty else numbers[_name(row)] for row in rows]


def _name(row: TaskRow) -> str:
    return row.symbol if row.label is None else row.label.data


def _info(row: TaskRow, count: int) -> OperatorInfo:
    if isinstance(row, TasksOp):
        count = _count(row)
        if len(row.grid.get_values()) != 1:
            raise OpError(row, f"a graph that is of no function has grids of one number: write grid [{count}]")
    cost = None if row.cost is None else row.cost.value.data
    return OperatorInfo(_name(row), row.kind.data, (count,), cost)


def _edges(rows: Sequence[Operation], tasks: _Numbers, events: _Numbers) -> tuple[Edges, Edges]:
    """The triggering and the waiting edges that rows give, each as (tasks, events)."""
    triggers: Edges = []
    waits: Edges = []
    for row in rows:
        if isinstance(row, TaskOp):
            triggers += _edges_of_task(row, row.triggers, tasks, events)
            waits += _edges_of_task(row, row.waits, tasks, events)
        elif isinstance(row, EventsOp):
            triggers += [_edges_of_events(row, selection, tasks, events) for selection in row.sources]
            waits += [_edges_of_events(row, selection, tasks, events) for selection in row.targets]
    return triggers, waits


def _edges_of_task(row: TaskOp, symbols: ArrayAttr[SymbolRefAttr] | None, tasks: _Numbers, events: _Numbers) -> Edges:
    task, _ = tasks.place[row.symbol]
    found: list[int] = []
    for symbol in symbols or ():
        event, count = events.find(row, symbol.root_reference.data, "event")
        if count != 1:
            raise OpError(row, f"{symbol} is a group of {count} events, but a task waits on and triggers single ones")
        found.append(event)
    return [(np.full(len(found), task, dtype=np.int64), np.array(found, dtype=np.int64))]


def _edges_of_events(row: EventsOp, selection: SelectionAttr, tasks: _Numbers, events: _Numbers) -> tuple[Index, Index]:
    first_event, event_count = events.place[row.symbol]
    first_task, task_count = tasks.find(row, selection.symbol, "task")
    try:
        event, place = selection.select(event_count, task_count)
    except VerifyException as error:
        raise OpError(row, str(error)) from error
    return first_task + place, first_event + event


def _lists(verb: str, edges: Edges, tasks: _Numbers, events: _Numbers) -> Lists:
    rows = np.concatenate([_NONE, *(tasks for tasks, _ in edges)])
    items = np.concatenate([_NONE, *(events for _, events in edges)])
    lists = Lists.of_pairs(rows, items, tasks.total)
    if len(lists.items) != len(items):
        keys, count = np.unique(rows * events.total + items, return_counts=True)
        task, event = divmod(int(keys[np.argmax(count > 1)]), events.total)
        raise OpError(tasks.row_of(task), f"{verb} an event of @{events.row_of(event).symbol} twice")
    return lists
