"""Options and output that several commands share."""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from mpkc.runtime.cache import atomic_path

F = TypeVar("F", bound=Callable[..., Any])


def workers_option(function: F) -> F:
    """`--workers N`."""
    return click.option(
        "--workers",
        type=click.IntRange(1, 65536),
        metavar="N",
        help="Workers of the mega-kernel.  [default: the cores of this machine]",
    )(function)


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")(function)


def print_json(value: object) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(value))


def write_output(text: str, path: str | None) -> None:
    """Write to a file, whole or not at all; to standard output where `path` is None."""
    if path is None:
        click.echo(text, nl=False)
    else:
        with atomic_path(Path(path)) as part:
            part.write_text(text)


@contextmanager
def byte_progress(what: str) -> Generator[Callable[[int, int, str], None] | None]:
    """A callback (done, total, name) that draws a bar on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[name]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task(what, total=None, name="")
        yield lambda done, total, name: bar.update(row, completed=done, total=total, name=name)
