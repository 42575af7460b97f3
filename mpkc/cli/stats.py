"""`mpkc stats`: counts of a program's task graph, and why its operators are cut and launched as they are."""

from typing import TYPE_CHECKING

import click

from mpkc.cli.common import grids_option, json_option, print_json, print_table, table, workers_option

if TYPE_CHECKING:
    from rich.table import Table

    from mpkc.explain import Choice
    from mpkc.launching import Mode
    from mpkc.taskgraph import TaskGraph


@click.command()
@click.argument("input")
@workers_option
@grids_option
@click.option("--explain", "explained", is_flag=True, help="Show why operators have their grids and launch modes.")
@click.option(
    "--max-batch", type=click.IntRange(1), metavar="N", help="Of a model: the graphs for batches of up to N requests."
)
@json_option
def stats(
    input: str, workers: int | None, grids: str | None, max_batch: int | None, explained: bool, as_json: bool
) -> None:
    """Count the operators, tasks and events of a program.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc stats qwen3-8b --workers 128
        mpkc stats qwen3-8b --workers 128 --grids golden --json
        mpkc stats qwen3-8b --workers 132 --explain
        mpkc stats smollm2-135m --max-batch 8
    """
    from dataclasses import replace

    from mpkc.inputs import read_input
    from mpkc.stats import stats_of
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    if max_batch is not None:
        from mpkc.cli.batches import print_batches

        return print_batches(input, workers or cores(), grids, max_batch, as_json)
    count = workers or cores()
    given = read_input(input)
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
