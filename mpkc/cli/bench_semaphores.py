"""The part of `mpkc bench` that shows barrier-free, table 2."""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import click

from mpkc.cli.common import print_json, print_table, table, write_output
from mpkc.cli.engines import device_named
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from mpkc.bench.rows import Row, Table2

NUMBERS = ("latency", "paper", "code", "paper ", "registers", "paper  ", "semaphores", "paper   ")
KIB = 1024


def bench_semaphores(
    device: str, programs: Sequence[str], sensitivity: bool, small: bool, svg_path: str | None, as_json: bool
) -> None:
    """Compile, simulate and report; draw a chart where there is a path for it."""
    from mpkc.bench.table2 import bench_table2
    from mpkc.bench.table2_svg import chart

    machine = device_named(device)
    try:
        with bar_progress() as told:
            result = bench_table2(machine, programs, told, small, sensitivity)
    except KeyError as err:
        raise UserError(f"error: {err.args[0]}") from err
    if svg_path:
        write_output(chart(result), svg_path)
    if as_json:
        return print_json(result.to_json())
    print_table(figures(result), *([influences(result)] if sensitivity else []))
    click.echo(f"\ntimes are those of {result.device}; latency is relative to barrier; paper: barrier-free, table 2")


def emit_kernel(name: str, small: bool, kind: str | None, device: str) -> None:
    """Print the tile program of a kernel; with a kind of semaphores, its streams beside it."""
    from mpkc.bench.kernels import KERNELS
    from mpkc.bench.paper import paper_rows
    from mpkc.bench.table2 import kinds_of, streams_of

    kernels = {row.program: row.kernel for row in paper_rows()}
    kernel = KERNELS.get(kernels.get(name, name))
    if kernel is None:
        raise UserError(f"error: there is no program {name}; there are: {', '.join(kernels)}")
    sizes = kernel.small if small else kernel.full
    if kind is None:
        return click.echo(kernel.build(**sizes), nl=False)
    if kind not in kinds_of(kernel):
        raise UserError(f"error: there is no kind {kind} of {name}; there are: {', '.join(kinds_of(kernel))}")
    click.echo(streams_of(kernel, sizes, kind, device_named(device)).module)


def figures(result: "Table2") -> "Table":
    """A line for each program and kind, the paper's figures beside ours."""
    shown = table("program", "kind", *NUMBERS, right=NUMBERS)
    for program, rows in groupby(result.rows, key=lambda row: row.program):
        name = program
        for row in rows:
            shown.add_row(name, row.kind, *_cells(row))
            name = ""
        for refused in result.refused:
            if refused.program == program:
                shown.add_row("", refused.kind, "n/a")
    return shown


def _cells(row: "Row") -> tuple[str, ...]:
    paper = row.paper
    beside = ("", "", "", "")
    if paper is not None:
        beside = (f"{paper.latency:.2f}", _kib(paper.code_bytes), str(paper.registers), str(paper.semaphores))
    ours = (f"{row.latency:.2f}", _kib(row.code_bytes), str(row.registers), str(row.semaphores))
    return tuple(cell for pair in zip(ours, beside, strict=True) for cell in pair)


def _kib(count: int) -> str:
    return f"{count / KIB:,.1f} KiB"


def influences(result: "Table2") -> "Table":
    """What becomes of the best kind beside barrier, for each program and parameter."""
    headings = ("kind", "as it is", "25 % less", "25 % more")
    shown = table("program", "parameter", *headings, "", right=headings[1:])
    for (program, parameter), both in groupby(result.sensitivity, key=lambda each: (each.program, each.parameter)):
        best, (less, more) = result.best(program), both
        latencies = (best.latency, less.latency[best.kind], more.latency[best.kind])
        told = "other winner" if any(map(result.overtaken, (less, more))) else ""
        shown.add_row(program, parameter, best.kind, *(f"{latency:.2f}" for latency in latencies), told)
    return shown


@contextmanager
def bar_progress() -> Generator[Callable[[int, int, str], None]]:
    """A callback (done, total, what) that draws a bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(row, completed=done, total=total, description=what)
