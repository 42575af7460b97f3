"""`mpkc graph`: what it says of a program, and what it draws."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpkc.cli import main
from mpkc.drawing import Diagram, Edge, Node, dot, svg
from mpkc.graph import operator_nodes, operators_of_events, task_rows
from mpkc.inputs import read_input
from mpkc.layers import GAP, WAYPOINT_WIDTH, layers, place
from mpkc.taskgraph import TaskGraph, linear_task_graph

MLP = str(Path(__file__).parents[2] / "examples" / "mlp.mlir")
SVG = "{http://www.w3.org/2000/svg}"

# 0 feeds 1 and 2; 3 joins them. Operator 2's two tasks each need one half of 0, so nothing fuses them all.
FORK = """
func.func @fork(%x : tensor<2x8xf32>) -> tensor<2x8xf32> {
  %w = tops.weight "w" : tensor<8x8xf32>
  %0 = tops.linear %x, %w {grid = array<i64: 2, 1>} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = tops.linear %0, %w {grid = array<i64: 1, 1>} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = tops.linear %0, %w {grid = array<i64: 2, 1>} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %3 = tops.add %1, %2 {grid = array<i64: 2, 1>} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %3 : tensor<2x8xf32>
}
"""


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    path = tmp_path / "fork.mlir"
    path.write_text(FORK)
    return path


def program(path: Path | str) -> TaskGraph:
    return linear_task_graph(read_input(str(path)), 4)


def mpkc(*args: object, code: int = 0) -> Any:
    result = CliRunner().invoke(main, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result


def test_operators_and_what_they_wait_for(fork: Path) -> None:
    nodes = operator_nodes(program(fork))
    assert [(node.info.kind, node.info.grid, node.info.count) for node in nodes] == [
        ("linear", (2, 1), 2),
        ("linear", (1, 1), 1),
        ("linear", (2, 1), 2),
        ("add", (2, 1), 2),
    ]
    assert [set(node.after) for node in nodes] == [set(), {0}, {0}, {1, 2}]


def test_events_through_empty_tasks_count_for_the_operators_at_their_ends(fork: Path) -> None:
    compiled = program(fork)
    assert (compiled.table.task_operator < 0).any()  # normalization had to add some
    for sources, targets in operators_of_events(compiled.table):
        assert sources
        assert all(0 <= source < 4 for source in sources)
        assert not targets or max(sources) < max(targets)


def test_tasks_of_chosen_operators_and_the_empty_ones_beside_them(fork: Path) -> None:
    rows = task_rows(program(fork), range(2, 4))
    assert [row.name for row in rows if row.kind != "empty"] == ["linear_2[0]", "linear_2[1]", "add_3[0]", "add_3[1]"]
    assert any(row.kind == "empty" for row in rows)
    everything = task_rows(program(fork), range(4))
    assert len(everything) == program(fork).table.task_count


def test_the_table() -> None:
    lines = mpkc("graph", MLP, "--workers", 4).stdout.splitlines()
    assert re.fullmatch(r" +operator +grid +tasks +after \(events\) *", lines[0])
    assert re.fullmatch(r"2 +silu_mul +1x4 +4 +1 \(4\) *", lines[3])
    assert len(lines) == 5


def test_the_table_of_tasks() -> None:
    lines = mpkc("graph", MLP, "--workers", 4, "--tasks", "--operators", "1:2").stdout.splitlines()
    assert re.fullmatch(r"4 +linear_1\[0\] +0 \(4\) +1 *", lines[1])
    assert len(lines) == 1 + 4 + 4


def test_drawings_of_operators(fork: Path, tmp_path: Path) -> None:
    mpkc("graph", fork, "--svg", tmp_path / "g.svg", "--dot", tmp_path / "g.dot")
    picture = ET.parse(tmp_path / "g.svg")
    assert [box.get("data-name") for box in picture.iter(f"{SVG}g") if box.get("data-name")] == [
        "linear_0", "linear_1", "linear_2", "add_3",
    ]  # fmt: skip
    assert (
        len(
            [
                path
                for path in picture.iter(f"{SVG}path")
                if path.get("d", "").startswith("M") and "C" in path.get("d", "")
            ]
        )
        == 4
    )
    text = (tmp_path / "g.dot").read_text()
    assert re.search(r'"linear_2" \[label="2 linear\\n2x1: 2 tasks" fillcolor="#\w{6}"\]', text)
    assert re.findall(r'"(\w+)" -> "(\w+)"', text) == [
        ("linear_0", "linear_1"), ("linear_0", "linear_2"), ("linear_1", "add_3"), ("linear_2", "add_3"),
    ]  # fmt: skip


def test_a_drawing_of_tasks_has_a_dot_an_event(fork: Path, tmp_path: Path) -> None:
    mpkc("graph", fork, "--tasks", "--svg", tmp_path / "t.svg")
    table = program(fork).table
    picture = ET.parse(tmp_path / "t.svg")
    assert len(list(picture.iter(f"{SVG}circle"))) == table.event_count
    assert len([rect for rect in picture.iter(f"{SVG}rect") if rect.get("rx")]) == table.task_count


def test_the_first_arrow_from_an_event_carries_its_count(fork: Path, tmp_path: Path) -> None:
    mpkc("graph", fork, "--tasks", "--dot", tmp_path / "t.dot")
    table, text = program(fork).table, (tmp_path / "t.dot").read_text()
    counts = dict(re.findall(r'"event (\d+)" -> "[^"]+" \[label="(\d+)"\]', text))
    assert {int(event): int(count) for event, count in counts.items()} == dict(
        enumerate(table.triggers_needed.tolist())
    )
    assert len(re.findall(r'"event \d+" -> ', text)) == len(table.waits)


def test_the_same_program_gives_the_same_bytes(fork: Path, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        mpkc("graph", fork, "--svg", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("chosen", ["4", "2:1", ":", "a:b", "0:4", "-1:2", "1:2:3"])
def test_wrong_choices_of_operators(fork: Path, tmp_path: Path, chosen: str) -> None:
    out = tmp_path / "g.svg"
    result = mpkc("graph", fork, "--operators", chosen, "--svg", out, code=2)
    assert result.stderr.startswith(f"error: --operators {chosen}: ")
    assert not out.exists()


def test_too_many_tasks_to_draw(tmp_path: Path) -> None:
    out = tmp_path / "g.svg"
    result = mpkc("graph", "smollm2-135m", "--workers", 64, "--tasks", "--svg", out, code=2)
    assert "too many to draw" in result.stderr
    assert not out.exists()


# Layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    widths = draw(st.lists(st.floats(5, 200), min_size=1, max_size=20))
    pairs = st.tuples(st.integers(0, len(widths) - 1), st.integers(0, len(widths) - 1))
    links = draw(st.lists(pairs, max_size=40, unique=True))
    return widths, [(a, b) for a, b in links if a < b]


@given(graphs())
def test_edges_go_down_and_nothing_in_a_layer_overlaps(graph: tuple[list[float], list[tuple[int, int]]]) -> None:
    widths, links = graph
    placed = place(widths, links)
    boxes = [(placed.layer[n], placed.x[n], widths[n]) for n in range(len(widths))]
    for (source, target), route in zip(links, placed.routes, strict=True):
        depths = [placed.layer[source], *(depth for _, depth in route), placed.layer[target]]
        assert depths == list(range(depths[0], depths[-1] + 1))
        boxes += [(depth, x, WAYPOINT_WIDTH) for x, depth in route]
    boxes.sort()
    for (layer, x, width), (other_layer, other_x, other_width) in zip(boxes, boxes[1:], strict=False):
        if layer == other_layer:
            assert other_x - x >= (width + other_width) / 2 + GAP - 1e-6
    assert all(x - width / 2 >= -1e-6 and x + width / 2 <= placed.width + 1e-6 for _, x, width in boxes)


def test_layers_are_longest_paths() -> None:
    assert layers(5, [(0, 1), (1, 2), (0, 2), (2, 4), (3, 4)]) == [0, 1, 2, 0, 3]


def test_two_chains_are_not_drawn_across_each_other() -> None:
    placed = place([10.0] * 4, [(0, 3), (1, 2)])  # 2 and 3 stand in one layer: swapped, so the edges do not cross
    assert (placed.x[0] < placed.x[1]) == (placed.x[3] < placed.x[2])


def test_names_are_escaped() -> None:
    diagram = Diagram('<"&>', [Node('a"<', ('x<"\\',), "k"), Node("b", (), "k")], [Edge(0, 1, "<1>")])
    assert ET.fromstring(svg(diagram)).find(f"{SVG}title").text == '<"&>'  # type: ignore[union-attr]
    assert r'label="x<\"\\"' in dot(diagram)


def test_an_empty_diagram_is_drawn() -> None:
    assert ET.fromstring(svg(Diagram("nothing", [], []))).tag == f"{SVG}svg"
