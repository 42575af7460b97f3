"""Graphs of random programs: every order that the events allow gives NumPy's result, and `verify` accepts the graph."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from test_tgraph_build import random_program
from tgraph_cases import parsed, run_passes, table_op
from xdsl.dialects.builtin import ModuleOp

from mpkc.dialects.lists import Lists
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tops.attention import AttentionOp
from mpkc.dialects.tops.function import only_function
from mpkc.runtime.reference.tasks import run_tasks
from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights
from mpkc.runtime.verify.graph import verify_graph

PROGRAMS, SCHEDULES, PARTS = 2000, 8, 10
PARTITION = "tgraph-partition{workers=4 min_bytes=0},tgraph-plan-memory"
PASSES = (
    f"{PARTITION},tgraph-build,tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-normalize,"
    "tgraph-linearize,tgraph-launch{workers=4}"
)


def compiled(seed: int, passes: str = PASSES) -> ModuleOp:
    """A random program and its graph. Tasks of attention share no rows: the reference computes all rows at once."""
    module = parsed(random_program(random.Random(seed)))
    for op in operators_in(only_function(module)):
        if isinstance(op, AttentionOp):
            op.grid = (1, random.Random(seed).choice([1, 2]))
    run_passes(module, passes)
    return module


def at_random(seed: int) -> Callable[[Sequence[int]], int]:
    rng = random.Random(seed)
    return lambda ready: rng.randrange(len(ready))


def agrees(module: ModuleOp, table: Table, seed: int, schedules: int) -> bool:
    """Whether so many random orders of the tasks give the reference's results and buffers."""
    func = only_function(module)
    given = seeded_inputs(func, seed)
    kept = {op: seeded_weights(seed)(op) for op in func.body.block.ops if op.name == "tops.weight"}
    buffers = {name: array.copy() for name, array in given.items()}
    expected = run_function(func, buffers, kept.__getitem__)
    for schedule in range(schedules):
        found_buffers = {name: array.copy() for name, array in given.items()}
        found = run_tasks(func, table, found_buffers, kept.__getitem__, at_random(schedule))
        pairs = [*zip(found, expected, strict=True), *((found_buffers[name], buffers[name]) for name in buffers)]
        if not all(np.allclose(a, b, rtol=1e-4, atol=1e-5 * float(np.abs(b).max(initial=1))) for a, b in pairs):
            return False
    return True


@pytest.mark.parametrize("part", range(PARTS))
def test_every_order_gives_the_result_of_numpy(part: int) -> None:
    for seed in range(part, PROGRAMS, PARTS):
        module = compiled(seed)
        op = table_op(module)
        assert verify_graph(op.table, op.infos(), operators_in(only_function(module))).ok, seed
        assert agrees(module, op.table, seed, SCHEDULES), seed


@pytest.mark.parametrize("passes", [f"{PARTITION},tgraph-build", f"{PARTITION},tgraph-build,tgraph-prune"])
def test_so_does_every_stage_on_the_way(passes: str) -> None:
    for seed in range(40):
        module = compiled(seed, passes)
        assert agrees(module, table_op(module).table, seed, 2), seed


def without_event(table: Table, event: int) -> Table:
    """The table in which nobody waits on one of its events."""
    lists, kept = table.wait_lists, table.waits != event
    waits = Lists.of_pairs(lists.rows[kept], lists.items[kept], table.task_count)
    return Table.of_lists(table.form, table.task, table.event_device, waits, table.trigger_lists)


def some_disagree(mutate: Callable[[ModuleOp, Table, int], Table]) -> int:
    """Of 30 random graphs, how many give a wrong result in some order after a mutation."""
    wrong = 0
    for seed in range(30):
        module = compiled(seed, f"{PARTITION},tgraph-build,tgraph-prune")
        table = table_op(module).table
        if table.event_count:
            wrong += not agrees(module, mutate(module, table, seed), seed, 12)
    return wrong


def test_a_dropped_dependency_shows_in_some_order() -> None:
    assert some_disagree(lambda _, table, seed: without_event(table, seed % table.event_count)) >= 8
