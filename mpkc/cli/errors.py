"""Errors for people: one message with the place, the line and a caret; exit code 2; never a traceback."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError

from mpkc.dialects.diagnostics import OpError, place
from mpkc.parsing import error_text
from mpkc.runtime.errors import LaunchFailure, TargetError


class UserError(click.ClickException):
    """Bad input or usage, or a program that the rules refuse."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        click.echo(self.message, err=True)


class NoAnswer(UserError):
    """Well-formed, but the answer is no: a deadlock, a failed check."""

    exit_code = 1


def with_source_line(err: OpError) -> str:
    """The error with its source line and a caret below the place, where the file can be read."""
    found = place(err.op.location)
    if found is None:
        return str(err)
    file, line, column = found
    try:
        text = Path(file).read_text().splitlines()[line - 1]
    except (OSError, IndexError, UnicodeDecodeError):
        return str(err)
    return f"{err}\n{text}\n{' ' * (column - 1)}^"


@contextmanager
def told_in_one_line() -> Generator[None]:
    """Turn what a user can get wrong into one message on stderr and exit code 2, or 1 where a launch failed."""
    try:
        yield
    except OpError as err:
        raise UserError(with_source_line(err)) from err
    except ParseError as err:
        raise UserError(error_text(err)) from err
    except (DiagnosticException, ArgSpecParseError, TargetError, ValueError, OSError) as err:
        raise UserError(f"error: {err}") from err
    except LaunchFailure as err:
        raise NoAnswer(f"error: {err}") from err
