"""Programs built in Python: types and places of operations, and every mistake told at the call."""

import inspect
from io import StringIO

import numpy as np
import pytest
from xdsl.printer import Printer

from mpkc import tops
from mpkc.dialects import tops as dialect
from mpkc.dialects.diagnostics import place, verify
from mpkc.dialects.tops.function import argument_names, only_function
from mpkc.parsing import parse_module

MLP = """builtin.module {
  func.func @mlp(%x: tensor<4x64xf32> {tops.name = "x"}) -> tensor<4x64xf32> {
    %0 = tops.weight "norm" : tensor<64xf32>
    %1 = tops.rms_norm %x, %0 {epsilon = 1.000000e-05 : f64} : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
    %2 = tops.weight "gate", "up" {groups = 128 : i64} : tensor<256x64xf32>
    %3 = tops.linear %1, %2 : (tensor<4x64xf32>, tensor<256x64xf32>) -> tensor<4x256xf32>
    %4 = tops.silu_mul %3 : (tensor<4x256xf32>) -> tensor<4x128xf32>
    %5 = tops.weight "down" : tensor<64x128xf32>
    %6 = tops.linear %4, %5, %x {grid = array<i64: 1, 4>} : (tensor<4x128xf32>, tensor<64x128xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    func.return %6 : tensor<4x64xf32>
  }
}"""  # noqa: E501


def mlp():
    p = tops.Program("mlp")
    x = p.input("x", (4, 64))
    normed = tops.rms_norm(x, p.weight("norm", shape=(64,)), epsilon=1e-5)
    inner = tops.silu_mul(tops.linear(normed, p.weight("gate", "up", groups=128, shape=(256, 64))))
    p.returns(tops.linear(inner, p.weight("down", shape=(64, 128)), residual=x, grid=(1, 4)))
    return p.module()


def test_the_module_is_the_text_form():
    module = mlp()
    verify(module)
    assert str(module) == MLP
    assert str(parse_module(MLP)) == MLP


def test_operations_know_the_line_that_made_them():
    lines, first = inspect.getsourcelines(mlp)
    module = mlp()
    for op in only_function(module).body.block.ops:
        file, line, column = place(op.location)
        assert file == __file__
        text = lines[line - first][column - 1 :]
        called = {"func.return": "p.returns", "tops.weight": "p.weight"}.get(op.name, op.name)
        assert text.startswith(called + "("), op.name
    assert lines[place(only_function(module).location)[1] - first].strip() == 'p = tops.Program("mlp")'
    (x,) = only_function(module).args
    assert lines[place(x.location)[1] - first].strip() == 'x = p.input("x", (4, 64))'


def test_the_text_form_keeps_the_places():
    module, out = mlp(), StringIO()
    Printer(out, print_debuginfo=True).print_op(module)
    again = parse_module(out.getvalue())
    assert [op.location for op in again.walk()][1:] == [op.location for op in module.walk()][1:]


def test_every_operator_has_a_function_that_takes_its_properties_by_keyword():
    for op in dialect.Tops.operations:
        if op is dialect.WeightOp:
            continue
        parameters = inspect.signature(getattr(tops, op.name.removeprefix("tops."))).parameters
        keywords = {name for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
        assert keywords == {*op.get_irdl_definition().properties, "grid"}


def test_values_know_their_shape_and_type():
    p = tops.Program("test")
    cache, x = p.buffer("cache", (2, 1, 4, 8), "bf16"), p.input("x", (np.int64(2), 3), "f16")
    assert (cache.shape, cache.dtype) == ((2, 1, 4, 8), "bf16")
    assert (x.shape, x.dtype) == ((2, 3), "f16")
    largest, index = tops.argmax_partial(x, parts=3)
    assert (largest.dtype, index.dtype) == ("f16", "i32")
    assert repr(tops.add(x, x)) == "<tensor<2x3xf16> of test>"


def test_arguments_have_names_that_survive_the_text_form():
    p = tops.Program("test")
    names = ["x", "layers.0.keys", "x_1", "two words", "1st"]
    values = [p.input(name, (1, 1)) for name in names]
    p.returns(tops.add(values[0], values[1]))
    assert argument_names(only_function(p.module())) == names
    assert argument_names(only_function(parse_module(str(p.module())))) == names


def program():
    p = tops.Program("test")
    return p, p.input("x", (4, 6)), p.weight("w", shape=(8, 6)), p.input("i", (4,), "i32")


def other():
    return tops.Program("other").input("o", (4, 6))


MISTAKES = {
    "linear: x has 6 columns, but weight ([out, in]) has 4": lambda p, x, w, i: tops.linear(x, x_(p)),
    "linear: residual is tensor<4x6xf32>, but the product is tensor<4x8xf32>": lambda p, x, w, i: tops.linear(x, w, x),
    "linear: missing a required argument: 'weight'": lambda p, x, w, i: tops.linear(x),
    "linear: got an unexpected keyword argument 'bias'": lambda p, x, w, i: tops.linear(x, w, bias=x),
    "linear: weight is of <class 'numpy.ndarray'>, but must be a value of the program": (
        lambda p, x, w, i: tops.linear(x, np.zeros((8, 6)))
    ),
    "linear: x is of <class 'int'>, but must be a value of a program": lambda p, x, w, i: tops.linear(3, w),
    "add: b is a value of program 'other', not of 'test'": lambda p, x, w, i: tops.add(x, other()),
    "add: grid cuts rows in 5, but 1 to 4 parts are possible": lambda p, x, w, i: tops.add(x, x, grid=(5, 1)),
    "add: grid must be array<i64: ...> with one number for each of: rows, features": (
        lambda p, x, w, i: tops.add(x, x, grid=(4,))
    ),
    "add: grid is 4, but must be a tuple of integers": lambda p, x, w, i: tops.add(x, x, grid=4),
    "add: a number of the grid is 1.5, but must be an integer": lambda p, x, w, i: tops.add(x, x, grid=(1.5, 1)),
    'reduce: kind is "min", but must be one of: sum, max, mean': lambda p, x, w, i: tops.reduce(x, kind="min"),
    "reduce: kind is 3, but must be a string": lambda p, x, w, i: tops.reduce(x, kind=3),
    "reduce: missing a required argument: 'kind'": lambda p, x, w, i: tops.reduce(x),
    "rms_norm: epsilon is 'small', but must be a number": (
        lambda p, x, w, i: tops.rms_norm(x, p.weight("n", shape=(6,)), epsilon="small")
    ),
    "rms_norm: epsilon is '1e-5', but must be a number": (
        lambda p, x, w, i: tops.rms_norm(x, p.weight("n", shape=(6,)), epsilon="1e-5")
    ),
    "rms_norm: epsilon is 0.0, but must be a positive number": (
        lambda p, x, w, i: tops.rms_norm(x, p.weight("n", shape=(6,)), epsilon=0)
    ),
    "rope: rope_base is inf, but must be a positive number": (
        lambda p, x, w, i: tops.rope(x, i, heads=3, rope_base=float("inf"), rope_style="pairs")
    ),
    "argmax_partial: parts is 2.0, but must be an integer": lambda p, x, w, i: tops.argmax_partial(x, parts=2.0),
    "argmax_partial: parts is True, but must be an integer": lambda p, x, w, i: tops.argmax_partial(x, parts=True),
    "embedding: index has elements of f32, but must have i32": (
        lambda p, x, w, i: tops.embedding(p.input("f", (4,)), w)
    ),
    "attention: operand 'keys' at position 1 does not verify": (
        lambda p, x, w, i: tops.attention(
            p.input("qkv", (4, 24)),
            *(p.input(name, (4, 1, 2, 8)) for name in ("k", "v")),
            p.input("pages", (4, 1), "i32"),
            i,
            heads=1,
            rope_base=1e4,
            rope_style="halves",
        )
    ),
    "input: there is an argument 'x' already": lambda p, x, w, i: p.input("x", (1,)),
    "input: name is 3, but must be a string": lambda p, x, w, i: p.input(3, (1,)),
    "input: shape is 3, but must be a tuple of integers": lambda p, x, w, i: p.input("y", 3),
    "input: shape is (4, 0), but no dimension may be less than 1": lambda p, x, w, i: p.input("y", (4, 0)),
    "input: dtype is 'f64', but must be one of: f32, bf16, f16, i32": lambda p, x, w, i: p.input("y", (1,), "f64"),
    "buffer: there is an argument 'x' already": lambda p, x, w, i: p.buffer("x", (1,)),
    "weight: needs the name of at least one source": lambda p, x, w, i: p.weight(shape=(3,)),
    "weight: a source is 3, but must be a string": lambda p, x, w, i: p.weight(3, shape=(3,)),
    "weight: 8 rows can't be cut into 3 equal groups": lambda p, x, w, i: p.weight("a", "b", shape=(8, 6), groups=3),
    "weight: dim is 2, but the weight has dimensions 0 to 1": lambda p, x, w, i: p.weight("a", shape=(8, 6), dim=2),
    "weight: weight has elements of i32, but must have f32, f16 or bf16": (
        lambda p, x, w, i: p.weight("a", shape=(8, 6), dtype="i32")
    ),
    "weight: missing a required argument: 'shape'": lambda p, x, w, i: p.weight("a"),
    "returns: a program returns at least one value": lambda p, x, w, i: p.returns(),
    "returns: a result is a value of program 'other', not of 'test'": lambda p, x, w, i: p.returns(other()),
    "returns: a result is memref<1xf32>, but must be a tensor: buffers are updated in place": (
        lambda p, x, w, i: p.returns(p.buffer("b", (1,)))
    ),
    "returns: program 'test' has returned already": lambda p, x, w, i: (p.returns(x), p.returns(x)),
    "add: program 'test' has returned already": lambda p, x, w, i: (p.returns(x), tops.add(x, x)),
    "input: program 'test' has returned already": lambda p, x, w, i: (p.returns(x), p.input("y", (1,))),
    "module: program 'test' has not returned a value yet": lambda p, x, w, i: p.module(),
}


def x_(p):
    return p.weight("narrow", shape=(8, 4))


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_told_at_the_call(message):
    with pytest.raises(tops.TopsError) as caught:
        MISTAKES[message](*program())
    assert str(caught.value).startswith(f"tops.{message}")
    assert isinstance(caught.value, ValueError)


def test_a_mistake_leaves_the_program_as_it_was():
    p, x, w, _ = program()
    with pytest.raises(tops.TopsError):
        tops.add(x, x, grid=(5, 1))
    p.returns(tops.linear(x, w))
    verify(p.module())
    assert [op.name for op in only_function(p.module()).body.block.ops] == ["tops.weight", "tops.linear", "func.return"]


def test_a_decoding_step_must_have_the_signature():
    p = tops.Program("step", decode=True)
    p.returns(tops.transpose(p.input("x", (1, 2))))
    with pytest.raises(tops.TopsError, match="a decoding step has arguments token, positions, pages"):
        p.module()
