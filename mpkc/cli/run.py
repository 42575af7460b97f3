"""`mpkc run`: a program of tensor operators on a target, checked against the reference."""

from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import BadZipFile

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from xdsl.dialects.func import FuncOp

from mpkc.cli.common import byte_progress, json_option, print_json, workers_option
from mpkc.cli.errors import UserError, told_in_one_line
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.weight import WeightOp
from mpkc.models.model import Model
from mpkc.runtime.cache import atomic_path
from mpkc.targets import TARGETS, TargetName

TOLERANCE = 1e-3  # of the largest element of the reference


@click.command()
@click.argument("input")
@click.option("--target", type=click.Choice(TARGETS), default="reference", show_default=True, help="Where it runs.")
@click.option("--inputs", metavar="IN.NPZ", help="Arrays by the names of arguments and weights.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Of inputs that are not given.")
@click.option("--outputs", metavar="OUT.NPZ", help="The file for the results: out0, out1, ...")
@click.option("--check", is_flag=True, help="Compare the results with the float32 reference.")
@workers_option
@json_option
def run(
    input: str,
    target: TargetName,
    inputs: str | None,
    seed: int,
    outputs: str | None,
    check: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """Run a program once.

    \b
    INPUT is an .mlir file, - for standard input, or a model (its decoding step).
        mpkc run examples/mlp.mlir --target host --check
        mpkc run examples/mlp.mlir --inputs in.npz --outputs out.npz

    Exit code 1: with --check, where a result differs from the reference.
    """
    with told_in_one_line():
        results, errors = run_input(input, target, inputs, seed, check, workers)
        if outputs:
            save(Path(outputs), {f"out{i}": array for i, array in enumerate(results)})
    report(results, errors, as_json)
    if any(not error <= TOLERANCE for error in errors):
        raise SystemExit(1)


def run_input(
    spec: str, target: TargetName, inputs: str | None, seed: int, check: bool, workers: int | None
) -> tuple[list[Array], list[float]]:
    """The results, and with `check` how far each is from the reference, relative to its largest element."""
    from mpkc.dialects.tops.function import only_function
    from mpkc.inputs import read_input
    from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights
    from mpkc.targets import open_run

    given = read_input(spec)
    func = only_function(given.module)
    named = load(Path(inputs)) if inputs else {}
    arguments = seeded_inputs(func, seed)
    sources = {op.key for op in func.walk() if isinstance(op, WeightOp)}
    if unknown := sorted(set(named) - set(arguments) - sources):
        known = ", ".join([*arguments, *sorted(sources)])
        raise UserError(f"error: {inputs}: no argument or weight is named {unknown[0]!r}; there are: {known}")
    arguments |= {name: array for name, array in named.items() if name in arguments}
    random = weights_of(given.model, func) if given.model and given.model.has_weights else seeded_weights(seed)

    def weight(op: WeightOp) -> Array:
        return named[op.key] if op.key in named else random(op)

    def copies() -> Mapping[str, Array]:
        return {name: np.array(array) for name, array in arguments.items()}

    expected = run_function(func, copies(), weight) if check else []
    results = open_run(target, given, weight, copies(), workers).run()
    return results, [distance(a, b) for a, b in zip(results, expected, strict=False)]


def weights_of(model: Model, func: FuncOp) -> Callable[[WeightOp], Array]:
    """The model's own weights."""
    from mpkc.models.weights import program_weights

    with byte_progress("weights") as progress:
        return program_weights(model, func, progress)


def distance(found: Array, expected: Array) -> float:
    """The largest difference, relative to the largest element expected; of integers, how many differ."""
    if found.dtype.kind != "f":
        return float(np.count_nonzero(found != expected))
    largest = float(np.max(np.abs(expected), initial=0.0))
    return float(np.max(np.abs(found - expected), initial=0.0)) / (largest or 1.0)


def load(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except (ValueError, BadZipFile, EOFError) as err:
        raise ValueError(f"{path}: not an .npz file of arrays: {err}") from err


def save(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file, whole or not at all."""
    with atomic_path(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def report(results: list[Array], errors: list[float], as_json: bool) -> None:
    """The shape and the norm of each result, and how far it is from the reference."""
    rows = [
        {"name": f"out{i}", "shape": list(array.shape), "norm": float(np.linalg.norm(array.astype(np.float64)))}
        | ({"error": errors[i]} if errors else {})
        for i, array in enumerate(results)
    ]
    if as_json:
        return print_json({"results": rows, "ok": all(error <= TOLERANCE for error in errors)})
    table = Table(box=None, pad_edge=False)
    for heading in ("result", "shape", "norm", *(["error", ""] if errors else [])):
        table.add_column(heading)
    for i, row in enumerate(rows):
        verdict = [f"{errors[i]:.1e}", "ok" if errors[i] <= TOLERANCE else "DIFFERS"] if errors else []
        table.add_row(f"out{i}", "x".join(map(str, results[i].shape)), f"{row['norm']:.6g}", *verdict)
    Console().print(table)
