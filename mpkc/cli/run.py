"""`mpkc run`: a program on a target, once."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from mpkc.cli.common import (
    byte_progress,
    grids_option,
    json_option,
    output_file,
    output_path,
    print_json,
    print_table,
    table,
    workers_option,
)
from mpkc.cli.engines import OF_SEMAPHORES, refuse_given, refuse_semaphores, semaphore_options, setup_of
from mpkc.cli.errors import UserError
from mpkc.dialects.wording import counted
from mpkc.targets import TARGETS, TargetName

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from mpkc.dialects.tops.base import Array
    from mpkc.engines import Setup
    from mpkc.inputs import Input
    from mpkc.running.neuron import NeuronRun
    from mpkc.running.program import Program
    from mpkc.running.tops import Results
    from mpkc.runtime.bindings import Bindings
    from mpkc.runtime.reference.sem import Trace
    from mpkc.runtime.reference.tops import Weights

NEURON = "neuron"
TOLERANCE = 1e-3  # of the largest element of the reference


@click.command()
@click.argument("input")
@click.option(
    "--target", type=click.Choice((*TARGETS, NEURON)), default="reference", show_default=True, help="Where it runs."
)
@click.option("--inputs", metavar="IN.NPZ", help="Arrays by the names of arguments and weights.")
@click.option("--bind", metavar="BINDINGS", help="Run-time integers, by name.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="S", help="Of other inputs.")
@click.option("--outputs", type=output_file, metavar="OUT.NPZ", help="The file for the results.")
@click.option("--check", is_flag=True, help="Compare the results with the reference.")
@workers_option
@grids_option
@semaphore_options
@json_option
def run(
    input: str,
    target: TargetName | Literal["neuron"],
    inputs: str | None,
    bind: str | None,
    seed: int,
    outputs: str | None,
    check: bool,
    workers: int | None,
    grids: str | None,
    kind: str,
    device: str,
    counters: str | None,
    as_json: bool,
) -> None:
    """Run a program once.

    \b
    INPUT is an .mlir file, - for standard input, or a model (its decoding step).
    Tensor operators run on the reference, host and cuda targets; a tile.kernel
    and a sem.program in program order on the reference target, or as ISA text
    in the simulator of the neuron target; a tile.worker in program order.
        mpkc run examples/mlp.mlir --target host --check
        mpkc run examples/mlp.mlir --inputs in.npz --outputs out.npz
        mpkc run examples/tile/matmul.mlir --inputs in.npz
        mpkc run program.mlir --bind n=3,k=true,V=3,1,4
        mpkc run program.mlir --bind n=3,k=true,V=3,1,4 --target neuron --check

    Exit code 1: with --check, where a result differs from the reference.
    """
    from mpkc.dialects import sem, tile
    from mpkc.inputs import read_input
    from mpkc.running.arrays import load_arrays
    from mpkc.running.program import only_program
    from mpkc.running.sem import check_taken
    from mpkc.running.tile import run_tile
    from mpkc.running.tops import Results, run_tops
    from mpkc.runtime.bindings import parse_bindings
    from mpkc.runtime.reference.sem import run_program

    given = read_input(input)
    program = only_program(given.module)
    bindings = parse_bindings(bind or "")
    mega_kernel = {"--workers": workers, "--grids": grids}
    named = load_arrays(Path(inputs)) if inputs else {}
    if target == NEURON:
        refuse_given(("workers", "grids"), "--target neuron")
        refuse_semaphores(given.module)
        if isinstance(program, sem.ProgramOp):
            refuse_given(("seed", "outputs"), "a sem.program, which has no arrays")
        setup = setup_of(kind, device, counters)
        results = neuron_results(given, setup, named, bindings, seed, check, as_json)
        return finish(results, outputs, as_json) if results else None
    refuse_given((*OF_SEMAPHORES, "device"), f"--target {target}")
    match program:
        case sem.ProgramOp():
            refuse(program, target, {"--inputs": inputs, "--outputs": outputs, "--check": check} | mega_kernel)
            trace = run_program(program, bindings)
            check_taken(trace, bindings, program.argument_names)
            return report_trace(trace, as_json)
        case tile.ProgramOp():
            refuse(program, target, {"--check": check} | mega_kernel)
            results = Results(run_tile(program, named, bindings, seed))
        case _:
            refuse(program, "reference", {"--bind": bind})
            results = run_tops(given, target, named, seed, weights_of(given, program, seed), check, workers, grids)
    finish(results, outputs, as_json)


def finish(results: "Results", outputs: str | None, as_json: bool) -> None:
    """Write and report results; exit code 1 where they differ from the reference."""
    from mpkc.running.arrays import save_arrays

    if outputs:
        with output_path(Path(outputs)) as part:
            save_arrays(part, results.arrays)
    report(results, as_json)
    if not all(map(close, results.errors.values())):
        raise SystemExit(1)


def neuron_results(
    given: "Input",
    setup: "Setup",
    named: "Mapping[str, Array]",
    bindings: "Bindings",
    seed: int,
    check: bool,
    as_json: bool,
) -> "Results | None":
    """Run on the neuron target; the arrays of a tile.kernel, else a report and None.

    Exit code 1 for a deadlock, and where opaque instructions read other values than in program order.
    """
    from mpkc.dialects import sem
    from mpkc.dialects.diagnostics import OpError
    from mpkc.engine_program import engine_program
    from mpkc.running.neuron import run_neuron

    program = engine_program(given.module)
    if program is None:
        raise OpError(given.module, "the neuron target takes a sem.program or a tile.kernel")
    made = run_neuron(given.module, program, setup, named, bindings, seed, check)
    deadlock = made.simulated.deadlock
    if isinstance(program, sem.ProgramOp):
        report_executions(made, check, as_json)
    if deadlock:
        click.echo(str(deadlock), err=True)
    if deadlock or made.different:
        raise SystemExit(1)
    return None if isinstance(program, sem.ProgramOp) else made.results


def report_executions(made: "NeuronRun", check: bool, as_json: bool) -> None:
    """Every execution of an opaque instruction, an engine's in order, and what differs."""
    from mpkc.running.sem import hash_text

    rows = [
        {"instruction": e.name, "engine": e.engine, "iteration": list(e.iteration), "value": hash_text(e.value)}
        for e in made.simulated.executions
    ]
    if as_json:
        ok = made.simulated.ok and not made.different
        return print_json({"executions": rows} | ({"ok": ok, "different": list(made.different)} if check else {}))
    shown = table("instruction", "engine", "iteration", "value", right=("iteration", "value"))
    for e in made.simulated.executions:
        shown.add_row(e.name, e.engine, ",".join(map(str, e.iteration)) or "-", hash_text(e.value) or "")
    print_table(shown)
    for line in made.different:
        click.echo(line)
    if check:
        click.echo(f"\n{verdict(made)}")
    return None


def verdict(made: "NeuronRun") -> str:
    """What a comparison with program order came to."""
    if made.simulated.deadlock:
        return "DIFFERS: engines did not come to their end"
    if made.different:
        return f"DIFFERS: {counted(len(made.different), 'instruction')}"
    return f"ok: {counted(len(made.simulated.executions), 'execution')}, all with the values of program order"


def refuse(program: "Program", target: TargetName, options: Mapping[str, object]) -> None:
    """Raise where the target, or one of the options that are given, does not go with this kind of program."""
    from mpkc.dialects.diagnostics import OpError

    if target != "reference":
        raise OpError(program, f"a {program.name} runs on the reference and neuron targets only, not on {target}")
    for option, value in options.items():
        if value:
            raise UserError(f"error: {option} does not go with a {program.name}; mpkc run --help shows how")


def weights_of(given: "Input", func: "FuncOp", seed: int) -> "Weights":
    """The model's own weights; random ones where there are none."""
    from mpkc.models.weights import program_weights
    from mpkc.runtime.reference.tops import seeded_weights

    if not (given.model and given.model.has_weights):
        return seeded_weights(seed)
    with byte_progress("weights") as progress:
        return program_weights(given.model, func, progress)


def close(error: float) -> bool:
    """Whether a result agrees with the reference; NaN does not."""
    return error <= TOLERANCE


def report(results: "Results", as_json: bool) -> None:
    """The shape and the norm of each result, and how far it is from the reference."""
    import numpy as np

    norms = {name: float(np.linalg.norm(array.astype(np.float64))) for name, array in results.arrays.items()}
    if as_json:
        rows = [
            {"name": name, "shape": list(array.shape), "norm": finite(norms[name])}
            | ({"error": finite(results.errors[name])} if results.errors else {})
            for name, array in results.arrays.items()
        ]
        return print_json({"results": rows, "ok": all(map(close, results.errors.values()))})
    shown = table("result", "shape", "norm", *(["error", ""] if results.errors else []), right=("norm", "error"))
    for name, array in results.arrays.items():
        error = results.errors.get(name)
        verdict = [] if error is None else [f"{error:.1e}", "ok" if close(error) else "DIFFERS"]
        shown.add_row(name, "x".join(map(str, array.shape)), f"{norms[name]:.6g}", *verdict)
    print_table(shown)


def finite(value: float) -> float | None:
    """The number, or None for what JSON has no number for."""
    return value if math.isfinite(value) else None


def report_trace(trace: "Trace", as_json: bool) -> None:
    """Every execution, in program order, and what it waited for."""
    from mpkc.running.sem import execution_row, trace_json

    if as_json:
        return print_json(trace_json(trace))
    shown = table("instruction", "engine", "iteration", "value", "waits", right=("iteration", "value"))
    for execution in trace.executions:
        shown.add_row(*execution_row(execution))
    print_table(shown)
