"""How long the task graph of a model takes, and one of a million tasks; every row in a process of its own."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mpkc.dialects.lists import Index, Lists
from mpkc.dialects.tgraph_operators import OperatorInfo
from mpkc.dialects.tgraph_table import EMPTY, Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.table_pass import TablePass
from mpkc.passes.tgraph_fuse_predecessors import FusePredecessorsPass
from mpkc.passes.tgraph_fuse_successors import FuseSuccessorsPass
from mpkc.passes.tgraph_linearize import LinearizePass
from mpkc.passes.tgraph_normalize import NormalizePass
from mpkc.passes.tgraph_prune import PrunePass
from mpkc.runtime.cuda.image import events
from mpkc.runtime.cuda.queues import queue_capacities
from mpkc.runtime.verify.graph import Runtime, verify_graph
from mpkc.runtime.verify.order import Order

MODEL, WORKERS, SCHEDULERS = "qwen3-8b", 132, 4
TASKS = 1_000_000
WIDTH, BLOCK, SHIFTED = 500, 10, 50  # tasks of an operator and of a block; of so many operators one is out of step


@dataclass(frozen=True)
class Row:
    """A measurement.

    Attributes:
        name: what ran.
        tasks: of the graph at the end, with empty ones; 0 where several graphs are meant.
        seconds: CPU time on one core.
        peak_mib: the most memory that the process had, or 0 where several processes are meant.
    """

    name: str
    tasks: int
    seconds: float
    peak_mib: float


@dataclass(frozen=True)
class TaskGraphBenchmark:
    """The rows, and how many times as long twice the tasks take."""

    rows: Sequence[Row]
    doubling: float

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def bench_tgraph(told: Callable[[str], None], tasks: int = TASKS) -> TaskGraphBenchmark:
    """The model from its configuration to the linear table and through `verify`, Python's start included; then half
    of `tasks` and `tasks` of a synthetic graph, stage by stage."""
    told(f"{MODEL}: stats, verify")
    stats, verify = (_command(name, MODEL, "--workers", str(WORKERS), "--json") for name in ("stats", "verify"))
    rows = [
        Row(f"{MODEL}: config to linear table", stats.tasks, stats.seconds, stats.peak_mib),
        Row(f"{MODEL}: verify, more than that", stats.tasks, verify.seconds - stats.seconds, verify.peak_mib),
    ]
    totals: list[float] = []
    for count in (tasks // 2, tasks):
        told(f"{count:,} synthetic tasks")
        done = subprocess.run(
            [sys.executable, "-m", "mpkc.bench.tgraph", str(count)], check=True, stdout=subprocess.PIPE, text=True
        )
        found = [Row(**row) for row in json.loads(done.stdout)]
        totals.append(sum(row.seconds for row in found))
        rows += [*found, Row(f"synthetic, {count:,}: all", found[-1].tasks, totals[-1], found[-1].peak_mib)]
    return TaskGraphBenchmark(rows, totals[1] / totals[0])


def _command(*arguments: str) -> Row:
    """CPU time and peak memory of an mpkc command that prints JSON."""
    process = subprocess.Popen([sys.executable, "-m", "mpkc.cli", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = json.loads(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ValueError(f"mpkc {' '.join(arguments)} failed: {printed}")
    return Row(arguments[0], printed.get("tasks", 0), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def synthetic_pairs(tasks: int) -> tuple[Index, Index]:
    """Producer and consumer of each dependency of a chain of operators of 500 tasks.

    As in a model, an operator reads the one before block by block or task by task, and a residual from the one before
    that. One of fifty is cut one task out of step, so that its tasks trigger and wait on two events.
    """
    consumer = np.arange(WIDTH, tasks, dtype=np.int64)
    operator, tile = consumer // WIDTH, consumer % WIDTH
    start = (operator - 1) * WIDTH + tile // BLOCK * BLOCK
    in_blocks = operator % 2 == 1
    sources = [
        (start[in_blocks, None] + np.arange(BLOCK)).ravel(),
        consumer[~in_blocks] - WIDTH,
        consumer[operator > 1] - 2 * WIDTH,
    ]
    targets = [np.repeat(consumer[in_blocks], BLOCK), consumer[~in_blocks], consumer[operator > 1]]
    shifted = (operator % SHIFTED == 0) & (tile > 0)
    sources.append(consumer[shifted] - WIDTH - 1)
    targets.append(consumer[shifted])
    return np.concatenate(sources), np.concatenate(targets)


def synthetic_stages(tasks: int) -> list[Row]:
    """Build, prune, fuse, normalize, linearize and verify a synthetic graph in this process."""
    rows: list[Row] = []

    def timed(name: str, stage: Callable[[], Table]) -> Table:
        started = time.process_time()
        table = stage()
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(Row(f"synthetic, {tasks:,}: {name}", table.task_count, seconds, peak))
        return table

    pairs = synthetic_pairs(tasks)
    table = timed("build", lambda: synthetic_table(tasks, pairs))
    infos = tuple(OperatorInfo(f"op_{number}", "linear", (WIDTH,)) for number in range(tasks // WIDTH))
    op = TableOp("synthetic", infos, table)
    passes: list[TablePass] = [
        PrunePass(),
        FuseSuccessorsPass(),
        FusePredecessorsPass(),
        NormalizePass(),
        LinearizePass(),
    ]
    for step in passes:
        table = timed(step.name, lambda step=step, table=table: step.rewrite(op, table))
    timed("verify", lambda: _verified(table, infos, pairs))
    return rows


def synthetic_table(tasks: int, pairs: tuple[Index, Index]) -> Table:
    """An event for each pair."""
    sources, targets = pairs
    number, edges = np.arange(tasks), np.arange(len(sources))
    return Table.of_lists(
        Form.GENERAL,
        (number // WIDTH, number % WIDTH, np.zeros(tasks, dtype=np.int32)),
        np.zeros(len(edges), dtype=np.int32),
        Lists.of_pairs(targets, edges, tasks),
        Lists.of_pairs(sources, edges, tasks),
    )


def _verified(table: Table, infos: tuple[OperatorInfo, ...], pairs: tuple[Index, Index]) -> Table:
    """Check the protocol, and that every dependency that the graph was built from is kept."""
    queues = queue_capacities(table, WORKERS, SCHEDULERS)
    report = verify_graph(table, infos, [], Runtime(WORKERS, SCHEDULERS, queues, events(table)))
    tasks = np.flatnonzero(table.task_operator != EMPTY)
    place = np.empty(len(tasks), dtype=np.int64)
    place[table.task_operator[tasks] * WIDTH + table.task_tile[tasks]] = tasks
    lacking = np.count_nonzero(Order.of(table).lacks(place[pairs[0]], place[pairs[1]]))
    if lacking or not report.ok:
        raise ValueError(f"the synthetic graph lacks {lacking} orders; {report.to_json()}")
    return table


if __name__ == "__main__":
    print(json.dumps([asdict(row) for row in synthetic_stages(int(sys.argv[1]))]))
