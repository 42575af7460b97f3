"""Work that grows with the graph, not with its square; and the same bytes every time."""

import os
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import numpy as np
from tgraph_cases import parsed, run_passes, table_op
from xdsl.printer import Printer

from mpkc.dialects.tgraph_table import Form

PIPELINE = "tgraph-build,tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-normalize,tgraph-linearize"


def chain(operators: int, rows: int, features: int) -> str:
    """Sums, each of the last two; a task an element."""
    type = f"tensor<{rows}x{features}xf32>"
    lines = [f"func.func @f(%x0 : {type}) -> {type} {{"]
    for number in range(operators):
        grid = f"{{grid = array<i64: {rows}, {features}>}}"
        lines.append(
            f"%x{number + 1} = tops.add %x{number}, %x{max(0, number - 1)} {grid} : ({type}, {type}) -> {type}"
        )
    return "\n".join([*lines, f"func.return %x{operators} : {type} }}"])


def test_a_million_tasks() -> None:
    module = parsed(chain(10, 250, 400))
    run_passes(module, PIPELINE)
    table = table_op(module).table
    assert table.form is Form.LINEAR
    assert table.task_count == 1_000_000
    assert table.event_count == 900_000  # a sum waits for the sum before it; the one before that is implied
    assert np.array_equal(np.sort(table.task_tile[:100_000]), np.arange(100_000))


def test_work_grows_with_the_graph() -> None:
    def seconds(rows: int) -> float:
        module = parsed(chain(10, rows, 100))
        started = time.process_time()
        run_passes(module, PIPELINE)
        return time.process_time() - started

    seconds(10)
    assert seconds(160) < 16 * 4 * seconds(10)  # sixteen times the tasks: a square would take 256 times as long


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    example = Path(__file__).parents[2] / "examples" / "mlp.mlir"
    pipeline = f"tgraph-partition{{workers=6 min_bytes=64}},{PIPELINE}"
    module = parsed(example.read_text())
    run_passes(module, pipeline)
    out = StringIO()
    Printer(out).print_op(module)
    command = [sys.executable, "-m", "mpkc.opt", str(example), "-p", pipeline]
    found = subprocess.run(
        command, env=os.environ | {"PYTHONHASHSEED": "12"}, capture_output=True, text=True, check=True
    ).stdout
    assert "linear {" in found
    assert found.strip() == out.getvalue().strip()
