"""`mpkc simulate`: a task graph, or a multi-engine program, in virtual time."""

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
from mpkc.cli.engines import (
    OF_SEMAPHORES,
    bind_option,
    device_named,
    is_isa,
    refuse_given,
    refuse_semaphores,
    semaphore_options,
)

if TYPE_CHECKING:
    from mpkc.inputs import Input
    from mpkc.runtime.machine import Machine
    from mpkc.runtime.reference.protocol import Simulation
    from mpkc.taskgraph import TaskGraph

POLICIES = ("decentralized", "global")
OF_GRAPHS = ("workers", "grids", "schedulers", "policy", "iterations", "fault")


@click.command()
@click.argument("input")
@workers_option
@grids_option
@schedulers_option
@click.option(
    "--policy", type=click.Choice(POLICIES), default="decentralized", show_default=True, help="Who gets a task."
)
@click.option("--iterations", type=click.IntRange(1), default=1, show_default=True, metavar="K", help="Of the graph.")
@click.option("--fault", metavar="FAULT", help="lost-trigger:TASK, short-queue:N or missing-worker:W.")
@semaphore_options
@bind_option
@click.option("--inputs", metavar="IN.NPZ", help="Arrays by the names of arguments of a tile.kernel.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="S", help="Of other arrays.")
@click.option("--explain", is_flag=True, help="List every wait of a multi-engine program.")
@click.option("--races", is_flag=True, help="Look for races in a multi-engine program.")
@click.option("--trace", "trace_path", type=output_file, metavar="OUT.JSON", help="All over time, for Perfetto.")
@click.option("--svg", "svg_path", type=output_file, metavar="OUT.SVG", help="Engines over time, and their waits.")
@json_option
def simulate(
    input: str,
    workers: int | None,
    grids: str | None,
    schedulers: int,
    policy: Literal["decentralized", "global"],
    iterations: int,
    fault: str | None,
    kind: str,
    device: str,
    counters: str | None,
    bind: str | None,
    inputs: str | None,
    seed: int,
    explain: bool,
    races: bool,
    trace_path: str | None,
    svg_path: str | None,
    as_json: bool,
) -> None:
    """Simulate a task graph or a multi-engine program in virtual time.

    \b
    INPUT is an .mlir file, - for standard input, a model, or ISA text (.isa);
    shapes are enough. Tasks of tensor operators cost what the device's rates
    say, those of other graphs what their rows say.
        mpkc simulate qwen3-8b --workers 132
        mpkc simulate examples/mlp.mlir --trace trace.json
        mpkc simulate examples/mlp.mlir --workers 4 --fault missing-worker:1
    A sem.program or a tile.kernel is compiled to ISA text, and that is simulated.
        mpkc simulate program.mlir --bind n=3 --semaphores per-engine --explain
        mpkc simulate program.isa --bind n=3 --races --svg engines.svg

    Exit code 1: where it ends in a deadlock, with what is blocked, or has a race.
    """
    from mpkc.inputs import read_input

    machine = device_named(device)
    given = None if is_isa(input) else read_input(input)
    if given is None or holds_program(given):
        from mpkc.cli.simulate_engines import Asked, simulate_engines

        refuse_given(OF_GRAPHS, "a multi-engine program")
        if given is None:
            refuse_given((*OF_SEMAPHORES, "seed"), "ISA text, which has its semaphores and no seeded arrays")
        else:
            refuse_semaphores(given.module)
            if any(op.name == "sem.program" for op in given.module.ops):
                refuse_given(("seed",), "a sem.program, which has no arrays")
        asked = Asked(kind, machine, counters, bind, inputs, seed, explain, races, trace_path, svg_path, as_json)
        return simulate_engines(input, given, asked)
    refuse_given((*OF_SEMAPHORES, "bind", "inputs", "seed", "explain", "races", "svg_path"), "a task graph")
    simulate_graph(given, workers, grids, schedulers, policy, iterations, machine, fault, trace_path, as_json)


def holds_program(given: "Input") -> bool:
    """Whether it is a multi-engine program."""
    from mpkc.engine_program import engine_program

    return engine_program(given.module) is not None


def simulate_graph(
    given: "Input",
    workers: int | None,
    grids: str | None,
    schedulers: int,
    policy: Literal["decentralized", "global"],
    iterations: int,
    machine: "Machine",
    fault: str | None,
    trace_path: str | None,
    as_json: bool,
) -> None:
    """Simulate and report; exit code 1 for a deadlock."""
    from mpkc.runtime.cuda.queues import queue_capacities
    from mpkc.runtime.reference.protocol import Setup
    from mpkc.runtime.reference.protocol import simulate as run
    from mpkc.simulation import task_costs, to_json, trace, with_fault
    from mpkc.targets import cores
    from mpkc.taskgraph import linear_task_graph

    count = workers or cores()
    graph = linear_task_graph(given, count, grids)
    queues = queue_capacities(graph.table, count, schedulers)
    setup = Setup(count, schedulers, queues, machine.costs, policy, iterations)
    setup = with_fault(setup, fault, graph) if fault else setup
    cost = task_costs(graph, machine)
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
