"""docs/kernel.md accounts for every byte of the records that a GPU reads."""

import re
from pathlib import Path

import numpy as np
import pytest

from mpkc.runtime.cuda.image import EVENT, VIEW, task_record

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "kernel.md").read_text()
HEADER = (ROOT / "runtime" / "cuda" / "include" / "mpk" / "graph.h").read_text()


def documented(record: str) -> dict[str, int]:
    section = TEXT.split(f"\n## {record}", 1)[1].split("\n## ", 1)[0]
    return {name: int(size) for name, size in re.findall(r"^\| `(\w+)` \| (\d+)", section, re.MULTILINE)}


def declared(record: str) -> list[str]:
    """The members of a struct of graph.h, in order."""
    body = re.search(rf"struct {record} {{(.*?)\n}};", HEADER, re.DOTALL)
    assert body is not None
    code = re.sub(r"//[^\n]*", "", body[1])
    return re.findall(r"\b(\w+)(?:\[\w+\])?(?=[,;])", code)


@pytest.mark.parametrize(("record", "dtype"), [("Task", task_record(1)), ("View", VIEW), ("Event", EVENT)])
def test_each_field_is_described_with_its_size(record: str, dtype: np.dtype) -> None:
    assert dtype.names is not None
    sizes = {name: dtype[name].itemsize for name in dtype.names}
    assert documented(record) == sizes
    assert declared(record) == list(sizes)
    assert sum(sizes.values()) == dtype.itemsize


def test_limits_hold() -> None:
    assert EVENT.itemsize <= 16
    assert task_record(8).itemsize == 208 <= 352
