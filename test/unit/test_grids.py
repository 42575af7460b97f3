"""Tables of grids, `--grids FILE`, and the published figures through the command line."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from test_tgraph_build import dependencies, pairs_by_name
from tgraph_cases import reduced, run_passes, table_op
from xdsl.dialects.func import FuncOp

from mpkc.cli import main
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.grids import grids_file
from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.passes.grid_table import evaluate
from mpkc.passes.partition_grid import CutOperator

GOLDEN = {
    # operators, tasks, events, pairs, dependency pairs, empty tasks, explicit bytes, range bytes
    "qwen3-1.7b": (229, 8155, 1870, 69468, 61313, 0, 65236, 14960),
    "qwen3-8b": (293, 13867, 2366, 161708, 147841, 0, 110932, 18928),
    "qwen3-30b-a3b": (533, 17155, 1142, 135140, 117985, 0, 137236, 9136),
}


@pytest.mark.parametrize("model", GOLDEN)
def test_published_figures(model: str) -> None:
    answer = CliRunner().invoke(main, ["stats", model, "--workers", "128", "--grids", "golden", "--json"])
    assert answer.exit_code == 0, answer.output
    assert tuple(json.loads(answer.stdout).values())[:8] == GOLDEN[model]


@pytest.mark.parametrize("workers", [132, 148])
@pytest.mark.parametrize("model", GOLDEN)
def test_chosen_grids_load_at_most_three_percent_more_than_the_golden_ones(model: str, workers: int) -> None:
    def loaded(passes: str) -> int:
        module = decoding_input(open_model(model), 1, 512).module
        run_passes(module, passes)
        function = module.body.block.first_op
        assert isinstance(function, FuncOp)
        known: dict[object, int] = {}
        total = 0
        for op in operators_in(function):
            key = op.name, tuple(op.operand_types), op.grid
            if key not in known:
                known[key] = CutOperator(op, op.dimensions(), op.grid or ()).loads.total
            total += known[key]
        return total

    golden = loaded(f'tgraph-set-grids{{workers={workers} file="{grids_file("golden")}"}},tgraph-partition')
    chosen = loaded(f"tgraph-partition{{workers={workers}}}")
    print(f"{model}, {workers} workers: {100 * (chosen / golden - 1):.2f}% more than golden")
    assert chosen <= 1.03 * golden


PRIMES = """
embedding = [1, 3]
rms_norm = [1]
linear = [1, "7 if features > 600 else 5"]
attention = [1, 3]
silu_mul = [1, 11]
argmax_partial = [1, 13]
"""
ONE_TASK = """
"*_norm" = [1]
argmax_reduce = [1]
"*" = [1, 1]
"""
TWO_DIMENSIONS = """
rms_norm = [8]
argmax_reduce = [2]
"linear *.gate" = [4, 6]
"linear *.q" = ["rows // 8", 6]
linear = [2, 4]
"*" = ["min(rows, 4)", 3]
"""


@pytest.mark.parametrize(("table", "rows"), [(PRIMES, 1), (ONE_TASK, 1), (TWO_DIMENSIONS, 16)])
def test_graphs_of_other_tables_are_those_of_all_pairs_of_regions(table: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "grids.toml"
    path.write_text(table)
    module = decoding_input(open_model("smollm2-135m"), rows, 64, layers=2).module
    run_passes(module, f'tgraph-set-grids{{workers=16 file="{path}"}},tgraph-partition{{workers=16}},tgraph-build')
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    operators = operators_in(function)
    first = np.cumsum([0, *(op.tasks().count for op in operators)])
    expected = {(int(first[i]) + s, int(first[j]) + t) for i, s, j, t in dependencies(operators)}
    found = pairs_by_name(table_op(module).table)
    assert {(int(first[i]) + s, int(first[j]) + t) for i, s, j, t in found} == expected
    run_passes(
        module,
        "tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors",
    )
    pruned = {(int(first[i]) + s, int(first[j]) + t) for i, s, j, t in pairs_by_name(table_op(module).table)}
    assert pruned == reduced(expected, int(first[-1]))


MLP = str(Path(__file__).parents[2] / "examples" / "mlp.mlir")


def refused(tmp_path: Path, table: str) -> str:
    path = tmp_path / "grids.toml"
    path.write_text(table)
    answer = CliRunner().invoke(main, ["stats", MLP, "--grids", str(path)])
    assert answer.exit_code == 2
    return answer.stderr


def test_a_grid_that_does_not_fit_names_operator_grid_and_line(tmp_path: Path) -> None:
    message = refused(tmp_path, '# one task\nadd = [1, 1]\nlinear = [1, "features * 2"]\n')
    assert re.match(r"\S*mlp.mlir:\d+:\d+: error: 'tops.linear' can't have the grid 1xfeatures \* 2 of ", message)
    assert re.search(r"grids.toml:3: grid cuts features in \d+, but 1 to \d+ parts are possible", message)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            "linear = [1, 2, 3]",
            "grids.toml:1: grid must be array<i64: ...> with one number for each of: rows, features",
        ),
        ('\nlinear = [1, "depth"]', "grids.toml:2: 'depth' is not known; there are: workers, inner, rows, features"),
        ('linear = [1, "1 // 0"]', "grids.toml:1: '1 // 0' has no value"),
        ('linear = [1, "open()"]', "grids.toml:1: error: 'open()' is no formula: it has integers, names"),
        ('linear = [1, "1 +"]', "grids.toml:1: error: '1 +' is no formula"),
        ("linear = 4", 'grids.toml:1: error: expected "KIND WEIGHT" = [...]'),
        ("linear = [1,", "grids.toml: not TOML: "),
    ],
)
def test_wrong_tables(tmp_path: Path, table: str, expected: str) -> None:
    assert expected in refused(tmp_path, table)


def test_a_missing_table() -> None:
    answer = CliRunner().invoke(main, ["stats", MLP, "--grids", "missing.toml"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: missing.toml: no such file")


def test_formulas_are_those_of_python() -> None:
    rng = random.Random(0)
    for _ in range(300):
        a, b, c = (rng.randint(1, 50) for _ in range(3))
        text = rng.choice(
            ["a + b * c", "(a - b) // c", "a % b if a > b else b % a", "max(a, min(b, c))", "a // b if c != b else 7"]
        )
        assert evaluate(text, {"a": a, "b": b, "c": c}) == eval(text, {"a": a, "b": b, "c": c})


def test_commands_take_a_table(tmp_path: Path) -> None:
    path = tmp_path / "grids.toml"
    path.write_text('silu_mul = ["rows", 2]\n')
    shown = CliRunner().invoke(main, ["compile", MLP, "--emit", "tgraph", "--workers", "4", "--grids", str(path)])
    assert 'kind "silu_mul" grid [4, 2]' in shown.stdout
    shown = CliRunner().invoke(main, ["graph", MLP, "--workers", "4", "--grids", str(path)])
    assert re.search(r"silu_mul +4x2 +8 ", shown.stdout)
    for command in ("verify", "simulate"):
        plain, other = (
            json.loads(CliRunner().invoke(main, [command, MLP, "--workers", "4", "--json", *more]).stdout)
            for more in ([], ["--grids", str(path)])
        )
        assert plain != other
    answer = CliRunner().invoke(
        main, ["run", MLP, "--target", "host", "--workers", "2", "--check", "--json", "--grids", str(path)]
    )
    assert answer.exit_code == 0, answer.output
    refused = CliRunner().invoke(main, ["run", MLP, "--target", "host", "--grids", "missing.toml"])
    assert refused.exit_code == 2
    assert "missing.toml" in refused.stderr
