"""The verifier of tables: what it accepts runs to its end, and what breaks a table is refused by name."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tgraph_cases import SETTINGS, after, graphs, lists_of, module_of
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_operators import OperatorInfo
from mpkc.dialects.tgraph_rules import find_cycle, verify_table
from mpkc.dialects.tgraph_table import Form, Table

INFOS = (OperatorInfo("a", "linear", (3,)), OperatorInfo("b", "add", (2,)))


def diamond() -> Table:
    """a[0] -> a[1], a[2] -> b[0] -> b[1], linear."""
    return after(
        Table.of_lists(
            Form.NORMALIZED,
            (np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), np.zeros(5, dtype=int)),
            np.zeros(3, dtype=int),
            lists_of([(1, 0), (2, 0), (3, 1), (4, 2)], 5),
            lists_of([(0, 0), (1, 1), (2, 1), (3, 2)], 5),
        ),
        INFOS,
        "tgraph-linearize",
    )


def changed(name: str, *values: int) -> Callable[[Table], Table]:
    return lambda table: replace(table, **{name: np.array(values, dtype=np.int32)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("task_operator", 0, 0, 0, 1), "task_tile has 5 elements, but must have 4"),
        (changed("task_operator", 0, 0, 0, 1, 2), "the operator of task 4 is not -1"),
        (changed("task_operator", 0, 0, 0, 1, -2), "the operator of task 4 is not -1"),
        (changed("task_operator", 0, 0, 0, 1, -1), "the tile of task 4 lies outside its operator's grid"),
        (changed("task_tile", 0, 1, 3, 0, 1), "the tile of task 2 lies outside its operator's grid"),
        (changed("task_tile", 0, 1, -1, 0, 1), "the tile of task 2 lies outside its operator's grid"),
        (changed("task_tile", 0, 1, 1, 0, 1), r"task a\[1\] stands twice"),
        (changed("task_device", 0, 0, 0, 0, -1), "task_device of row 4 is negative"),
        (changed("event_device", 0, 0, -1), "event_device of row 2 is negative"),
        (changed("event_device", 0, 0), "event_first has 3 elements, but must have 2"),
        (changed("wait_offsets", 0, 0, 1, 2, 3), "wait_offsets has 5 elements, but must have 6"),
        (changed("wait_offsets", 0, 1, 0, 2, 3, 4), "wait_offsets must ascend from 0 to 4, the length of waits"),
        (changed("trigger_offsets", 0, 1, 2, 3, 4, 5), "trigger_offsets must ascend from 0 to 4"),
        (changed("waits", 0, 0, 1, 3), "waits holds at 3 a number that is none of the 3 events"),
        (changed("waits", 0, 0, 1, -1), "waits holds at 3 a number that is none of the 3 events"),
        (changed("waits", 0, 0, 0, 2), "event 1 has no task that waits on it"),
        (changed("triggers", 0, 0, 0, 2), "event 1 is triggered by no task"),
        (changed("waits", 0, 1, 0, 2), r"can't complete: tasks wait for each other: a\[2\] -> a\[2\]"),
        (changed("event_first", 1, 2, 4), "the tasks that wait on event 1 are not the range"),
        (changed("event_last", 2, 3, 3), "the tasks that wait on event 2 are not the range"),
        (lambda table: replace(table, event_first=None), "has no event_first, but is linear"),
        (lambda table: replace(table, form=Form.NORMALIZED), "event_first belongs to linear tables"),
    ],
)
def test_a_broken_table_is_refused(change: Callable[[Table], Table], message: str) -> None:
    table = diamond()
    verify_table(table, INFOS)
    with pytest.raises(VerifyException, match=message):
        verify_table(change(table), INFOS)


def test_an_edge_given_twice_is_refused() -> None:
    table = replace(
        diamond(),
        form=Form.GENERAL,
        event_first=None,
        event_last=None,
        wait_offsets=np.array([0, 0, 1, 2, 4, 5], dtype=np.int32),
        waits=np.array([0, 0, 1, 1, 2], dtype=np.int32),
    )
    with pytest.raises(VerifyException, match=r"b\[0\] waits on event 1 twice or out of order"):
        verify_table(table, INFOS)


@SETTINGS
@given(graphs(), st.data())
def test_one_edge_back_makes_a_cycle_that_is_named(
    case: tuple[Table, tuple[OperatorInfo, ...]], data: st.DataObject
) -> None:
    table, infos = case
    if not table.event_count:
        return
    event = data.draw(st.integers(0, table.event_count - 1))
    early, late = int(table.triggering[event][0]), int(table.waiting[event][0])
    count = table.event_count
    waits = [(int(t), int(e)) for t, e in zip(table.wait_lists.rows, table.waits, strict=True)] + [(early, count)]
    triggers = [(int(t), int(e)) for t, e in zip(table.trigger_lists.rows, table.triggers, strict=True)]
    broken = Table.of_lists(
        Form.GENERAL,
        table.task,
        np.append(table.event_device, 0),
        lists_of(waits, table.task_count),
        lists_of([*triggers, (late, count)], table.task_count),
    )
    cycle = find_cycle(broken)
    sources, targets = broken.pairs()
    edges = set(zip(sources.tolist(), targets.tolist(), strict=True))
    assert cycle
    assert all(edge in edges for edge in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    with pytest.raises(OpError, match="can't complete: tasks wait for each other"):
        module_of(broken, infos)


@SETTINGS
@given(graphs())
def test_what_is_accepted_completes(case: tuple[Table, tuple[OperatorInfo, ...]]) -> None:
    """Runs the graph: a task when all it waits on is active, an event when all that trigger it have run."""
    table, infos = case
    verify_table(table, infos)
    left = table.triggers_needed.copy()
    waiting = set(range(table.task_count))
    while ready := {task for task in waiting if not np.any(left[table.wait_lists[task]])}:
        waiting -= ready
        for task in ready:
            left[table.trigger_lists[task]] -= 1
    assert not waiting
