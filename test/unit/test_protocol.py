"""The protocol simulator: what any run must satisfy, faults that it must name, and the command."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from qwen3_programs import QWEN3_8B, dense_model
from tgraph_cases import SETTINGS, graphs, parsed, run_passes, table_op

from mpkc.cli import main
from mpkc.dialects.tgraph_table import Table
from mpkc.passes.tgraph_launch import dealt
from mpkc.passes.tgraph_linearize import linearized
from mpkc.passes.tgraph_normalize import normalized
from mpkc.runtime.cuda.queues import QueueCapacities, events_at_once, queue_capacities
from mpkc.runtime.machine import Costs, machine
from mpkc.runtime.reference.protocol import (
    Faults,
    Policy,
    Setup,
    Simulation,
    critical_path,
    simulate,
)

MLP = Path(__file__).parents[2] / "examples" / "mlp.mlir"
GENERIC = machine("generic").costs
FREE = Costs(register=0, branch=0, wait=0, signal=0, barrier=0)
POLICIES: tuple[Policy, ...] = ("decentralized", "global")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Table, np.ndarray, Setup]:
    """Linear graphs with launch modes, costs of 0 to 99, and what they run on; queues as short as is proved enough."""
    table = linearized(normalized(draw(graphs())[0]))
    workers, schedulers = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    ahead = np.array(draw(st.lists(st.booleans(), min_size=table.event_count, max_size=table.event_count)), dtype=bool)
    table = table.assigned(dealt(table, ahead, workers))
    seed = draw(st.integers(0, 999))
    cost = np.random.default_rng(seed).integers(0, 100, table.task_count).astype(np.float64)
    queues = QueueCapacities(draw(st.sampled_from([1, 2, 64])), events_at_once(table.event_count, schedulers))
    costs = draw(st.sampled_from([GENERIC, FREE]))
    setup = Setup(workers, schedulers, queues, costs, draw(st.sampled_from(POLICIES)), draw(st.integers(1, 3)))
    return table, cost, setup


@SETTINGS
@given(cases())
def test_what_every_run_satisfies(case: tuple[Table, np.ndarray, Setup]) -> None:
    table, cost, setup = case
    found = simulate(table, cost, setup)
    assert found.deadlock is None
    assert Counter(run.task for run in found.runs) == dict.fromkeys(range(table.task_count), setup.iterations)
    assert found.time >= setup.iterations * critical_path(table, cost) - 1e-6
    assert found.time >= setup.iterations * cost.sum() / setup.workers - 1e-6
    assert found.worker_busy().sum() == pytest.approx(setup.iterations * cost.sum())
    assert_ordered(table, found, setup.iterations)
    assigned = int(np.count_nonzero(worker_of(table) >= 0))
    assert found.taken.sum(axis=0).tolist() == [
        setup.iterations * (table.task_count - assigned),
        setup.iterations * assigned,
    ]


def worker_of(table: Table) -> np.ndarray:
    """[tasks] the worker that each is assigned to, or -1."""
    return np.full(table.task_count, -1) if table.task_worker is None else table.task_worker


def assert_ordered(table: Table, found: Simulation, iterations: int) -> None:
    """Nothing starts before what it waits for has ended, nor before the iteration before; a worker runs one task."""
    times: dict[int, list[tuple[float, float]]] = {}
    workers: dict[int, list[tuple[float, float]]] = {}
    for run in found.runs:
        times.setdefault(run.task, []).append((run.start, run.end))
        workers.setdefault(run.worker, []).append((run.start, run.end))
        assert worker_of(table)[run.task] in (-1, run.worker)
    for source, target in zip(*table.pairs(), strict=True):
        for one, other in zip(times[int(source)], times[int(target)], strict=True):
            assert one[1] <= other[0]
    for iteration in range(1, iterations):
        assert max(spans[iteration - 1][1] for spans in times.values()) <= min(
            spans[iteration][0] for spans in times.values()
        )
    for spans in workers.values():
        assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False))


@SETTINGS
@given(cases(), st.randoms(use_true_random=False))
def test_a_lost_trigger_always_deadlocks_and_is_named(
    case: tuple[Table, np.ndarray, Setup], rng: random.Random
) -> None:
    table, cost, setup = case
    lost = rng.randrange(table.task_count)
    found = simulate(table, cost, fault(setup, lost_trigger=lost))
    assert found.deadlock
    assert found.deadlock.iteration == 1
    event = int(table.task_trigger[lost])
    (head,) = found.deadlock.heads
    assert head.event == (event if event >= 0 else table.event_count)
    assert head.missing == (lost,)
    assert (head.has, head.needs) == (head.needs - 1, int(np.count_nonzero(table.task_trigger == event)))
    assert head.waiting == (tuple(table.waiting[event].tolist()) if event >= 0 else ())


@SETTINGS
@given(cases(), st.randoms(use_true_random=False))
def test_a_missing_worker_is_named_and_so_are_its_tasks(
    case: tuple[Table, np.ndarray, Setup], rng: random.Random
) -> None:
    """Where it was sent or assigned tasks, nothing ends; where it was not, nobody misses it."""
    table, cost, setup = case
    missing = rng.randrange(setup.workers)
    found = simulate(table, cost, fault(setup, missing_worker=missing))
    assert missing not in {run.worker for run in found.runs}
    if found.deadlock is None:
        assert len(found.runs) == setup.iterations * table.task_count
        return
    assert missing in [each.number for each in found.deadlock.blocked if each.waits == "never runs"]
    ended = Counter(run.task for run in found.runs)
    stuck = {task for head in found.deadlock.heads for task in head.missing}
    assert stuck
    assert all(ended[task] < found.deadlock.iteration for task in stuck)


def fault(setup: Setup, **which: int) -> Setup:
    return Setup(
        setup.workers,
        setup.schedulers,
        setup.queues,
        setup.costs,
        setup.policy,
        setup.iterations,
        Faults(**which),
    )


def fan(width: int) -> Table:
    """One task, then `width` tasks that each trigger an event of their own, then `width` tasks."""
    module = parsed(f"""tgraph.graph @g {{
      tgraph.tasks @a kind "x" grid [1] cost 10
      tgraph.tasks @b kind "x" grid [{width}] cost 10
      tgraph.tasks @c kind "x" grid [{width}] cost 10
      tgraph.events @e from @a all to @b all
      tgraph.events @f count {width} from @b each 1 to @c each 1
    }}""")
    run_passes(module, "tgraph-pack,tgraph-normalize,tgraph-linearize")
    return table_op(module).table


def test_an_event_queue_too_short_deadlocks_and_a_task_queue_does_not() -> None:
    """A worker waits for the scheduler to take an event, the scheduler for the worker to take a task."""
    table = fan(8)
    cost = np.full(table.task_count, 10.0)
    enough = events_at_once(table.event_count, 1)
    for queues, ends in ((QueueCapacities(1, 1), False), (QueueCapacities(1, enough), True)):
        found = simulate(table, cost, Setup(1, 1, queues, GENERIC))
        assert (found.deadlock is None) == ends
        if found.deadlock:
            stuck = {(each.who, each.waits) for each in found.deadlock.blocked}
            assert stuck == {
                ("worker", "waits for a slot in the queue of scheduler 0, which has 1"),
                ("scheduler", "waits for a slot in the queue of worker 0, which has 1"),
            }
            assert found.deadlock.heads


@pytest.mark.parametrize("policy", POLICIES)
def test_the_global_policy_evens_out_what_in_turn_does_not(policy: Policy) -> None:
    """Every other task is long: dealt to two workers in turn, one of them gets all long ones."""
    module = parsed('tgraph.graph @g linear { tgraph.tasks @a kind "x" grid [8] cost 1 }')
    run_passes(module, "tgraph-pack")
    table = table_op(module).table
    cost = np.where(np.arange(8) % 2 == 0, 1000.0, 10.0)
    found = simulate(table, cost, Setup(2, 1, QueueCapacities(64, 64), FREE, policy))
    busiest = found.worker_busy().max() / cost.sum()
    assert busiest > 0.9 if policy == "decentralized" else busiest < 0.7


def test_times_of_one_chain() -> None:
    """By hand: the end event starts task 0; each task is sent, taken, run, and triggers."""
    module = parsed("""tgraph.graph @g linear {
      tgraph.task @a kind "x" cost 1000 triggers [@e]
      tgraph.task @b kind "x" cost 2000 waits [@e]
      tgraph.event @e
    }""")
    run_passes(module, "tgraph-pack")
    table = table_op(module).table
    costs = Costs(register=1, branch=1, wait=10, signal=100, barrier=0)
    found = simulate(table, np.array([1000.0, 2000.0]), Setup(1, 1, QueueCapacities(2, 2), costs))
    step = 10 + 1 + 100  # a scheduler takes an event and sends one task
    trigger = 100 + 100  # the last trigger of an event also sends it
    assert [(run.start, run.end) for run in found.runs] == [
        (step + 10, step + 1010),
        (step + 1010 + trigger + step + 10, step + 1010 + trigger + step + 2010),
    ]
    assert found.time == 2 * step + 3020 + 2 * trigger + 11
    assert found.worker_control == [2 * (10 + trigger)]
    assert found.scheduler_busy == [2 * step + 11]


def test_a_whole_model() -> None:
    module = parsed(dense_model(**QWEN3_8B))
    run_passes(
        module,
        "tgraph-partition,tgraph-build,tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors,"
        "tgraph-normalize,tgraph-linearize,tgraph-launch",
    )
    table = table_op(module).table
    cost = np.full(table.task_count, 10_000.0)
    found = simulate(table, cost, Setup(128, 4, queue_capacities(table, 128, 4), GENERIC))
    assert found.deadlock is None


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["simulate", *args], input=stdin)


def answer(*args: str) -> tuple[int, dict[str, Any]]:
    result = invoke(str(MLP), "--workers", "4", "--json", *args)
    return result.exit_code, json.loads(result.stdout)


def test_the_command_simulates_a_program() -> None:
    code, found = answer("--iterations", "3", "--policy", "global")
    assert code == 0
    assert found["deadlock"] is None
    assert found["time_ns"] >= 3 * found["critical_path_ns"] > 0
    assert len(found["workers"]) == 4
    assert sum(each["busy_ns"] for each in found["workers"]) == pytest.approx(3 * found["task_ns"])
    for each in found["workers"]:
        assert sum(each.values()) == pytest.approx(found["time_ns"], rel=0.2)
    assert answer("--device", "cpu")[1]["task_ns"] > found["task_ns"]


def test_the_command_names_a_lost_trigger() -> None:
    code, found = answer("--fault", "lost-trigger:linear_1[1]")
    assert code == 1
    (head,) = found["deadlock"]["heads"]
    assert head == {"event": 2, "has": 0, "needs": 1, "tasks": ["silu_mul_2[1]"], "missing": ["linear_1[1]"]}
    result = invoke(str(MLP), "--workers", "4", "--fault", "missing-worker:2")
    assert result.exit_code == 1
    assert "worker 2 never runs" in result.stdout
    assert "missing: rms_norm_0" in result.stdout


def test_the_command_simulates_graphs_that_say_what_tasks_cost(tmp_path: Path) -> None:
    text = """tgraph.graph @g {
      tgraph.tasks @a kind "x" grid [2] cost 500
      tgraph.tasks @b kind "x" grid [1] cost 250
      tgraph.events @e from @a all to @b all
    }"""
    trace = tmp_path / "trace.json"
    result = invoke("-", "--workers", "2", "--json", "--trace", str(trace), stdin=text)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["critical_path_ns"] == 750
    spans = {row["name"]: row for row in json.loads(trace.read_text())["traceEvents"] if row["ph"] == "X"}
    assert {name: row["dur"] for name, row in spans.items()} == {"a[0]": 0.5, "a[1]": 0.5, "b": 0.25}
    assert spans["b"]["ts"] >= max(spans[name]["ts"] for name in ("a[0]", "a[1]")) + 0.5


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--fault", "lost-trigger:nobody"], "there is no task 'nobody': tasks are 0 to"),
        (["--fault", "short-queue:0"], "expected one of lost-trigger:TASK, short-queue:N, missing-worker:W"),
        (["--fault", "missing-worker:4"], "expected a worker, 0 to 3"),
        (["--device", "gpu"], "unknown device 'gpu'; there are: cpu, generic"),
    ],
)
def test_bad_options_are_told(args: list[str], told: str) -> None:
    result = invoke(str(MLP), "--workers", "4", *args)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_a_graph_without_costs_is_refused() -> None:
    result = invoke("-", stdin='tgraph.graph @g { tgraph.task @A kind "x" }')
    assert result.exit_code == 2
    assert "operator 'A' has no cost: give it one, in ns" in result.stderr
