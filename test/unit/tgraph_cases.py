"""Random task graphs and tensor programs, and slow, obvious oracles for what the passes of tgraph compute."""

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.lists import Lists
from mpkc.dialects.tgraph_operators import OperatorInfo
from mpkc.dialects.tgraph_table import EMPTY, Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.parsing import new_context, parse_module
from mpkc.passes import get_all_passes

Task = tuple[int, int]  # operator and tile
Pair = tuple[Task, Task]


SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
CONTEXT = Context()
PASSES = get_all_passes()


def run_passes(module: ModuleOp, pipeline: str) -> None:
    """Run the passes and verify what they leave."""
    PassPipeline.parse_spec(PASSES, pipeline).apply(CONTEXT, module)
    verify(module)


def table_op(module: ModuleOp) -> TableOp:
    (found,) = [op for op in module.ops if isinstance(op, TableOp)]
    return found


def module_of(table: Table, infos: Sequence[OperatorInfo]) -> ModuleOp:
    """A module that holds the table, verified."""
    module = ModuleOp([TableOp("g", infos, table)])
    verify(module)
    return module


def after(table: Table, infos: Sequence[OperatorInfo], pipeline: str) -> Table:
    """The table that passes make of a table."""
    module = module_of(table, infos)
    run_passes(module, pipeline)
    return table_op(module).table


def parsed(text: str) -> ModuleOp:
    module = parse_module(text, "test.mlir", new_context())
    verify(module)
    return module


@st.composite
def graphs(draw: st.DrawFn, pairs_only: bool = False, devices: int = 1) -> tuple[Table, tuple[OperatorInfo, ...]]:
    """Graphs that can complete, up to 16 tasks, numbered in any order; with `pairs_only` an event has one pair."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    infos = tuple(
        OperatorInfo(
            f"op{number}", draw(st.sampled_from(["linear", "add"])), (count,), draw(st.sampled_from([None, 7]))
        )
        for number, count in enumerate(counts)
    )
    tasks = [(operator, tile) for operator, count in enumerate(counts) for tile in range(count)]
    tasks += [(EMPTY, 0)] * draw(st.integers(0, 2))
    total = len(tasks)
    order = draw(st.permutations(range(total)))
    if pairs_only:
        possible = [(i, j) for i in range(total) for j in range(i + 1, total)]
        chosen = draw(st.lists(st.sampled_from(possible), unique=True, max_size=40)) if possible else []
        events = [([i], [j]) for i, j in chosen]
    else:
        events = draw(st.lists(_events(total), max_size=10)) if total > 1 else []
    device = st.integers(0, devices - 1)
    waits = [(order[task], event) for event, (_, targets) in enumerate(events) for task in targets]
    triggers = [(order[task], event) for event, (sources, _) in enumerate(events) for task in sources]
    table = Table.of_lists(
        Form.GENERAL,
        (
            np.array([operator for operator, _ in tasks]),
            np.array([tile for _, tile in tasks]),
            np.array([draw(device) for _ in tasks]),
        ),
        np.array([draw(device) for _ in events], dtype=np.int64),
        lists_of(waits, total),
        lists_of(triggers, total),
    )
    return table, infos


@st.composite
def _events(draw: st.DrawFn, total: int) -> tuple[list[int], list[int]]:
    """Tasks that trigger an event, all before the tasks that wait on it."""
    cut = draw(st.integers(1, total - 1))
    sources = draw(st.lists(st.integers(0, cut - 1), min_size=1, max_size=4, unique=True))
    targets = draw(st.lists(st.integers(cut, total - 1), min_size=1, max_size=4, unique=True))
    return sources, targets


def lists_of(edges: Iterable[tuple[int, int]], rows: int) -> Lists:
    both = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    return Lists.of_pairs(both[:, 0], both[:, 1], rows)


def names(table: Table) -> list[Task]:
    """(operator, tile) of each task; empty tasks are (-1, number)."""
    return [
        (operator, tile if operator != EMPTY else number)
        for number, (operator, tile) in enumerate(
            zip(table.task_operator.tolist(), table.task_tile.tolist(), strict=True)
        )
    ]


def pairs(table: Table) -> set[tuple[int, int]]:
    """Every (triggering, waiting) pair of tasks, from the events one by one."""
    return {
        (source, target)
        for event in range(table.event_count)
        for source in range(table.task_count)
        if event in table.trigger_lists[source]
        for target in range(table.task_count)
        if event in table.wait_lists[target]
    }


def closure(edges: set[tuple[int, int]], count: int) -> np.ndarray:
    """[tasks, tasks] whether a path leads from one to the other."""
    reach = np.zeros((count, count), dtype=bool)
    for source, target in edges:
        reach[source, target] = True
    for middle in range(count):
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


def order(table: Table) -> set[Pair]:
    """The pairs of tasks that are not empty of which one runs before the other."""
    reach, name = closure(pairs(table), table.task_count), names(table)
    return {(name[i], name[j]) for i, j in zip(*np.nonzero(reach), strict=True) if name[i][0] != EMPTY != name[j][0]}


def reduced(edges: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    """The transitive reduction, by its definition."""
    reach = closure(edges, count)
    return {(i, j) for i, j in edges if not any(reach[i, k] and reach[k, j] for k in range(count))}


def pairs_of_boxes(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    """(i, j) where box i of `a` and box j of `b` have an element in common, compared one by one."""
    (a_lo, a_hi), (b_lo, b_hi) = a, b
    return {
        (i, j)
        for i in range(len(a_lo))
        for j in range(len(b_lo))
        if np.all(np.maximum(a_lo[i], b_lo[j]) < np.minimum(a_hi[i], b_hi[j]))
    }
