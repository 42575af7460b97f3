"""Integer arithmetic of streams on numbers and on z3 terms alike, exact for two's complement of any width.

A value of type iN or index is an integer that is congruent to it modulo 2^N. Addition, subtraction and multiplication
keep that as they stand, so terms stay linear; what depends on the value itself (a comparison, a division) reduces it
first. An i1 is a Boolean. Numbers stay numbers, so that only what is unknown becomes a term.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from mpkc.dialects.scalars import bits_of, evaluate
from mpkc.runtime.verify.smt import smt

Value: TypeAlias = Any
"""int, bool, or a z3 term of sort Int or Bool."""


def choose(condition: Value, then: Value, otherwise: Value) -> Value:
    """`then` where `condition` holds, else `otherwise`."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    if then is otherwise:
        return then

    return smt().If(condition, _term(then), _term(otherwise))


def both(*conditions: Value) -> Value:
    """Whether all hold."""
    left = [condition for condition in conditions if condition is not True]
    if not all(isinstance(condition, bool) for condition in left):
        return smt().And(*left)
    return not left


def negated(condition: Value) -> Value:
    """Whether `condition` does not hold."""
    if isinstance(condition, bool):
        return not condition

    return smt().Not(condition)


def greater(a: Value, b: Value) -> Value:
    """The greater of two."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if a is b else choose(a >= b, a, b)


def lesser(a: Value, b: Value) -> Value:
    """The lesser of two."""
    return a + b - greater(a, b) if isinstance(a, int) and isinstance(b, int) else choose(a <= b, a, b)


def reduced(value: Value, bits: int, signed: bool) -> Value:
    """The one integer of this width and signedness that is congruent to `value`."""
    size = 1 << bits
    low = -(size >> 1) if signed else 0
    inside = both(value >= low, value < low + size)
    return choose(inside, value, (value - low) % size + low)


def as_integer(value: Value) -> Value:
    """An i1 as 0 or 1; other values as they are."""
    return choose(value, 1, 0) if is_truth(value) else value


def is_truth(value: Value) -> bool:
    """Whether `value` is an i1."""
    if isinstance(value, int):
        return isinstance(value, bool)

    return smt().is_bool(value)


def computed(op: Operation, operands: Sequence[Value], unknown: Callable[[Attribute], Value]) -> Value:
    """The result of a scalar operation.

    Args:
        unknown: gives any value of a type, for what has no linear term.

    Raises:
        OpError: a division of numbers by zero, a shift of them that is too long.
    """
    type_ = op.results[0].type
    compute = _RING.get(type(op))
    if compute is not None and bits_of(type_) > 1:
        found = compute(*operands)
        return unknown(type_) if found is None else found
    match op:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return bool(constant.value.data) if bits_of(type_) == 1 else constant.value.data
        case arith.SelectOp():
            return choose(*operands)
        case arith.ExtUIOp() | arith.ExtSIOp() | arith.IndexCastOp() | arith.TruncIOp():
            return _converted(op, operands[0])
        case _:
            pass
    if bits_of(op.operands[0].type) == 1:
        return _of_truths(op, operands, unknown)
    if all(isinstance(operand, int) for operand in operands):
        numbers = [reduced(each, bits_of(o.type), True) for each, o in zip(operands, op.operands, strict=True)]
        result = evaluate(op, numbers)
        return bool(result) if bits_of(type_) == 1 else result
    found = _of_terms(op, operands)
    return unknown(type_) if found is None else found


_RING: dict[type[Operation], Callable[[Value, Value], Value]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: lambda a, b: _product(a, b),
}

_COMPARE: tuple[Callable[[Value, Value], Value], ...] = (
    operator.eq,
    operator.ne,
    *(operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.lt, operator.le, operator.gt, operator.ge),
)
UNSIGNED_FROM = 6  # among arith.cmpi's predicates


def _of_terms(op: Operation, operands: Sequence[Value]) -> Value | None:
    """The term of an operation that has to know its operands themselves; None where it has no linear one."""
    bits = bits_of(op.operands[0].type)

    def unsigned() -> list[Value]:
        return [reduced(operand, bits, False) for operand in operands]

    def signed() -> list[Value]:
        return [reduced(operand, bits, True) for operand in operands]

    match op:
        case arith.CmpiOp():
            predicate = op.predicate.value.data
            if predicate < 2:
                difference = reduced(operands[0] - operands[1], bits, True)
                return _COMPARE[predicate](difference, 0)
            return _COMPARE[predicate](*(unsigned() if predicate >= UNSIGNED_FROM else signed()))
        case arith.MinUIOp() | arith.MaxUIOp():
            return (lesser if isinstance(op, arith.MinUIOp) else greater)(*unsigned())
        case arith.MinSIOp() | arith.MaxSIOp():
            return (lesser if isinstance(op, arith.MinSIOp) else greater)(*signed())
        case arith.ShLIOp() if isinstance(operands[1], int) and 0 <= operands[1] < bits:
            return operands[0] * (1 << operands[1])
        case arith.ShRUIOp() if isinstance(operands[1], int) and 0 <= operands[1] < bits:
            return _quotient(unsigned()[0], 1 << operands[1])
        case arith.DivUIOp() | arith.RemUIOp() | arith.CeilDivUIOp():
            return _divided(op, *unsigned())
        case arith.DivSIOp() | arith.FloorDivSIOp() | arith.RemSIOp() | arith.CeilDivSIOp():
            return _divided(op, *signed())
        case _:
            return None


def _product(a: Value, b: Value) -> Value | None:
    """A linear product: one factor is a number, or one of several, as a mask is."""
    found = _scaled(a, b)
    return _scaled(b, a) if found is None else found


def _scaled(factor: Value, value: Value) -> Value | None:
    if isinstance(factor, int):
        return value if factor == 1 else factor * value if factor else 0
    if isinstance(value, int):
        return None
    if smt().is_int_value(factor):
        return _scaled(factor.as_long(), value)
    if not smt().is_app_of(factor, smt().Z3_OP_ITE):
        return None
    then, otherwise = (_scaled(factor.arg(index), value) for index in (1, 2))
    return None if then is None or otherwise is None else choose(factor.arg(0), then, otherwise)


def _divided(op: Operation, a: Value, b: Value) -> Value | None:
    """Divisions by a positive number: z3 rounds them down."""
    if not isinstance(b, int) or b <= 0:
        return None
    match op:
        case arith.DivUIOp() | arith.FloorDivSIOp():
            return _quotient(a, b)
        case arith.RemUIOp():
            return a % b
        case arith.CeilDivUIOp() | arith.CeilDivSIOp():
            return _quotient(a + (b - 1), b)
        case arith.DivSIOp():
            return choose(a >= 0, _quotient(a, b), -_quotient(-a, b))
        case _:
            return choose(a >= 0, a % b, -(-a % b))


def _quotient(a: Value, b: int) -> Value:
    return a // b if isinstance(a, int) else a / b


def _converted(op: Operation, value: Value) -> Value:
    bits, wanted = bits_of(op.operands[0].type), bits_of(op.results[0].type)
    if bits == 1:
        return value if wanted == 1 else choose(value, 1 if isinstance(op, arith.ExtUIOp) else -1, 0)
    if wanted == 1:
        return value % 2 == 1
    if wanted <= bits:
        return value
    return reduced(value, bits, not isinstance(op, arith.ExtUIOp))


def _of_truths(op: Operation, operands: Sequence[Value], unknown: Callable[[Attribute], Value]) -> Value:
    """An operation on i1, where 1 is -1 to what is signed."""
    a, b = operands
    match op:
        case arith.AndIOp() | arith.MuliOp():
            return both(a, b)
        case arith.OrIOp():
            return negated(both(negated(a), negated(b)))
        case arith.XOrIOp() | arith.AddiOp() | arith.SubiOp():
            return a != b
        case arith.CmpiOp(predicate=IntegerAttr(value=predicate)) if predicate.data < 2:
            return _COMPARE[predicate.data](a, b)
        case _ if isinstance(a, bool) and isinstance(b, bool):
            return bool(evaluate(op, (int(a), int(b))))
        case _:
            return unknown(op.results[0].type)


def _term(value: Value) -> Value:
    if not isinstance(value, int):
        return value

    return smt().BoolVal(value) if isinstance(value, bool) else smt().IntVal(value)
