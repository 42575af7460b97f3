"""Integer arithmetic that every engine computes for itself: the arith operations a program may hold.

Values are Python integers: signed for `index` (64 bits) and `iN`, 0 or 1 for `i1`. Results wrap.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from mpkc.dialects.diagnostics import OpError

INDEX_BITS = 64


def bits_of(type: Attribute) -> int:
    """The width of an `index` or `iN`."""
    return type.bitwidth if isinstance(type, IntegerType) else INDEX_BITS


def wrap(value: int, type: Attribute) -> int:
    """`value` as an integer of `type`."""
    bits = bits_of(type)
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def _unsigned(value: int, op: Operation) -> int:
    return value & ((1 << bits_of(op.operands[0].type)) - 1)


def _signed(value: int, op: Operation) -> int:
    return -value if bits_of(op.operands[0].type) == 1 else value


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _shift(amount: int, op: Operation) -> int:
    amount, bits = _unsigned(amount, op), bits_of(op.operands[0].type)
    if amount >= bits:
        raise OpError(op, f"a shift by {amount} of an integer of {bits} bits")
    return amount


def _on_signed(compute: Callable[[int, int], int]) -> Callable[[Operation, int, int], int]:
    return lambda op, a, b: compute(_signed(a, op), _signed(b, op))


def _on_unsigned(compute: Callable[[int, int], int]) -> Callable[[Operation, int, int], int]:
    return lambda op, a, b: compute(_unsigned(a, op), _unsigned(b, op))


_BINARY: dict[type[Operation], Callable[[Operation, int, int], int]] = {
    arith.AddiOp: _on_signed(lambda a, b: a + b),
    arith.SubiOp: _on_signed(lambda a, b: a - b),
    arith.MuliOp: _on_signed(lambda a, b: a * b),
    arith.DivSIOp: _on_signed(_truncated),
    arith.DivUIOp: _on_unsigned(lambda a, b: a // b),
    arith.FloorDivSIOp: _on_signed(lambda a, b: a // b),
    arith.CeilDivSIOp: _on_signed(lambda a, b: -(-a // b)),
    arith.CeilDivUIOp: _on_unsigned(lambda a, b: -(-a // b)),
    arith.RemSIOp: _on_signed(lambda a, b: a - b * _truncated(a, b)),
    arith.RemUIOp: _on_unsigned(lambda a, b: a % b),
    arith.MinSIOp: _on_signed(min),
    arith.MaxSIOp: _on_signed(max),
    arith.MinUIOp: _on_unsigned(min),
    arith.MaxUIOp: _on_unsigned(max),
    arith.AndIOp: _on_unsigned(lambda a, b: a & b),
    arith.OrIOp: _on_unsigned(lambda a, b: a | b),
    arith.XOrIOp: _on_unsigned(lambda a, b: a ^ b),
    arith.ShLIOp: lambda op, a, b: a << _shift(b, op),
    arith.ShRSIOp: lambda op, a, b: _signed(a, op) >> _shift(b, op),
    arith.ShRUIOp: lambda op, a, b: _unsigned(a, op) >> _shift(b, op),
}

_CAST: dict[type[Operation], Callable[[int, Operation], int]] = {
    arith.IndexCastOp: _signed,
    arith.ExtSIOp: _signed,
    arith.ExtUIOp: _unsigned,
    arith.TruncIOp: _unsigned,
}

# In the order of arith.cmpi's predicates, from `eq` to `uge`.
_COMPARE: tuple[Callable[[Operation, int, int], int], ...] = tuple(
    view(compare)
    for view, compare in (
        (_on_unsigned, int.__eq__),
        (_on_unsigned, int.__ne__),
        (_on_signed, int.__lt__),
        (_on_signed, int.__le__),
        (_on_signed, int.__gt__),
        (_on_signed, int.__ge__),
        (_on_unsigned, int.__lt__),
        (_on_unsigned, int.__le__),
        (_on_unsigned, int.__gt__),
        (_on_unsigned, int.__ge__),
    )
)

SCALAR_OPS: frozenset[type[Operation]] = frozenset({*_BINARY, *_CAST, arith.ConstantOp, arith.CmpiOp, arith.SelectOp})


def is_scalar(op: Operation) -> bool:
    """Whether `op` is integer arithmetic that `evaluate` computes: one of SCALAR_OPS, on `index` or `iN`."""
    return type(op) in SCALAR_OPS and isinstance(op.results[0].type, IndexType | IntegerType)


def evaluate(op: Operation, operands: Sequence[int]) -> int:
    """The result of a scalar operation (`is_scalar`) on integers.

    Raises:
        OpError: a division by zero, a shift that is too long, an operation that is no integer arithmetic.
    """
    return wrap(_evaluate(op, operands), op.results[0].type)


def _evaluate(op: Operation, operands: Sequence[int]) -> int:
    match op:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return constant.value.data
        case arith.SelectOp():
            return operands[1] if operands[0] else operands[2]
        case arith.CmpiOp():
            return int(_COMPARE[op.predicate.value.data](op, operands[0], operands[1]))
        case _ if type(op) in _CAST:
            return _CAST[type(op)](operands[0], op)
        case _ if type(op) in _BINARY:
            try:
                return _BINARY[type(op)](op, operands[0], operands[1])
            except ZeroDivisionError:
                raise OpError(op, "a division by zero") from None
        case _:
            raise OpError(op, f"'{op.name}' is no integer arithmetic")
