"""Every example of docs/tile.md is verified and prints what it parses; the page names every operation and function."""

import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from xdsl.printer import Printer

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.tile import Tile
from mpkc.dialects.tile_types import Function, Reduction, Space
from mpkc.parsing import parse_module
from mpkc.runtime.reference.tile import run_kernel

PAGE = (Path(__file__).parents[2] / "docs" / "tile.md").read_text()
EXAMPLES = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)
NAMES = [re.search(r"@(\w+)", example)[1] for example in EXAMPLES]


def example(name: str):
    module = parse_module(EXAMPLES[NAMES.index(name)], "tile.md")
    verify(module)
    (program,) = module.ops
    return program


def text(op) -> str:
    out = StringIO()
    Printer(out).print_op(op)
    return out.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_every_example_prints_what_it_parses(name: str) -> None:
    printed = text(example(name))
    again = parse_module(printed)
    verify(again)
    (program,) = again.ops
    assert text(program) == printed


def test_the_page_names_everything() -> None:
    words = set(re.findall(r"[\w.]+", PAGE))
    operations = {operation.name for operation in Tile.operations}
    assert {*operations, *Function, *Reduction, *Space} <= words
    used = set(re.findall(r"tile\.\w+", "".join(EXAMPLES))) - {"tile.space"}
    assert operations <= used, "an example uses each operation"


def test_what_the_examples_compute() -> None:
    x = np.random.default_rng(0).random((128, 512), np.float32)
    y = run_kernel(example("normalize"), [x, np.zeros_like(x)])["y"]
    np.testing.assert_allclose(y, x / x.max(1, keepdims=True), rtol=1e-6)
    x = np.random.default_rng(1).random((32, 32), np.float32)
    y = run_kernel(example("kept"), [x, np.zeros_like(x)])["y"]
    sums = (x.reshape(4, 8, 32) ** 2).sum((0, 2))
    np.testing.assert_allclose(y, x / np.sqrt(np.tile(sums, 4))[:, None], rtol=1e-5)
    acts = np.zeros(2 * 8 * 64, np.float32)
    acts[: 8 * 64] = np.arange(8 * 64)
    gamma = np.arange(64, dtype=np.float32)
    queue = np.array([[1, 2, 0, 0, 1, 0, 8 * 64, 64], [0] * 8], np.int32)
    out = run_kernel(example("scale"), [queue, np.zeros(2, np.int32), gamma, acts])
    np.testing.assert_array_equal(out["acts"][8 * 64 :].reshape(8, 64), acts[: 8 * 64].reshape(8, 64) * gamma)
    assert out["events"].tolist() == [0, 1]
