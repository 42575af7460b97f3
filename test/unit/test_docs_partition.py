"""The examples of docs/partition.md do what the text says."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_grids import GOLDEN

from mpkc.cli import main
from mpkc.inputs import read_input
from mpkc.passes.grid_table import GridTable
from mpkc.passes.partition_cost import CUTS_SLACK, SLACK
from mpkc.passes.tgraph_partition import PartitionPass
from mpkc.pipelines import Options
from mpkc.targets import HOST_MIN_BYTES
from mpkc.taskgraph import linear_task_graph

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "partition.md").read_text()
TABLES = re.findall(r"```toml\n(.*?)```", TEXT, re.S)
MLP = str(ROOT / "examples" / "mlp.mlir")


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_tables_can_be_read(number: int, tmp_path: Path) -> None:
    path = tmp_path / "grids.toml"
    path.write_text(TABLES[number])
    assert len(GridTable.read(path).rules) == len(TABLES[number].splitlines())


def test_the_table_for_the_example(tmp_path: Path) -> None:
    path = tmp_path / "grids.toml"
    path.write_text(next(table for table in TABLES if '"linear gate"' in table))
    infos = linear_task_graph(read_input(MLP), 4, str(path)).infos
    assert [(info.kind, info.grid) for info in infos if info.grid in ((4, 2), (2, 8))] == [
        ("linear", (2, 8)), ("silu_mul", (4, 2)),
    ]  # fmt: skip


def test_the_error(tmp_path: Path) -> None:
    path = tmp_path / "grids.toml"
    path.write_text(next(table for table in TABLES if "2 * features" in table))
    answer = CliRunner().invoke(main, ["stats", MLP, "--grids", str(path)])
    (expected,) = re.findall(r"^error: .*$", TEXT, re.M)
    assert expected in answer.stderr.replace(str(path), "grids.toml")


def test_the_published_figures() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", TEXT, re.M)
    columns = zip(*([int(number.replace(",", "")) for number in numbers] for _, *numbers in rows), strict=True)
    assert list(columns) == list(GOLDEN.values())
    answer = CliRunner().invoke(main, ["stats", MLP, "--json"])
    assert [name.replace(" ", "_") for name, *_ in rows] == list(json.loads(answer.stdout))[:8]


def test_the_numbers_of_the_rules() -> None:
    assert (SLACK, CUTS_SLACK) == (1 / 32, 1 / 8)
    assert "at most 1/32 more" in TEXT
    assert "1/8 more" in TEXT
    assert f"({PartitionPass.min_bytes}; on the host target {HOST_MIN_BYTES}," in TEXT
    assert Options.min_bytes == PartitionPass.min_bytes


def test_every_command_that_takes_a_table_is_named() -> None:
    taking = {name for name, command in main.commands.items() if any(p.name == "grids" for p in command.params)}
    (listed,) = re.findall(r"`--grids FILE` of (.*?)\.", TEXT, re.S)
    assert set(re.findall(r"`(\w+)`", listed)) == taking
