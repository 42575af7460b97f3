"""Why each operator of a program has the grid that it has."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from xdsl.dialects.func import FuncOp

from mpkc.dialects.tgraph_operators import kind_of, operators_in, signature
from mpkc.dialects.tops.base import Operator
from mpkc.dialects.tops.weight import WeightOp
from mpkc.inputs import Input
from mpkc.passes.partition_cost import Bounds, Candidate, candidate
from mpkc.passes.partition_grid import CutOperator
from mpkc.passes.tgraph_partition import partitioned
from mpkc.pipelines import Options, grids_of_user, run_passes

SHOWN = 4  # candidates of an operator


@dataclass(frozen=True)
class Choice:
    """The grid of operators that are alike.

    Attributes:
        kind: of the operators.
        weight: a weight that the first of them reads, or "".
        count: how many there are.
        chosen: their grid and what it costs.
        others: the next best grids.
        candidates: how many grids there were to choose from.
        why: what decided.
    """

    kind: str
    weight: str
    count: int
    chosen: Candidate
    others: Sequence[Candidate]
    candidates: int
    why: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def explain(given: Input, options: Options) -> list[Choice]:
    """The grids of a program's operators, in program order; operators get them, so give it a copy.

    Raises:
        OpError: where the program is not well-formed, or a grid of the user's table does not fit.
    """
    functions = [op for op in given.module.ops if isinstance(op, FuncOp)]
    attributes = {op for function in functions for op in operators_in(function) if op.grid is not None}
    run_passes(given.module, grids_of_user(options), given.ctx)
    bounds = Bounds(options.workers, options.min_bytes)
    found: dict[object, list[Operator]] = {}
    answers: dict[object, tuple[list[Candidate], str]] = {}
    for function in functions:
        for op, choices in partitioned(function, bounds):
            why = reason(choices, bounds.workers) if choices else WRITTEN if op in attributes else TABLE
            key = signature(op), op.grid, why, tuple(choices)
            found.setdefault(key, []).append(op)
            answers[key] = choices or [candidate(CutOperator(op, op.dimensions(), op.grid or ()), bounds.workers)], why
    return [_choice(alike, *answers[key]) for key, alike in found.items()]


WRITTEN, TABLE = "attribute of the operator", "line of the table"


def _choice(alike: list[Operator], choices: list[Candidate], why: str) -> Choice:
    weights = [value.owner for value in alike[0].operands if isinstance(value.owner, WeightOp)]
    name = weights[0].source_names[0] if weights else ""
    return Choice(kind_of(alike[0]), name, len(alike), choices[0], choices[1:SHOWN], len(choices), why)


def reason(choices: Sequence[Candidate], workers: int) -> str:
    """What decided between candidates of which the first was taken."""
    chosen = choices[0]
    narrow = chosen.tasks < 0.75 * workers
    if len(choices) == 1:
        return "as many tasks as it is worth" if narrow else "the only one that keeps the workers busy"
    other = choices[1]
    for attribute, words in (
        *((("busiest", "smallest largest task"),) if narrow else ()),
        ("bytes", "fewest bytes"),
        ("busiest", "equal bytes, best balanced"),
        ("tasks", "equal bytes and balance, fewest tasks"),
    ):
        if getattr(chosen, attribute) < getattr(other, attribute):
            return words
    return "equal cost, cuts later dimensions"
