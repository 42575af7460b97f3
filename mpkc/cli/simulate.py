"""`mpkc simulate`: a task graph in virtual time."""

from typing import TYPE_CHECKING, Literal

import click

from mpkc.cli.common import (
    grids_option,
    json_option,
    output_file,
    print_json,
    print_table,
    schedulers_option,
    table,
    workers_option,
    write_output,
)
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from mpkc.runtime.reference.protocol import Simulation
    from mpkc.taskgraph import TaskGraph

POLICIES = ("decentralized", "global")


@click.command()
@click.argument("input")
@workers_option
@grids_option
@schedulers_option
@click.option(
    "--policy", type=click.Choice(POLICIES), default="decentralized", show_default=True, help="Who gets a task."
)
@click.option("--iterations", type=click.IntRange(1), default=1, show_default=True, metavar="K", help="Of the graph.")
@click.option("--device", default="generic", show_default=True, metavar="NAME", help="A machine description.")
@click.option("--fault", metavar="FAULT", help="lost-trigger:TASK, short-queue:N or missing-worker:W.")
@click.option("--trace", "trace_path", type=output_file, metavar="OUT.JSON", help="Workers over time, for Perfetto.")
@json_option
def simulate(
    input: str,
    workers: int | None,
    grids: str | None,
    schedulers: int,
    policy: Literal["decentralized", "global"],
    iterations: int,
    device: str,
    fault: str | None,
    trace_path: str | None,
    as_json: bool,
) -> None:
    """Simulate workers, schedulers and their queues on a task graph.

    \b
    INPUT is an .mlir file, - for standard input, or a model; shapes are enough. Tasks of tensor operators cost
    what the device's rates say, those of other graphs what their rows say.
        mpkc simulate qwen3-8b --workers 132
        mpkc simulate examples/mlp.mlir --trace trace.json
        mpkc simulate examples/mlp.mlir --workers 4 --fault missing-worker:1

    Exit code 1: where it ends in a deadlock, with what is blocked.
    """
    from mpkc.inputs import read_input
    from mpkc.runtime.cuda.queues import queue_capacities
    from mpkc.runtime.machine import MachineError, machine
    from mpkc.runtime.reference.protocol import Setup
    from mpkc.runtime.reference.protocol import simulate as run
    from mpkc.simulation import task_costs, to_json, trace, with_fault
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    try:
        costs = machine(device)
    except MachineError as err:
        raise UserError(f"error: {err}") from err
    count = workers or cores()
    graph = linear_task_graph(read_input(input), count, grids)
    queues = queue_capacities(graph.table, count, schedulers)
    setup = Setup(count, schedulers, queues, costs.costs, policy, iterations)
    setup = with_fault(setup, fault, graph) if fault else setup
    cost = task_costs(graph, costs)
    found = run(graph.table, cost, setup)
    if trace_path:
        write_output(trace(found, graph), trace_path)
    answer = to_json(found, graph, cost, setup)
    if as_json:
        print_json(answer)
    else:
        show(found, graph, answer)
    if found.deadlock:
        raise SystemExit(1)


def show(found: "Simulation", graph: "TaskGraph", answer: dict[str, object]) -> None:
    """Times in microseconds; of a deadlock, what is blocked."""
    from mpkc.simulation import deadlock_lines

    rows = table("", "us", right=("us",))
    busy = found.worker_busy()
    for name, value in (
        ("time", found.time),
        ("critical path of an iteration", answer["critical_path_ns"]),
        ("a worker in tasks, on average", busy.mean()),
        ("a worker in tasks, at most", busy.max()),
        ("a worker at queues and counters, at most", max(found.worker_control)),
        ("a scheduler busy, at most", max(found.scheduler_busy)),
    ):
        rows.add_row(name, f"{float(str(value)) / 1000:,.1f}")
    print_table(rows)
    if found.deadlock:
        click.echo("\n".join(deadlock_lines(found.deadlock, graph)))
