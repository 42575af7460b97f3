"""Element types in NumPy: what holds them, how they round, and the value of memory that nothing has written.

f16, f32, f64 and integers are NumPy's own types. bf16 and the 8-bit floats are held in float32 arrays whose values
are rounded to nearest, ties to even, whenever they are written.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    ReducedPrecisionFloatType,
    Signedness,
)
from xdsl.ir import Attribute

Array: TypeAlias = NDArray[Any]


def storage_type(element: Attribute) -> np.dtype[Any]:
    """The NumPy type of arrays that hold elements of an MLIR type.

    Raises:
        ValueError: for a type that has none.
    """
    match element:
        case Float64Type():
            return np.dtype(np.float64)
        case Float16Type():
            return np.dtype(np.float16)
        case Float32Type() | BFloat16Type():
            return np.dtype(np.float32)
        case ReducedPrecisionFloatType() if element.bitwidth <= 8 and element.SEMANTICS.has_zero:
            return np.dtype(np.float32)
        case IndexType():
            return np.dtype(np.int64)
        case IntegerType() if element.width.data == 1:
            return np.dtype(np.bool_)
        case IntegerType() if element.width.data in (8, 16, 32, 64):
            sign = "u" if element.signedness.data is Signedness.UNSIGNED else "i"
            return np.dtype(f"{sign}{element.width.data // 8}")
        case _:
            raise ValueError(f"no NumPy array holds elements of type {element}")


def unwritten(shape: tuple[int, ...], element: Attribute) -> Array:
    """Memory as nothing has written it yet: NaN for floats, the type's lowest value for integers."""
    dtype = storage_type(element)
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype)
    return np.full(shape, False if dtype.kind == "b" else np.iinfo(dtype).min, dtype)


def rounded(values: Array, element: Attribute) -> Array:
    """`values` in the storage type of `element`, each rounded to a value that `element` has.

    What is out of range becomes infinite, or NaN where the type has no infinity; integers wrap.
    """
    if isinstance(element, BFloat16Type | ReducedPrecisionFloatType):
        return _rounded(values, _small_float(element))
    dtype = storage_type(element)
    if dtype.kind == "b" and values.dtype.kind in "iu":
        return values % 2 == 1
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype, copy=False)


@dataclass(frozen=True)
class _SmallFloat:
    """A float format: where its grid ends on both sides, and what stands for what is beyond."""

    mantissa_bits: int
    lowest_exponent: int
    largest: float
    beyond: float


@cache
def _small_float(element: BFloat16Type | ReducedPrecisionFloatType) -> _SmallFloat:
    if isinstance(element, BFloat16Type):
        return _SmallFloat(7, -126, 2.0**128 - 2.0**120, np.inf)
    spec = element.SEMANTICS
    every = [element.decode_bits(bits) for bits in range(1 << spec.bitwidth)]
    largest = max(value for value in every if np.isfinite(value))
    return _SmallFloat(spec.mantissa_bits, 1 - spec.exponent_bias, largest, element.round(4 * largest))


def _rounded(values: Array, spec: _SmallFloat) -> Array:
    exact = values.astype(np.float64)
    _, exponent = np.frexp(exact)
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, spec.lowest_exponent) - spec.mantissa_bits)
    on_grid = np.rint(exact / quantum) * quantum
    beyond = np.abs(on_grid) > spec.largest
    return np.where(beyond, np.copysign(spec.beyond, exact), on_grid).astype(np.float32)
