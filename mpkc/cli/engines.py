"""Options of the commands for multi-engine programs, and what they have in common."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from mpkc.cli.common import table
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table
    from xdsl.dialects.builtin import ModuleOp

    from mpkc.auto import Budget
    from mpkc.engines import Setup
    from mpkc.runtime.machine import Machine
    from mpkc.runtime.neuron.simulator import Result

F = TypeVar("F", bound=Callable[..., Any])

OF_SEMAPHORES = ("kind", "counters", "budget")
"""The parameters of `semaphore_options` that mean nothing to task graphs."""
BUDGET = "mpkc.budget"
"""Where a command keeps the budget of `auto`."""


def semaphore_options(function: F) -> F:
    """`--semaphores`, `--budget`, `--device` and `--counters`."""
    for option in (
        click.option(
            "--budget",
            metavar="LIMITS",
            callback=_keep_budget,
            expose_value=False,
            help="Of auto: semaphores=N,registers=N,unroll=N or some of them.  [default: the device's, unroll=1]",
        ),
        click.option("--counters", metavar="TYPE", help="Of semaphores, such as ui8.  [default: the device's]"),
        click.option("--device", default="generic", show_default=True, metavar="NAME", help="A machine description."),
        click.option(
            "--semaphores",
            "kind",
            default="per-loop",
            show_default=True,
            metavar="KIND",
            help="barrier, per-instruction, per-loop, per-engine, unrolled or auto.",
        ),
    ):
        function = option(function)
    return function


def bind_option(function: F) -> F:
    """`--bind`."""
    return click.option("--bind", metavar="BINDINGS", help="Run-time integers of a multi-engine program, by name.")(
        function
    )


def setup_of(kind: str, device: str, counters: str | None) -> "Setup":
    """What the options say."""
    from mpkc.engines import Setup

    return Setup(kind, device_named(device), counters, budget_given(kind))


def budget_given(kind: str) -> "Budget":
    """What `--budget` says."""
    from mpkc.auto import UNLIMITED

    budget = click.get_current_context().meta.get(BUDGET, UNLIMITED)
    if budget != UNLIMITED and kind != "auto":
        raise UserError(f"error: --budget goes with --semaphores auto, not with {kind}")
    return budget


def _keep_budget(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    from mpkc.auto import Budget

    if text is None:
        return
    items = [item.partition("=")[::2] for item in text.split(",")]
    limits = {name.strip(): value.strip() for name, value in items}
    if not limits.keys() <= {"semaphores", "registers", "unroll"} or not all(map(str.isdecimal, limits.values())):
        raise click.BadParameter(f"{text!r}: use semaphores=N,registers=N,unroll=N or some of them", ctx, parameter)
    ctx.meta[BUDGET] = Budget(**{name: int(value) for name, value in limits.items()})


def device_named(name: str) -> "Machine":
    """The machine of `--device`."""
    from mpkc.runtime.machine import MachineError, machine

    try:
        return machine(name)
    except MachineError as err:
        raise UserError(f"error: {err}") from err


def refuse_given(names: Iterable[str], what: str) -> None:
    """Raise where a parameter of the command was given that does not go with this kind of input."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        if parameter.name in names and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise UserError(f"error: {parameter.opts[0]} does not go with {what}; {ctx.command_path} --help shows how")


def refuse_semaphores(module: "ModuleOp") -> None:
    """Raise where options choose semaphores, and the program has its streams beside it."""
    if any(op.name == "sem.streams" for op in module.ops):
        refuse_given(OF_SEMAPHORES, "streams, which have their semaphores")


def is_isa(path: str) -> bool:
    """Whether INPUT is ISA text."""
    return Path(path).suffix == ".isa"


def usage_table(result: "Result") -> "Table":
    """What each engine did with its time."""
    numbers = ("busy ns", "wait ns", "control ns")
    rows = table("engine", *numbers, right=numbers)
    for name, usage in result.engines.items():
        rows.add_row(name, *(f"{ns:,.0f}" for ns in (usage.busy, usage.wait, usage.control)))
    return rows
