"""The integer arithmetic of registers, as `mpkc.dialects.scalars` defines it, compiled to Python functions."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from mpkc.runtime.neuron.isa import INDEX_BITS, AluOp, Condition

Binary: TypeAlias = Callable[[int, int], int]
View: TypeAlias = Callable[[int], int]


def wrapped(value: int, bits: int) -> int:
    """`value` as a register keeps an integer of `bits` bits: signed, but 0 or 1 for one bit."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_RING: Mapping[AluOp, Binary] = {
    AluOp.ADD: lambda a, b: a + b,
    AluOp.SUB: lambda a, b: a - b,
    AluOp.MULT: lambda a, b: a * b,
    AluOp.AND: lambda a, b: a & b,
    AluOp.OR: lambda a, b: a | b,
    AluOp.XOR: lambda a, b: a ^ b,
}
"""Operations whose lowest bits depend on the lowest bits of their operands alone."""

_SIGNED: Mapping[AluOp, Binary] = {
    AluOp.DIV: _truncated,
    AluOp.FLOOR_DIV: lambda a, b: a // b,
    AluOp.CEIL_DIV: lambda a, b: -(-a // b),
    AluOp.REM: lambda a, b: a - b * _truncated(a, b),
    AluOp.MIN: lambda a, b: min(a, b),
    AluOp.MAX: lambda a, b: max(a, b),
    AluOp.IS_LT: lambda a, b: a < b,
    AluOp.IS_LE: lambda a, b: a <= b,
    AluOp.IS_GT: lambda a, b: a > b,
    AluOp.IS_GE: lambda a, b: a >= b,
}

_UNSIGNED: Mapping[AluOp, Binary] = {
    AluOp.DIVU: lambda a, b: a // b,
    AluOp.CEIL_DIVU: lambda a, b: -(-a // b),
    AluOp.REMU: lambda a, b: a % b,
    AluOp.MINU: lambda a, b: min(a, b),
    AluOp.MAXU: lambda a, b: max(a, b),
    AluOp.IS_EQ: lambda a, b: a == b,
    AluOp.IS_NE: lambda a, b: a != b,
    AluOp.IS_LTU: lambda a, b: a < b,
    AluOp.IS_LEU: lambda a, b: a <= b,
    AluOp.IS_GTU: lambda a, b: a > b,
    AluOp.IS_GEU: lambda a, b: a >= b,
}

_SHIFTS: Mapping[AluOp, Binary] = {
    AluOp.SHL: lambda a, b: a << b,
    AluOp.SHR: lambda a, b: a >> b,
    AluOp.SHRU: lambda a, b: a >> b,
}

CONDITIONS: Mapping[Condition, AluOp] = {
    Condition.EQ: AluOp.IS_EQ,
    Condition.NE: AluOp.IS_NE,
    Condition.LT: AluOp.IS_LT,
    Condition.LE: AluOp.IS_LE,
    Condition.GT: AluOp.IS_GT,
    Condition.GE: AluOp.IS_GE,
    Condition.LTU: AluOp.IS_LTU,
    Condition.LEU: AluOp.IS_LEU,
    Condition.GTU: AluOp.IS_GTU,
    Condition.GEU: AluOp.IS_GEU,
}


def _wrap(bits: int) -> View:
    if bits == 1:
        return lambda a: a & 1
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda a: ((a + half) & mask) - half


def _signed(bits: int) -> View:
    return (lambda a: -(a & 1)) if bits == 1 else _wrap(bits)


def _unsigned(bits: int) -> View:
    mask = (1 << bits) - 1
    return lambda a: a & mask


@cache
def binary(op: AluOp, bits: int) -> Binary:
    """What an operation of two operands computes.

    The function raises ArithmeticError for a division by zero and for a shift by as many bits as there are.
    """
    if op in _RING:
        return _ring(_RING[op], bits)
    wrap, signed, unsigned = _wrap(bits), _signed(bits), _unsigned(bits)
    if op in _SHIFTS:
        return _shift(_SHIFTS[op], unsigned if op is AluOp.SHRU else signed, bits)
    view, compute = (signed, _SIGNED[op]) if op in _SIGNED else (unsigned, _UNSIGNED[op])
    if op.startswith("is_"):
        return lambda a, b: int(compute(view(a), view(b)))
    return lambda a, b: wrap(compute(view(a), view(b)))


@cache
def unary(op: AluOp, bits: int) -> View:
    """What SEXT, ZEXT and TRUNC compute."""
    if op is AluOp.ZEXT and bits < INDEX_BITS:
        return _unsigned(bits)
    return _signed(bits) if op is AluOp.SEXT else _wrap(bits)


def _ring(compute: Binary, bits: int) -> Binary:
    if bits == 1:
        return lambda a, b: compute(a, b) & 1
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda a, b: ((compute(a, b) + half) & mask) - half


def _shift(compute: Binary, view: View, bits: int) -> Binary:
    wrap, unsigned = _wrap(bits), _unsigned(bits)

    def shift(a: int, b: int) -> int:
        amount = unsigned(b)
        if amount >= bits:
            raise ArithmeticError(f"a shift by {amount} of an integer of {bits} bits")
        return wrap(compute(view(a), amount))

    return shift
