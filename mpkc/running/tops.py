"""A program of tensor operators on a target, compared with the reference."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.function import only_function
from mpkc.dialects.tops.weight import WeightOp
from mpkc.inputs import Input
from mpkc.runtime.reference.tops import Weights, checked_weight, run_function, seeded_inputs
from mpkc.targets import TargetName, open_run


@dataclass(frozen=True)
class Results:
    """Arrays by name, and how far each is from the reference (`distance`) where they were compared."""

    arrays: Mapping[str, Array]
    errors: Mapping[str, float] = field(default_factory=dict[str, float])


def run_tops(
    given: Input,
    target: TargetName,
    named: Mapping[str, Array],
    seed: int,
    otherwise: Weights,
    check: bool,
    workers: int | None,
    grids: str | None,
) -> Results:
    """The results out0, out1, ...

    Args:
        named: arguments by name, weights by key or by the names of their sources; other arguments are seeded.
        otherwise: gives the weights that are not named.
        check: whether to run the reference too.

    Raises:
        OpError: where a name is unknown, an array does not fit, or the target refuses the program.
    """
    func = only_function(given.module)
    arguments = seeded_inputs(func, seed)
    weights = named_weights(func, named)
    refuse_unknown(func, named, [*arguments, *weights_names(func)])
    arguments |= {name: array for name, array in named.items() if name in arguments}

    def weight(op: WeightOp) -> Array:
        return weights[op.key] if op.key in weights else otherwise(op)

    def copies() -> Mapping[str, Array]:
        return {name: np.array(array) for name, array in arguments.items()}

    unchanged = only_function(given.module.clone())
    run = open_run(target, given, weight, copies(), workers, grids)
    expected = run_function(unchanged, copies(), weight) if check else []
    arrays = {f"out{i}": array for i, array in enumerate(run.run())}
    return Results(arrays, {name: distance(arrays[name], e) for name, e in zip(arrays, expected, strict=False)})


def weights_names(func: FuncOp) -> list[str]:
    """The keys of all weights, then the names of sources that are no keys."""
    ops = [op for op in func.walk() if isinstance(op, WeightOp)]
    return list(dict.fromkeys([*(op.key for op in ops), *(name for op in ops for name in op.source_names)]))


def refuse_unknown(func: FuncOp, named: Mapping[str, Array], known: list[str]) -> None:
    """Raise OpError where one of `named` is neither an argument nor a weight."""
    if unknown := [name for name in named if name not in known]:
        raise OpError(func, f"no argument or weight is named {unknown[0]!r}; there are: {', '.join(known)}")


def named_weights(func: FuncOp, named: Mapping[str, Array]) -> dict[str, Array]:
    """By key, the weights that `named` holds, or all of whose sources it holds.

    Raises:
        OpError: where one has another shape or dtype, or some of its sources are missing.
    """
    return {
        op.key: checked_weight(op, lambda op: named_weight(op, named))
        for op in func.walk()
        if isinstance(op, WeightOp) and not named.keys().isdisjoint({op.key, *op.source_names})
    }


def named_weight(op: WeightOp, named: Mapping[str, Array]) -> Array:
    """One weight as `named` holds it, or stacked from its sources."""
    if op.key in named:
        return named[op.key]
    for name in op.source_names:
        if name not in named:
            raise OpError(
                op, f"weight {op.key!r} is stacked from {', '.join(op.source_names)}, but {name!r} is missing"
            )
        if named[name].dtype != np.float32:
            raise OpError(op, f"weight {name!r} is {named[name].dtype}, but must be float32")
    out = np.empty(op.result.type.get_shape(), np.float32)
    try:
        op.place(named.__getitem__, out)
    except ValueError as err:
        raise OpError(op, str(err)) from err
    return out


def distance(found: Array, expected: Array) -> float:
    """The largest difference, relative to the largest element expected; of integers, how many differ."""
    if found.dtype.kind != "f":
        return float(np.count_nonzero(found != expected))
    largest = float(np.max(np.abs(expected), initial=0.0))
    return float(np.max(np.abs(found - expected), initial=0.0)) / (largest or 1.0)
