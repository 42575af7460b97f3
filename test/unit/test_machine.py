"""Machine descriptions: those that come with mpkc, a user's own, and wrong ones."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mpkc.cli import main
from mpkc.runtime.machine import Costs, Limits, MachineError, Memory, SemaphoreType, machine, machines

DOCS = Path(__file__).parents[2] / "docs" / "machines.md"
DUO = re.search(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]


@pytest.fixture
def duo(tmp_path: Path) -> Path:
    path = tmp_path / "duo.toml"
    path.write_text(DUO)
    return path


def test_generic_has_the_figures_of_the_contract() -> None:
    generic = machine("generic")
    assert generic.costs == Costs(register=20, branch=20, wait=10, signal=70, barrier=600)
    assert generic.limits == Limits(registers=64, semaphores=256)
    assert generic.semaphore == SemaphoreType(bits=32, signed=False)
    assert generic.has_engine("any name at all")


def test_cpu_has_cheap_registers_and_no_limits() -> None:
    cpu, generic = machine("cpu"), machine("generic")
    assert cpu.limits == Limits(registers=None, semaphores=None)
    assert 0 < cpu.costs.register < generic.costs.register
    assert 0 < cpu.costs.wait < generic.costs.wait < cpu.costs.signal


def test_all_machines_generic_first() -> None:
    assert [each.name for each in machines()] == ["generic", "cpu", "trn1", "trn2", "trn3"]
    assert machines()[0] is machine("generic")


def test_the_documented_machine_reads(duo: Path) -> None:
    found = machine(str(duo))
    assert found.engines == ("load", "math")
    assert found.workers == 8
    assert found.memories == {"near": Memory(bytes=196608, page_bytes=32768)}
    assert found.has_engine("math")
    assert not found.has_engine("store")
    assert found.to_json()["costs"] == {
        "register": 20.0, "branch": 20.0, "wait": 10.0, "signal": 70.0, "barrier": 600.0,
    }  # fmt: skip


WRONG: list[tuple[str, str, str]] = [  # what to replace in the documented machine, by what, the message after the path
    ("engines =", "engine =", "engine: no such key; there are: name, description, engines, semaphore, costs, "),
    ('engines = ["load", "math"]', "", "engines: missing"),
    ('["load", "math"]', '"load"', "engines: expected a list, found 'load'"),
    ('["load", "math"]', '["load", 1]', "engines: expected a string, found 1"),
    ('["load", "math"]', '["load", "load"]', "engines: names an engine twice"),
    ("bits = 32", "bits = 33", "semaphore.bits: is 33, but must be 8, 16, 32 or 64"),
    ("bits = 32", "bits = 32.0", "semaphore.bits: expected an integer, found 32.0"),
    ("signed = false", "signed = 0", "semaphore.signed: expected true or false, found 0"),
    ("wait = 10 ", 'wait = "10"', "costs.wait: expected a number, found '10'"),
    ("wait = 10 ", "wait = true", "costs.wait: expected a number, found True"),
    ("wait = 10 ", "wait = -1", "costs.wait: is -1, but must be above 0"),
    ("wait = 10 ", "wait = nan", "costs.wait: is nan, but must be above 0"),
    (
        "barrier = 600",
        "handshake = 600",
        "costs.handshake: no such key; there are: register, branch, wait, signal, barrier",
    ),
    ("registers = 64 ", "registers = 0", "limits.registers: is 0, but must be above 0"),
    ("[memories.near]", "[memories.sbuf]", "memories.sbuf: no such space; there are: far, near, accumulator"),
    ("[semaphore]", "[[semaphore]]", "semaphore: expected a table, found [{"),
    ('costs.wait = "measured"', "", "sources.costs.wait: missing: every number needs a source"),
    ("costs.wait =", "costs.waits =", "sources.costs.wait: missing: every number needs a source"),
    ("workers = 8 ", "", "sources.workers: is the source of no number"),
    ('costs.wait = "measured"', "costs.wait = 1", "sources.costs.wait: expected a string, found 1"),
    ('name = "duo"', 'name = "trio"', "name: is 'trio', but the file is duo.toml"),
    ("bits = 32", "bits = ", "not TOML: Invalid value"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[f"{new or 'no ' + old}"[:24] for old, new, _ in WRONG])
def test_what_is_wrong_is_told_with_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "duo.toml"
    assert old in DUO
    path.write_text(DUO.replace(old, new, 1))
    with pytest.raises(MachineError) as err:
        machine(str(path))
    assert str(err.value).startswith(f"{path}: {message}")
    assert "\n" not in str(err.value)


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(
        MachineError, match=r"^unknown device 'gpu'; there are: cpu, generic, trn1, trn2, trn3; or give a \.toml file"
    ):
        machine("gpu")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        machine(str(tmp_path / "none.toml"))


def devices(*options: str) -> Any:
    result = CliRunner().invoke(main, ["devices", *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_devices_lists_them() -> None:
    for each in machines():
        engines = ", ".join(each.engines) or "any name"
        assert re.search(rf"^{each.name} +{engines[:14]}.* {each.description.split()[0]}", devices(), re.MULTILINE)


def test_devices_as_json() -> None:
    assert json.loads(devices("--json")) == {"devices": [json.loads(json.dumps(each.to_json())) for each in machines()]}
