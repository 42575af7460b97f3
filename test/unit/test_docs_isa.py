"""Every example of docs/isa.md does what its first lines say."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.utils.exceptions import ParseError

from mpkc.parsing import error_text
from mpkc.runtime.bindings import parse_bindings
from mpkc.runtime.machine import Dma, machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.runtime.neuron.text import print_isa
from mpkc.runtime.neuron.tile_forms import FORMS

TEXT = (Path(__file__).parents[2] / "docs" / "isa.md").read_text()
EXAMPLES = {re.search(r"\.program (\w+)", text)[1]: text for text in re.findall(r"```isa\n(.*?)```", TEXT, re.S)}
X = np.arange(512, dtype=np.float32).reshape(16, 32)


def notes(text: str, word: str) -> list[str]:
    return re.findall(rf"^// {word} (.*)$", text, re.M)


def bare(text: str) -> str:
    """Without the notes, so that lines count from .program on."""
    return text[text.index(".program") :]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    text = EXAMPLES[name]
    if refused := notes(text, "refused"):
        with pytest.raises(ParseError) as caught:
            read_isa(bare(text), "x")
        place, _, message = error_text(caught.value).splitlines()[0].partition(": error: ")
        assert f"{place[2:]}: {message}" == refused[0]
        return
    program = read_isa(bare(text))
    queues = notes(text, "on a DMA queue:")
    device = replace(machine("generic"), dma=Dma(16, tuple(queues)))
    inputs = {"x": X, "factor": 2.0} if program.buffers and program.buffers[0].space == "far" else {}
    bindings = parse_bindings(",".join(notes(text, "run")))
    result = simulate(program, device, bindings, inputs, races=True, explain=True)
    assert result.fault is None
    assert [str(result.time_ns)] == [f"{float(time)}" for time in notes(text, "time")] or not notes(text, "time")
    for waits in notes(text, "waits"):
        instruction, _, expected = waits.partition(": ")
        found = [wait.threshold for wait in result.waits if wait.instruction == instruction]
        assert ["-" if each is None else str(each) for each in found] == expected.split(", ")
    assert str(result.deadlock or "").splitlines()[1:] == notes(text, "deadlock")
    races = [re.fullmatch(r"race on (.*); \d+ times?", str(race)) for race in result.races]
    assert [race[1] for race in races if race] == notes(text, "race")
    if inputs:
        np.testing.assert_array_equal(result.buffers["x"][:8], X[1:9] * 2)


@pytest.mark.parametrize("name", [name for name, text in EXAMPLES.items() if "refused" not in text])
def test_example_prints_as_it_is_written(name: str) -> None:
    """The page shows the form that is printed."""

    def lines(text: str) -> list[str]:
        kept = [line for line in text.splitlines() if line and not line.startswith("//")]
        return [line for line in kept if line != ".counters ui32"]

    assert lines(print_isa(read_isa(EXAMPLES[name]))) == lines(EXAMPLES[name])


def test_the_page_names_every_opcode_and_operation() -> None:
    assert all(opcode in TEXT for opcode in FORMS)
    assert len(EXAMPLES) == TEXT.count("```isa") >= 6
