"""`mpkc bench semaphores-scale`: its program, its steps, and what it prints."""

import json

import pytest
from click.testing import CliRunner

from mpkc.bench import semaphores as bench
from mpkc.bench.semaphores import INSTRUCTIONS, Row, ScaleBenchmark, scale_stages, synthetic_program
from mpkc.cli import main
from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_structure import structure_of


def test_the_program() -> None:
    module = synthetic_program(3)
    verify(module)
    structure = structure_of(next(iter(module.ops)))
    assert len(structure.instructions) == 3 * INSTRUCTIONS
    assert len(structure.engines) == 5
    assert {edge.counted for edge in structure.edges} == {(0,), (1,), (2,)}
    assert all(edge.producer.engine != edge.consumer.engine for edge in structure.edges)


def test_the_steps() -> None:
    rows = scale_stages(4)
    assert [row.name for row in rows] == [
        "verify", "sem-allocate", "sem-lower-views", "sem-simplify", "sem-drop-counters", "emit, registers", "print",
        "simulate, time alone", "simulate, values and races",
    ]  # fmt: skip
    assert {row.instructions for row in rows[:-2]} == {4 * INSTRUCTIONS}
    assert rows[-1].instructions == rows[-2].instructions > 4 * 4 * INSTRUCTIONS  # 4 iterations, and control
    assert all(row.seconds >= 0 for row in rows)


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    result = ScaleBenchmark([Row("print", 50_000, 2.5)], 72.5, 2.125)
    monkeypatch.setattr(bench, "bench_scale", lambda told: result)
    shown = CliRunner().invoke(main, ["bench", "semaphores-scale"]).stdout
    assert "print  50,000        2.50   20,000" in shown
    assert "from IR to ISA text in 72.5 s; twice as many take 2.12 times as long" in shown
    answer = json.loads(CliRunner().invoke(main, ["bench", "semaphores-scale", "--json"]).stdout)
    assert answer["rows"] == [{"name": "print", "instructions": 50_000, "seconds": 2.5}]
    assert (answer["seconds"], answer["doubling"]) == (72.5, 2.125)
