"""Verification of task graphs: sound ones are accepted, and each mutation is caught, with the right names."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from qwen3_programs import QWEN3_8B, QWEN3_30B_A3B, dense_model, expert_model
from test_tgraph_build import random_program
from test_tgraph_scale import PIPELINE, chain
from tgraph_cases import SETTINGS, closure, graphs, pairs, parsed, run_passes, table_op
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.printer import Printer

from mpkc.cli import main
from mpkc.dialects.lists import Lists
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import Form, Table
from mpkc.dialects.tops.base import Access, Operator, Tasks
from mpkc.dialects.tops.elementwise import AddOp, SiluMulOp
from mpkc.dialects.tops.pool import place_of, set_place
from mpkc.passes.tgraph_linearize import linearized
from mpkc.passes.tgraph_normalize import normalized
from mpkc.runtime.cuda.image import events
from mpkc.runtime.cuda.queues import QueueCapacities, events_at_once, queue_capacities
from mpkc.runtime.verify import order
from mpkc.runtime.verify.graph import Runtime, verify_graph
from mpkc.runtime.verify.report import Report, TaskFailure

WORKERS, SCHEDULERS = 4, 2
MLP = (Path(__file__).parents[2] / "examples" / "mlp.mlir").read_text()
FUSE = "tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-normalize,tgraph-linearize"
CACHE = "memref<3x2x2x4xf32>"
TWICE = f"""
func.func @twice(%x : tensor<1x24xf32>, %k : {CACHE}, %v : {CACHE}, %pages : tensor<1x3xi32>,
                 %at : tensor<1xi32>, %then : tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {{
  %0 = tops.attention %x, %k, %v, %pages, %at {{heads = 2 : i64, rope_base = 1.0e+04 : f64, rope_style = "pairs"}}
    : (tensor<1x24xf32>, {CACHE}, {CACHE}, tensor<1x3xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  %1 = tops.attention %x, %k, %v, %pages, %then {{heads = 2 : i64, rope_base = 1.0e+04 : f64, rope_style = "pairs"}}
    : (tensor<1x24xf32>, {CACHE}, {CACHE}, tensor<1x3xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  func.return %0, %1 : tensor<1x8xf32>, tensor<1x8xf32>
}}
"""


def compiled(text: str, pipeline: str = f"tgraph-build,{FUSE}", workers: int = WORKERS) -> ModuleOp:
    module = parsed(text)
    run_passes(module, f"tgraph-partition{{workers={workers} min_bytes=0}},{pipeline}")
    return module


def operators(module: ModuleOp) -> list[Operator]:
    return next(operators_in(op) for op in module.ops if isinstance(op, FuncOp))


def report(module: ModuleOp, table: Table | None = None, queues: QueueCapacities | None = None) -> Report:
    op = table_op(module)
    table = table or op.table
    queues = queues or queue_capacities(table, WORKERS, SCHEDULERS)
    linear = table.form is Form.LINEAR
    records = events(table) if linear else None
    runtime = Runtime(WORKERS, SCHEDULERS, queues, records) if linear else None
    return verify_graph(table, op.infos(), operators(module), runtime)


def failures(module: ModuleOp, table: Table) -> list[TaskFailure]:
    found = report(module, table)
    assert not found.ok
    return found.failures


def without(table: Table, task: int) -> Table:
    """The table in which a task triggers nothing."""
    kept = table.trigger_lists.rows != task
    lists = Lists.of_pairs(table.trigger_lists.rows[kept], table.triggers[kept], table.task_count)
    return replace(table, trigger_offsets=lists.offsets, triggers=lists.items)


def swapped(table: Table, i: int, j: int) -> Table:
    """The table in which two tasks stand in each other's place."""
    columns = {name: table.columns[name].copy() for name in ("task_operator", "task_tile")}
    for values in columns.values():
        values[[i, j]] = values[[j, i]]
    return replace(table, **columns)


def number(table: Table, operator: int, tile: int) -> int:
    return int(np.flatnonzero((table.task_operator == operator) & (table.task_tile == tile))[0])


@pytest.mark.parametrize("write", [lambda: dense_model(**QWEN3_8B), lambda: expert_model(**QWEN3_30B_A3B)])
def test_the_published_models_are_right(write: Callable[[], str]) -> None:
    module = compiled(write(), workers=128)
    found = report(module)
    assert found.ok, found.failures
    assert [check.name for check in found.checks] == [
        "tasks and events",
        "progress",
        "records",
        "dependencies",
        "races",
    ]
    assert found.checks[3].count > 100_000


def test_a_hundred_thousand_tasks_are_right() -> None:
    module = compiled(chain(10, 50, 200), PIPELINE)
    found = report(module)
    assert found.ok
    assert found.checks[3].count == (9 + 8) * 10_000  # the sum before, and the one before that, which pruning dropped


@SETTINGS
@given(graphs(), st.integers(1, 3))
def test_orders_are_those_of_the_closure(case: tuple[Table, object], batch: int) -> None:
    table, count = case[0], case[0].task_count
    reach = closure(pairs(table), count)
    i, j = np.nonzero(~np.eye(count, dtype=bool))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "BATCH", batch)
        assert np.array_equal(order.Order.of(table).lacks(i, j), ~reach[i, j])


@SETTINGS
@given(graphs())
def test_sound_graphs_are_accepted(case: tuple[Table, tuple[object, ...]]) -> None:
    table, infos = linearized(normalized(case[0])), case[1]
    runtime = Runtime(3, 2, queue_capacities(table, 3, 2), events(table))
    assert verify_graph(table, infos, (), runtime).ok


@SETTINGS
@given(st.randoms(use_true_random=False), st.booleans())
def test_programs_are_accepted_and_no_dependency_can_be_removed(rng, planned: bool) -> None:
    """Each event that pruning keeps is needed: without it, verification names its two tasks."""
    module = compiled(random_program(rng), f"{'tgraph-plan-memory,' if planned else ''}tgraph-build,tgraph-prune")
    table = table_op(module).table
    assert report(module).ok
    assert report(module, linearized(normalized(table))).ok
    sources, targets = table.pairs()
    if not len(sources):
        return
    gone = rng.randrange(len(sources))
    kept = np.delete(np.arange(len(sources)), gone)
    smaller = Table.of_lists(
        Form.GENERAL,
        table.task,
        table.event_device[kept],
        Lists.of_pairs(targets[kept], np.arange(len(kept)), table.task_count),
        Lists.of_pairs(sources[kept], np.arange(len(kept)), table.task_count),
    )
    found = failures(module, smaller)
    assert (int(sources[gone]), int(targets[gone])) in [failure.tasks for failure in found]
    assert {failure.check for failure in found} <= {"dependencies", "races"}


def test_a_lost_trigger_names_reader_writer_and_region() -> None:
    module = compiled(MLP)
    table = table_op(module).table
    lost = number(table, 0, 2)
    broken = replace(without(table, lost), form=Form.NORMALIZED, event_first=None, event_last=None)
    found = failures(module, broken)
    assert found[0].check == "dependencies"
    assert found[0].message == (
        "rms_norm_0[2] writes [2:3, 0:64] of the result of rms_norm_0 and linear_1[0] reads it, "
        f"but no events order them: nothing leads from task {lost} to task {number(table, 1, 0)}"
    )
    assert found[0].region == "[2:3, 0:64] of the result of rms_norm_0"
    assert len(found) == 4  # all four tasks of the linear read the row


def test_an_event_without_triggers_never_fires() -> None:
    module = compiled(MLP)
    table = table_op(module).table
    for task in table.triggering[1]:
        table = without(table, int(task))
    (failure,) = failures(module, table)
    assert failure.message == "event 1 is triggered by no task: the tasks that wait on it never start"


@pytest.mark.parametrize("text", [MLP, TWICE])
def test_tasks_swapped_across_an_event(text: str) -> None:
    module = compiled(text)
    table = table_op(module).table
    for event in range(table.event_count):
        i, j = int(table.triggering[event][0]), int(table.waiting[event][0])
        found = failures(module, swapped(table, i, j))
        assert {i, j} & {task for failure in found for task in failure.tasks}


def test_a_grid_changed_after_build() -> None:
    module = compiled(MLP)
    operators(module)[1].grid = (1, 2)
    found = failures(module, table_op(module).table)
    assert found[0].message == "the tile of task 6 lies outside its operator's grid"


def test_a_cycle_names_its_tasks() -> None:
    module = compiled(MLP)
    table = table_op(module).table
    task, event = number(table, 3, 0), int(table.wait_lists[number(table, 1, 0)][0])
    rows, items = np.append(table.trigger_lists.rows, task), np.append(table.triggers, event)
    lists = Lists.of_pairs(rows, items, table.task_count)
    cyclic = replace(
        table, form=Form.GENERAL, trigger_offsets=lists.offsets, triggers=lists.items, event_first=None, event_last=None
    )
    (failure,) = failures(module, cyclic)
    assert failure.message.startswith("can't complete: tasks wait for each other: linear_1[0] -> silu_mul_2[0] -> ")
    assert task in failure.tasks


def test_orders_on_the_cache() -> None:
    module = compiled(TWICE)
    table = table_op(module).table
    assert report(module).ok
    cut = replace(without(table, number(table, 0, 1)), form=Form.NORMALIZED, event_first=None, event_last=None)
    events_left = np.unique(cut.triggers)
    cut = Table.of_lists(
        Form.NORMALIZED,
        cut.task,
        cut.event_device[events_left],
        Lists.of_pairs(*renumbered(cut.wait_lists, events_left), cut.task_count),
        Lists.of_pairs(*renumbered(cut.trigger_lists, events_left), cut.task_count),
    )
    found = failures(module, cut)
    assert [failure.check for failure in found] == ["races", "races"]
    assert found[0].message.startswith(
        "attention_0[1] updates [0:3, 1:2, 0:2, 0:4] of k and attention_1[1] updates it, but no events order them"
    )
    assert "of v and" in found[1].message


def renumbered(lists: Lists, events_left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = np.isin(lists.items, events_left)
    return lists.rows[kept], np.searchsorted(events_left, lists.items[kept])


@contextmanager
def accesses_of(operator: type[Operator], change: Callable[[Access, Tasks], Access]) -> Iterator[None]:
    """While it lasts, an operator declares other regions."""
    right = operator.accesses
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "accesses", lambda op, tasks: [change(each, tasks) for each in right(op, tasks)])
        yield


def test_a_region_one_row_too_small_when_the_graph_was_built() -> None:
    def shrunk(access: Access, tasks: Tasks) -> Access:
        return replace(access, lo=np.minimum(access.lo + [1, 0], access.hi)) if access.mode.reads else access

    text = MLP.replace("%2 = tops.silu_mul %1 :", "%2 = tops.silu_mul %1 {grid = array<i64: 4, 2>} :").replace(
        "%1 = tops.linear %0, %gate_up :", "%1 = tops.linear %0, %gate_up {grid = array<i64: 4, 2>} :"
    )
    with accesses_of(SiluMulOp, shrunk):
        module = compiled(text)
    found = failures(module, table_op(module).table)
    assert found[0].message.startswith("linear_1[0] writes [0:1, 0:128] of the result of linear_1 and silu_mul_2[0] re")


def test_tasks_of_one_operator_that_write_the_same() -> None:
    def grown(access: Access, tasks: Tasks) -> Access:
        return access if access.mode.reads else replace(access, hi=np.minimum(access.hi + [0, 1], [1, 8]))

    text = """func.func @f(%x : tensor<1x8xf32>) -> tensor<1x8xf32> {
      %0 = tops.add %x, %x {grid = array<i64: 1, 4>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
      func.return %0 : tensor<1x8xf32> }"""
    module = compiled(text)
    assert report(module).ok
    with accesses_of(AddOp, grown):
        found = report(module)
    assert [failure.check for failure in found.failures] == ["races"] * 3
    assert found.failures[0].message.startswith("add_0[0] writes [0:1, 2:3] of the result of add_0 and add_0[1] wr")


def test_memory_reused_too_early() -> None:
    module = compiled(MLP, f"tgraph-plan-memory,tgraph-build,{FUSE}")
    assert report(module).ok
    ops = operators(module)
    set_place(ops[2], place_of(ops[1]))
    (failure,) = failures(module, table_op(module).table)
    assert failure.check == "races"
    assert "still needs" in failure.message


def test_queues_too_short() -> None:
    module = compiled(MLP)
    bound = events_at_once(table_op(module).table.event_count, SCHEDULERS)
    for queues, told in (
        (QueueCapacities(8, bound - 1), f"the queue of a scheduler has {bound - 1} slots: 1 fewer than the {bound} it"),
        (QueueCapacities(1, 8), "the queue of a worker has 1 slots: 1 fewer than the 2 it needs"),
        (QueueCapacities(6, 8), "the queue of a worker has 6 slots, but positions wrap: it needs a power of two"),
    ):
        (failure,) = report(module, queues=queues).failures
        assert failure.check == "progress"
        assert failure.message.startswith(told)
    assert report(module).ok  # with those that the compiler computes


def test_tasks_assigned_to_a_worker_that_there_is_not() -> None:
    module = compiled(MLP)
    run_passes(module, f"tgraph-launch{{workers={WORKERS + 1} mode=aot}}")
    (failure,) = report(module).failures
    assert failure.message == "tasks are assigned to worker 4, but there are 4 workers"


@pytest.mark.parametrize(
    ("field", "change", "told"),
    [
        ("needed", 1, "event 2 fires after 2 triggers, but 1 tasks trigger it, linear_1[1] the first"),
        ("last", -1, "event 2 starts tasks up to {}, but the last that waits on it is silu_mul_2[1]"),
        ("first", 1, "event 2 starts tasks from {} on, but the first that waits on it is silu_mul_2[1]"),
    ],
)
def test_records_that_say_something_else(field: str, change: int, told: str) -> None:
    module = compiled(MLP)
    table, infos = table_op(module).table, table_op(module).infos()
    records = events(table)
    records[field][2] = int(records[field][2]) + change
    runtime = Runtime(WORKERS, SCHEDULERS, queue_capacities(table, WORKERS, SCHEDULERS), records)
    (failure,) = verify_graph(table, infos, operators(module), runtime).failures
    assert failure.message.startswith(told.format(records[field][2]))
    assert failure.events == (2,)


def invoke(*args: str, stdin: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(main, ["verify", *args], input=stdin)
    return result.exit_code, result.stdout


def printed(module: ModuleOp) -> str:
    out = StringIO()
    Printer(out).print_op(module)
    return out.getvalue()


def test_the_command_accepts_a_program() -> None:
    code, out = invoke("-", "--workers", "4", "--json", stdin=MLP)
    answer = json.loads(out)
    assert (code, answer["ok"], answer["failures"]) == (0, True, [])
    assert {check["name"] for check in answer["checks"]} >= {"progress", "races"}


def test_the_command_names_what_is_wrong_with_a_graph() -> None:
    module = compiled(MLP)
    op = table_op(module)
    op.replace_by(swapped(op.table, number(op.table, 1, 0), number(op.table, 2, 0)))
    code, out = invoke("-", "--json", "--workers", "4", stdin=printed(module))
    assert code == 1
    assert "silu_mul_2[0]" in json.loads(out)["failures"][0]["message"]
    code, out = invoke("-", "--workers", "4", stdin=printed(module))
    assert code == 1
    assert "dependencies: linear_1" in out


def test_a_graph_that_its_verifier_refuses_is_a_failure_too() -> None:
    text = """tgraph.graph @stuck {
      tgraph.task @A kind "linear" waits [@back] triggers [@there]
      tgraph.task @B kind "linear" waits [@there] triggers [@back]
      tgraph.event @there
      tgraph.event @back
    }"""
    code, out = invoke("-", "--json", stdin=text)
    assert code == 1
    (failure,) = json.loads(out)["failures"]
    assert "can't complete: tasks wait for each other: A -> B -> A" in failure["message"]


def test_a_module_without_a_graph_is_bad_input() -> None:
    result = CliRunner().invoke(main, ["verify", "-"], input="module {}")
    assert result.exit_code == 2
    assert "no task graph" in result.stderr
