"""Arithmetic in lanes is the arithmetic of scalars in each lane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, i1
from xdsl.ir import Block

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import bits_of, evaluate, wrap
from mpkc.runtime.verify.lanes import dtype_of, function_of, merge, spread

BINARY = [
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp),
    *(arith.CeilDivSIOp, arith.CeilDivUIOp, arith.RemSIOp, arith.RemUIOp, arith.MinSIOp, arith.MaxSIOp),
    *(arith.MinUIOp, arith.MaxUIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp),
]
TYPES = [i1, *(IntegerType(bits) for bits in (4, 8, 12, 16, 32, 64)), IndexType()]
types = st.sampled_from(TYPES)


def edges_of(type_) -> list[int]:
    half = 1 << (bits_of(type_) - 1)
    return [wrap(value, type_) for value in (-2, -1, 0, 1, 2, 3, half, half - 1)]


def integers(type_) -> st.SearchStrategy[int]:
    whole = st.integers(0, (1 << bits_of(type_)) - 1).map(lambda value: wrap(value, type_))
    return st.sampled_from(edges_of(type_)) | whole


def operands(*kinds) -> list:
    return list(Block(arg_types=kinds).args)


def expect_same(op, columns: list[list[int]], given: list) -> None:
    """`given` are the columns, or an integer where all of one are equal."""
    lanes = len(columns[0])
    wanted, legal = [], np.ones(lanes, np.bool_)
    for lane, row in enumerate(zip(*columns, strict=True)):
        try:
            wanted.append(evaluate(op, row))
        except OpError:
            wanted.append(0)
            legal[lane] = False
    compute = function_of(op)
    if not legal.all():
        with pytest.raises(OpError):
            compute(None, given)
    if legal.any():
        found = spread(compute(None if legal.all() else legal, given), op.results[0].type, lanes)
        assert found.dtype == dtype_of(op.results[0].type)
        assert [int(value) for value in found[legal]] == [w for w, ok in zip(wanted, legal, strict=True) if ok]


def columns_of(data, kinds, lanes: int = 5):
    columns = [data.draw(st.lists(integers(kind), min_size=lanes, max_size=lanes)) for kind in kinds]
    given = [np.array(column, dtype_of(kind)) for column, kind in zip(columns, kinds, strict=True)]
    for index, column in enumerate(columns):
        if data.draw(st.booleans()):
            columns[index], given[index] = [column[0]] * lanes, column[0]
    return columns, given


@given(st.sampled_from(BINARY), types, st.data())
@settings(max_examples=150)
def test_binary(op_type, type_, data):
    columns, found = columns_of(data, [type_, type_])
    expect_same(op_type(*operands(type_, type_)), columns, found)


@pytest.mark.parametrize("op_type", BINARY)
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_binary_at_the_edges(op_type, type_):
    """Every pair of the values at which something may overflow; those that are legal, and all together."""
    op = op_type(*operands(type_, type_))
    pairs = [(a, b) for a in edges_of(type_) for b in edges_of(type_)]
    for some in (pairs, [pair for pair in pairs if _legal(op, pair)]):
        columns = [list(column) for column in zip(*some, strict=True)]
        expect_same(op, columns, [np.array(column, dtype_of(type_)) for column in columns])


def _legal(op, pair: tuple[int, int]) -> bool:
    try:
        evaluate(op, pair)
    except OpError:
        return False
    return True


@given(st.integers(0, 9), types, st.data())
@settings(max_examples=50)
def test_comparisons_and_select(predicate, type_, data):
    columns, found = columns_of(data, [type_, type_])
    expect_same(arith.CmpiOp(*operands(type_, type_), predicate), columns, found)
    columns, found = columns_of(data, [i1, type_, type_])
    expect_same(arith.SelectOp(*operands(i1, type_, type_)), columns, found)


@given(types, types, st.data())
@settings(max_examples=50)
def test_casts(source, target, data):
    columns, found = columns_of(data, [source])
    for cast in (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp):
        op = cast.create(operands=operands(source), result_types=[target])
        expect_same(op, columns, found)


def test_merge():
    mask, type_ = np.array([True, False]), IntegerType(32)
    assert merge(mask, 3, 3, type_) == 3
    assert merge(None, 3, 4, type_) == 3
    assert merge(mask, 3, None, type_) == 3
    found = merge(mask, 3, np.array([7, 8], np.int32), type_)
    assert found.tolist() == [3, 8]
    assert found.dtype == np.int32
