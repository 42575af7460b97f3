"""Tables of grids that a user writes: which operators have which, in TOML (docs/partition.md).

rms_norm = ["rows"]
"linear layers.*.o" = [1, "features // 64"]
"""

import ast
import operator
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self, cast

from xdsl.dialects.builtin import TensorType

from mpkc.dialects.tgraph_operators import kind_of
from mpkc.dialects.tops.base import Grid, Operator
from mpkc.dialects.tops.weight import WeightOp

KEY = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+)\s*=""")


@dataclass(frozen=True)
class Rule:
    """A line of a table.

    Attributes:
        kind: the kind of operator: "linear"; may have * and ?.
        weight: one of the names of the weights that it reads, or None for any operator; may have * and ?.
        parts: a number or a formula for each dimension.
        place: file:line.
    """

    kind: str
    weight: str | None
    parts: tuple[int | str, ...]
    place: str

    def matches(self, op: Operator) -> bool:
        """Whether the line is about this operator."""
        if not fnmatchcase(kind_of(op), self.kind):
            return False
        return self.weight is None or any(fnmatchcase(name, self.weight) for name in _weights(op))

    def grid(self, op: Operator, workers: int) -> Grid:
        """The grid of an operator; raises ValueError where a formula has no value."""
        names = names_of(op, workers)
        return tuple(part if isinstance(part, int) else evaluate(part, names) for part in self.parts)


@dataclass(frozen=True)
class GridTable:
    """The lines of a table; the first that matches an operator counts."""

    rules: tuple[Rule, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises ValueError, with file and line, where it is no such table; OSError."""
        text = path.read_text(encoding="utf-8")
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as err:
            raise ValueError(f"{path}: not TOML: {err}") from err
        lines = _lines(text)
        return cls(tuple(_rule(key, value, f"{path}:{lines.get(key, 1)}") for key, value in table.items()))

    def rule_of(self, op: Operator) -> Rule | None:
        """The line that counts for an operator."""
        return next((rule for rule in self.rules if rule.matches(op)), None)


def _lines(text: str) -> dict[str, int]:
    """The line of each key."""
    keys = ((number, KEY.match(line)) for number, line in enumerate(text.splitlines(), 1))
    return {next(iter(tomllib.loads(f"{key[1]} = 0"))): number for number, key in keys if key}


def _rule(key: str, value: object, place: str) -> Rule:
    kind, _, weight = key.partition(" ")
    parts = cast(list[object], value) if isinstance(value, list) else []
    if not parts or not all(type(part) in (int, str) for part in parts):
        raise ValueError(
            f'{place}: error: expected "KIND WEIGHT" = [...] with a number or a formula in quotes for each dimension'
        )
    for part in parts:
        if isinstance(part, str):
            try:
                _checked(ast.parse(part.strip(), mode="eval"))
            except (SyntaxError, ValueError) as err:
                raise ValueError(f"{place}: error: {part!r} is no formula: {err}") from err
    return Rule(kind, weight.strip() or None, tuple(cast(list[int | str], parts)), place)


def _weights(op: Operator) -> list[str]:
    owners = [operand.owner for operand in op.operands]
    return [name for owner in owners if isinstance(owner, WeightOp) for name in owner.source_names]


def names_of(op: Operator, workers: int) -> dict[str, int]:
    """What formulas may name: workers, the extent of each dimension, and inner, the columns of the first operand."""
    names = {dimension.name.replace(" ", "_"): dimension.extent for dimension in op.dimensions()}
    first = op.operands[0].type
    inner = {"inner": first.get_shape()[-1]} if isinstance(first, TensorType) else {}
    return {"workers": workers, **inner, **names}


BINARY: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
CALLS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}
ALLOWED = (ast.Expression, ast.BinOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Constant, ast.Load, *BINARY)


def _checked(tree: ast.Expression) -> ast.Expression:
    for node in ast.walk(tree):
        known = isinstance(node, ALLOWED) and (not isinstance(node, ast.Constant) or type(node.value) is int)
        if not known or (isinstance(node, ast.Call) and ast.unparse(node.func) not in CALLS):
            raise ValueError("it has integers, names, + - * // %, comparisons, A if B else C, min(...) and max(...)")
    return tree


def evaluate(formula: str, names: Mapping[str, int]) -> int:
    """The value of a formula; raises ValueError where it has none, or names what is not in `names`."""

    def value(node: ast.AST) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.BinOp(left=left, op=op, right=right):
                return BINARY[type(op)](value(left), value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return BINARY[type(op)](value(left), value(right))
            case ast.IfExp(test=test, body=body, orelse=other):
                return value(body) if value(test) else value(other)
            case ast.Call(func=ast.Name(id=name), args=args):
                return CALLS[name](*map(value, args))
            case ast.Name(id=name):
                raise ValueError(f"{name!r} is not known; there are: {', '.join(names)}")
            case _:
                raise ValueError(f"{ast.unparse(node)} is no formula")

    try:
        return int(value(_checked(ast.parse(formula.strip(), mode="eval")).body))
    except (ZeroDivisionError, TypeError) as err:
        raise ValueError(f"{formula!r} has no value: {err}") from err
