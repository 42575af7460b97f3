"""`mpkc stats`: counts of a program's task graph."""

import click

from mpkc.cli.common import grids_option, json_option, print_json, print_table, table, workers_option


@click.command()
@click.argument("input")
@workers_option
@grids_option
@json_option
def stats(input: str, workers: int | None, grids: str | None, as_json: bool) -> None:
    """Count the operators, tasks and events of a program.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough.
        mpkc stats qwen3-8b --workers 128
        mpkc stats qwen3-8b --workers 128 --grids golden --json
        mpkc stats examples/mlp.mlir --json
    """
    from mpkc.inputs import read_input
    from mpkc.stats import operator_rows, stats_of
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    graph = linear_task_graph(read_input(input), workers or cores(), grids)
    counts = stats_of(graph).to_json()
    if as_json:
        return print_json(counts)
    totals = table("what", "count", right=("count",))
    totals.show_header = False
    for name, value in counts.items():
        totals.add_row(name.replace("_", " "), f"{value:,}")
    operators = table("operator", "count", "tasks", "grids", right=("count", "tasks"), wrap=("grids",))
    for row in operator_rows(graph):
        operators.add_row(row.name, f"{row.count:,}", f"{row.tasks:,}", ", ".join(row.grids))
    print_table(totals, operators)
