"""Times in the protocol simulator: the grids that the compiler chooses against the published ones, and launch modes."""

import numpy as np
import pytest

from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.pipelines import Launch
from mpkc.runtime.cuda.queues import queue_capacities
from mpkc.runtime.machine import machine
from mpkc.runtime.reference.protocol import Setup, simulate
from mpkc.simulation import task_costs
from mpkc.taskgraph import linear_task_graph

LAYERS, SCHEDULERS = 4, 4


def makespan(model: str, workers: int, grids: str | None = None, launch: Launch = "mixed") -> float:
    """ns of one decoding step with a cache of 1,024 positions."""
    given = decoding_input(open_model(model), context=1024, layers=LAYERS)
    graph = linear_task_graph(given, workers, grids, launch)
    costs = machine("generic")
    queues = queue_capacities(graph.table, workers, SCHEDULERS)
    setup = Setup(workers, SCHEDULERS, queues, costs.costs)
    return float(simulate(graph.table, np.asarray(task_costs(graph, costs)), setup).time)


@pytest.mark.parametrize("workers", [132, 148])
@pytest.mark.parametrize("model", ["qwen3-1.7b", "qwen3-8b", "qwen3-30b-a3b"])
def test_chosen_grids_are_no_slower_than_golden_ones(model: str, workers: int) -> None:
    assert makespan(model, workers) <= makespan(model, workers, "golden")


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen3-30b-a3b"])
def test_mixed_launch_modes_pay(model: str) -> None:
    assert makespan(model, 132) < makespan(model, 132, launch="jit")
