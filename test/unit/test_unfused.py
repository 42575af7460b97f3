"""Normalization: no empty task in models as they are compiled, some where q, k and v are operators of their own."""

import random

import numpy as np
import pytest

from mpkc import tops
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.function import only_function
from mpkc.inputs import Input, decoding_input
from mpkc.models.source import open_model
from mpkc.parsing import new_context
from mpkc.runtime.cuda.emit import compile_program
from mpkc.runtime.host.run import HostOptions, HostRun
from mpkc.runtime.reference.tasks import run_tasks
from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights
from mpkc.runtime.verify.graph import verify_graph
from mpkc.taskgraph import TaskGraph, linear_task_graph

WORKERS, ROWS, HIDDEN = 4, 4, 32


def empty_share(graph: TaskGraph) -> float:
    return float(np.mean(graph.table.task_operator < 0))


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
@pytest.mark.parametrize("model", ["smollm2-135m", "qwen3-8b", "qwen3-30b-a3b"])
def test_models_need_at_most_one_percent(model: str, rows: int) -> None:
    given = decoding_input(open_model(model), rows, context=256, layers=3)
    assert empty_share(linear_task_graph(given, 128)) <= (0 if rows == 1 else 0.01)


def unfused(attention: bool) -> Input:
    """Two layers in which q, k and v are operators; with attention, or with what has task bodies in its place."""
    p = tops.Program("unfused")
    x = p.input("x", (ROWS, HIDDEN))
    for layer in range(2):
        n = tops.rms_norm(x, p.weight(f"norm{layer}", shape=(HIDDEN,)), epsilon=1e-5)
        q, k, v = (
            tops.linear(n, p.weight(f"{name}{layer}", shape=(HIDDEN, HIDDEN)), grid=(1, 2)) for name in ("q", "k", "v")
        )
        if attention:
            weights = tops.softmax(tops.matmul(q, tops.transpose(k)))
            mixed = tops.matmul(weights, v, grid=(1, 2))
        else:
            mixed = tops.add(tops.mul(q, k, grid=(1, 2)), tops.mul(q, v, grid=(1, 4)), grid=(1, 2))
        x = tops.linear(mixed, p.weight(f"o{layer}", shape=(HIDDEN, HIDDEN)), residual=x, grid=(1, 4))
    p.returns(x)
    return Input(p.module(), new_context())


@pytest.mark.parametrize("attention", [True, False])
def test_an_unfused_model_gets_empty_tasks_and_runs_right(attention: bool) -> None:
    given = unfused(attention)
    graph = linear_task_graph(given, WORKERS)
    assert empty_share(graph) > 0
    assert verify_graph(graph.table, graph.infos, graph.operators).ok
    func = only_function(given.module)
    inputs, weights = seeded_inputs(func, 3), seeded_weights(3)
    (expected,) = run_function(func, inputs, weights)
    for seed in range(20):
        rng = random.Random(seed)
        found = run_tasks(func, graph.table, dict(inputs), weights, lambda ready, rng=rng: rng.randrange(len(ready)))
        assert_close(found[0], expected)


@pytest.mark.parametrize("mode", ["fast", "lanes"])
def test_its_mega_kernel_runs_right(mode: str) -> None:
    given = unfused(attention=False)
    linear_task_graph(given, WORKERS)
    program = compile_program(given.module)
    assert (program.table.task_operator < 0).any()
    inputs, weights = seeded_inputs(program.func, 3), seeded_weights(3)
    (expected,) = run_function(program.func, inputs, weights)
    for seed in range(5):
        run = HostRun(program, weights, inputs, HostOptions(mode, WORKERS, seed=seed))  # type: ignore[arg-type]
        assert_close(run.run()[0], expected)


def assert_close(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-5 * float(np.abs(expected).max()))
