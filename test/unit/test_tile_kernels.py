"""Kernels written in tile (examples/tile), run in program order, against the same computation in NumPy."""

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f8E4M3FN
from xdsl.printer import Printer

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.tile import ProgramOp
from mpkc.parsing import parse_module
from mpkc.runtime.reference.elements import rounded
from mpkc.runtime.reference.tile import run_kernel

EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"
KERNELS = sorted(path.stem for path in EXAMPLES.glob("*.mlir"))


def load(name: str) -> ProgramOp:
    module = parse_module((EXAMPLES / f"{name}.mlir").read_text(), f"{name}.mlir")
    verify(module)
    (program,) = module.ops
    return program


MATMUL, SOFTMAX, RMSNORM, ADAMW, ATTENTION, MOE = map(
    load, ("matmul", "softmax", "rmsnorm", "adamw", "attention", "moe")
)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_print_parse_print(name: str) -> None:
    def text(module) -> str:
        out = StringIO()
        Printer(out).print_op(module)
        return out.getvalue()

    once = text(parse_module((EXAMPLES / f"{name}.mlir").read_text()))
    again = parse_module(once)
    verify(again)
    assert text(again) == once


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_matmul(m: int, n: int, k: int, seed: int) -> None:
    a, b = normal(seed, 32 * m, 32 * k), normal(seed + 1, 32 * k, 64 * n)
    c = np.zeros((32 * m, 64 * n), np.float32)
    out = run_kernel(MATMUL, {"a": a, "b": b, "c": c})["c"]
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)
    assert not c.any(), "inputs are not written to"


def test_matmul_with_no_steps_shows_that_nothing_was_summed() -> None:
    empty = np.zeros((32, 0), np.float32), np.zeros((0, 64), np.float32)
    assert np.isnan(run_kernel(MATMUL, [*empty, np.zeros((32, 64), np.float32)])["c"]).all()


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 100), st.integers(0, 99))
def test_softmax_with_a_ragged_last_tile(rows: int, seed: int) -> None:
    x = 5 * normal(seed, rows, 256)
    y = run_kernel(SOFTMAX, [x, np.zeros_like(x)])["y"]
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("blocks", [1, 3])
def test_rmsnorm_quantized(blocks: int) -> None:
    x, gamma = normal(1, 64 * blocks, 512), normal(2, 1, 512)
    out = run_kernel(
        RMSNORM, [x, gamma, np.zeros_like(x), np.zeros((len(x), 1), np.float32)], bindings={"epsilon": 1e-5}
    )
    y = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * gamma
    np.testing.assert_allclose(out["scale"], np.abs(y).max(1, keepdims=True) / 448, rtol=1e-5)
    np.testing.assert_array_equal(out["q"], rounded(out["q"], f8E4M3FN))
    np.testing.assert_allclose(out["q"] * out["scale"], y, rtol=2**-4, atol=1e-3)


def test_adamw() -> None:
    p, g, m, v = (normal(seed, 192, 128) for seed in range(4))
    v = np.abs(v)
    rate, beta1, beta2, epsilon, step = 1e-2, 0.9, 0.999, 1e-8, 3
    numbers = [rate, 1 - rate * 0.1, beta1, 1 - beta1, beta2, 1 - beta2, 1 - beta1**step, 1 - beta2**step, epsilon]
    out = run_kernel(ADAMW, [p, g, m, v, *numbers])
    new_m, new_v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    update = (new_m / (1 - beta1**step)) / (np.sqrt(new_v / (1 - beta2**step)) + epsilon)
    np.testing.assert_allclose(out["m"], new_m, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out["v"], new_v, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out["p"], p * (1 - rate * 0.1) - rate * update, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_causal_attention_over_a_run_time_number_of_key_blocks(blocks: int) -> None:
    q, k, v = (normal(seed, 64 * blocks, 64) for seed in range(3))
    out = run_kernel(ATTENTION, [q, k, v, np.zeros_like(q), 0.125])["o"]
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T * 0.125, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, weights / weights.sum(1, keepdims=True) @ v, rtol=1e-3, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 80), st.integers(1, 6), st.integers(1, 3), st.integers(0, 99))
def test_dropless_moe(tokens: int, experts: int, chosen: int, seed: int) -> None:
    chosen = min(chosen, experts)
    rng = np.random.default_rng(seed)
    x = normal(seed, tokens, 64)
    gate, up = normal(seed + 1, experts, 64, 128) / 8, normal(seed + 2, experts, 64, 128) / 8
    down = normal(seed + 3, experts, 128, 64) / 8
    choice = np.argsort(rng.random((tokens, experts)), 1)[:, :chosen]
    weight = rng.random((tokens, chosen), np.float32)
    expected = np.zeros_like(x)
    blocks: list[tuple[int, np.ndarray, np.ndarray]] = []
    for e in range(experts):
        rows, slot = np.nonzero(choice == e)
        g = x[rows] @ gate[e]
        expected[rows] += weight[rows, slot][:, None] * ((g / (1 + np.exp(-g)) * (x[rows] @ up[e])) @ down[e])
        blocks += [(e, rows[i : i + 32], weight[rows, slot][i : i + 32]) for i in range(0, len(rows), 32)]
    token_table = np.full((len(blocks), 32), -1, np.int32)
    weight_table = np.full((len(blocks), 32, 1), np.nan, np.float32)
    for b, (_, rows, w) in enumerate(blocks):
        token_table[b, : len(rows)], weight_table[b, : len(rows), 0] = rows, w
    out = run_kernel(
        MOE,
        {
            "x": x,
            "gate": gate,
            "up": up,
            "down": down,
            "expert": np.array([e for e, _, _ in blocks], np.int32),
            "count": np.array([len(rows) for _, rows, _ in blocks], np.int32),
            "tokens": token_table,
            "weight": weight_table,
            "y": np.zeros_like(x),
        },
        bindings={"blocks": len(blocks)},
    )["y"]
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4)
