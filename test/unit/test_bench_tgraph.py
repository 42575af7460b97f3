"""`mpkc bench tgraph`: its graph, its stages, and what it prints."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from mpkc.bench import tgraph as bench
from mpkc.bench.tgraph import Row, TaskGraphBenchmark, synthetic_pairs, synthetic_stages
from mpkc.cli import main


def test_the_stages_of_a_synthetic_graph() -> None:
    rows = synthetic_stages(50_000)
    names = [row.name.rpartition(": ")[2] for row in rows]
    assert names == [
        "build", "tgraph-prune", "tgraph-fuse-successors", "tgraph-fuse-predecessors", "tgraph-normalize",
        "tgraph-linearize", "verify",
    ]  # fmt: skip
    assert [row.tasks for row in rows[:4]] == [50_000] * 4
    assert rows[-1].tasks == rows[-2].tasks > 50_000  # operators out of step need empty tasks


def test_its_pairs_are_distinct_and_lead_forward() -> None:
    sources, targets = synthetic_pairs(60_000)
    assert (sources < targets).all()
    assert (sources >= 0).all()
    assert len(np.unique(sources * 60_000 + targets)) == len(sources)


def test_a_lost_dependency_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.synthetic_table

    def forgetful(tasks: int, pairs):
        sources, targets = pairs
        return first(tasks, (sources[1:], targets[1:]))

    monkeypatch.setattr(bench, "synthetic_table", forgetful)
    with pytest.raises(ValueError, match="lacks 1 orders"):
        synthetic_stages(2_000)


def test_from_the_configuration_to_the_table() -> None:
    row = bench._command("stats", "qwen3-8b", "--workers", "132", "--json")
    assert row.tasks > 10_000
    assert row.seconds > 0
    assert row.peak_mib > 10


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    result = TaskGraphBenchmark([Row("a graph", 1_000, 1.25, 20.0)], 2.125)
    monkeypatch.setattr(bench, "bench_tgraph", lambda told: result)
    shown = CliRunner().invoke(main, ["bench", "tgraph"]).stdout
    assert "a graph  1,000  1.25   20" in shown
    assert "twice the tasks take 2.12 times as long" in shown
    answer = json.loads(CliRunner().invoke(main, ["bench", "tgraph", "--json"]).stdout)
    assert answer["rows"] == [{"name": "a graph", "tasks": 1_000, "seconds": 1.25, "peak_mib": 20.0}]
    assert answer["doubling"] == 2.125
