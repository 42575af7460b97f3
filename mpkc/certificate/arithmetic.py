"""Arithmetic of streams as the expressions of proofs/checker/Language.v; integers stand by their unsigned value."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from mpkc.certificate.statements import Expression
from mpkc.dialects.scalars import bits_of

_UNSIGNED: dict[str, tuple[str, bool]] = {
    "uge": ("GeU", False),
    "ugt": ("GtU", False),
    "ule": ("GeU", True),
    "ult": ("GtU", True),
    "eq": ("Eq", False),
    "ne": ("Ne", False),
}
"""The comparison, and whether its operands change places."""


def unknown(type_: Attribute) -> Expression:
    """Any value of an integer type."""
    return Expression("Unknown", (), _modulus(type_))


def constant_of(value: SSAValue) -> int | None:
    """The signed value of a constant; None for what is none."""
    match value:
        case OpResult(op=arith.ConstantOp(value=IntegerAttr() as constant)):
            return constant.value.data
        case _:
            return None


def expression_of(op: Operation, variable: Callable[[SSAValue], int]) -> Expression:
    """What a scalar operation computes, or any value where the checker has no rule for it."""
    result = op.results[0].type
    m = _modulus(result)

    def of(kind: str, number: int = 0) -> Expression:
        return Expression(kind, tuple(map(variable, op.operands)), number)

    match op:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return Expression("Constant", (), constant.value.data % m)
        case arith.AddiOp():
            return of("Add", m)
        case arith.SubiOp():
            return of("Sub", m)
        case arith.MuliOp():
            return of("Mul", m)
        case arith.AndIOp() if m == 2:
            return of("Mul", m)
        case arith.DivUIOp() if (divisor := constant_of(op.rhs)) is not None and divisor > 0:
            return Expression("Divide", (variable(op.lhs),), divisor)
        case arith.MaxUIOp():
            return of("Maximum")
        case arith.MinUIOp():
            return of("Minimum")
        case arith.SelectOp():
            return of("Select")
        case arith.CmpiOp():
            return _comparison(op, variable)
        case arith.ExtUIOp():
            return of("Move")
        case arith.TruncIOp():
            return of("Truncate", m)
        case arith.IndexCastOp() if bits_of(result) <= bits_of(op.operands[0].type):
            return of("Truncate", m)
        case _:
            return Expression("Unknown", (), m)


def _comparison(op: arith.CmpiOp, variable: Callable[[SSAValue], int]) -> Expression:
    name = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    if name not in _UNSIGNED:
        return Expression("Unknown", (), 2)
    kind, swapped = _UNSIGNED[name]
    operands = (op.rhs, op.lhs) if swapped else (op.lhs, op.rhs)
    return Expression(kind, tuple(map(variable, operands)))


def _modulus(type_: Attribute) -> int:
    return 1 << bits_of(type_)
