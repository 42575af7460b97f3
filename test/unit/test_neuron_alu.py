"""REGISTER_ALU and COMPARE_BRANCH compute what the arithmetic of programs does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation
from xdsl.utils.test_value import create_ssa_value

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import evaluate, wrap
from mpkc.runtime.neuron.alu import CONDITIONS, binary, unary, wrapped
from mpkc.runtime.neuron.isa import ARITY, AluOp, Condition

BINARY: dict[AluOp, type[Operation]] = {
    AluOp.ADD: arith.AddiOp,
    AluOp.SUB: arith.SubiOp,
    AluOp.MULT: arith.MuliOp,
    AluOp.DIV: arith.DivSIOp,
    AluOp.DIVU: arith.DivUIOp,
    AluOp.FLOOR_DIV: arith.FloorDivSIOp,
    AluOp.CEIL_DIV: arith.CeilDivSIOp,
    AluOp.CEIL_DIVU: arith.CeilDivUIOp,
    AluOp.REM: arith.RemSIOp,
    AluOp.REMU: arith.RemUIOp,
    AluOp.MIN: arith.MinSIOp,
    AluOp.MAX: arith.MaxSIOp,
    AluOp.MINU: arith.MinUIOp,
    AluOp.MAXU: arith.MaxUIOp,
    AluOp.AND: arith.AndIOp,
    AluOp.OR: arith.OrIOp,
    AluOp.XOR: arith.XOrIOp,
    AluOp.SHL: arith.ShLIOp,
    AluOp.SHR: arith.ShRSIOp,
    AluOp.SHRU: arith.ShRUIOp,
}
COMPARED = ("is_eq", "is_ne", "is_lt", "is_le", "is_gt", "is_ge", "is_ltu", "is_leu", "is_gtu", "is_geu")
TYPES = {1: IntegerType(1), 8: IntegerType(8), 32: IntegerType(32), 64: IndexType()}
integers = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**31 - 1, -(2**31), 127, -128])


def test_every_operation_is_covered() -> None:
    assert {*BINARY, *map(AluOp, COMPARED)} == {op for op in AluOp if ARITY[op] == 2}
    assert {f"is_{condition}" for condition in Condition if condition is not Condition.ALWAYS} == {*COMPARED}
    assert all(CONDITIONS[Condition(op[3:])] == op for op in COMPARED)


@given(st.sampled_from([*BINARY, *map(AluOp, COMPARED)]), st.sampled_from([*TYPES]), integers, integers)
def test_two_operands(op: AluOp, bits: int, a: int, b: int) -> None:
    type_ = TYPES[bits]
    a, b = wrap(a, type_), wrap(b, type_)
    assert wrapped(a, bits) == a
    operands = [create_ssa_value(type_), create_ssa_value(type_)]
    built = arith.CmpiOp(*operands, COMPARED.index(op)) if op in COMPARED else BINARY[op](*operands)
    try:
        expected = evaluate(built, [a, b])
    except OpError:
        with pytest.raises(ArithmeticError):
            binary(op, bits)(a, b)
    else:
        assert binary(op, bits)(a, b) == expected


@given(st.sampled_from([*TYPES]), st.sampled_from([*TYPES]), integers)
def test_casts(narrow: int, wide: int, value: int) -> None:
    narrow, wide = sorted((narrow, wide))
    small, large = wrap(value, TYPES[narrow]), wrap(value, TYPES[wide])
    to_wide, to_narrow = TYPES[wide], TYPES[narrow]
    index = isinstance(to_wide, IndexType)
    if narrow < wide:
        source = create_ssa_value(to_narrow)
        signed = arith.IndexCastOp(source, to_wide) if index else arith.ExtSIOp(source, to_wide)
        assert unary(AluOp.SEXT, narrow)(small) == evaluate(signed, [small])
        if not index:
            assert unary(AluOp.ZEXT, narrow)(small) == evaluate(arith.ExtUIOp(source, to_wide), [small])
        cut = (arith.IndexCastOp if index else arith.TruncIOp)(create_ssa_value(to_wide), to_narrow)
        assert unary(AluOp.TRUNC, narrow)(large) == evaluate(cut, [large])
    assert unary(AluOp.ZEXT, 64)(-1) == -1  # a register has no more than 64 bits
