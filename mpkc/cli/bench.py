"""`mpkc bench`: how fast it is, and how fast others are."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from mpkc.cli.common import json_option, output_file, print_json, print_table, table

if TYPE_CHECKING:
    from mpkc.bench.host import HostBenchmark

PROMPT = "The capital of France is"
BUSY = 0.1  # load average for each core


@click.command()
@click.argument("name", type=click.Choice(["host", "tgraph", "semaphores", "semaphores-scale"]))
@click.option("--tokens", type=click.IntRange(2), default=24, show_default=True, help="host: new tokens of each run.")
@click.option("--repeat", type=click.IntRange(1), default=3, show_default=True, metavar="R", help="host: runs of each.")
@click.option("--device", default="trn2", show_default=True, metavar="NAME", help="semaphores: a machine description.")
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="PROGRAM",
    help="semaphores: one of them; may be given more than once.",
)
@click.option("--small", is_flag=True, help="semaphores: at reduced sizes, for a quick look.")
@click.option("--sensitivity", is_flag=True, help="semaphores: also with each parameter of the device 25 % off.")
@click.option("--svg", "svg_path", type=output_file, metavar="OUT.SVG", help="semaphores: draw the latencies.")
@click.option("--emit", metavar="PROGRAM", help="semaphores: print that tile program, and nothing else.")
@click.option(
    "--kind",
    metavar="KIND",
    help="semaphores, with --emit: print beside it its streams with that kind of semaphores, such as manual.",
)
@json_option
def bench(
    name: str,
    tokens: int,
    repeat: int,
    device: str,
    kernels: tuple[str, ...],
    small: bool,
    sensitivity: bool,
    svg_path: str | None,
    emit: str | None,
    kind: str | None,
    as_json: bool,
) -> None:
    """Run a benchmark: mpkc bench host.

    \b
    NAME is
        host     decoding with smollm2-135m in float32 on all cores, beside PyTorch, transformers and llama.cpp
                 where they are installed: pip install 'mpkc[peers]'; the median of interleaved runs
        tgraph   CPU time and memory of the task graph of qwen3-8b, and of graphs of half a million and a million tasks
        semaphores
                 the programs of barrier-free, table 2, with each kind of semaphores, simulated (docs/table2.md):
                 latency, code, registers and semaphores beside the paper's; manual: placed by hand, as an expert would.
                 mpkc verify and mpkc simulate take what is printed:
                     mpkc bench semaphores --emit adamw --kind manual > adamw.mlir
        semaphores-scale
                 CPU time of a multi-engine program of 50,000 instructions in 1,000 loops, from IR to ISA text, of one
                 of half the size, and of simulating them

    Exit code 1: where a program that computes in float32 chose other tokens.
    """
    match name:
        case "host":
            failed = bench_host(tokens, repeat, as_json)
        case "tgraph":
            failed = bench_tgraph(as_json)
        case "semaphores":
            failed = bench_table2(device, kernels, small, sensitivity, svg_path, emit, kind, as_json)
        case _:
            failed = bench_semaphores_scale(as_json)
    if failed:
        raise SystemExit(1)


def bench_host(tokens: int, repeat: int, as_json: bool) -> bool:
    """Decode and report; whether it failed."""
    result = host(tokens, repeat)
    if as_json:
        print_json(result.to_json())
    else:
        report(result)
    return bool(result.failures)


def bench_tgraph(as_json: bool) -> bool:
    """Compile graphs and report."""
    from mpkc.bench.tgraph import bench_tgraph as run

    with line_progress() as told:
        result = run(told)
    if as_json:
        print_json(result.to_json())
        return False
    rows = table("graph", "tasks", "CPU s", "peak MiB", right=("tasks", "CPU s", "peak MiB"))
    for row in result.rows:
        rows.add_row(row.name, f"{row.tasks:,}", f"{row.seconds:.2f}", f"{row.peak_mib:,.0f}")
    print_table(rows)
    click.echo(f"\ntwice the tasks take {result.doubling:.2f} times as long")
    return False


def bench_table2(
    device: str,
    kernels: tuple[str, ...],
    small: bool,
    sensitivity: bool,
    svg_path: str | None,
    emit: str | None,
    kind: str | None,
    as_json: bool,
) -> bool:
    """Simulate the programs of the paper's table and report, or print one."""
    from mpkc.cli.bench_semaphores import bench_semaphores, emit_kernel

    if kind is not None and emit is None:
        raise click.UsageError("--kind goes with --emit")

    if emit is None:
        bench_semaphores(device, kernels, sensitivity, small, svg_path, as_json)
    else:
        emit_kernel(emit, small, kind, device)
    return False


def bench_semaphores_scale(as_json: bool) -> bool:
    """Compile and simulate multi-engine programs, and report."""
    from mpkc.bench.semaphores import bench_scale

    with line_progress() as told:
        result = bench_scale(told)
    if as_json:
        print_json(result.to_json())
        return False
    numbers = ("instructions", "CPU s", "instructions/s")
    rows = table("step", *numbers, right=numbers)
    for row in result.rows:
        rows.add_row(row.name, f"{row.instructions:,}", f"{row.seconds:.2f}", f"{row.rate:,.0f}")
    print_table(rows)
    click.echo(
        f"\nfrom IR to ISA text in {result.seconds:.1f} s; twice as many take {result.doubling:.2f} times as long"
    )
    return False


def host(tokens: int, repeat: int) -> "HostBenchmark":
    from mpkc.bench.host import bench_host
    from mpkc.models.builtin import SMOLLM2
    from mpkc.models.source import open_model

    model = open_model(SMOLLM2)
    prompt = model.tokenizer().encode(PROMPT)
    with line_progress() as told:
        return bench_host(model, prompt, tokens, repeat, told)


@contextmanager
def line_progress() -> Generator[Callable[[str], None]]:
    """A callback that shows what is done now, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


def report(result: "HostBenchmark") -> None:
    rows = table("program", "tokens/s", "of mpkc", "weights", "", right=("tokens/s", "of mpkc"), wrap=("",))
    for row in result.rows:
        rate = "" if row.tokens_per_second is None else f"{row.tokens_per_second:.1f}"
        relative = "" if row.relative is None else f"{row.relative:.2f}"
        rows.add_row(row.name, rate, relative, row.dtype, row.note)
    floor = result.floor
    print_table(rows)
    click.echo(
        f"\nmemory allows {floor.tokens_per_second:.1f} tokens/s: {floor.bytes_per_token / 1e6:.0f} MB a token at "
        f"{floor.bytes_per_second / 1e9:.1f} GB/s, {floor.how}"
    )
    if result.load > BUSY:
        click.echo(f"the machine was busy: {result.load:.1f} programs ran for each core before this one")
