"""`mpkc stats`: counts of a program's task graph."""

import click
from rich.console import Console
from rich.table import Table

from mpkc.cli.common import json_option, print_json, workers_option
from mpkc.cli.errors import told_in_one_line


@click.command()
@click.argument("input")
@workers_option
@json_option
def stats(input: str, workers: int | None, as_json: bool) -> None:
    """Count the operators, tasks and events of a program.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc stats qwen3-8b --workers 128
        mpkc stats examples/mlp.mlir --json
    """
    with told_in_one_line():
        from mpkc.inputs import read_input
        from mpkc.stats import operator_rows, stats_of
        from mpkc.targets import compile_for, cores

        program = compile_for(read_input(input), workers or cores())
        counts = stats_of(program).to_json()
    if as_json:
        return print_json(counts)
    totals = Table(box=None, pad_edge=False, show_header=False)
    totals.add_column()
    totals.add_column(justify="right")
    for name, value in counts.items():
        totals.add_row(name.replace("_", " "), f"{value:,}")
    operators = Table(box=None, pad_edge=False)
    operators.add_column("operator")
    for heading in ("count", "tasks"):
        operators.add_column(heading, justify="right")
    operators.add_column("grids")
    for row in operator_rows(program):
        operators.add_row(row.name, f"{row.count:,}", f"{row.tasks:,}", ", ".join(row.grids))
    Console().print(totals, "", operators)
