"""`mpkc verify` of multi-engine programs: what is right passes, what was edited is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sem_figures import FIG1, FIG5, FIG6_BACKWARD
from test_semaphores_cli import TILE, VALUE

from mpkc.cli import main

Write = Callable[[str], Path]
CHECKS = ["rules", "deadlock", "streams", "structure", "waits", "runs", "trips", "registers", "text"]


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [*map(str, args)])


def report(*args: object, code: int = 0) -> dict[str, Any]:
    result = run("verify", *args, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(text: str, name: str = "program.mlir") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("kind", ["barrier", "per-instruction", "per-loop", "per-engine"])
@pytest.mark.parametrize("text", [FIG1, FIG6_BACKWARD, VALUE, TILE], ids=["figure1", "figure6", "value", "tile"])
def test_programs_are_right(text: str, kind: str, written: Write) -> None:
    found = report(written(text), "--semaphores", kind)
    assert (found["ok"], found["failures"]) == (True, [])
    assert [check["name"] for check in found["checks"]] == CHECKS
    assert all(check["count"] > 0 for check in found["checks"])


@pytest.mark.parametrize("counters", ["ui4", "si8"])
def test_counters_that_start_again_are_right(counters: str, written: Write) -> None:
    assert report(written(FIG5), "--counters", counters)["ok"]


def streams_of(written: Write, text: str) -> str:
    result = run("compile", written(text), "--target", "neuron", "--emit", "sem")
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize(
    ("old", "new", "check", "says"),
    [
        ("constant 2 : index", "constant 1 : index", "runs", "LATE: @C[2, 2]"),
        ("constant 2 : index", "constant 3 : index", "runs", "EARLY: @C[1, 3]"),
        ("constant -2 : i32", "constant -3 : i32", "waits", "issues too early"),
        ("constant -2 : i32", "constant -1 : i32", "waits", "issues too late"),
        ("cost 64 {signal", "cost 63 {signal", "structure", "@P: cost changed"),
        (' {signal = "e0.b"}', "", "runs", "what it never runs"),
    ],
)
def test_edited_streams_are_told(old: str, new: str, check: str, says: str, written: Write) -> None:
    streams = streams_of(written, FIG5)
    assert old in streams
    found = report(written(streams.replace(old, new), "edited.mlir"), code=1)
    assert says in " ".join(each["message"] for each in found["failures"] if each["check"] == check)


def test_a_failure_shows_trip_counts_iteration_and_instruction(written: Write) -> None:
    edited = written(streams_of(written, FIG5).replace("constant 2 : index", "constant 1 : index"), "edited.mlir")
    failure = next(each for each in report(edited, code=1)["failures"] if each["check"] == "waits")
    assert (failure["instruction"], failure["engine"], failure["iteration"]) == ("C", "e1", [2, 2])
    assert failure["trips"] == {"a": 2, "b": 5}
    assert failure["bindings"] == {"n": 3}
    shown = run("verify", edited)
    assert (shown.exit_code, '@C on "e1" in iteration [2, 2]' in shown.stdout) == (1, True)


def test_a_lost_wait_is_told(written: Write) -> None:
    lines = streams_of(written, TILE).splitlines()
    wait = next(at for at, line in enumerate(lines) if "sem.wait" in line)
    broken = written("\n".join([*lines[:wait], *lines[wait + 1 :]]), "broken.mlir")
    found = report(broken, code=1)
    assert {each["check"] for each in found["failures"]} >= {"waits", "runs"}


def test_streams_as_they_were_emitted_pass(written: Write) -> None:
    found = report(written(streams_of(written, VALUE), "streams.mlir"))
    assert [check["name"] for check in found["checks"]] == [name for name in CHECKS if name != "trips"]


def test_streams_of_another_program_do_not(written: Write) -> None:
    other = streams_of(written, FIG5).replace("after [@P offset 2]", "after [@P offset 1]", 1)
    assert not report(written(other, "other.mlir"), code=1)["ok"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (FIG5, ["--schedulers", "2"], "--schedulers does not go with a multi-engine program"),
        (FIG5, ["--semaphores", "some"], "unknown kind of semaphores 'some'"),
        (FIG5.replace("after [@P offset 2]", "after [@Q offset 2]"), [], "program.mlir:9:1: error:"),
    ],
)
def test_what_is_refused(text: str, options: list[str], message: str, written: Write) -> None:
    result = run("verify", written(text), *options)
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_program_that_runs_nothing_is_right(tmp_path):
    path = tmp_path / "empty.mlir"
    path.write_text("sem.program @empty(%n : index) {\n}\n")
    assert CliRunner().invoke(main, ["verify", str(path)]).exit_code == 0
