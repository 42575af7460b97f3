"""`mpkc graph`: the task graph of a program, as a table or a drawing."""

import re
from typing import TYPE_CHECKING

import click

from mpkc.cli.common import grids_option, output_file, print_table, table, workers_option, write_output
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from mpkc.graph import OperatorNode, TaskRow


@click.command()
@click.argument("input")
@click.option("--svg", "svg_path", type=output_file, metavar="OUT.SVG", help="Draw it.")
@click.option("--dot", "dot_path", type=output_file, metavar="OUT.DOT", help="Write it for Graphviz.")
@click.option("--tasks", is_flag=True, help="Task by task, with the events between them.")
@click.option("--operators", "chosen", metavar="FIRST:LAST", help="Only these operators, by number; also 3, 3: and :9.")
@workers_option
@grids_option
def graph(
    input: str,
    svg_path: str | None,
    dot_path: str | None,
    tasks: bool,
    chosen: str | None,
    workers: int | None,
    grids: str | None,
) -> None:
    """Show which operators, or which tasks, wait for which.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc graph examples/mlp.mlir
        mpkc graph smollm2-135m --operators 0:16 --svg layer.svg
        mpkc graph smollm2-135m --operators 4:6 --tasks --workers 8 --dot tasks.dot
    """
    from mpkc.drawing import dot, svg
    from mpkc.graph import operator_diagram, operator_nodes, task_diagram, task_rows
    from mpkc.inputs import read_input
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    whole = linear_task_graph(read_input(input), workers or cores(), grids)
    operators = operator_range(chosen, len(whole.infos))
    rows = task_rows(whole, operators) if tasks else []
    nodes = [] if tasks else operator_nodes(whole)[operators.start : operators.stop]
    if not svg_path and not dot_path:
        return print_table(task_table(rows) if tasks else operator_table(nodes))
    diagram = task_diagram(rows, input) if tasks else operator_diagram(nodes, input)
    for path, text in ((svg_path, svg), (dot_path, dot)):
        if path:
            write_output(text(diagram), path)


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
