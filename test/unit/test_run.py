"""`mpkc run` of each kind of program: what it computes, what it prints, what it takes."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mpkc.cli import main
from mpkc.parsing import parse_module
from mpkc.runtime.reference.sem import run_program
from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights

ROOT = Path(__file__).parents[2]
MLP = ROOT / "examples" / "mlp.mlir"
MATMUL = ROOT / "examples" / "tile" / "matmul.mlir"

SEM = """sem.program @p(%n : index, %k : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %a = %c0 to %n step %c1 {
    %v = sem.value @V engine "e0" cost 8 : index
    scf.for %b = %c0 to %v step %c1 {
      sem.inst @P engine "e0" cost 64
      sem.inst @C engine "e1" cost 64 after [@P offset 1]
    }
  }
  scf.if %k {
    sem.inst @L engine "e1" cost 1
  }
}
"""

TILE = """!far = memref<?x4xf32, #tile.space<far>>
!rows = memref<1x4xf32, strided<[4, 1], offset: ?>, #tile.space<far>>
!near = memref<1x4xf32, #tile.space<near>>
tile.kernel @copy(%a : !far, %b : memref<3x4xf32, #tile.space<far>>, %n : index) engines ["load"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : !near
  scf.for %i = %c0 to %n step %c1 {
    %from = memref.subview %a[%i, 0] [1, 4] [1, 1] : !far to !rows
    %to = memref.subview %b[%i, 0] [1, 4] [1, 1] : memref<3x4xf32, #tile.space<far>> to !rows
    tile.copy %from -> %t engine "load" : !rows -> !near
    tile.copy %t -> %to engine "load" : !near -> !rows
  }
}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["run", *map(str, args)])


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "program.mlir"
        path.write_text(text)
        return path

    return write


def test_a_sem_program_runs_with_bindings(written) -> None:
    result = run(written(SEM), "--bind", "n=2,k=true,V=1,2", "--json")
    assert result.exit_code == 0, result.output
    executions = json.loads(result.stdout)["executions"]
    program = parse_module(SEM).body.block.first_op
    trace = run_program(program, {"n": 2, "k": True, "V": [1, 2]})
    assert [e["instruction"] for e in executions] == ["V", "P", "C", "V", "P", "C", "P", "C", "L"]
    assert [int(e["value"], 16) for e in executions] == [e.value for e in trace.executions]
    assert executions[2] == {
        "instruction": "C",
        "engine": "e1",
        "iteration": [1, 1],
        "value": f"{trace.executions[2].value:016x}",
        "waits": [{"producer": "P", "target": None, "owed": None}],
    }
    assert executions[7]["waits"] == [{"producer": "P", "target": [2, 1], "owed": 2}]
    assert executions[8]["iteration"] == []


def test_a_sem_program_as_a_table(written) -> None:
    result = run(written(SEM), "--bind", "n=1,k=false,V=2")
    heading, *rows = result.stdout.splitlines()
    assert heading.split() == ["instruction", "engine", "iteration", "value", "waits"]
    assert [row.split()[0] for row in rows] == ["V", "P", "C", "P", "C"]
    assert rows[-1].split()[2:] == ["1,2", rows[-1].split()[3], "P(1,1)>=1"]


def test_a_tile_program_takes_buffers_and_integers(written, tmp_path: Path) -> None:
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((3, 4), np.float32)
    np.savez(tmp_path / "in.npz", a=a, b=b)
    result = run(
        written(TILE), "--inputs", tmp_path / "in.npz", "--bind", "n=2", "--outputs", tmp_path / "o.npz", "--json"
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]
    assert [(row["name"], row["shape"]) for row in rows] == [("a", [2, 4]), ("b", [3, 4])]
    assert rows[1]["norm"] == pytest.approx(np.linalg.norm(a))
    found = np.load(tmp_path / "o.npz")
    np.testing.assert_array_equal(found["b"], np.vstack([a, np.zeros((1, 4))]))


def test_a_number_of_a_tile_program_may_be_an_input_and_buffers_seeded(written, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", a=np.ones((3, 4), np.float32), n=np.int64(0))
    path, out = written(TILE), tmp_path / "o.npz"
    norms = set()
    for seed in (0, 1):
        result = run(path, "--inputs", tmp_path / "in.npz", "--outputs", out, "--seed", seed)
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[1].split()[:2] == ["a", "3x4"]
        norms.add(float(np.linalg.norm(np.load(out)["b"])))
    assert len(norms) == 2
    assert 0 not in norms


def test_a_kernel_multiplies(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((64, 96), (96, 128)))
    np.savez(tmp_path / "in.npz", a=a, b=b, c=np.zeros((64, 128), np.float32))
    assert run(MATMUL, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "o.npz").exit_code == 0
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["c"], a @ b, rtol=1e-4, atol=1e-4)


def reference(named):
    func = parse_module(MLP.read_text()).body.block.first_op
    seeded = seeded_weights(0)
    return run_function(func, seeded_inputs(func, 0), lambda op: named[op.key] if op.key in named else seeded(op))


@pytest.mark.parametrize("target", ["reference", "host"])
def test_weights_by_key_and_by_the_names_of_sources(tmp_path: Path, target: str) -> None:
    rng = np.random.default_rng(1)
    gate, up = (rng.standard_normal((128, 64), np.float32) for _ in range(2))
    fused = np.stack([gate, up], axis=1).reshape(256, 64)  # 128 groups: row by row
    (expected,) = reference({"gate+up/128": fused})
    for number, arrays in enumerate([{"gate+up/128": fused}, {"gate": gate, "up": up}]):
        np.savez(tmp_path / f"in{number}.npz", **arrays)
        out = tmp_path / f"out{number}.npz"
        result = run(MLP, "--target", target, "--inputs", tmp_path / f"in{number}.npz", "--outputs", out, "--check")
        assert result.exit_code == 0, result.output
        np.testing.assert_allclose(np.load(out)["out0"], expected, rtol=1e-3, atol=1e-3)


def test_a_result_that_differs_is_exit_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpkc.running.tops.run_function", lambda *_: [np.ones((4, 64), np.float32)])
    result = run(MLP, "--check", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ok"] is False
    assert "DIFFERS" in run(MLP, "--check").stdout
