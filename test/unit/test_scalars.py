"""Integer arithmetic of programs against its definition on two's complement integers."""

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import SCALAR_OPS, evaluate, is_scalar, wrap

TYPES = {1: i1, 3: IntegerType(3), 8: IntegerType(8), 64: IndexType()}


def compute(make, bits: int, *values: int) -> int:
    operands = test.TestOp(result_types=[TYPES[bits]] * len(values)).results
    return evaluate(make(*operands), [wrap(value, TYPES[bits]) for value in values])


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


@given(st.sampled_from([3, 8, 64]), st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64))
@settings(max_examples=60, deadline=None)
def test_binary(bits, a, b):
    sa, sb, ua, ub = signed(a, bits), signed(b, bits), a % (1 << bits), b % (1 << bits)
    expected = {
        arith.AddiOp: a + b,
        arith.SubiOp: a - b,
        arith.MuliOp: a * b,
        arith.AndIOp: ua & ub,
        arith.OrIOp: ua | ub,
        arith.XOrIOp: ua ^ ub,
        arith.MinSIOp: min(sa, sb),
        arith.MaxSIOp: max(sa, sb),
        arith.MinUIOp: min(ua, ub),
        arith.MaxUIOp: max(ua, ub),
    }
    if sb:
        quotient = abs(sa) // abs(sb) * (1 if (sa < 0) == (sb < 0) else -1)
        expected |= {
            arith.DivSIOp: quotient,
            arith.RemSIOp: sa - quotient * sb,
            arith.FloorDivSIOp: sa // sb,
            arith.CeilDivSIOp: -((-sa) // sb),
            arith.DivUIOp: ua // ub,
            arith.RemUIOp: ua % ub,
            arith.CeilDivUIOp: (ua + ub - 1) // ub,
        }
    if ub < bits:
        expected |= {arith.ShLIOp: a << ub, arith.ShRSIOp: sa >> ub, arith.ShRUIOp: ua >> ub}
    for op, value in expected.items():
        assert compute(op, bits, a, b) == signed(value, bits), op.name


@pytest.mark.parametrize(
    ("name", "compare", "is_signed"),
    [
        *(("eq", operator.eq, False), ("ne", operator.ne, False)),
        *((f"s{n}", getattr(operator, n), True) for n in ("lt", "le", "gt", "ge")),
        *((f"u{n}", getattr(operator, n), False) for n in ("lt", "le", "gt", "ge")),
    ],
)
def test_compare(name, compare, is_signed):
    for bits in (1, 3):
        for a in range(1 << bits):
            for b in range(1 << bits):
                view = (signed(a, bits), signed(b, bits)) if is_signed else (a, b)
                assert compute(lambda x, y: arith.CmpiOp(x, y, name), bits, a, b) == int(compare(*view))


def test_select_constants_and_casts():
    a, k = test.TestOp(result_types=[IndexType(), i1]).results
    assert evaluate(arith.SelectOp(k, a, a), [1, 5, 7]) == 5
    assert evaluate(arith.SelectOp(k, a, a), [0, 5, 7]) == 7
    assert evaluate(arith.ConstantOp(IntegerAttr(True, i1)), []) == 1
    assert evaluate(arith.ConstantOp(IntegerAttr(-3, IndexType())), []) == -3
    assert compute(lambda x: arith.ExtUIOp(x, IntegerType(64)), 8, -1) == 255
    assert compute(lambda x: arith.ExtSIOp(x, IntegerType(64)), 8, 255) == -1
    assert compute(lambda x: arith.ExtSIOp(x, IntegerType(64)), 1, 1) == -1
    assert compute(lambda x: arith.TruncIOp(x, IntegerType(3)), 8, 13) == -3
    assert compute(lambda x: arith.IndexCastOp(x, IntegerType(8)), 64, 255) == -1


def test_what_has_no_result_is_an_error():
    with pytest.raises(OpError, match="a division by zero"):
        compute(arith.DivSIOp, 8, 3, 0)
    with pytest.raises(OpError, match="a division by zero"):
        compute(arith.RemUIOp, 64, 3, 0)
    with pytest.raises(OpError, match="a shift by 8 of an integer of 8 bits"):
        compute(arith.ShLIOp, 8, 1, 8)


def test_every_scalar_op_is_covered():
    tested = {arith.ConstantOp, arith.SelectOp, arith.CmpiOp}
    casts = {arith.ExtUIOp, arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp}
    assert len(SCALAR_OPS - tested - casts) == 20
    (real,) = test.TestOp(result_types=[IndexType()]).results
    assert is_scalar(arith.AddiOp(real, real))
