"""`tgraph-launch`: which tasks are handed out just in time, and which are assigned to workers ahead of time.

MPK: each worker has a queue for both. An event's tasks share a mode. They are just in time where data decides how long
they take (attention, experts), and where they follow some of an operator's such tasks while others of them still run:
then workers that end early take more. Behind all of an operator's tasks nobody is early, and just in time would only
cost the hop over a scheduler. The tasks that start an iteration are just in time too. The rest is dealt to the workers
in turn, in linear order: their workers watch the event themselves, without a scheduler between. An operator's attribute
`tgraph.launch = "jit"` or `"aot"` overrides.

    tgraph.table @g_graph of @g linear {...}    tgraph.table @g_graph of @g linear {
                                                  ..., task_worker = dense<[-1, 0, 1]> : tensor<3xi32> }
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import StringAttr

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Column
from mpkc.dialects.tgraph_operators import function_named, operators_in
from mpkc.dialects.tgraph_table import EMPTY, Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.dialects.tops.base import Operator
from mpkc.passes.table_pass import TablePass

OVERRIDE = "tgraph.launch"
REASONS = (
    "takes as long as its shape says",
    "data decides how long it takes",
    "follows tasks whose time data decides while others like them still run",
    "asked for ahead of time",
    "asked for just in time",
)
STATIC, DYNAMIC, FOLLOWER, FORCED_AHEAD, FORCED_JUST_IN_TIME = range(len(REASONS))
JUST_IN_TIME = (DYNAMIC, FOLLOWER, FORCED_JUST_IN_TIME)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LaunchPass(TablePass):
    """Give every event's tasks a launch mode, and those ahead of time a worker.

    Attributes:
        workers: to deal tasks to.
        mode: `mixed` chooses; `jit` and `aot` give every task the same mode where its operator asks for none.
    """

    name = "tgraph-launch"

    workers: int = 128
    mode: Literal["mixed", "jit", "aot"] = "mixed"

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"{self.name}: workers is {self.workers}, but must be at least 1")

    def rewrite(self, op: TableOp, table: Table) -> Table:
        if table.form is not Form.LINEAR:
            raise OpError(op, f"is {table.form}, but launch modes belong to linear tables: run tgraph-linearize first")
        operators = operators_in(function_named(op, op.of.root_reference.data)) if op.of else []
        reason = event_reasons(table, operators, self.mode)
        return table.assigned(dealt(table, ~np.isin(reason, JUST_IN_TIME), self.workers))


def event_reasons(table: Table, operators: Sequence[Operator], mode: str = "mixed") -> Column:
    """[events] why the tasks that wait on an event have their launch mode: an index into REASONS.

    Args:
        operators: those of the table; none where the graph has no function, and no time depends on data.
    """
    dynamic = _of_tasks(table, [op.data_dependent for op in operators])
    reason = np.full(table.event_count, STATIC, dtype=np.int32)
    if mode == "mixed":
        reason[_follows_some(table, dynamic)] = FOLLOWER
        reason[_any(table.event_count, table.task_wait, dynamic)] = DYNAMIC
    else:
        reason[:] = FORCED_JUST_IN_TIME if mode == "jit" else FORCED_AHEAD
    for wanted, forced in (("aot", FORCED_AHEAD), ("jit", FORCED_JUST_IN_TIME)):  # of both in one event, jit
        asked = _of_tasks(table, [_override(op) == wanted for op in operators])
        reason[_any(table.event_count, table.task_wait, asked)] = forced
    return reason


def _follows_some(table: Table, dynamic: Mask) -> Mask:
    """[events] whether tasks in the mask trigger an event, but not all of their operator's do."""
    mine = np.flatnonzero(dynamic & (table.task_trigger >= 0))
    operators = int(table.task_operator.max(initial=0)) + 1
    pair, count = np.unique(
        table.task_trigger[mine] * np.int64(operators) + table.task_operator[mine], return_counts=True
    )
    event, operator = np.divmod(pair, operators)
    size = np.bincount(table.task_operator[table.task_operator != EMPTY], minlength=operators)
    found = np.zeros(table.event_count, dtype=np.bool_)
    found[event[count < size[operator]]] = True
    return found


def _override(op: Operator) -> str | None:
    """The mode that an operator asks for; raises OpError where it is none."""
    asked = op.attributes.get(OVERRIDE)
    if asked is None:
        return None
    if isinstance(asked, StringAttr) and asked.data in ("jit", "aot"):
        return asked.data
    raise OpError(op, f'{OVERRIDE} is {asked}, but must be "jit" or "aot"')


def _of_tasks(table: Table, of_operator: Sequence[bool]) -> Mask:
    """[tasks] what is true of each task's operator; false for empty tasks, and where nothing is known of operators."""
    known = np.array([*of_operator, False])
    return (
        known[np.where(table.task_operator == EMPTY, -1, table.task_operator)]
        if of_operator
        else np.zeros(table.task_count, dtype=np.bool_)
    )


def _any(events: int, event_of_task: Column, mask: Mask) -> Mask:
    """[events] whether one of an event's tasks is in the mask; tasks of event -1 have none."""
    found = np.zeros(events, dtype=np.bool_)
    found[event_of_task[mask & (event_of_task >= 0)]] = True
    return found


def dealt(table: Table, ahead: Mask, workers: int) -> Column:
    """[tasks] a worker in turn for each task whose event is in `ahead` [events], in linear order; else -1."""
    chosen = np.flatnonzero((table.task_wait >= 0) & np.append(ahead, False)[table.task_wait])
    worker = np.full(table.task_count, -1, dtype=np.int32)
    worker[chosen] = np.arange(len(chosen)) % workers
    return worker
