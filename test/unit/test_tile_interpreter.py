"""The interpreter of tile programs: element types, functions, unwritten memory, and faults that only a run shows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import bf16, f8E4M3FN, f8E5M2, f16, i1, i8

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.tile import ProgramOp
from mpkc.dialects.tile_types import COMPARISONS, UNARY, Access, Function
from mpkc.parsing import parse_module
from mpkc.runtime.reference.elements import rounded
from mpkc.runtime.reference.tile import run_kernel

ALIASES = """
!far = memref<?x4xf32, #tile.space<far>>
!whole = memref<2x4xf32, #tile.space<far>>
!part = memref<?x4xf32, strided<[4, 1]>, #tile.space<far>>
!two_rows = memref<2x4xf32, strided<[4, 1], offset: ?>, #tile.space<far>>
!corner = memref<2x2xf32, strided<[4, 1]>, #tile.space<far>>
!line = memref<4xf32, strided<[1]>, #tile.space<far>>
!near = memref<2x4xf32, #tile.space<near>>
!tall = memref<4x2xf32, #tile.space<near>>
!near_part = memref<?x4xf32, strided<[4, 1]>, #tile.space<near>>
!column = memref<2x1xf32, #tile.space<near>>
!mask = memref<2x4xi1, #tile.space<near>>
!rows_far = memref<2xi32, #tile.space<far>>
!rows = memref<2xi32, #tile.space<near>>
!ints = memref<?xi32, #tile.space<far>>
"""


def program(args: str, body: str, op: str = "kernel") -> ProgramOp:
    text = f'{ALIASES}tile.{op} @k({args}) engines ["e", "f"] {{\n{body}\n}}'
    module = parse_module(text, "test.mlir")
    verify(module)
    (found,) = module.ops
    return found


@given(st.lists(st.floats(width=32), min_size=1), st.sampled_from([bf16, f8E4M3FN, f8E5M2]))
def test_small_floats_round_as_their_types_do(values: list[float], element) -> None:
    array = np.array(values, np.float32)
    np.testing.assert_array_equal(rounded(array, element), [element.round(float(x)) for x in array])


def test_integers_wrap_and_halves_overflow() -> None:
    assert rounded(np.array([127, 128, -129]), i8).tolist() == [127, -128, 127]
    assert rounded(np.array([0, 1, 2, 3]), i1).tolist() == [False, True, False, True]
    assert rounded(np.array([1e6]), f16).tolist() == [math.inf]


UNARY_NUMPY = {
    Function.CAST: lambda x: x,
    Function.NEG: lambda x: -x,
    Function.ABS: abs,
    Function.SQUARE: lambda x: x * x,
    Function.SQRT: math.sqrt,
    Function.RSQRT: lambda x: 1 / math.sqrt(x),
    Function.RECIPROCAL: lambda x: 1 / x,
    Function.EXP: math.exp,
    Function.LOG: math.log,
    Function.TANH: math.tanh,
    Function.SIGMOID: lambda x: 1 / (1 + math.exp(-x)),
    Function.SILU: lambda x: x / (1 + math.exp(-x)),
    Function.GELU_TANH: lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}
BINARY_NUMPY = {
    Function.ADD: np.add,
    Function.SUB: np.subtract,
    Function.MUL: np.multiply,
    Function.DIV: np.divide,
    Function.MAX: np.maximum,
    Function.MIN: np.minimum,
    Function.EQ: np.equal,
    Function.NE: np.not_equal,
    Function.LT: np.less,
    Function.LE: np.less_equal,
    Function.GT: np.greater,
    Function.GE: np.greater_equal,
}


@pytest.mark.parametrize("function", sorted(Function))
def test_every_function(function: Function) -> None:
    x = np.array([[0.25, 1, 2, 0.5], [3, 1, 0.125, 4]], np.float32)
    y = np.array([[0.5, 1, 1, 0.5], [4, 2, 0.25, 4]], np.float32)
    operands, types = ("%a", "!near") if function in UNARY else ("%a, %b", "!near, !near")
    result = f'tile.map {function} {operands} -> %c engine "f" : {types} -> !near'
    if function in COMPARISONS:
        result = f"""
          tile.map {function} {operands} -> %m engine "f" : {types} -> !mask
          tile.map cast %m -> %c engine "f" : !mask -> !near"""
    kernel = program(
        "%x : !whole, %y : !whole, %z : !whole",
        f"""
        %a = memref.alloc() : !near
        %b = memref.alloc() : !near
        %c = memref.alloc() : !near
        %m = memref.alloc() : !mask
        tile.copy %x -> %a engine "e" : !whole -> !near
        tile.copy %y -> %b engine "e" : !whole -> !near
        {result}
        tile.copy %c -> %z engine "f" : !near -> !whole""",
    )
    out = run_kernel(kernel, [x, y, np.zeros_like(x)])["z"]
    expected = np.vectorize(UNARY_NUMPY[function])(x) if function in UNARY else BINARY_NUMPY[function](x, y)
    np.testing.assert_allclose(out, np.asarray(expected, np.float32), rtol=1e-6)


def test_memory_that_nothing_wrote_shows() -> None:
    kernel = program("%z : !whole", '%a = memref.alloc() : !near\ntile.copy %a -> %z engine "e" : !near -> !whole')
    assert np.isnan(run_kernel(kernel, [np.zeros((2, 4), np.float32)])["z"]).all()


def test_a_page_holds_nothing_when_it_is_acquired_again() -> None:
    """Task 1 fills its page whole, task 2 only the first row: what is left of task 1 is not to be seen."""
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %r = tile.ring 1 x 32
      scf.for %i = %c0 to %c2 step %c1 {
        %n = arith.subi %c2, %i : index
        %p = tile.acquire %r : !near
        %part = memref.subview %p[0, 0] [%n, 4] [1, 1] : !near to !near_part
        %from = memref.subview %x[0, 0] [%n, 4] [1, 1] : !whole to !part
        tile.copy %from -> %part engine "e" : !part -> !near_part
        tile.copy %p -> %z engine "f" : !near -> !whole
        tile.release %p : !near
      }"""
    x = np.ones((2, 4), np.float32)
    out = run_kernel(program("%x : !whole, %z : !whole", body), [x, x])["z"]
    assert np.isnan(out).tolist() == [[False] * 4, [True] * 4]


def test_scatter_by_number() -> None:
    kernel = program(
        "%x : !whole, %rows : !rows_far, %z : !far",
        "%a = memref.alloc() : !near\n%r = memref.alloc() : !rows\n"
        'tile.copy %x -> %a engine "e" : !whole -> !near\ntile.copy %rows -> %r engine "e" : !rows_far -> !rows\n'
        'tile.scatter %a -> %z[%r] engine "e" : !near -> !far[!rows]',
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    out = run_kernel(kernel, [x, np.array([3, 1], np.int32), np.zeros((5, 4), np.float32)])["z"]
    np.testing.assert_array_equal(out, [[0] * 4, x[1], [0] * 4, x[0], [0] * 4])
    with pytest.raises(OpError, match="two rows go to one row"):
        run_kernel(kernel, [x, np.array([3, 3], np.int32), np.zeros((5, 4), np.float32)])
    with pytest.raises(OpError, match="asks for row 5, and %z has 5"):
        run_kernel(kernel, [x, np.array([3, 5], np.int32), np.zeros((5, 4), np.float32)])


def test_while_and_if_carry_numbers() -> None:
    kernel = program(
        "%n : index, %z : memref<1xi32, #tile.space<far>>",
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %a = memref.alloc() : memref<1xi32, #tile.space<near>>
        %steps, %last = scf.while (%s = %c0, %v = %n) : (index, index) -> (index, index) {
          %more = arith.cmpi ugt, %v, %c1 : index
          scf.condition(%more) %s, %v : index, index
        } do {
        ^bb0(%s : index, %v : index):
          %odd = arith.remui %v, %c2 : index
          %is_odd = arith.cmpi eq, %odd, %c1 : index
          %next = scf.if %is_odd -> (index) {
            %c3 = arith.constant 3 : index
            %triple = arith.muli %v, %c3 : index
            %up = arith.addi %triple, %c1 : index
            scf.yield %up : index
          } else {
            %half = arith.divui %v, %c2 : index
            scf.yield %half : index
          }
          %count = arith.addi %s, %c1 : index
          scf.yield %count, %next : index, index
        }
        tile.fill %steps -> %a engine "e" : index -> memref<1xi32, #tile.space<near>>
        tile.copy %a -> %z engine "e" : memref<1xi32, #tile.space<near>> -> memref<1xi32, #tile.space<far>>
        """,
    )
    assert run_kernel(kernel, [27, np.zeros(1, np.int32)])["z"].tolist() == [111]
    with pytest.raises(OpError, match="ran 50 iterations: it seems to run forever"):
        run_kernel(kernel, [27, np.zeros(1, np.int32)], limit=50)


def test_what_instructions_access() -> None:
    kernel = program(
        "%x : !far, %c : i1",
        """%a = memref.alloc() : !near
        %r = memref.alloc() : !column
        tile.reduce sum %a -> %r axis 1 engine "e" : !near -> !column
        tile.reduce sum %a -> %r axis 1 accumulate %c engine "e" : !near -> !column
        tile.map mul %a, %a -> %a engine "e" : !near, !near -> !near""",
    )
    *_, plain, accumulating, squared = kernel.body.block.ops
    assert plain.accesses() == [(0, Access.READ), (1, Access.WRITE)]
    assert accumulating.accesses() == [(0, Access.READ), (1, Access.READ), (1, Access.WRITE)]
    assert squared.accesses() == [(0, Access.READ), (1, Access.READ), (2, Access.WRITE)]


X = np.zeros((3, 4), np.float32)
FAULTS = {
    "a missing argument": ("%x : !far, %n : index", "", [X], "the argument %n has no value"),
    "an unknown argument": ("%x : !far", "", {"x": X, "y": 1}, "%y is no argument; there are: x"),
    "too many arguments": ("%x : !far", "", [X, X], "takes 1 arguments, not 2: x"),
    "an array for a number": ("%n : index", "", [X], "the argument %n is a number, not an array"),
    "an array of another type": ("%x : !far", "", [X.astype(int)], "holds f32: its array is of float32, not int64"),
    "an array of another shape": ("%x : !far", "", [X.T], r"is \?x4, and its array is of shape \(4, 3\)"),
    "a view out of bounds": (
        "%x : !far, %n : index",
        "%v = memref.subview %x[%n, 0] [2, 4] [1, 1] : !far to !two_rows",
        [X, 2],
        "shows 2 from 2 by 1 of dimension 0, and %x has 3 there",
    ),
    "a cast out of bounds": (
        "%x : !far, %n : index",
        "%v = memref.reinterpret_cast %x to offset: [%n], sizes: [2, 4], strides: [4, 1] : !far to !two_rows",
        [X, 8],
        "and %x has 12 elements",
    ),
    "a cast of a part": (
        "%x : !far",
        """%v = memref.subview %x[0, 0] [2, 2] [1, 1] : !far to !corner
        %w = memref.reinterpret_cast %v to offset: [0], sizes: [4], strides: [1] : !corner to !line""",
        [X],
        "%v is itself a part of a buffer",
    ),
    "a dimension too many": (
        "%x : !far, %n : index",
        "%d = memref.dim %x, %n : !far",
        [X, 2],
        "asks for dimension 2 of 2",
    ),
    "a copy of another size": (
        "%x : !far",
        '%a = memref.alloc() : !near\ntile.copy %x -> %a engine "e" : !far -> !near',
        [X],
        r"its result is of shape \(3, 4\) here, and its destination of shape \(2, 4\)",
    ),
    "rows of another number": (
        "%z : !far, %n : index",
        """%a = memref.alloc() : !near
        %zero = arith.constant 0 : i32
        %r = memref.alloc() : !rows
        tile.fill %zero -> %r engine "e" : i32 -> !rows
        %v = memref.subview %a[0, 0] [%n, 4] [1, 1] : !near to !near_part
        tile.scatter %v -> %z[%r] add engine "e" : !near_part -> !far[!rows]""",
        [X, 1],
        r"its source is of shape \(1, 4\) here, for 2 rows of 4",
    ),
    "an instruction that is only a name": (
        "",
        'sem.inst @P engine "e" cost 1',
        [],
        "'sem.inst' says no more than its name: there is nothing to compute",
    ),
    "tiles that do not multiply": (
        "%n : index",
        """%a = memref.alloc() : !tall
        %b = memref.alloc() : !near
        %acc = memref.alloc() : memref<4x4xf32, #tile.space<accumulator>>
        %v = memref.subview %b[0, 0] [%n, 4] [1, 1] : !near to !near_part
        tile.matmul %a, %v -> %acc engine "e" : !tall, !near_part -> memref<4x4xf32, #tile.space<accumulator>>""",
        [1],
        "multiplies 4x2 by 1x4 here",
    ),
    "a value out of bounds": (
        "%x : !ints, %n : index",
        '%v = tile.value %x[%n] engine "e" : !ints',
        [np.zeros(2, np.int32), 2],
        r"reads at \[2\], and %x is of shape \(2,\)",
    ),
    "a step of zero": (
        "%n : index",
        "%c1 = arith.constant 1 : index\nscf.for %i = %n to %c1 step %n {\n}",
        [0],
        "the step is 0 here: a step is 1 or more",
    ),
    "operands that do not broadcast": (
        "%n : index, %m : index",
        """%a = memref.alloc() : !near
        %u = memref.subview %a[0, 0] [%n, 4] [1, 1] : !near to !near_part
        %v = memref.subview %a[0, 0] [%m, 4] [1, 1] : !near to !near_part
        tile.map exp %u -> %v engine "e" : !near_part -> !near_part""",
        [2, 1],
        r"operands of shape \(2, 4\) here do not broadcast to \(1, 4\)",
    ),
}


@pytest.mark.parametrize(("args", "body", "inputs", "message"), FAULTS.values(), ids=FAULTS)
def test_faults_of_a_run(args: str, body: str, inputs, message: str) -> None:
    kernel = program(args, body)
    with pytest.raises(OpError, match=message) as err:
        run_kernel(kernel, inputs)
    assert str(err.value).startswith("test.mlir:")


def test_an_event_that_is_not_there() -> None:
    worker = program("%e : !ints, %n : index", '%t = tile.event_wait %e[%n] until %n engine "e" : !ints', "worker")
    with pytest.raises(OpError, match="names event 2 of 2"):
        run_kernel(worker, [np.zeros(2, np.int32), 2])
