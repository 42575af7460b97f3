"""Options and output that several commands share."""

import json
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from mpkc.cli.errors import UserError
from mpkc.runtime.cache import atomic_path

if TYPE_CHECKING:
    from rich.table import Table

UNLIMITED = 10_000  # columns that no table has

F = TypeVar("F", bound=Callable[..., Any])


def workers_option(function: F) -> F:
    """`--workers N`."""
    return click.option(
        "--workers",
        type=click.IntRange(1, 65536),
        metavar="N",
        help="Workers of the mega-kernel.  [default: the cores of this machine]",
    )(function)


def schedulers_option(function: F) -> F:
    """`--schedulers S`."""
    return click.option(
        "--schedulers",
        type=click.IntRange(1, 1024),
        default=4,
        show_default=True,
        metavar="S",
        help="Warps that hand out tasks.",
    )(function)


def grids_option(function: F) -> F:
    """`--grids FILE`."""
    return click.option(
        "--grids",
        metavar="FILE",
        help="A table of grids for operators (docs/partition.md); `golden` is the paper's.",
    )(function)


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")(function)


def print_json(value: object) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(value))


def table(*headings: str, right: tuple[str, ...] = (), wrap: tuple[str, ...] = ()) -> "Table":
    """An empty table without lines.

    Args:
        right: headings of the columns that are flush right.
        wrap: headings of the columns that may be wrapped where a line is too long; all others stay whole.
    """
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in right else "left"
        wraps = heading in wrap
        made.add_column(heading, justify=justify, no_wrap=not wraps, overflow="fold" if wraps else "ignore")
    return made


def print_table(*tables: "Table") -> None:
    """Tables on standard output, an empty line between two; no narrower than the columns that are not wrapped."""
    from rich.console import Console
    from rich.measure import Measurement

    for number, each in enumerate(tables):
        console = Console(markup=False, highlight=False, emoji=False)
        widths = Measurement.get(console, console.options.update(max_width=UNLIMITED), each)
        needed = widths.maximum if all(column.no_wrap for column in each.columns) else widths.minimum
        console.width = max(console.width, needed)
        with console.capture() as shown:  # rich has an answer of its own to closed pipes
            console.print(*[""] * (number > 0), each)
        click.echo(shown.get(), nl=False)


def output_file(path: str) -> str:
    """The type of options that name a file to write: told before the work that would be lost.

    Raises:
        UserError: where no file can be written there.
    """
    target = Path(path)
    if target.is_dir():
        raise UserError(f"error: {path}: is a directory: name a file")
    if not target.parent.is_dir():
        raise UserError(f"error: {path}: there is no directory {target.parent}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UserError(f"error: {path}: permission denied")
    return path


@contextmanager
def output_path(path: Path) -> Generator[Path]:
    """A name to write to that becomes `path` when the block ends without an error; devices are written as they are."""
    if path.exists() and not path.is_file():
        yield path
    else:
        with atomic_path(path) as part:
            yield part


def write_output(data: str | bytes, path: str | None) -> None:
    """Write to a file, whole or not at all; to standard output where `path` is None."""
    if path is None:
        click.echo(data, nl=False)
        return
    with output_path(Path(path)) as part:
        part.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def byte_progress(what: str) -> Generator[Callable[[int, int, str], None] | None]:
    """A callback (done, total, name) that draws a bar on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[name]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task(what, total=None, name="", visible=False)  # until there is something to wait for
        yield lambda done, total, name: bar.update(row, completed=done, total=total, name=name, visible=True)


@contextmanager
def working(what: str) -> Generator[None]:
    """Says on standard error what goes on, while it goes on; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
