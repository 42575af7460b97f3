"""Integer arithmetic made simpler: what is known is computed, constants move outward and meet.

Counters wrap, so these hold: a - c is a + (-c); (a + c) + d is a + (c + d); (a + c) * d is a * d + c * d;
(m * a) * d is m * (a * d). With them the threshold N * (r - k) - (N - K) is N * r and a constant, and N * r is one
value for all that wait for the loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import bits_of, evaluate, wrap

CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp)
REMAINDERS = (arith.RemSIOp, arith.RemUIOp)
SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
_FALLIBLE = frozenset(DIVISIONS + REMAINDERS + SHIFTS)
COMMUTATIVE = frozenset(
    {
        arith.AddiOp,
        arith.MuliOp,
        arith.MinSIOp,
        arith.MaxSIOp,
        arith.MinUIOp,
        arith.MaxUIOp,
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
    }
)


@dataclass(frozen=True)
class Constant:
    """An integer of that type."""

    value: int
    type: IntegerType | IndexType


@dataclass(frozen=True)
class Sum:
    """A value and a constant, added."""

    value: SSAValue
    constant: int


@dataclass(frozen=True)
class Product:
    """A value times a constant."""

    value: SSAValue
    factor: int


@dataclass(frozen=True)
class ScaledSum:
    """`value * factor + constant`."""

    value: SSAValue
    factor: int
    constant: int


@dataclass(frozen=True)
class MaskedProduct:
    """`mask * (value * factor)`."""

    mask: SSAValue
    value: SSAValue
    factor: int


Simpler: TypeAlias = SSAValue | Constant | Sum | Product | ScaledSum | MaskedProduct


def integer_attr(value: int, type_: IntegerType | IndexType) -> IntegerAttr:
    """A number that wraps in its type."""
    return IntegerAttr(wrap(value, type_), type_)


def integer_like(value: int, like: SSAValue) -> Constant:
    """A constant of the type of another value."""
    type_ = like.type
    assert isa(type_, IntegerType) or isinstance(type_, IndexType), "scalar operations are on integers"
    return Constant(value, type_)


def constant_of(value: SSAValue) -> int | None:
    """The integer that a constant is."""
    owner = value.owner
    if type(owner) is not arith.ConstantOp:
        return None
    attr = owner.properties["value"]
    return wrap(attr.value.data, value.type) if isinstance(attr, IntegerAttr) else None


def may_fail(op: Operation) -> bool:
    """Whether it depends on its operands that `op` computes anything: a division, a shift."""
    if type(op) not in _FALLIBLE:
        return False
    right = op.operands[1]
    known = constant_of(right)
    return known is None or (not 0 <= known < bits_of(right.type) if type(op) in SHIFTS else known == 0)


def simpler(op: Operation) -> Simpler | None:
    """What a scalar operation computes, in a simpler way; None where no rule is known."""
    operands = op.operands
    known = [constant_of(operand) for operand in operands]
    integers = [value for value in known if value is not None]
    if integers and len(integers) == len(known):
        return _evaluated(op, integers)
    rule = _RULES.get(type(op))
    return rule(op, operands, known) if rule else None


def _evaluated(op: Operation, operands: Sequence[int]) -> Constant | None:
    try:
        return integer_like(evaluate(op, operands), op.results[0])
    except OpError:  # it stands where the program never comes, or fails when it does
        return None


def _sum(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    left, right = operands
    if known[1] is not None:
        constant = known[1]
    elif known[0] is not None:
        left, constant = right, known[0]
    else:
        return None
    return _plus(left, constant, unchanged=left is operands[0])


def _difference(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    left, right = operands
    if left is right:
        return integer_like(0, left)
    return None if known[1] is None else _plus(left, -known[1], unchanged=False)


def _plus(left: SSAValue, constant: int, unchanged: bool) -> Simpler | None:
    """`left + constant`; None where that is what there is, `unchanged`."""
    if (inner := _addition(left)) is not None:
        left, constant, unchanged = inner.value, constant + inner.constant, False
    constant = wrap(constant, left.type)
    if constant == 0:
        return left
    return None if unchanged else Sum(left, constant)


def _addition(value: SSAValue) -> Sum | None:
    """The sum of something and a constant that `value` is; a counter behind its increment is left as it is.

    What it was before would be needed together with what it is, in a register of its own.
    """
    inner = value.owner
    if type(inner) is not arith.AddiOp or (constant := constant_of(inner.operands[1])) is None:
        return None
    term = inner.operands[0]
    is_counter = isinstance(term, BlockArgument) and not isinstance(term.type, IndexType)
    return None if is_counter else Sum(term, constant)


def _product(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    left, factor = (operands[0], known[1]) if known[1] is not None else (operands[1], known[0])
    if factor is None:
        return None
    if factor == 0:
        return integer_like(0, left)
    if factor == 1:
        return left
    if (sum_ := _addition(left)) is not None:
        return ScaledSum(sum_.value, factor, wrap(sum_.constant * factor, left.type))
    inner = left.owner
    if type(inner) is arith.MuliOp:
        if (more := constant_of(inner.operands[1])) is not None:
            return Product(inner.operands[0], wrap(more * factor, left.type))
        if left.has_one_use():
            mask, owed = inner.operands
            if type(owed.owner) is arith.ExtUIOp:
                mask, owed = owed, mask
            return MaskedProduct(mask, owed, factor)
    return None if left is operands[0] else Product(left, factor)


def _comparison(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    return integer_like(evaluate(op, (0, 0)), op.results[0]) if operands[0] is operands[1] else None


def _choice(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    _, if_true, if_false = operands
    if known[0] is not None:
        return if_true if known[0] else if_false
    return if_true if if_true is if_false else None


def _quotient(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    return operands[0] if known[1] == 1 else None


def _remainder(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    return integer_like(0, operands[0]) if known[1] == 1 else None


def _bound(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    return operands[0] if operands[0] is operands[1] else None


def _bound_from_below(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    return operands[0] if known[1] == 0 else _bound(op, operands, known)


def _cast(op: Operation, operands: Sequence[SSAValue], known: Sequence[int | None]) -> Simpler | None:
    """What goes to a wider type and back is what it was."""
    inner = operands[0].owner
    if type(inner) not in CASTS or not isinstance(inner, Operation):
        return None
    source, between, result = inner.operands[0].type, operands[0].type, op.results[0].type
    return inner.operands[0] if source == result and bits_of(source) < bits_of(between) else None


_RULES: Mapping[type[Operation], Callable[[Operation, Sequence[SSAValue], Sequence[int | None]], Simpler | None]] = {
    arith.AddiOp: _sum,
    arith.SubiOp: _difference,
    arith.MuliOp: _product,
    arith.CmpiOp: _comparison,
    arith.SelectOp: _choice,
    **dict.fromkeys(DIVISIONS, _quotient),
    **dict.fromkeys(REMAINDERS, _remainder),
    **dict.fromkeys((arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.AndIOp, arith.OrIOp), _bound),
    arith.MaxUIOp: _bound_from_below,
    arith.IndexCastOp: _cast,
    arith.TruncIOp: _cast,
}
