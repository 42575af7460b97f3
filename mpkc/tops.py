"""Tensor programs in Python: one function an operator of the `tops` dialect (docs/tops.md).

    from mpkc import tops

    p = tops.Program("mlp")
    x = p.input("x", (4, 64))
    y = tops.silu_mul(tops.linear(x, p.weight("gate", "up", groups=128, shape=(256, 64))))
    p.returns(tops.linear(y, p.weight("down", shape=(64, 128)), residual=x))
    module = p.module()

A mistake is a TopsError at the call that makes it. Every operation knows the line of Python that made it.
"""

from collections.abc import Mapping, Sequence
from typing import SupportsFloat, SupportsIndex

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects import tops
from mpkc.dialects.tops.base import Operator
from mpkc.program import Program, TopsError, Value, checked, float_attr, integer_attr, integers, string_attr

__all__ = [
    "Program",
    "TopsError",
    "Value",
    "add",
    "argmax_partial",
    "argmax_reduce",
    "attention",
    "embedding",
    "expert_linear",
    "expert_sum",
    "linear",
    "matmul",
    "mul",
    "reduce",
    "rms_norm",
    "rope",
    "silu_mul",
    "slice",
    "softmax",
    "topk_softmax",
    "transpose",
]

Grid = Sequence[SupportsIndex]


def _emit(
    kind: type[Operator],
    operands: Mapping[str, Value],
    grid: Grid | None,
    properties: Mapping[str, Attribute] | None = None,
) -> tuple[Value, ...]:
    """Append an operator to the program of its first operand."""
    first = next(iter(operands.values()))
    if not isinstance(first, Value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise VerifyException(f"{next(iter(operands))} is of {type(first)}, but must be a value of a program")
    program, properties = first.program, properties or {}
    values = [program.own(value, what) for what, value in operands.items()]
    types = kind.infer([value.type for value in values], properties)
    op = kind.create(operands=values, properties=dict(properties), result_types=types)
    if grid is not None:
        op.grid = integers(grid, "grid")
    return program.append(op)


def _optional(**operands: Value | None) -> dict[str, Value]:
    return {what: value for what, value in operands.items() if value is not None}


@checked
def add(a: Value, b: Value, *, grid: Grid | None = None) -> Value:
    """a + b, of one type [rows, features]."""
    return _emit(tops.AddOp, {"a": a, "b": b}, grid)[0]


@checked
def mul(a: Value, b: Value, *, grid: Grid | None = None) -> Value:
    """a · b element by element, of one type [rows, features]."""
    return _emit(tops.MulOp, {"a": a, "b": b}, grid)[0]


@checked
def silu_mul(x: Value, *, grid: Grid | None = None) -> Value:
    """silu(gate) · up of x [rows, 2 features], where gate and up alternate column by column."""
    return _emit(tops.SiluMulOp, {"x": x}, grid)[0]


@checked
def embedding(index: Value, table: Value, *, grid: Grid | None = None) -> Value:
    """Rows `index` [rows] of the table [entries, features]."""
    return _emit(tops.EmbeddingOp, {"index": index, "table": table}, grid)[0]


@checked
def rms_norm(x: Value, weight: Value, *, epsilon: SupportsFloat, grid: Grid | None = None) -> Value:
    """x / sqrt(mean(x^2) + epsilon) · weight, row by row."""
    return _emit(tops.RmsNormOp, {"x": x, "weight": weight}, grid, {"epsilon": float_attr(epsilon, "epsilon")})[0]


@checked
def linear(x: Value, weight: Value, residual: Value | None = None, *, grid: Grid | None = None) -> Value:
    """x [rows, in] · weight [out, in]^T (+ residual [rows, out])."""
    return _emit(tops.LinearOp, {"x": x, "weight": weight} | _optional(residual=residual), grid)[0]


@checked
def matmul(a: Value, b: Value, *, grid: Grid | None = None) -> Value:
    """a [rows, inner] · b [inner, features]."""
    return _emit(tops.MatmulOp, {"a": a, "b": b}, grid)[0]


@checked
def transpose(x: Value, *, grid: Grid | None = None) -> Value:
    """x [features, rows] as [rows, features]."""
    return _emit(tops.TransposeOp, {"x": x}, grid)[0]


@checked
def slice(x: Value, *, offset: SupportsIndex = 0, step: SupportsIndex = 1, grid: Grid | None = None) -> Value:
    """Columns offset, offset + step, ... of x [rows, columns], to its end."""
    properties = {"offset": integer_attr(offset, "offset"), "step": integer_attr(step, "step")}
    return _emit(tops.SliceOp, {"x": x}, grid, properties)[0]


@checked
def softmax(x: Value, *, grid: Grid | None = None) -> Value:
    """Softmax of each row of x [rows, features]."""
    return _emit(tops.SoftmaxOp, {"x": x}, grid)[0]


@checked
def reduce(x: Value, *, kind: str, grid: Grid | None = None) -> Value:
    """ "sum", "max" or "mean" of each row: [rows, features] to [rows, 1]."""
    return _emit(tops.ReduceOp, {"x": x}, grid, {"kind": string_attr(kind, "kind")})[0]


@checked
def argmax_partial(x: Value, *, parts: SupportsIndex, grid: Grid | None = None) -> tuple[Value, Value]:
    """The largest element of each of `parts` parts of every row, and its index in the row: two [rows, parts]."""
    largest, index = _emit(tops.ArgmaxPartialOp, {"x": x}, grid, {"parts": integer_attr(parts, "parts")})
    return largest, index


@checked
def argmax_reduce(largest: Value, index: Value, *, grid: Grid | None = None) -> Value:
    """The index [rows] of the largest of the partial maxima [rows, parts]."""
    return _emit(tops.ArgmaxReduceOp, {"largest": largest, "index": index}, grid)[0]


@checked
def rope(
    x: Value,
    positions: Value,
    *,
    heads: SupportsIndex,
    rope_base: SupportsFloat,
    rope_style: str,
    grid: Grid | None = None,
) -> Value:
    """Rotary embedding of x [rows, heads · dim] at positions [rows]; rope_style "pairs" or "halves"."""
    return _emit(tops.RopeOp, {"x": x, "positions": positions}, grid, _rope(heads, rope_base, rope_style))[0]


@checked
def attention(
    qkv: Value,
    keys: Value,
    values: Value,
    pages: Value,
    positions: Value,
    q_norm: Value | None = None,
    k_norm: Value | None = None,
    *,
    heads: SupportsIndex,
    rope_base: SupportsFloat,
    rope_style: str,
    epsilon: SupportsFloat | None = None,
    grid: Grid | None = None,
) -> Value:
    """Append each row's key and value to its paged cache, then attend to it; `epsilon` goes with the two norms."""
    operands = {"qkv": qkv, "keys": keys, "values": values, "pages": pages, "positions": positions}
    properties = _rope(heads, rope_base, rope_style)
    if epsilon is not None:
        properties["epsilon"] = float_attr(epsilon, "epsilon")
    return _emit(tops.AttentionOp, operands | _optional(q_norm=q_norm, k_norm=k_norm), grid, properties)[0]


@checked
def topk_softmax(
    logits: Value, *, k: SupportsIndex, renormalize: bool = False, grid: Grid | None = None
) -> tuple[Value, Value]:
    """The k most likely of the experts of logits [rows, experts]: their weights (f32) and indices, two [rows, k]."""
    properties = {"k": integer_attr(k, "k")} | ({"renormalize": UnitAttr()} if renormalize else {})
    weights, experts = _emit(tops.TopkSoftmaxOp, {"logits": logits}, grid, properties)
    return weights, experts


@checked
def expert_linear(x: Value, weight: Value, experts: Value, *, grid: Grid | None = None) -> Value:
    """x [rows or rows · k, in] times weight [experts, out, in] of each slot's expert: [rows · k, out]."""
    return _emit(tops.ExpertLinearOp, {"x": x, "weight": weight, "experts": experts}, grid)[0]


@checked
def expert_sum(slots: Value, weights: Value, residual: Value | None = None, *, grid: Grid | None = None) -> Value:
    """Sum of each row's slots [rows · k, features] times weights [rows, k] (+ residual [rows, features])."""
    return _emit(tops.ExpertSumOp, {"slots": slots, "weights": weights} | _optional(residual=residual), grid)[0]


def _rope(heads: SupportsIndex, base: SupportsFloat, style: str) -> dict[str, Attribute]:
    return {
        "heads": integer_attr(heads, "heads"),
        "rope_base": float_attr(base, "rope_base"),
        "rope_style": string_attr(style, "rope_style"),
    }
