"""Machine descriptions: what instructions cost, and DMA queues."""

import re
from pathlib import Path

import pytest

from mpkc.dialects import tile
from mpkc.dialects.tile_transfer import TileInstruction
from mpkc.runtime.machine import Dma, Formula, InstructionCost, MachineError, Work, machine
from mpkc.runtime.machine.instructions import OPERATIONS

DOCS = Path(__file__).parents[2] / "docs" / "machines.md"
DUO = re.search(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
MORE = """
[instructions.default]
cost = { lane = 1, minimum = 64 }
latency = { fixed = 60, lane = 1 }
[instructions.copy]
cost = { byte = 0.5 }
[dma]
parts = 16
queues = ["load"]
"""
SOURCES = """
dma.parts = "the manual"
instructions.default.cost.lane = "one element a cycle"
instructions.default.cost.minimum = "the manual"
instructions.default.latency.fixed = "measured"
instructions.default.latency.lane = "measured"
instructions.copy.cost.byte = "measured"
"""
TEXT = DUO.replace("[sources]", MORE + "[sources]") + SOURCES


def read(tmp_path: Path, text: str):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}" / "duo.toml"  # descriptions are read once
    path.parent.mkdir()
    path.write_text(text)
    return machine(str(path))


def test_formulas_are_sums_with_a_minimum() -> None:
    work = Work(bytes=8, elements=4, lane=2, flops=32)
    assert Formula(fixed=1, byte=2, element=3, lane=4, flop=5).ns(work) == 1 + 16 + 12 + 8 + 160
    assert Formula(fixed=1, minimum=64).ns(work) == 64


def test_a_machine_says_what_its_instructions_cost(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT)
    assert found.cost_of("copy") == InstructionCost(Formula(byte=0.5))
    assert found.cost_of("map") == found.instructions["default"]
    assert found.dma == Dma(16, ("load",))
    assert found.instruction_bytes == 64
    assert read(tmp_path, DUO).dma is None
    with pytest.raises(MachineError, match=r"duo: instructions\.map: missing: it says what tile\.map costs"):
        read(tmp_path, DUO).cost_of("map")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("instructions.copy", "instructions.move", r"instructions\.move: no such operation; there are: default, copy"),
        ("byte = 0.5", "bytes = 0.5", r"instructions\.copy\.cost\.bytes: no such key; there are: fixed, byte"),
        ("byte = 0.5", "byte = -0.5", r"instructions\.copy\.cost\.byte: is -0\.5, but must be above 0"),
        ('queues = ["load"]', 'queues = ["q"]', r"dma\.queues: q is no engine of the machine"),
        ("parts = 16", "", r"dma\.parts: missing"),
        ('dma.parts = "the manual"', "", r"sources\.dma\.parts: missing: every number needs a source"),
    ],
)
def test_wrong_descriptions_are_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(MachineError, match=message):
        read(tmp_path, TEXT.replace(old, new))


def test_every_operation_that_moves_or_computes_has_a_name_in_formulas() -> None:
    instructions = [op for op in tile.Tile.operations if issubclass(op, TileInstruction)]
    of_workers = {"tile.fetch", "tile.event_wait", "tile.event_signal"}
    assert {f"tile.{name}" for name in OPERATIONS} == {op.name for op in instructions} - of_workers


def test_generic_knows_all_of_them() -> None:
    generic = machine("generic")
    work = Work(bytes=65536, elements=16384, lane=128, flops=2 * 128**3)
    for name in OPERATIONS:
        cost = generic.cost_of(name)
        assert cost.latency is not None
        assert 64 <= cost.cost.ns(work) <= cost.latency.ns(work)
