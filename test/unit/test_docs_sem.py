"""Every example of docs/sem.md does what its first lines say."""

import re
from pathlib import Path

import pytest
from xdsl.printer import Printer

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.bindings import parse_bindings
from mpkc.runtime.reference.sem import run_program

CONTEXT = new_context()
TEXT = (Path(__file__).parents[2] / "docs" / "sem.md").read_text()
EXAMPLES = {re.search(r"sem\.program @(\w+)", text)[1]: text for text in re.findall(r"```mlir\n(.*?)```", TEXT, re.S)}


def notes(text: str, pattern: str) -> list[str]:
    return re.findall(rf"^// {pattern}$", text, re.M)


def test_there_are_examples():
    assert len(EXAMPLES) == TEXT.count("```mlir") >= 10
    assert sum("// refused" in text for text in EXAMPLES.values()) >= 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    text = EXAMPLES[name]
    module = parse_module(text, name, CONTEXT)
    refusals = notes(text, "refused (.*)")
    if refusals:
        with pytest.raises(OpError, match=re.escape(refusals[0])):
            verify(module)
        return
    verify(module)
    program = module.body.block.first_op
    for bind in notes(text, "run ?(.*)"):
        trace = run_program(program, parse_bindings(bind))
        for expected in notes(text, "order (.*)"):
            assert [execution.name for execution in trace.executions] == expected.split()
        for consumer, expected in notes(text, r"@(\w+) owes (.*)"):
            owed = ["-" if e.waits[0].owed is None else str(e.waits[0].owed) for e in trace.of(consumer)]
            assert owed == expected.split(", ")


@pytest.mark.parametrize("name", [name for name, text in EXAMPLES.items() if "refused" not in text])
def test_example_prints_as_it_is_written(name, capsys):
    """The page shows the form that is printed."""

    def bare(text: str) -> list[str]:
        return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip()[:2] not in ("", "//")]

    Printer().print_op(parse_module(EXAMPLES[name], name, CONTEXT).body.block.first_op)
    assert [line.replace("%x: index", "%x : index") for line in bare(capsys.readouterr().out)] == bare(EXAMPLES[name])
