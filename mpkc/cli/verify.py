"""`mpkc verify`: whether a task graph, or a multi-engine program, is right before anything runs."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpkc.cli.common import (
    grids_option,
    json_option,
    output_file,
    print_json,
    print_table,
    schedulers_option,
    table,
    workers_option,
    write_output,
)
from mpkc.cli.engines import OF_SEMAPHORES, bind_option, refuse_given, semaphore_options, setup_of
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from mpkc.engines import Setup
    from mpkc.inputs import Input
    from mpkc.runtime.verify.report import Report


def certificate_file(path: str) -> str:
    """The type of `--coq`: a file that can be written, with a name that coqc takes.

    Raises:
        UserError: what is wrong with it.
    """
    name = Path(path).name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\.v", name):
        raise UserError(f"error: {path}: Coq takes letters, digits and _ in the name of a file, and .v at its end")
    return output_file(path)


@click.command()
@click.argument("input")
@workers_option
@grids_option
@schedulers_option
@semaphore_options
@bind_option
@click.option("--coq", metavar="OUT.V", type=certificate_file, help="Write a certificate of a multi-engine program.")
@json_option
def verify(
    input: str,
    workers: int | None,
    grids: str | None,
    schedulers: int,
    kind: str,
    device: str,
    counters: str | None,
    bind: str | None,
    coq: str | None,
    as_json: bool,
) -> None:
    """Prove that a task graph completes in the right order, or that engines wait for what they must.

    Of a task graph: every task runs once, nothing deadlocks with the queues that the runtime has, every dependency of
    the operators is kept, no two tasks race. Of a multi-engine program: every wait is as long as its dependencies ask,
    for all trip counts, and nothing deadlocks.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
    A task graph that the file holds is checked as it stands; so are the streams
    of a program that stand beside it.
        mpkc verify qwen3-8b --workers 128
        mpkc verify examples/mlp.mlir --json
        mpkc verify program.mlir --semaphores per-engine
        mpkc verify program.mlir --coq certificate.v

    A certificate says that every wait of the streams is exact, for all trip counts; coqc accepts it, with -Q
    proofs/checker Checker, if that is so. What certificates don't cover is an error, and nothing is written.

    Exit code 1: where something is wrong.
    """
    from mpkc.dialects.diagnostics import OpError
    from mpkc.dialects.tgraph_graph import GraphOp
    from mpkc.dialects.tgraph_table_op import TableOp
    from mpkc.engine_program import engine_program
    from mpkc.inputs import read_input
    from mpkc.runtime.verify.graph import refused
    from mpkc.targets import cores

    try:
        given = read_input(input)
        if engine_program(given.module) is not None:
            refuse_given(("workers", "grids", "schedulers"), "a multi-engine program")
            report = engine_report(given, setup_of(kind, device, counters), bind, coq)
        else:
            refuse_given((*OF_SEMAPHORES, "device", "bind", "coq"), "a task graph")
            report = graph_report(given, workers or cores(), schedulers, grids)
    except OpError as err:  # what the verifier of a graph refuses is a failure like any other
        if not isinstance(err.op, GraphOp | TableOp):
            raise
        report = refused(str(err))
    if as_json:
        print_json(report.to_json())
    else:
        show(report)
    if not report.ok:
        raise SystemExit(1)


def engine_report(given: "Input", setup: "Setup", bind: str | None, coq: str | None) -> "Report":
    """What the checks of a multi-engine program find; a certificate of it in the file `coq`."""
    from mpkc.certificate import certificate
    from mpkc.dialects.sem_streams import StreamsOp
    from mpkc.engine_program import engine_program
    from mpkc.engines import compiled
    from mpkc.runtime.bindings import parse_bindings
    from mpkc.verification import verify_compiled, with_sizes

    program = engine_program(given.module)
    assert program is not None
    written = any(isinstance(op, StreamsOp) for op in given.module.ops)
    bindings = None if bind is None else parse_bindings(bind)
    queues = setup.machine.dma.queues if setup.machine.dma else ()
    found = compiled(given.module, program, setup)
    report = verify_compiled(found, written, bindings, queues)
    if coq and report.ok:
        write_output(certificate(*with_sizes(found.program, found.streams), found.program.sym_name.data), coq)
    return report


def graph_report(given: "Input", workers: int, schedulers: int, grids: str | None) -> "Report":
    """What the checks of a task graph find."""
    from mpkc.runtime.cuda.image import events
    from mpkc.runtime.cuda.queues import queue_capacities
    from mpkc.runtime.verify.graph import Runtime, verify_graph
    from mpkc.taskgraph import linear_task_graph

    graph = linear_task_graph(given, workers, grids)
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
