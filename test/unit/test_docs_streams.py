"""The examples of docs/streams.md: what is emitted for each program is the code below it."""

import re
from pathlib import Path

import pytest

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.parsing import parse_module
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.emit import emit
from mpkc.runtime.neuron.text import print_isa
from mpkc.runtime.verify.registers import check_registers
from mpkc.semaphores import clean_up

TEXT = (Path(__file__).parents[2] / "docs" / "streams.md").read_text()
EXAMPLES = re.findall(r"```mlir\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.S)


def streams_of(text: str) -> StreamsOp:
    module = parse_module(text)
    verify(module)
    (streams,) = module.ops
    assert isinstance(streams, StreamsOp)
    return streams


def test_every_example_has_its_code():
    assert len(EXAMPLES) == TEXT.count("```mlir") == 2


@pytest.mark.parametrize(("text", "code"), EXAMPLES)
def test_example(text: str, code: str):
    streams = streams_of(text)
    clean_up(streams)
    program = emit(streams, machine("generic"))
    assert code.strip() in print_isa(program)
    assert not check_registers(streams, program).failed


@pytest.mark.parametrize("text", [text for text, _ in EXAMPLES])
def test_example_prints_and_parses(text: str):
    once = str(streams_of(text))
    assert str(streams_of(once)) == once
