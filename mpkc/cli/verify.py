"""`mpkc verify`: whether a task graph is right, before anything runs."""

from typing import TYPE_CHECKING

import click

from mpkc.cli.common import (
    grids_option,
    json_option,
    print_json,
    print_table,
    schedulers_option,
    table,
    workers_option,
)

if TYPE_CHECKING:
    from mpkc.runtime.verify.report import Report


@click.command()
@click.argument("input")
@workers_option
@grids_option
@schedulers_option
@json_option
def verify(input: str, workers: int | None, grids: str | None, schedulers: int, as_json: bool) -> None:
    """Prove that a task graph completes, in the right order.

    Every task runs once, nothing deadlocks with the queues that the runtime has, every dependency of the operators
    is kept, no two tasks race.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
    A task graph that the file holds is checked as it stands.
        mpkc verify qwen3-8b --workers 128
        mpkc verify examples/mlp.mlir --json

    Exit code 1: where something is wrong.
    """
    from mpkc.targets import cores

    report = report_of(input, workers or cores(), schedulers, grids)
    if as_json:
        print_json(report.to_json())
    else:
        show(report)
    if not report.ok:
        raise SystemExit(1)


def report_of(spec: str, workers: int, schedulers: int, grids: str | None) -> "Report":
    """What the checks find; what a graph's own verifier refuses is a failure like any other."""
    from mpkc.dialects.diagnostics import OpError
    from mpkc.dialects.tgraph_graph import GraphOp
    from mpkc.dialects.tgraph_table_op import TableOp
    from mpkc.inputs import read_input
    from mpkc.runtime.cuda.image import events
    from mpkc.runtime.cuda.queues import queue_capacities
    from mpkc.runtime.verify.graph import Runtime, refused, verify_graph
    from mpkc.taskgraph import linear_task_graph

    try:
        graph = linear_task_graph(read_input(spec), workers, grids)
    except OpError as err:
        if not isinstance(err.op, GraphOp | TableOp):
            raise
        return refused(str(err))
    queues = queue_capacities(graph.table, workers, schedulers)
    runtime = Runtime(workers, schedulers, queues, events(graph.table))
    return verify_graph(graph.table, graph.infos, graph.operators, runtime)


def show(report: "Report") -> None:
    """A row a check, and what failed."""
    checks = table("check", "looked at", "wrong", "seconds", right=("looked at", "wrong", "seconds"))
    for check in report.checks:
        checks.add_row(check.name, f"{check.count:,}", f"{check.failed:,}", f"{check.seconds:.2f}")
    print_table(checks)
    for check in report.checks:
        for failure in check.failures:
            click.echo(f"{check.name}: {failure.message}")
        if check.failed > len(check.failures):
            click.echo(f"{check.name}: and {check.failed - len(check.failures):,} more")
