"""The reference interpreter: inputs, weights, seeds, errors; decoding, up to the tokens of a real model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpkc import tops
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops import WeightOp
from mpkc.dialects.tops.base import Operator
from mpkc.dialects.tops.decode import decode_signature
from mpkc.dialects.tops.function import argument_names, only_function
from mpkc.models.builtin import CONFIGS
from mpkc.models.config import Experts, ModelConfig
from mpkc.models.decode import decode_step
from mpkc.models.errors import ModelError
from mpkc.models.weights import program_weights
from mpkc.parsing import parse_module
from mpkc.runtime.reference.decode import ReferenceDecoder
from mpkc.runtime.reference.tops import page_table, rounded, run_function, seeded_inputs, seeded_weights

TINY = ModelConfig(
    name="tiny",
    layers=2,
    hidden=192,
    heads=3,
    kv_heads=1,
    head_dim=64,
    intermediate=512,
    vocabulary=1024,
    context=256,
    rms_epsilon=1e-5,
    rope_base=1e4,
    rope_style="pairs",
    qk_norm=False,
    tied_embedding=True,
)
MIXTURE = ModelConfig(**vars(TINY) | {"qk_norm": True, "tied_embedding": False, "experts": Experts(8, 2, 64)})


def function(text):
    return only_function(parse_module(text, "test.mlir"))


ADD = """func.func @add(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tops.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_arguments_are_named_as_in_the_text():
    (found,) = run_function(function(ADD), {"y": X, "x": X}, weights=None)
    assert np.array_equal(found, 2 * X)
    unnamed = function(ADD.replace("%x", "%0").replace("%0 =", "%1 =").replace("return %0", "return %1"))
    assert argument_names(unnamed) == ["arg0", "y"]


BROKEN = {
    "test.mlir:1:1: error: no input for argument 'y'": (ADD, {"x": X}),
    "test.mlir:1:1: error: has no argument 'z'; its arguments are: x, y": (ADD, {"x": X, "y": X, "z": X}),
    "input 'y' is float32 (3, 2), but must be float32 (2, 3)": (ADD, {"x": X, "y": X.T}),
    "input 'x' is float64 (2, 3), but must be float32 (2, 3)": (ADD, {"x": X.astype(float), "y": X}),
    "test.mlir:2:3: error: uses a value before the operation that defines it": (
        ADD.replace("tops.add %x", "tops.add %0"),
        {"x": X, "y": X},
    ),
    "test.mlir:2:3: error: 'arith.addf' can't be run: a program has tops operators and func.return": (
        ADD.replace("tops.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) ->", "arith.addf %x, %y :"),
        {"x": X, "y": X},
    ),
    "argument 'x' is f32, but must be a tensor or a buffer (memref)": (
        "func.func @f(%x: f32) { func.return }",
        {"x": X},
    ),
    "arguments 0 and 1 are both named 'x': tell them apart by {tops.name}": (ADD.replace("%y", "%x_1"), {"x": X}),
    "input 'i' has -1, but integers are indices: 0 or more": (
        "func.func @f(%i: tensor<1xi32>) { func.return }",
        {"i": np.array([-1], np.int32)},
    ),
    "input 'b' can't be written to, but is a buffer that the program updates": (
        "func.func @f(%b: memref<3xf32>) { func.return }",
        {"b": np.broadcast_to(np.float32(0), (3,))},
    ),
    "test.mlir:2:3: error: input 'i' has 2 at [0], but there are 2 rows of the table: 0 to 1": (
        """func.func @f(%i: tensor<1xi32>, %t: tensor<2x3xf32>) -> tensor<1x3xf32> {
  %0 = tops.embedding %i, %t : (tensor<1xi32>, tensor<2x3xf32>) -> tensor<1x3xf32>
  func.return %0 : tensor<1x3xf32>
}""",
        {"i": np.array([2], np.int32), "t": X},
    ),
    "a program is one block, but this function has 2": (
        "func.func @f() { cf.br ^bb1 \n ^bb1: func.return }",
        {},
    ),
    "@f has no body, so there is nothing to run": ("func.func private @f() -> ()", {}),
}


@pytest.mark.parametrize("message", BROKEN)
def test_what_can_not_be_run_is_told(message):
    text, inputs = BROKEN[message]
    with pytest.raises(OpError) as caught:
        run_function(function(text), inputs, weights=None)
    assert message in str(caught.value)


def test_a_module_has_one_function():
    with pytest.raises(OpError, match="the module has 2"):
        function("func.func @f() { func.return } func.func @g() { func.return }")


def test_a_weight_has_the_shape_that_is_written():
    p = tops.Program("test")
    p.returns(tops.linear(p.input("x", (2, 3)), p.weight("a", "b", shape=(4, 3))))
    with pytest.raises(OpError, match=r"weight 'a\+b' is float32 \(3, 4\), but must be float32 \(4, 3\)"):
        run_function(only_function(p.module()), {"x": X}, lambda op: np.zeros((3, 4), np.float32))


def weight_op(key, shape, **stacking):
    p = tops.Program("test")
    return p.weight(*key, shape=shape, **stacking).ssa.owner


@given(st.integers(1, 3), st.integers(1, 4), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 2))
def test_sources_are_stacked_block_by_block(groups, width, blocks, dim):
    shapes = [[2, 3, width] for _ in blocks]
    for shape, block in zip(shapes, blocks, strict=True):
        shape[dim] = groups * block
    rng = np.random.default_rng(len(blocks))
    sources = {f"s{i}": rng.standard_normal(shape, np.float32) for i, shape in enumerate(shapes)}
    parts = [np.split(source, groups, axis=dim) for source in sources.values()]
    expected = np.concatenate([part[g] for g in range(groups) for part in parts], axis=dim)
    out = np.empty_like(expected)
    weight_op(sources, expected.shape, groups=groups, dim=dim).place(sources.__getitem__, out)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("shapes", [[(4, 3), (4, 2)], [(4, 3), (3, 3)], [(5, 3), (3, 3)], [(4, 3), (4,)]])
def test_sources_that_do_not_fit_are_named(shapes):
    sources = {name: np.zeros(shape, np.float32) for name, shape in zip("ab", shapes, strict=True)}
    with pytest.raises(ValueError, match=r"weight of shape \(8, 3\) in 2 groups can't be stacked from a \(.*, b \("):
        weight_op("ab", (8, 3), groups=2).place(sources.__getitem__, np.empty((8, 3), np.float32))


def test_keys_tell_placed_weights_apart():
    stackings = [{}, {"groups": 2}, {"dim": 1}, {"groups": 2, "dim": 1}]
    keys = [weight_op("ab", (4, 4), **stacking).key for stacking in stackings]
    assert keys == ["a+b", "a+b/2", "a+b@1", "a+b/2@1"]


def test_seeded_weights_depend_on_key_and_seed_alone():
    a, b, c = weight_op("a", (8, 16)), weight_op("b", (8, 16)), weight_op("a", (8, 16))
    weights = seeded_weights(1)
    first = weights(a)
    assert not np.array_equal(first, weights(b))
    assert np.array_equal(first, weights(c))
    assert not np.array_equal(first, seeded_weights(2)(a))
    assert first.dtype == np.float32
    assert 0.5 < np.linalg.norm(first) / np.sqrt(8) < 2


def test_seeded_inputs_are_of_use():
    func = only_function(decode_step(TINY, rows=3, layers=1))
    inputs = seeded_inputs(func, 0)
    assert list(inputs) == argument_names(func)
    assert inputs["token"].dtype == np.int32
    assert (inputs["token"] < TINY.vocabulary).all()
    assert len(set(inputs["token"])) == 3
    assert len(set(inputs["pages"].flat)) == inputs["pages"].size == 3 * 4
    assert not inputs["positions"].any()
    assert not inputs["layers.0.keys"].any()
    again = seeded_inputs(func, 0)
    assert all(np.array_equal(again[name], array) for name, array in inputs.items())
    tokens, logits = run_function(func, inputs, seeded_weights(0))
    assert np.isfinite(logits).all()
    assert np.array_equal(tokens, logits.argmax(axis=1))
    assert inputs["layers.0.keys"].any()
    assert np.array_equal(page_table(1, 5, 5), [[0, 1, 2, 3, 4]])


halfway = st.integers(0, 0x7F7E).map(lambda high: float(np.array(high << 16 | 0x8000, np.uint32).view(np.float32)))


@given(st.floats(width=32, allow_nan=False) | halfway)
def test_rounding_to_bf16_is_to_the_nearest_and_ties_to_even(value):
    bf16 = tops.Program("test").input("x", (1,), "bf16").ssa.type
    array = np.array([value], np.float32)
    found = rounded(array, bf16)
    below = array.view(np.uint32) >> 16 << 16
    candidates = [(below + step).astype(np.uint32).view(np.float32)[0] for step in (0, 0x10000)]
    exact = [abs(float(value) - float(c)) if np.isfinite(c) else np.inf for c in candidates]
    if not np.isfinite(candidates).all():
        assert found[0] in (value, *candidates)
    elif exact[0] != exact[1]:
        assert found[0] == candidates[int(np.argmin(exact))]
    else:
        assert found.view(np.uint32)[0] >> 16 & 1 == 0


def test_rounding_keeps_what_is_not_a_number():
    bf16, f16 = (tops.Program("test").input("x", (2,), dtype).ssa.type for dtype in ("bf16", "f16"))
    odd = np.array([np.nan, np.inf], np.float32)
    assert np.array_equal(rounded(odd, bf16), odd, equal_nan=True)
    assert np.array_equal(rounded(np.array([1e6, 2048.5], np.float32), f16), [np.inf, 2048])


@pytest.mark.parametrize(("name", "operators"), [("qwen3-1.7b", 229), ("qwen3-8b", 293), ("qwen3-30b-a3b", 533)])
def test_a_step_has_the_published_number_of_operators(name, operators):
    module = decode_step(CONFIGS[name])
    module.verify()
    assert sum(isinstance(op, Operator) for op in module.walk()) == operators
    signature = decode_signature(only_function(module))
    assert (signature.capacity, signature.vocabulary) == (40960, 151936)


def test_the_weights_of_a_step_are_those_of_the_model():
    for config in (TINY, MIXTURE):
        shapes = config.tensor_shapes()
        sizes = dict.fromkeys(shapes, 0)
        for op in decode_step(config).walk():
            if isinstance(op, WeightOp):
                for source in op.source_names:
                    sizes[source] += 1
                stacked = [shapes[source] for source in op.source_names]
                assert sum(map(np.prod, stacked)) == np.prod(op.result.type.get_shape())
                assert all(shape[op.stacking_dim] % op.group_count == 0 for shape in stacked)
        assert set(sizes.values()) == {1}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"rows": 0}, "rows is 0, expected at least 1"),
        ({"layers": 3}, "layers is 3, expected at least 1 and at most 2"),
        ({"context": 257}, "context is 257, expected at least 1 and at most 256"),
        ({"page_size": 0}, "page_size is 0, expected at least 1"),
    ],
)
def test_a_step_of_impossible_size_is_refused(option, message):
    with pytest.raises(ModelError, match=message):
        decode_step(TINY, **option)


STEP = """func.func @step(%token: tensor<1xi32>, %positions: tensor<1xi32>, %pages: tensor<1x2xi32>,
    %k: memref<2x1x4x8xf32>, %v: memref<2x1x4x8xf32>) -> (tensor<1xi32>, tensor<1x9xf32>) attributes {tops.decode} {
  %0, %1 = "test.op"() : () -> (tensor<1xi32>, tensor<1x9xf32>)
  func.return %0, %1 : tensor<1xi32>, tensor<1x9xf32>
}"""


def test_the_signature_of_a_step():
    signature = decode_signature(function(STEP))
    assert signature.buffers == (3, 4)
    assert (signature.rows, signature.row_pages, signature.cache_pages, signature.page_size) == (1, 2, 2, 4)
    assert (signature.capacity, signature.vocabulary) == (8, 9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" attributes {tops.decode}", "", "@step is no decoding step: it has no attribute tops.decode"),
        (", %v: memref<2x1x4x8xf32>", "", "then keys and values of each layer, but this one has 4"),
        ("%positions: tensor<1xi32>", "%positions: tensor<2xi32>", "positions must have 1 elements, as token has"),
        ("%token: tensor<1xi32>", "%token: tensor<1xf32>", "the next token must have elements of i32"),
        ("%pages: tensor<1x2xi32>", "%pages: tensor<2x2xi32>", "pages must have 1 rows, as token has elements"),
        ("%pages: tensor<1x2xi32>", "%pages: memref<1x2xi32>", "token, positions and pages must be tensors"),
        ("%k: memref<2x1x4x8xf32>", "%k: tensor<2x1x4x8xf32>", "keys and values must be buffers (memref)"),
        ("%k: memref<2x1x4x8xf32>", "%k: memref<3x1x4x8xf32>", "the same number and size of pages in all layers"),
        ("tensor<1x9xf32>", "tensor<1x9xi32>", "logits has elements of i32"),
        ("tensor<1x9xf32>", "tensor<2x9xf32>", "logits must have 1 rows"),
    ],
)
def test_a_step_with_another_signature_is_refused(old, new, message):
    with pytest.raises(OpError) as caught:
        decode_signature(function(STEP.replace(old, new)))
    assert message in str(caught.value)
    assert str(caught.value).startswith("test.mlir:1:1: error:")


@pytest.mark.parametrize("config", [TINY, MIXTURE], ids=["dense", "experts"])
def test_the_decoder_steps_through_its_cache(config):
    decoder = ReferenceDecoder(only_function(decode_step(config, context=16, page_size=4)), seeded_weights(0))
    prompt = [3, 1, 4, 1, 5]
    found = decoder.generate(prompt, 6)
    assert found[:3] == decoder.generate(prompt, 3)
    tokens = prompt + found
    logits = [decoder.step(token, position) for position, token in enumerate(tokens)]
    assert [int(row.argmax()) for row in logits][4:-1] == found
    assert logits[0].shape == (1024,)
    assert logits[0].dtype == np.float32
    # what a row has seen before matters, what its cache held before it does not
    assert not np.array_equal(decoder.step(5, 0), logits[4])
    assert np.array_equal(decoder.step(3, 0), logits[0])


def test_rows_decode_as_they_do_alone():
    """Three requests at different positions in one step, against three decoders."""
    weights = seeded_weights(0)
    texts = [[7, 8, 9], [10], [11, 12]]
    alone = ReferenceDecoder(only_function(decode_step(TINY, context=16, page_size=2)), weights)
    func = only_function(decode_step(TINY, rows=3, context=16, page_size=2))
    inputs = seeded_inputs(func, 0)
    for step in range(3):
        inputs["positions"] = np.array([min(step, len(text) - 1) for text in texts], np.int32)
        inputs["token"] = np.array([text[min(step, len(text) - 1)] for text in texts], np.int32)
        _, logits = run_function(func, inputs, weights)
    for text, row in zip(texts, logits, strict=True):
        for position, token in enumerate(text):
            expected = alone.step(token, position)
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)


def test_the_decoder_refuses_what_it_can_not_do():
    func = only_function(decode_step(TINY, layers=1, context=8, page_size=4))
    decoder = ReferenceDecoder(func, seeded_weights(0))
    with pytest.raises(ValueError, match="the prompt is empty"):
        decoder.generate([], 1)
    with pytest.raises(ValueError, match="position 8 is beyond the cache of 8 positions"):
        decoder.step(0, 8)
    with pytest.raises(ValueError, match="a prompt of 5 tokens and 5 more need 9 positions, but the cache has 8"):
        decoder.generate([1] * 5, 5)
    with pytest.raises(OpError, match=r"input 'token' has 1024 at \[0\], but there are 1024 rows of the table"):
        decoder.step(1024, 0)
    with pytest.raises(OpError, match="decodes 2 rows at once"):
        ReferenceDecoder(only_function(decode_step(TINY, rows=2)), seeded_weights(0))
    with pytest.raises(OpError, match="a row has 3 pages, but the cache 2"):
        ReferenceDecoder(function(STEP.replace("1x2xi32", "1x3xi32")), seeded_weights(0))


def test_smollm2_gives_its_golden_tokens(smollm2, smollm2_golden):
    module = decode_step(smollm2.config, context=64)
    assert sum(isinstance(op, Operator) for op in module.walk()) == 245
    func = only_function(module)
    decoder = ReferenceDecoder(func, program_weights(smollm2, func))
    golden = smollm2_golden["The capital of France is"]
    assert decoder.generate(golden["prompt_ids"], 24) == golden["new_ids"]
    for position, token in enumerate(golden["prompt_ids"]):
        logits = decoder.step(token, position)
    for token, logit in golden["last_logits_top5"]:
        assert abs(logits[token] - logit) < 2e-3
