"""`mpkc graph`: what waits for what in a program, as a table or a drawing."""

import re
from typing import TYPE_CHECKING

import click

from mpkc.cli.common import (
    grids_option,
    json_option,
    output_file,
    print_json,
    print_table,
    table,
    workers_option,
    write_output,
)
from mpkc.cli.engines import device_named, refuse_given
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from mpkc.graph import OperatorNode, TaskRow
    from mpkc.semaphores import EngineProgram


@click.command()
@click.argument("input")
@click.option("--svg", "svg_path", type=output_file, metavar="OUT.SVG", help="Draw it.")
@click.option("--dot", "dot_path", type=output_file, metavar="OUT.DOT", help="Write it for Graphviz.")
@click.option("--tasks", is_flag=True, help="Task by task, with the events between them.")
@click.option("--operators", "chosen", metavar="FIRST:LAST", help="Only these operators, by number; also 3, 3: and :9.")
@workers_option
@grids_option
@json_option
def graph(
    input: str,
    svg_path: str | None,
    dot_path: str | None,
    tasks: bool,
    chosen: str | None,
    workers: int | None,
    grids: str | None,
    as_json: bool,
) -> None:
    """Show which operators, tasks or instructions wait for which.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc graph examples/mlp.mlir
        mpkc graph smollm2-135m --operators 0:16 --svg layer.svg
        mpkc graph smollm2-135m --operators 4:6 --tasks --workers 8 --dot tasks.dot
    """
    from mpkc.drawing import dot, svg
    from mpkc.engine_program import engine_program
    from mpkc.graph import operator_diagram, operator_nodes, task_diagram, task_rows
    from mpkc.inputs import read_input
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    given = read_input(input)
    if (program := engine_program(given.module)) is not None:
        refuse_given(("tasks", "chosen", "workers", "grids"), "a multi-engine program")
        return draw_engines(program, input, svg_path, dot_path, as_json)
    refuse_given(("as_json",), "a task graph")
    whole = linear_task_graph(given, workers or cores(), grids)
    operators = operator_range(chosen, len(whole.infos))
    rows = task_rows(whole, operators) if tasks else []
    nodes = [] if tasks else operator_nodes(whole)[operators.start : operators.stop]
    if not svg_path and not dot_path:
        return print_table(task_table(rows) if tasks else operator_table(nodes))
    diagram = task_diagram(rows, input) if tasks else operator_diagram(nodes, input)
    for path, text in ((svg_path, svg), (dot_path, dot)):
        if path:
            write_output(text(diagram), path)


def draw_engines(
    program: "EngineProgram", title: str, svg_path: str | None, dot_path: str | None, as_json: bool
) -> None:
    """Show the instructions of a multi-engine program and their dependencies."""
    from mpkc.engine_graph import dot, instruction_rows, svg
    from mpkc.semaphores import prepare

    prepared = prepare(program, "per-loop", device_named("generic"))
    for path, text in ((svg_path, svg), (dot_path, dot)):
        if path:
            write_output(text(prepared, title), path)
    if as_json:
        return print_json({"instructions": [row.to_json() for row in instruction_rows(prepared)]})
    if svg_path or dot_path:
        return None
    rows = table("instruction", "engine", "loops", "after (distance)", wrap=("after (distance)",))
    for row in instruction_rows(prepared):
        after = ", ".join(f"{name} {distance}".rstrip() for name, distance in row.after)
        rows.add_row(row.name, row.engine, " ".join(row.loops), after)
    return print_table(rows)


def operator_range(text: str | None, count: int) -> range:
    """The operators that `FIRST:LAST` means, both inclusive; all `count` of them where it is None."""
    if text is None:
        return range(count)
    match = re.fullmatch(r"(\d*)(:?)(\d*)", text)
    if not match or not text.strip(":"):
        raise UserError(f"error: --operators {text}: expected FIRST:LAST, two numbers of operators")
    first = int(match[1] or 0)
    last = int(match[3] or count - 1) if match[2] else first
    if not first <= last < count:
        raise UserError(f"error: --operators {text}: the program has operators 0 to {count - 1}, FIRST up to LAST")
    return range(first, last + 1)


def operator_table(nodes: "list[OperatorNode]") -> "Table":
    """A row an operator."""
    from mpkc.graph import grid

    rows = table("", "operator", "grid", "tasks", "after (events)", right=("", "tasks"), wrap=("after (events)",))
    for node in nodes:
        after = ", ".join(f"{source} ({count:,})" for source, count in node.after.items())
        rows.add_row(str(node.number), node.info.kind, grid(node.info), f"{node.info.count:,}", after)
    return rows


def task_table(tasks: "list[TaskRow]") -> "Table":
    """A row a task."""
    rows = table("", "task", "waits on (triggers)", "triggers", right=("", "waits on (triggers)", "triggers"))
    for task in tasks:
        wait = "" if task.wait is None else f"{task.wait} ({task.needed:,})"
        trigger = "" if task.trigger is None else str(task.trigger)
        rows.add_row(str(task.number), task.name, wait, trigger)
    return rows
