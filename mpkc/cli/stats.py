"""`mpkc stats`: counts of a program, and why a task graph, or the waits of engines, are as they are."""

from typing import TYPE_CHECKING

import click

from mpkc.cli.common import grids_option, json_option, print_json, print_table, table, workers_option
from mpkc.cli.engines import OF_SEMAPHORES, refuse_given, refuse_semaphores, semaphore_options, setup_of

if TYPE_CHECKING:
    from rich.table import Table

    from mpkc.engines import Setup
    from mpkc.explain import Choice
    from mpkc.inputs import Input
    from mpkc.launching import Mode
    from mpkc.semaphores import EngineProgram
    from mpkc.taskgraph import TaskGraph


@click.command()
@click.argument("input")
@workers_option
@grids_option
@click.option("--explain", "explained", is_flag=True, help="Show why grids, launch modes and waits are what they are.")
@click.option(
    "--max-batch", type=click.IntRange(1), metavar="N", help="Of a model: the graphs for batches of up to N requests."
)
@semaphore_options
@json_option
def stats(
    input: str,
    workers: int | None,
    grids: str | None,
    max_batch: int | None,
    explained: bool,
    kind: str,
    device: str,
    counters: str | None,
    as_json: bool,
) -> None:
    """Count the operators, tasks and events of a program.

    Of a multi-engine program: loops, instructions and dependencies, and what each kind of semaphores costs.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc stats qwen3-8b --workers 128
        mpkc stats qwen3-8b --workers 128 --grids golden --json
        mpkc stats qwen3-8b --workers 132 --explain
        mpkc stats smollm2-135m --max-batch 8
    """
    from dataclasses import replace

    from mpkc.engine_program import engine_program
    from mpkc.inputs import read_input
    from mpkc.stats import stats_of
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    if max_batch is not None:
        from mpkc.cli.batches import print_batches

        return print_batches(input, workers or cores(), grids, max_batch, as_json)
    count = workers or cores()
    given = read_input(input)
    if (program := engine_program(given.module)) is not None:
        refuse_given(("workers", "grids", "max_batch"), "a multi-engine program")
        refuse_semaphores(given.module)
        if not explained:
            refuse_given(("kind",), "stats without --explain, which show every kind")
        refuse_given(("budget",), "stats, which show every kind")
        return print_engines(given, program, setup_of(kind, device, counters), explained, as_json)
    refuse_given((*OF_SEMAPHORES, "device"), "a task graph")
    choices: list[Choice] = []
    if explained:
        from mpkc.explain import explain
        from mpkc.pipelines import Options

        choices = explain(replace(given, module=given.module.clone()), Options(count, grids))
    graph = linear_task_graph(given, count, grids)
    counts = stats_of(graph, workers or cores()).to_json()
    modes: list[Mode] = []
    if explained:
        from mpkc.launching import launch_modes

        modes = launch_modes(graph)
    if as_json:
        reasons = {"grids": [each.to_json() for each in choices], "launch": [each.to_json() for each in modes]}
        return print_json(counts | (reasons if explained else {}))
    totals = table("what", "count", right=("count",))
    totals.show_header = False
    for name, value in counts.items():
        totals.add_row(name.replace("_", " "), f"{value:,}")
    print_table(totals, *((choice_table(choices), mode_table(modes)) if explained else (operator_table(graph),)))


def print_engines(given: "Input", program: "EngineProgram", setup: "Setup", explained: bool, as_json: bool) -> None:
    """Report on a multi-engine program; the formulas of its waits are those of the kind that is asked for."""
    from dataclasses import asdict

    from mpkc.engine_stats import engine_stats, waits_of
    from mpkc.engines import compiled

    counts = engine_stats(program, setup.machine, setup.counters)
    waits = list(waits_of(compiled(given.module, program, setup).plan)) if explained else []
    if as_json:
        return print_json(counts.to_json() | ({"waits": [asdict(row) for row in waits]} if explained else {}))
    totals = table("what", "count", right=("count",))
    totals.show_header = False
    totals.add_row("loops", f"{counts.loops:,}")
    totals.add_row("conditionals", f"{counts.conditionals:,}")
    for engine, number in counts.instructions.items():
        totals.add_row(f"instructions of {engine}", f"{number:,}")
    for form, number in counts.dependencies.items():
        totals.add_row(f"dependencies: {form}", f"{number:,}")
    numbers = ("semaphores", "registers", "code bytes", "remarks")
    kinds = table("kind", *numbers, "", right=numbers, wrap=("",))
    for row in counts.kinds:
        cells = (row.semaphores, row.registers, row.code_bytes, row.remarks)
        shown = [""] * 4 if row.refused else [f"{number or 0:,}" for number in cells]
        kinds.add_row(row.kind, *shown, row.refused or "")
    formulas = table("instruction", "producer", "semaphore", "threshold", "why", wrap=("threshold", "why"))
    for wait in waits:
        formulas.add_row(wait.instruction, wait.producer, wait.semaphore, wait.threshold, wait.why)
    print_table(totals, kinds, *([formulas] if explained else []))
    return None


def operator_table(graph: "TaskGraph") -> "Table":
    """A row a kind of operator."""
    from mpkc.stats import operator_rows

    operators = table("operator", "count", "tasks", "grids", right=("count", "tasks"), wrap=("grids",))
    for row in operator_rows(graph):
        operators.add_row(row.name, f"{row.count:,}", f"{row.tasks:,}", ", ".join(row.grids))
    return operators


def mode_table(modes: "list[Mode]") -> "Table":
    """The launch mode of each kind of operator."""
    rows = table("operator", "tasks", "launch", "why", right=("tasks",))
    for each in modes:
        rows.add_row(each.kind, f"{each.tasks:,}", each.mode, each.why)
    return rows


def choice_table(choices: "list[Choice]") -> "Table":
    """The grid of each operator, and behind it the next best ones."""
    numbers = ("count", "tasks", "bytes", "busiest worker")
    rows = table("operator", "weight", "count", "grid", "tasks", "bytes", "busiest worker", "why", right=numbers)
    for choice in choices:
        for each in (choice.chosen, *choice.others):
            first = each is choice.chosen
            costs = (f"{number:,}" for number in (each.tasks, each.bytes, each.busiest))
            names = (choice.kind, choice.weight, f"{choice.count:,}") if first else ("", "", "")
            rows.add_row(*names, "x".join(map(str, each.grid)), *costs, choice.why if first else "")
    return rows
