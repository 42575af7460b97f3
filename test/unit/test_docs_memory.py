"""The examples of docs/memory.md and docs/batches.md do what the pages say."""

import re
from pathlib import Path

import pytest
from test_docs_tgraph import bare, printed
from tgraph_cases import parsed, run_passes
from tiny_models import tiny_config

from mpkc.dialects.diagnostics import OpError

DOCS = Path(__file__).parents[2] / "docs"
MEMORY, BATCHES = ((DOCS / name).read_text() for name in ("memory.md", "batches.md"))
BEFORE, AFTER, REFUSED = re.findall(r"```mlir\n(.*?)```", MEMORY, re.S)


def test_the_pass_gives_places() -> None:
    module = parsed(BEFORE)
    run_passes(module, "tgraph-plan-memory")
    assert [line.replace("%x :", "%x:") for line in bare(printed(module))[1:-1]] == bare(AFTER)


def test_a_place_beyond_the_pool_is_refused() -> None:
    message = re.match("// refused (.*)", REFUSED)
    assert message
    with pytest.raises(OpError, match=re.escape(message[1])):
        parsed(REFUSED)


def test_a_family_runs_batches() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", BATCHES, re.S)
    exec(example, {"config": tiny_config()})
