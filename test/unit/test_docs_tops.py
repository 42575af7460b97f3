"""Every example of docs/tops.md is verified and run; the page names every operator and attribute."""

import re
from pathlib import Path

import numpy as np
import pytest

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.tops import Tops, WeightOp
from mpkc.dialects.tops.base import Tasks
from mpkc.dialects.tops.decode import decode_signature, is_decode
from mpkc.dialects.tops.function import argument_names, only_function
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights

ROOT = Path(__file__).parents[2]
CONTEXT = new_context()
TEXT = (ROOT / "docs" / "tops.md").read_text()
EXAMPLES = {re.search(r"func\.func @(\w+)", text)[1]: text for text in re.findall(r"```mlir\n(.*?)```", TEXT, re.S)}


def example(name):
    module = parse_module(EXAMPLES[name], name, CONTEXT)
    verify(module)
    return only_function(module)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    func = example(name)
    assert str(parse_module(str(func), name, CONTEXT).body.block.first_op) == str(func)
    for result in run_function(func, seeded_inputs(func, 0), seeded_weights(0)):
        assert np.isfinite(result).all()
    if is_decode(func):
        assert decode_signature(func).vocabulary == 100


def test_the_examples_have_every_operator():
    assert len(EXAMPLES) == TEXT.count("```mlir")
    used = {type(op) for name in EXAMPLES for op in example(name).body.block.ops}
    assert used >= set(Tops.operations)


def test_the_tables_name_operators_grids_and_attributes():
    for name in EXAMPLES:
        for op in example(name).body.block.ops:
            short = op.name.removeprefix("tops.")
            if isinstance(op, WeightOp) or op.name == "func.return":
                continue
            # the row of the operator in its table, or the paragraph that begins with it
            told = re.search(rf"^(\| )?`{short}`(?s:.*?)$(?(1)|(?s:.*?)\n\n)", TEXT, re.M)[0]
            grid = ", ".join(dimension.name for dimension in op.dimensions())
            assert re.search(rf"\| {grid} \|$|grid\s+is {grid}\.", told), short
            for attribute in op.get_irdl_definition().properties:
                assert f"`{attribute}`" in told, (short, attribute)


def test_the_example_of_names_and_of_grids():
    assert argument_names(example("named")) == ["the input", "b"]
    (linear,) = (op for op in example("cut").body.block.ops if op.name == "tops.linear")
    tasks = linear.tasks()
    assert isinstance(tasks, Tasks)
    assert tasks.count == 16
    write = linear.accesses(tasks)[-1]
    assert {tuple(size) for size in write.hi - write.lo} == {(2, 32)}


def test_the_first_example_is_the_file():
    assert EXAMPLES["mlp"] == (ROOT / "examples" / "mlp.mlir").read_text()


def test_the_python_runs_and_agrees_with_the_text(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.S):
        exec(block, names)
        printed = [line for line in capsys.readouterr().out.splitlines() if line]
        assert printed == re.findall(r"print\(.*\)  # (.*)", block)
    func = example("mlp")
    (expected,) = run_function(func, seeded_inputs(func, 0), seeded_weights(0))
    assert np.array_equal(names["result"], expected)
