"""Errors for people: one message with the place, the line and a caret; an exit code; never a traceback."""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError

from mpkc.dialects.diagnostics import OpError, place
from mpkc.names import no_such
from mpkc.parsing import error_text, pointed_at
from mpkc.runtime.errors import LaunchFailure, TargetError

NO, BAD_INPUT, INTERRUPTED, NO_READER = 1, 2, 130, 141  # the last two as shells report the signals

NEW_OBJECTS = 50_000  # that are made between two searches for garbage


class UserError(Exception):
    """Bad input or usage, or a program that the rules refuse; its text is told as it is."""


TOLD = (
    UserError,
    click.ClickException,
    DiagnosticException,
    ParseError,
    ArgSpecParseError,
    TargetError,
    LaunchFailure,
    ValueError,
    OSError,
    MemoryError,
    RecursionError,
)


@contextmanager
def told_in_one_line() -> Generator[None]:
    """End the process by one message on stderr where its body raises what a user can cause.

    Raises:
        SystemExit: 2; 1 where a launch failed; 130 and 141, without a message, where the user interrupts or
            nobody reads the output any more.
    """
    try:
        yield
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        with suppress(OSError):  # what is still in the buffer goes nowhere when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NO_READER)
    except TOLD as err:
        click.echo(told(err), err=True)
        sys.exit(NO if isinstance(err, LaunchFailure) else BAD_INPUT)


def told(err: BaseException) -> str:
    """What to tell the user about an error."""
    match err:
        case OpError():
            return with_source_line(err)
        case ParseError():
            return error_text(err)
        case ArgSpecParseError():
            return spec_error_text(err)
        case UserError() | NoArgsIsHelpError():
            return str(err)
        case click.UsageError():
            hint = f"\n{err.ctx.command_path} --help shows how" if err.ctx else ""
            return f"error: {err.format_message()}{hint}"
        case click.ClickException():
            return f"error: {err.format_message()}"
        case OSError(strerror=str() as reason) if err.filename is not None:
            return f"error: {err.filename}: {reason[:1].lower()}{reason[1:]}"
        case MemoryError():
            return f"error: not enough memory: {err or 'the program is too large for this machine'}"
        case RecursionError():
            return "error: the program is nested too deeply"
        case _:
            return f"error: {err}"


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
    return f"{err}\n{pointed_at(text, column)}"


def spec_error_text(err: ArgSpecParseError) -> str:
    """The error in a list of passes: `pass-pipeline:line:col: error: message`, the list, and a caret."""
    _, where, *context, message = str(err).rstrip().splitlines()
    return "\n".join([f"{where}: error: {message.strip()}", *context])


class Tool(click.Group):
    """A group whose commands are listed in the order in which they were added, and end as `told_in_one_line` says."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise UserError(f"error: {no_such('command', args[0], self.commands)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with told_in_one_line():  # here, since click.Group.main has answers of its own to interrupts and closed pipes
            return super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        gc.set_threshold(NEW_OBJECTS)  # programs are many objects that stay: few searches for those that do not
        with told_in_one_line():
            sys.exit(super().main(*args, **kwargs | {"prog_name": self.name, "standalone_mode": False}))
