"""The examples of docs/dependencies.md have the dependencies that their first lines tell."""

import re
from pathlib import Path

import pytest

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_structure import structure_of
from mpkc.parsing import parse_module
from mpkc.passes.tile_extract_dependencies import extract_dependencies

PAGE = (Path(__file__).parents[2] / "docs" / "dependencies.md").read_text()
EXAMPLES = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=[re.search(r"kernel @(\w+)", text)[1] for text in EXAMPLES])
def test_example(text):
    module = parse_module(text, "dependencies.md")
    verify(module)
    program = module.body.block.first_op
    extract_dependencies(program)
    found = {
        instruction.label: " ".join(
            f"@{edge.producer.label} [{', '.join(map(str, edge.counted))}]" for edge in instruction.edges
        )
        for instruction in structure_of(program).instructions
    }
    assert {label: edges or "-" for label, edges in found.items()} == dict(
        re.findall(r"^// @(\w+) after (.*)$", text, re.M)
    )
