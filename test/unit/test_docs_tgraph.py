"""Every example of docs/tgraph.md is what its first line says."""

import re
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from tgraph_cases import parsed, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from mpkc.dialects.diagnostics import OpError

TEXT = (Path(__file__).parents[2] / "docs" / "tgraph.md").read_text()
EXAMPLES = re.findall(r"```mlir\n(.*?)```", TEXT, re.S)
MADE = [(before, after) for before, after in pairwise(EXAMPLES) if after.startswith("// tgraph-")]


def printed(module: ModuleOp) -> str:
    out = StringIO()
    Printer(out).print_op(module)
    return out.getvalue()


def bare(text: str) -> list[str]:
    """Lines without indentation and comments."""
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("//")]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == TEXT.count("```mlir") >= 12
    assert len(MADE) == TEXT.count("// tgraph-p") >= 6
    assert TEXT.count("\n// refused") == 1


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_as_it_is_written_or_is_refused(number: int) -> None:
    text = EXAMPLES[number]
    if refused := re.match("// refused (.*)", text):
        with pytest.raises(OpError, match=re.escape(refused[1])):
            parsed(text)
        return
    lines = bare(printed(parsed(text)))
    assert [line.replace("%x:", "%x :") for line in lines[1:-1]] == bare(text)


@pytest.mark.parametrize("number", range(len(MADE)))
def test_passes_make_an_example_from_the_one_before(number: int) -> None:
    before, after = MADE[number]
    module = parsed(before)
    passes = re.match("// (.*)", after)
    assert passes
    run_passes(module, passes[1])
    assert printed(module) == printed(parsed(after))


def test_every_pass_and_column_is_described() -> None:
    from mpkc.dialects.tgraph_table_op import COLUMNS
    from mpkc.passes import PASSES

    for name in [*COLUMNS, *(name for name in PASSES if name.startswith("tgraph-"))]:
        assert name in TEXT
