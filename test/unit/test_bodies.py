"""The body of each kind of task against the reference, over shapes that do not divide into its tiles."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpkc import tops
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.function import only_function
from mpkc.inputs import Input
from mpkc.parsing import new_context, parse_module
from mpkc.pipelines import Options, run_passes, task_graph
from mpkc.runtime.cuda.bodies import BODIES
from mpkc.runtime.cuda.emit import compile_program
from mpkc.runtime.host.run import HostOptions, HostRun
from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights

Build = Callable[[tops.Program], tuple[Any, ...]]
WORKERS = 3


def linear(rows: int, inner: int, out: int, residual: bool) -> Build:
    def build(p: tops.Program) -> tuple[Any, ...]:
        x, weight = p.input("x", (rows, inner)), p.weight("w", shape=(out, inner))
        return (tops.linear(x, weight, residual=p.input("r", (rows, out)) if residual else None),)

    return build


def rms_norm(rows: int, columns: int) -> Build:
    return lambda p: (tops.rms_norm(p.input("x", (rows, columns)), p.weight("w", shape=(columns,)), epsilon=1e-5),)


def elementwise(operator: Callable[..., Any], rows: int, columns: int) -> Build:
    return lambda p: (operator(p.input("a", (rows, columns)), p.input("b", (rows, columns))),)


def silu_mul(rows: int, columns: int) -> Build:
    return lambda p: (tops.silu_mul(p.input("x", (rows, 2 * columns))),)


def embedding(rows: int, entries: int, columns: int) -> Build:
    return lambda p: (tops.embedding(p.input("i", (rows,), "i32"), p.weight("w", shape=(entries, columns))),)


def argmax(rows: int, columns: int, parts: int) -> Build:
    def build(p: tops.Program) -> tuple[Any, ...]:
        largest, index = tops.argmax_partial(p.input("x", (rows, columns)), parts=parts)
        return largest, index, tops.argmax_reduce(largest, index)

    return build


def attention(rows: int, kv_heads: int, group: int, dim: int, page_size: int, style: str, norms: bool) -> Build:
    def build(p: tops.Program) -> tuple[Any, ...]:
        pages, heads = 6, group * kv_heads
        cache = (rows * pages, kv_heads, page_size, dim)
        weights = [p.weight(name, shape=(dim,)) for name in ("q", "k")] if norms else []
        return (
            tops.attention(
                p.input("qkv", (rows, (heads + 2 * kv_heads) * dim)),
                p.buffer("keys", cache),
                p.buffer("values", cache),
                p.input("pages", (rows, pages), "i32"),
                p.input("positions", (rows,), "i32"),
                *weights,
                heads=heads,
                rope_base=10_000.0,
                rope_style=style,
                **({"epsilon": 1e-6} if norms else {}),
            ),
        )

    return build


CASES = {
    "linear": linear(1, 576, 100, residual=False),
    "linear, ragged": linear(6, 259, 37, residual=True),
    "linear, narrow": linear(3, 5, 3, residual=False),
    "rms_norm": rms_norm(2, 576),
    "rms_norm over a page": rms_norm(3, 4098),
    "add": elementwise(tops.add, 3, 4100),
    "mul": elementwise(tops.mul, 2, 7),
    "silu_mul": silu_mul(2, 2051),
    "embedding": embedding(3, 11, 4101),
    "argmax": argmax(2, 1187 * 3 + 1, 5),
    "attention": attention(1, 3, 3, 64, 64, "pairs", norms=False),
    "attention, small pages": attention(2, 1, 4, 32, 5, "halves", norms=True),
    "attention, wide": attention(1, 2, 2, 128, 64, "halves", norms=True),
    "attention, padded rows": attention(1, 2, 1, 66, 64, "pairs", norms=False),
}


def inputs_of(func: Any, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    inputs = seeded_inputs(func, seed)
    for name in ("keys", "values"):
        if name in inputs:
            inputs[name] = rng.standard_normal(inputs[name].shape, np.float32)
    if "positions" in inputs:
        rows, pages = inputs["pages"].shape
        capacity = pages * inputs["keys"].shape[2]
        inputs["pages"] = rng.permutation(rows * pages).astype(np.int32).reshape(rows, pages)
        inputs["positions"] = rng.integers(capacity // 2, capacity, rows, dtype=np.int32)
    return inputs


@pytest.mark.parametrize("mode", ["fast", "lanes"])
@pytest.mark.parametrize("case", CASES)
def test_a_body_computes_what_the_reference_does(case: str, mode: Any) -> None:
    p = tops.Program("case")
    p.returns(*CASES[case](p))
    given = Input(p.module(), new_context())
    func = only_function(given.module)
    run_passes(given.module, task_graph(Options(WORKERS, min_bytes=0)), given.ctx)
    expected_inputs, found_inputs = inputs_of(func, 1), inputs_of(func, 1)
    expected = run_function(func, expected_inputs, seeded_weights(1))
    program = compile_program(given.module)
    run = HostRun(program, seeded_weights(1), found_inputs, HostOptions(mode, WORKERS))
    for a, b in zip(run.run(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * float(np.max(np.abs(b))))
    for name in ("keys", "values"):
        if name in found_inputs:
            # an angle of some hundred, in float32, is known to 2e-5
            np.testing.assert_allclose(found_inputs[name], expected_inputs[name], atol=1e-4)


def test_every_body_has_a_case() -> None:
    built: set[type] = set()
    for build in CASES.values():
        p = tops.Program("case")
        p.returns(*build(p))
        built |= {type(op) for op in only_function(p.module()).body.block.ops}
    assert set(BODIES) <= built


def test_argmax_of_nothing_that_compares_is_a_column() -> None:
    p = tops.Program("nan")
    p.returns(*argmax(1, 100, 4)(p))
    given = Input(p.module(), new_context())
    run_passes(given.module, task_graph(Options(1)), given.ctx)
    inputs = {"x": np.full((1, 100), np.nan, np.float32)}
    run = HostRun(compile_program(given.module), seeded_weights(0), inputs, HostOptions("fast", 1))
    assert 0 <= run.run()[2][0] < 100


EMPTY_TABLE = "tgraph.table @g of @f linear {" + ", ".join(
    f"{name} = dense<{value}> : tensor<{size}xi32>"
    for name, value, size in (
        *((name, "[]", 0) for name in ("task_operator", "task_tile", "task_device", "event_device", "waits")),
        *((name, "[]", 0) for name in ("triggers", "event_first", "event_last")),
        *((name, "0", 1) for name in ("wait_offsets", "trigger_offsets")),
    )
)


@pytest.mark.parametrize(("table", "message"), [("", "has no tensor operators"), (EMPTY_TABLE + "}", "has no tasks")])
def test_a_graph_without_tasks_is_refused(table: str, message: str) -> None:
    text = "func.func @f(%x : tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }\n" + table
    with pytest.raises(OpError, match=message):
        compile_program(parse_module(text, "empty.mlir"))
