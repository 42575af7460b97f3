"""Integer arithmetic on many executions at once: a lane for each.

A value is a Python integer where all lanes agree, else an array [lanes] of the integer type with its width (bool
for i1; int64 for widths that NumPy lacks), signed as in mpkc.dialects.scalars, whose results it has in every lane.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import bits_of, evaluate, wrap

Array = npt.NDArray[Any]
Value = int | Array
Mask = npt.NDArray[np.bool_] | None  # the lanes that take part; None for all
Function = Callable[[Mask, Sequence[Value]], Value]  # of the mask and the operands

_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype(np.bool_)} | {bits: np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}
_WIDE = np.dtype(np.int64)


def dtype_of(type: Attribute) -> np.dtype[Any]:
    """What holds an integer of `type` in lanes."""
    return _DTYPES.get(bits_of(type), _WIDE)


def spread(value: Value, type: Attribute, lanes: int) -> Array:
    """`value` as an array with all its lanes."""
    return np.full(lanes, value, dtype_of(type)) if isinstance(value, int) else value


def unsigned(value: Value, type: Attribute) -> Value:
    """`value` read as an unsigned integer of `type`."""
    bits = bits_of(type)
    if isinstance(value, int):
        return value & ((1 << bits) - 1)
    if bits == 1:
        return value.astype(np.int64)
    return value.view(f"uint{bits}") if bits in _DTYPES else value & ((1 << bits) - 1)


def merge(mask: Mask, new: Value, old: Value | None, type: Attribute) -> Value:
    """`new` in the lanes of `mask`, `old` in the others."""
    if mask is None or old is None or new is old:
        return new
    if isinstance(new, int) and isinstance(old, int) and new == old:
        return old
    scalar = dtype_of(type).type
    return np.where(mask, scalar(new) if isinstance(new, int) else new, scalar(old) if isinstance(old, int) else old)


def without(mask: Mask, other: Mask) -> Mask | Literal[False]:
    """The lanes of one mask that are not in another; False where there is none."""
    if other is None or other is mask:
        return False
    left = ~other if mask is None else mask & ~other
    return left if left.any() else False


def function_of(op: Operation) -> Function:
    """What the scalar operation `op`, no constant, computes: of a mask and its operands.

    Raises:
        OpError: by the function, as `evaluate` does, where a lane of the mask is wrong.
    """
    compute = _computation(op)
    if op.name in _WRAPPING and bits_of(op.operands[0].type) > 1:
        return compute

    def run(mask: Mask, operands: Sequence[Value]) -> Value:
        for operand in operands:
            if not isinstance(operand, int):
                return compute(mask, operands)
        return evaluate(op, cast(Sequence[int], operands))

    return run


def _computation(op: Operation) -> Function:
    type = op.operands[-1].type
    match op:
        case arith.SelectOp():
            return lambda mask, v: (v[1] if v[0] else v[2]) if isinstance(v[0], int) else merge(v[0], v[1], v[2], type)
        case arith.CmpiOp():
            predicate = op.predicate.value.data
            view, compare = unsigned if predicate >= 6 else _signed, _COMPARE[predicate]
            return lambda mask, v: compare(view(v[0], type), view(v[1], type))
        case arith.IndexCastOp() | arith.ExtSIOp():
            return lambda mask, v: _cast(_signed(v[0], type), op.results[0].type)
        case arith.ExtUIOp() | arith.TruncIOp():
            return lambda mask, v: _cast(unsigned(v[0], type), op.results[0].type)
        case _:
            return _binary(op, type)


def _signed(value: Value, type: Attribute) -> Value:
    if bits_of(type) > 1:
        return value
    return -value if isinstance(value, int) else -value.astype(np.int64)


def _cast(value: Value, type: Attribute) -> Value:
    """An integer of any width as one of `type`, modulo 2 to its width."""
    if isinstance(value, int):
        return wrap(value, type)
    bits = bits_of(type)
    if bits == 1:
        return (value & 1).astype(np.bool_)
    if (dtype := _DTYPES.get(bits)) is not None:
        return value if value.dtype == dtype else value.astype(dtype)
    half = 1 << (bits - 1)
    return ((value.astype(np.int64) + half) & ((1 << bits) - 1)) - half


_COMPARE: tuple[Callable[[Any, Any], Array], ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)


def _binary(op: Operation, type: Attribute) -> Function:
    if found := _WRAPPING.get(op.name):
        compute = found
        if bits_of(type) > 1:
            return lambda mask, v: _cast(compute(v[0], v[1]), type)
        return lambda mask, v: _cast(compute(_signed(v[0], type), _signed(v[1], type)), type)
    if op.name in _EXTREMES:
        extreme, view = _EXTREMES[op.name]
        return lambda mask, v: _cast(extreme(view(v[0], type), view(v[1], type)), type)
    if op.name in _DIVISIONS:
        divide, view = _DIVISIONS[op.name]

        def run(mask: Mask, v: Sequence[Value]) -> Value:
            with np.errstate(over="ignore"):  # the least integer by -1 wraps, as everything does
                return _cast(divide(view(v[0], type), _divisor(op, mask, view(v[1], type))), type)

        return run
    shift, view = _SHIFTS[op.name]
    return lambda mask, v: _cast(shift(view(v[0], type), _amount(op, mask, v[1], type)), type)


def _divisor(op: Operation, mask: Mask, value: Value) -> Value:
    if isinstance(value, int):
        wrong, safe = value == 0, value or 1
    else:
        zero = value == 0
        wrong, safe = (zero if mask is None else zero & mask).any(), np.where(zero, value.dtype.type(1), value)
    if wrong:
        raise OpError(op, "a division by zero")
    return safe


def _amount(op: Operation, mask: Mask, value: Value, type: Attribute) -> Value:
    bits, amount = bits_of(type), unsigned(value, type)
    if isinstance(amount, int):
        wrong, safe = amount >= bits, min(amount, bits - 1)
    else:
        high = amount >= bits
        wrong, safe = (high if mask is None else high & mask).any(), np.where(high, 0, amount).astype(np.int64)
    if wrong:
        raise OpError(op, f"a shift of an integer of {bits} bits by as many or more")
    return safe


def _truncated(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


def _wide(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`compute` on 64 bits, so that a quotient or a shifted operand does not overflow its type."""
    return lambda a, b: compute(np.asarray(a).astype(np.int64), b)


_WRAPPING: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}
_View = Callable[[Value, Attribute], Value]
_EXTREMES: dict[str, tuple[Callable[[Any, Any], Any], _View]] = {
    "arith.minsi": (np.minimum, _signed),
    "arith.maxsi": (np.maximum, _signed),
    "arith.minui": (np.minimum, unsigned),
    "arith.maxui": (np.maximum, unsigned),
}
_DIVISIONS: dict[str, tuple[Callable[[Any, Any], Any], _View]] = {
    "arith.divsi": (_truncated, _signed),
    "arith.divui": (np.floor_divide, unsigned),
    "arith.floordivsi": (np.floor_divide, _signed),
    "arith.ceildivsi": (_wide(lambda a, b: a // b + (a % b != 0)), _signed),
    "arith.ceildivui": (lambda a, b: a // b + (a % b != 0), unsigned),
    "arith.remsi": (lambda a, b: a - b * _truncated(a, b), _signed),
    "arith.remui": (np.remainder, unsigned),
}
_SHIFTS: dict[str, tuple[Callable[[Any, Any], Any], _View]] = {
    "arith.shli": (_wide(np.left_shift), _signed),
    "arith.shrsi": (_wide(np.right_shift), _signed),
    "arith.shrui": (lambda a, s: np.right_shift(a, np.asarray(s).astype(np.asarray(a).dtype)), unsigned),
}
