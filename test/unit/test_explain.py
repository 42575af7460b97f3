"""`mpkc stats --explain`: the candidates, what they cost, and what decided."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mpkc.cli import main
from mpkc.explain import Choice, explain, reason
from mpkc.inputs import Input, read_input
from mpkc.passes.partition_cost import Candidate
from mpkc.pipelines import Options

PROGRAM = """
func.func @f(%x : tensor<16x1024xf32>, %y : tensor<1x64xf32>) {
  %w = tops.weight "layers.0.w" : tensor<512x1024xf32>
  %v = tops.weight "layers.1.w" : tensor<512x1024xf32>
  %0 = tops.linear %x, %w : (tensor<16x1024xf32>, tensor<512x1024xf32>) -> tensor<16x512xf32>
  %1 = tops.linear %x, %v : (tensor<16x1024xf32>, tensor<512x1024xf32>) -> tensor<16x512xf32>
  %2 = tops.linear %x, %v {grid = array<i64: 4, 8>} : (tensor<16x1024xf32>, tensor<512x1024xf32>) -> tensor<16x512xf32>
  %3 = tops.add %y, %y : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  func.return
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "program.mlir"
    file.write_text(PROGRAM)
    return file


def choices(path: Path, **options: Any) -> list[Choice]:
    given: Input = read_input(str(path))
    return explain(given, Options(**options))


def test_the_choice_and_the_next_best(path: Path) -> None:
    two, written, narrow = choices(path, workers=132)
    assert (two.kind, two.weight, two.count, two.why) == ("linear", "layers.0.w", 2, "fewest bytes")
    assert two.chosen == Candidate(0, 4096 * (64 * 16 + 2 * 512), 4096 * (8 + 8), 128, (2, 64))
    assert two.others
    assert all(each.bytes > two.chosen.bytes for each in two.others)
    assert two.candidates > len(two.others)
    assert (written.chosen.grid, written.count, written.why) == ((4, 8), 1, "attribute of the operator")
    assert (narrow.kind, narrow.chosen.grid) == ("add", (1, 1))
    assert narrow.why == "as many tasks as it is worth"


def test_a_line_of_a_table_is_the_reason(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "grids.toml"
    table.write_text('"linear *.1.w" = [2, 3]')
    found = [(choice.chosen.grid, choice.why) for choice in choices(path, workers=128, grids=str(table))]
    assert ((2, 3), "line of the table") in found
    assert ((4, 8), "attribute of the operator") in found


@pytest.mark.parametrize(
    ("costs", "why"),
    [
        ([(10, 4, 100), (11, 3, 100)], "fewest bytes"),
        ([(10, 4, 100), (10, 5, 100)], "equal bytes, best balanced"),
        ([(10, 4, 100), (10, 4, 101)], "equal bytes and balance, fewest tasks"),
        ([(10, 4, 100), (10, 4, 100)], "equal cost, cuts later dimensions"),
        ([(10, 4, 100)], "the only one that keeps the workers busy"),
        ([(11, 4, 50), (10, 5, 40)], "smallest largest task"),
        ([(11, 4, 50)], "as many tasks as it is worth"),
    ],
)
def test_what_decides(costs: list[tuple[int, int, int]], why: str) -> None:
    assert reason([Candidate(0, *cost, (1, i)) for i, cost in enumerate(costs)], 100) == why


def test_the_command(path: Path) -> None:
    shown = CliRunner().invoke(main, ["stats", str(path), "--workers", "132", "--explain"])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"^linear +layers.0.w +2 +2x64 +128 +8,388,608 +65,536 +fewest bytes *$", shown.stdout, re.M)
    plain = CliRunner().invoke(main, ["stats", str(path), "--workers", "132", "--json"])
    explained = CliRunner().invoke(main, ["stats", str(path), "--workers", "132", "--explain", "--json"])
    answer = json.loads(explained.stdout)
    grids, _ = answer.pop("grids"), answer.pop("launch")
    assert answer == json.loads(plain.stdout)
    assert [(each["kind"], each["chosen"]["grid"]) for each in grids] == [
        ("linear", [2, 64]), ("linear", [4, 8]), ("add", [1, 1]),
    ]  # fmt: skip
