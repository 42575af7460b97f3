"""Arithmetic of streams as the expressions of proofs/checker/Language.v; integers stand by their unsigned value."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from mpkc.certificate.statements import Expression, Let
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
_SIGNED: dict[str, tuple[str, bool]] = {
    "sge": ("GeU", False),
    "sgt": ("GtU", False),
    "sle": ("GeU", True),
    "slt": ("GtU", True),
}
"""The same, of signed values."""


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


def computation_of(op: Operation, variable: Callable[[SSAValue], int], fresh: Callable[[], int]) -> list[Let]:
    """What a scalar operation computes; of signed comparisons the operands by their signed values first."""
    made = variable(op.results[0])
    kind, swapped, back = _signed(op)
    if kind is None:
        return [Let(made, _expression(op, variable))]
    m = _modulus(op.operands[0].type)
    signed = [Let(fresh(), Expression("Signed", (variable(operand),), m)) for operand in op.operands]
    operands = tuple(each.variable for each in (reversed(signed) if swapped else signed))
    if not back:
        return [*signed, Let(made, Expression(kind, operands))]
    chosen = fresh()
    return [*signed, Let(chosen, Expression(kind, operands)), Let(made, Expression("Truncate", (chosen,), m))]


def _signed(op: Operation) -> tuple[str | None, bool, bool]:
    """Of an operation on signed integers: what it is, whether operands change places, whether it gives one of them."""
    match op:
        case arith.MaxSIOp():
            return "Maximum", False, True
        case arith.MinSIOp():
            return "Minimum", False, True
        case arith.CmpiOp():
            kind, swapped = _SIGNED.get(_predicate(op), (None, False))
            return kind, swapped, False
        case _:
            return None, False, False


def _expression(op: Operation, variable: Callable[[SSAValue], int]) -> Expression:
    """What a scalar operation on unsigned integers computes; any value where the checker has no rule for it."""
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
    kind, swapped = _UNSIGNED[_predicate(op)]
    operands = (op.rhs, op.lhs) if swapped else (op.lhs, op.rhs)
    return Expression(kind, tuple(map(variable, operands)))


def _predicate(op: arith.CmpiOp) -> str:
    return arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]


def _modulus(type_: Attribute) -> int:
    return 1 << bits_of(type_)
