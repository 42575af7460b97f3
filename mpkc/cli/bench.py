"""`mpkc bench`: how fast it is, and how fast others are."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpkc.cli.common import json_option, print_json
from mpkc.cli.errors import told_in_one_line

if TYPE_CHECKING:
    from mpkc.bench.host import HostBenchmark

PROMPT = "The capital of France is"
BUSY = 0.1  # load average for each core


@click.command()
@click.argument("name", type=click.Choice(["host"]))
@click.option("--tokens", type=click.IntRange(2), default=24, show_default=True, help="New tokens of each run.")
@click.option("--repeat", type=click.IntRange(1), default=3, show_default=True, metavar="R", help="Runs of each.")
@json_option
def bench(name: str, tokens: int, repeat: int, as_json: bool) -> None:
    """Run a benchmark; the median of interleaved runs is told.

    \b
    NAME is
        host   decoding with smollm2-135m in float32 on all cores, beside PyTorch, transformers and llama.cpp
               where they are installed: pip install 'mpkc[peers]'

    Exit code 1: where a program that computes in float32 chose other tokens.
    """
    with told_in_one_line():
        result = host(tokens, repeat)
    if as_json:
        print_json(result.to_json())
    else:
        report(result)
    if result.failures:
        raise SystemExit(1)


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
    with Console(stderr=True).status("") as status:
        yield status.update


def report(result: "HostBenchmark") -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("program")
    table.add_column("tokens/s", justify="right")
    table.add_column("of mpkc", justify="right")
    table.add_column("weights")
    table.add_column("")
    for row in result.rows:
        rate = "" if row.tokens_per_second is None else f"{row.tokens_per_second:.1f}"
        relative = "" if row.relative is None else f"{row.relative:.2f}"
        table.add_row(row.name, rate, relative, row.dtype, escape(row.note))
    floor = result.floor
    Console().print(
        table,
        "",
        f"memory allows {floor.tokens_per_second:.1f} tokens/s: {floor.bytes_per_token / 1e6:.0f} MB a token at "
        f"{floor.bytes_per_second / 1e9:.1f} GB/s, {floor.how}",
    )
    if result.load > BUSY:
        Console().print(f"the machine was busy: {result.load:.1f} programs ran for each core before this one")
