"""The commands on multi-engine programs: compile, simulate and run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sem_figures import FIG1, FIG3, FIG5, FIGURES

from mpkc.cli import main
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.text import print_isa

Write = Callable[[str], Path]
ENGINE_KINDS = ["barrier", "per-instruction", "per-loop", "per-engine"]

VALUE = """sem.program @p(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %a = %c0 to %n step %c1 {
    %v = sem.value @V engine "e0" cost 8 : index
    scf.for %b = %c0 to %v step %c1 {
      sem.inst @P engine "e0" cost 64
      sem.inst @Q engine "e2" cost 64
      sem.inst @C engine "e1" cost 64 after [@P offset 1, @Q offset 0]
    }
  }
}
"""

TILE = """!far = memref<6x4xf32, #tile.space<far>>
!row = memref<1x4xf32, strided<[4, 1], offset: ?>, #tile.space<far>>
!near = memref<2x1x4xf32, #tile.space<near>>
!tile = memref<1x4xf32, #tile.space<near>>
tile.kernel @exp(%x : !far, %y : !far, %n : index) engines ["load", "scalar", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tiles = memref.alloc() : !near
  scf.for %i = %c0 to %n step %c1 {
    %from = memref.subview %x[%i, 0] [1, 4] [1, 1] : !far to !row
    %to = memref.subview %y[%i, 0] [1, 4] [1, 1] : !far to !row
    %t = tile.rotate %tiles[%i] : !near -> !tile
    tile.copy %from -> %t engine "load" : !row -> !tile
    tile.map exp %t -> %t engine "scalar" : !tile -> !tile
    tile.copy %t -> %to engine "store" : !tile -> !row
  }
}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [*map(str, args)])


def answer(*args: object, code: int = 0) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(text: str, name: str = "program.mlir") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# simulate


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("kind", ENGINE_KINDS[1:])
def test_waits_of_the_figures(figure: str, kind: str, written: Write) -> None:
    text, n, consumer, owed = FIGURES[figure]
    found = answer("simulate", written(text), "--bind", f"n={n}", "--semaphores", kind, "--explain")
    waits = [wait for wait in found["waits"] if wait["instruction"] == consumer]
    assert [wait["threshold"] for wait in waits] == owed
    assert all(set(wait) == {"instruction", "iteration", "semaphore", "threshold"} for wait in waits)


def test_what_json_says(written: Write) -> None:
    found = answer("simulate", written(FIG5), "--bind", "n=2")
    assert {"time_ns", "deadlock", "engines", "semaphores", "registers", "code_bytes", "remarks"} <= set(found)
    assert "waits" not in found
    assert found["deadlock"] is None
    assert found["semaphores"] == 1
    assert set(found["engines"]) == {"e0", "e1"}
    assert all(set(each) == {"busy_ns", "wait_ns", "control_ns"} for each in found["engines"].values())
    assert found["engines"]["e0"]["busy_ns"] == 7 * 64
    assert found["code_bytes"] % 64 == 0


def test_a_wait_of_its_own_is_told_as_that_of_its_instruction(written: Write) -> None:
    found = answer("simulate", written(VALUE), "--bind", "n=1,V=2", "--explain")
    waits = [(wait["semaphore"], wait["iteration"]) for wait in found["waits"] if wait["instruction"] == "C"]
    assert sorted(waits) == [("e0.b", [1, 1]), ("e0.b", [1, 2]), ("e2.b", [1, 1]), ("e2.b", [1, 2])]
    assert {wait["instruction"] for wait in found["waits"]} == {"C", "V.e1", "V.e2", "V.e0", "V"}


def test_a_barrier_costs_more_than_waits(written: Write) -> None:
    path = written(FIG5)
    times = {kind: answer("simulate", path, "--bind", "n=4", "--semaphores", kind)["time_ns"] for kind in ENGINE_KINDS}
    assert times["barrier"] > 5 * times["per-loop"]


def test_a_deadlock_is_exit_1_and_says_why(written: Write) -> None:
    found = answer("simulate", written(FIG5), "--bind", "n=2,e1:n=3", code=1)
    (blocked,) = found["deadlock"]["blocked"]
    assert (blocked["instruction"], blocked["iteration"], blocked["threshold"]) == ("C", [3, 3], 8)
    shown = run("simulate", written(FIG5), "--bind", "n=2,e1:n=3").stdout
    assert 'the loop "a" has run 2 on e0, 3 on e1' in shown


def test_remarks_name_the_place(written: Write) -> None:
    found = answer("simulate", written(FIG3.replace("@I1 offset 0", "@I1 offset 2")), "--bind", "n=0")
    (remark,) = found["remarks"]
    assert "program.mlir:7:1: remark: @I2 after @I1 is never owed" in remark


def test_isa_text_alone_runs_as_the_program_does(written: Write, tmp_path: Path) -> None:
    program, isa = written(FIG5), tmp_path / "fig5.isa"
    assert run("compile", program, "--target", "neuron", "-o", isa).exit_code == 0
    whole = answer("simulate", program, "--bind", "n=2", "--explain")
    alone = answer("simulate", isa, "--bind", "n=2", "--explain")
    assert alone["registers"] is None
    same = set(whole) - {"registers"}
    assert {key: whole[key] for key in same} == {key: alone[key] for key in same}


def test_a_race_is_exit_1(written: Write, tmp_path: Path) -> None:
    isa = tmp_path / "exp.isa"
    isa.write_text(run("compile", written(TILE), "--target", "neuron").stdout)
    assert run("simulate", isa, "--bind", "n=3", "--races").exit_code == 2  # no inputs
    assert answer("simulate", written(TILE), "--bind", "n=3", "--races")["races"] == []
    streams = run("compile", written(TILE), "--target", "neuron", "--emit", "sem").stdout
    lines = streams.splitlines()
    wait = next(at for at, line in enumerate(lines) if "sem.wait" in line and '["map0"]' in line)
    broken = written("\n".join([*lines[:wait], *lines[wait + 1 :]]), "broken.mlir")
    races = answer("simulate", broken, "--bind", "n=3", "--races", code=1)["races"]
    assert races
    assert "tiles" in {race["buffer"] for race in races}


def test_pictures_and_traces(written: Write, tmp_path: Path) -> None:
    svg, trace = tmp_path / "out.svg", tmp_path / "out.json"
    assert run("simulate", written(FIG1), "--bind", "n=4", "--svg", svg, "--trace", trace).exit_code == 0
    assert svg.read_text().startswith("<svg")
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"e0", "e1", "e2"}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (FIG5, [], "program.mlir:1:1: error: the argument n has no value: bind it, n=VALUE"),
        (FIG5, ["--bind", "m=1,n=2"], "'m' is neither an argument nor a value"),
        (FIG5.replace("cost 64", 'cost 64 {semaphores = "auto"}', 1), ["--bind", "n=1"], "chosen for a whole program"),
        (FIG5, ["--bind", "n=1", "--semaphores", "some"], "unknown kind of semaphores 'some'"),
        (FIG5, ["--bind", "n=1", "--counters", "u8"], "counters of type 'u8': use ui or si"),
        (FIG5, ["--bind", "n=1", "--device", "no"], "unknown device 'no'; there are:"),
        (FIG5, ["--bind", "n=1", "--semaphores", "unrolled"], "program.mlir:5:1: error: can't unroll this loop"),
        (FIG5, ["--bind", "n=1", "--workers", "2"], "--workers does not go with a multi-engine program"),
        (FIG5, ["--bind", "n=1", "--seed", "2"], "--seed does not go with a sem.program"),
        (VALUE, ["--bind", "n=2,V=1,2,3,4"], "values are bound that no execution takes: V=3,4; bind one for each"),
        (VALUE, ["--bind", "n=2,V=1"], "@V runs for the 2nd time and has 1 value"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, options: list[str], message: str, written: Write) -> None:
    result = run("simulate", written(text), *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("options", [["--semaphores", "barrier"], ["--counters", "ui8"], ["--seed", "1"]])
def test_isa_text_has_its_semaphores(options: list[str], written: Write) -> None:
    isa = written(run("compile", written(FIG5), "--target", "neuron").stdout, "p.isa")
    result = run("simulate", isa, "--bind", "n=1", *options)
    assert result.exit_code == 2
    assert f"{options[0]} does not go with ISA text, which has its semaphores" in result.stderr


@pytest.mark.parametrize(
    "command", [["simulate", "--bind", "n=1"], ["compile", "--target", "neuron"], ["stats", "--explain"],
                ["run", "--bind", "n=1", "--target", "neuron"]], ids=lambda command: command[0]
)  # fmt: skip
def test_streams_have_their_semaphores(command: list[str], written: Write) -> None:
    streams = written(run("compile", written(FIG5), "--target", "neuron", "--emit", "sem").stdout, "streams.mlir")
    for option in (["--semaphores", "barrier"], ["--counters", "ui8"]):
        result = run(command[0], streams, *command[1:], *option)
        assert result.exit_code == 2
        assert f"{option[0]} does not go with streams, which have their semaphores" in result.stderr


def test_times_have_three_decimals(written: Write) -> None:
    time = answer("simulate", written(TILE), "--bind", "n=3")["time_ns"]
    assert time == round(time, 3)


# compile


def test_the_stages(written: Write) -> None:
    path = written(TILE)
    tiles = run("compile", path, "--target", "neuron", "--emit", "tile").stdout
    assert 'label = "copy0", after = [#sem.after<@copy1 offset 2>]' in tiles
    streams = run("compile", path, "--target", "neuron", "--emit", "sem").stdout
    assert streams.count("sem.stream ") == 3
    text = run("compile", path, "--target", "neuron").stdout
    assert print_isa(read_isa(text)) == text


def test_streams_beside_their_program_are_used_as_they_are(written: Write) -> None:
    streams = run("compile", written(FIG5), "--target", "neuron", "--emit", "sem").stdout
    again = written(streams, "streams.mlir")
    text = run("compile", again, "--target", "neuron").stdout
    assert text == run("compile", written(FIG5), "--target", "neuron").stdout
    edited = written(streams.replace("cost 64", "cost 640"), "edited.mlir")
    assert answer("simulate", edited, "--bind", "n=2")["engines"]["e0"]["busy_ns"] == 7 * 640


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "neuron", "--emit", "table"], "--emit table does not go with --target neuron"),
        (["--emit", "sem"], "--emit sem does not go with --target cuda"),
        (["--target", "neuron", "--workers", "2"], "--workers does not go with --target neuron"),
        (["--semaphores", "per-engine"], "--semaphores does not go with --target cuda"),
        ([], "a sem.program is for the neuron target, not for cuda: add --target neuron"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], message: str, written: Write) -> None:
    result = run("compile", written(FIG5), *options)
    assert (result.exit_code, message in result.stderr) == (2, True)


# run


@pytest.mark.parametrize("kind", ENGINE_KINDS)
def test_values_on_the_neuron_target_are_those_of_program_order(kind: str, written: Write, tmp_path: Path) -> None:
    options = ["--target", "neuron", "--check", "--semaphores", kind]
    found = answer("run", written(VALUE), "--bind", "n=3,V=2,0,3", *options)
    assert (found["ok"], found["different"]) == (True, [])
    assert len(found["executions"]) == 3 + 5 * 3
    out = tmp_path / "out.npz"
    found = answer("run", written(TILE), "--bind", "n=6", "--outputs", out, *options)
    assert found["ok"]
    arrays = np.load(out)
    assert np.allclose(arrays["y"], np.exp(arrays["x"]))


def test_a_lost_wait_makes_other_values(written: Write) -> None:
    streams = run("compile", written(TILE), "--target", "neuron", "--emit", "sem").stdout
    lines = streams.splitlines()
    wait = next(at for at, line in enumerate(lines) if "sem.wait" in line and '["map0"]' in line)
    broken = written("\n".join([*lines[:wait], *lines[wait + 1 :]]), "broken.mlir")
    result = run("run", broken, "--bind", "n=6", "--target", "neuron", "--check")
    assert (result.exit_code, "DIFFERS" in result.stdout) == (1, True)


def test_engines_that_disagree_deadlock_on_the_neuron_target(written: Write) -> None:
    result = run("run", written(FIG5), "--bind", "n=2,e1:n=3", "--target", "neuron")
    assert result.exit_code == 1
    assert "C in iteration [3, 3]" in result.stderr


@pytest.mark.parametrize("target", ["reference", "neuron"])
def test_values_left_over_are_refused(target: str, written: Write) -> None:
    result = run("run", written(VALUE), "--bind", "n=1,V=2,0", "--target", target)
    assert result.exit_code == 2
    assert "values are bound that no execution takes: V=0" in result.stderr


def test_a_comparison_ends_with_a_verdict(written: Write) -> None:
    result = run("run", written(FIG5), "--bind", "n=1", "--target", "neuron", "--check")
    assert result.stdout.splitlines()[-1] == "ok: 6 executions, all with the values of program order"
    found = answer("run", written(FIG5), "--bind", "n=1", "--target", "neuron")
    assert all(len(execution["value"]) == 16 and int(execution["value"], 16) for execution in found["executions"])


# stats and graph


def test_stats_show_the_kinds_side_by_side(written: Write) -> None:
    found = answer("stats", written(FIG5))
    assert found["loops"] == 2
    assert found["instructions"] == {"e0": 1, "e1": 1}
    kinds = {row["kind"]: row for row in found["kinds"]}
    assert list(kinds) == [*ENGINE_KINDS, "unrolled"]
    simulated = answer("simulate", written(FIG5), "--bind", "n=0", "--semaphores", "per-loop")
    same = ("semaphores", "registers", "code_bytes")
    assert [kinds["per-loop"][key] for key in same] == [simulated[key] for key in same]
    assert "can't unroll" in kinds["unrolled"]["refused"]


def test_stats_explain_the_formula_of_each_wait(written: Write) -> None:
    (wait,) = answer("stats", written(FIG5), "--explain")["waits"]
    assert (wait["instruction"], wait["producer"], wait["threshold"]) == ("C", "P", "r_b - 2")
    assert wait["why"].startswith("from iteration 3 of b on")
    assert "r_b - 2" in run("stats", written(FIG5), "--explain").stdout


def test_graphs(written: Write, tmp_path: Path) -> None:
    svg, dot = tmp_path / "out.svg", tmp_path / "out.dot"
    assert run("graph", written(TILE), "--svg", svg, "--dot", dot).exit_code == 0
    assert 'subgraph "cluster_i"' in dot.read_text()
    assert '[label="2"]' in dot.read_text()
    assert ElementTree.fromstring(svg.read_text()).tag.endswith("svg")
    assert "@copy1 2" in run("graph", written(TILE)).stdout
    first = answer("graph", written(TILE))["instructions"][0]
    assert (first["instruction"], first["engine"], first["loops"]) == ("@copy0", "load", ["i"])
    assert first["after"] == [{"producer": "@copy1", "distance": "2"}]


def test_stats_show_every_kind(written: Write) -> None:
    result = run("stats", written(FIG5), "--semaphores", "barrier")
    assert (result.exit_code, "--semaphores does not go with stats without --explain" in result.stderr) == (2, True)


BOUND = VALUE.replace("%n : index)", "%n : index) attributes {maxima = {n = 2 : index, V = 3 : index}}")


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        ("n=1,V=2,q=3", "1:1: error: 'q' is neither an argument nor a sem.value; there are: n, V"),
        ("n=1,V=2,e1:n=2", "1:1: error: values for one engine alone (e1): in program order all engines must agree"),
        ("n=3,V=1,1,1", "1:1: error: n is 3 and was declared to lie in 0..2: see `maxima`"),
        ("n=1,V=4", "1:1: error: V is 4 and was declared to lie in 0..3: see `maxima`"),
        ("V=1", "1:1: error: the argument %n needs one value: bind it, n=VALUE"),
        ("n=2,V=1", "5:5: error: @V runs for the 2"),
        ("", "1:1: error: the argument %n needs one value: bind it, n=VALUE"),
    ],
)
def test_verify_refuses_bindings(tmp_path: Path, bind: str, message: str) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(BOUND)
    result = run("verify", path, "--bind", bind)
    assert result.exit_code == 2
    assert f"program.mlir:{message}" in result.stderr


def test_verify_looks_at_a_run_that_is_bound(tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(BOUND)
    assert run("verify", path, "--bind", "n=2,V=3,0").exit_code == 0
