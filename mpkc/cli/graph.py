"""`mpkc graph`: the task graph of a program, as a table or a drawing."""

import re

import click
from rich.console import Console
from rich.table import Table

from mpkc.cli.common import workers_option, write_output
from mpkc.cli.errors import UserError, told_in_one_line
from mpkc.graph import OperatorNode, TaskRow, grid


@click.command()
@click.argument("input")
@click.option("--svg", "svg_path", metavar="OUT.SVG", help="Draw it.")
@click.option("--dot", "dot_path", metavar="OUT.DOT", help="Write it for Graphviz.")
@click.option("--tasks", is_flag=True, help="Task by task, with the events between them.")
@click.option("--operators", "chosen", metavar="FIRST:LAST", help="Only these operators, by number; also 3, 3: and :9.")
@workers_option
def graph(
    input: str, svg_path: str | None, dot_path: str | None, tasks: bool, chosen: str | None, workers: int | None
) -> None:
    """Show which operators, or which tasks, wait for which.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc graph examples/mlp.mlir
        mpkc graph smollm2-135m --operators 0:16 --svg layer.svg
        mpkc graph smollm2-135m --operators 4:6 --tasks --workers 8 --dot tasks.dot
    """
    with told_in_one_line():
        show(input, svg_path, dot_path, tasks, chosen, workers)


def show(
    spec: str, svg_path: str | None, dot_path: str | None, tasks: bool, chosen: str | None, workers: int | None
) -> None:
    """Write the drawings; a table to standard output where none is asked for."""
    from mpkc.drawing import dot, svg
    from mpkc.graph import operator_diagram, operator_nodes, task_diagram, task_rows
    from mpkc.inputs import read_input
    from mpkc.targets import compile_for, cores

    program = compile_for(read_input(spec), workers or cores())
    operators = operator_range(chosen, len(program.operators))
    rows = task_rows(program, operators) if tasks else []
    nodes = [] if tasks else operator_nodes(program)[operators.start : operators.stop]
    if not svg_path and not dot_path:
        return Console().print(task_table(rows) if tasks else operator_table(nodes))
    diagram = task_diagram(rows, spec) if tasks else operator_diagram(nodes, spec)
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


def operator_table(nodes: list[OperatorNode]) -> Table:
    """A row an operator."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("operator")
    table.add_column("grid")
    table.add_column("tasks", justify="right")
    table.add_column("after (events)")
    for node in nodes:
        after = ", ".join(f"{source} ({count:,})" for source, count in node.after.items())
        table.add_row(str(node.number), node.info.kind, grid(node.info), f"{node.info.count:,}", after)
    return table


def task_table(rows: list[TaskRow]) -> Table:
    """A row a task."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("task")
    for heading in ("waits on event", "triggers event"):
        table.add_column(heading, justify="right")
    for row in rows:
        events = ("" if event is None else str(event) for event in (row.wait, row.trigger))
        table.add_row(str(row.number), row.name, *events)
    return table
