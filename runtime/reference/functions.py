"""The elementwise functions and reductions of `tile` in NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpkc.dialects.tile_types import Function, Reduction
from mpkc.runtime.reference.elements import Array


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x * x * x)))


_UNARY: dict[Function, Callable[[Array], Array]] = {
    Function.CAST: lambda x: x,
    Function.NEG: np.negative,
    Function.ABS: np.abs,
    Function.SQUARE: np.square,
    Function.SQRT: np.sqrt,
    Function.RSQRT: lambda x: 1 / np.sqrt(x),
    Function.RECIPROCAL: lambda x: 1 / x,
    Function.EXP: np.exp,
    Function.LOG: np.log,
    Function.TANH: np.tanh,
    Function.SIGMOID: _sigmoid,
    Function.SILU: lambda x: x * _sigmoid(x),
    Function.GELU_TANH: _gelu_tanh,
}

_BINARY: dict[Function, Callable[[Array, Array], Array]] = {
    Function.ADD: np.add,
    Function.SUB: np.subtract,
    Function.MUL: np.multiply,
    Function.DIV: np.divide,
    Function.MAX: np.maximum,
    Function.MIN: np.minimum,
    Function.EQ: np.equal,
    Function.NE: np.not_equal,
    Function.LT: np.less,
    Function.LE: np.less_equal,
    Function.GT: np.greater,
    Function.GE: np.greater_equal,
}

COMBINE: dict[Reduction, np.ufunc] = {
    Reduction.SUM: np.add,
    Reduction.MAX: np.maximum,
    Reduction.MIN: np.minimum,
}


def mapped(function: Function, operands: Sequence[Array]) -> Array:
    """An elementwise function of one or two arrays, which broadcast."""
    return _UNARY[function](operands[0]) if function in _UNARY else _BINARY[function](operands[0], operands[1])


def reduced(reduction: Reduction, values: Array, axis: int) -> Array:
    """`values` combined along `axis`, which stays with size 1; of no values, what changes nothing."""
    return COMBINE[reduction].reduce(values, axis=axis, keepdims=True, initial=_neutral(reduction, values.dtype))


def _neutral(reduction: Reduction, dtype: np.dtype[Any]) -> float | int:
    if reduction is Reduction.SUM:
        return 0
    sign = -1 if reduction is Reduction.MAX else 1
    if dtype.kind == "f":
        return sign * np.inf
    return int(np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max)
