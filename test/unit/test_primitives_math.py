"""The host's scalar mathematics against NumPy in double precision, for both modes: they share the source."""

import device_programs as programs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

MODES = pytest.mark.parametrize("mode", ["fast", "lanes"])


def units(result, exact):
    """The largest error in units in the last place of the exact result, none smaller than a normal number's."""
    spacing = np.spacing(np.maximum(np.abs(exact), np.finfo(np.float32).tiny).astype(np.float32))
    return np.max(np.abs(result - exact) / spacing)


def count(mode):
    return 1 << 18 if mode == "fast" else 1 << 14


@MODES
def test_exp(mode):
    x = np.linspace(-87, 88.7, count(mode), dtype=np.float32)
    assert units(programs.evaluate(mode, "exp", x), np.exp(x.astype(float))) < 1.5
    edge = np.float32([-np.inf, -200, -104, -103, -95, 0, 88.8, 200, np.inf, np.nan])
    with np.errstate(over="ignore"):
        exact = np.exp(edge.astype(float)).astype(np.float32)
    result = programs.evaluate(mode, "exp", edge)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(result[~finite & ~np.isnan(exact)], np.inf)
    assert np.abs(result[finite] - exact[finite]).max() <= 2**-149
    assert result[5] == 1


@MODES
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_rotary_angles(mode, function):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1e5, 1e5, count(mode)), np.arange(4096), rng.uniform(-8, 8, 4096)]).astype(
        np.float32
    )
    exact = getattr(np, function)(x.astype(float))
    assert np.abs(programs.evaluate(mode, function, x) - exact).max() < 1.5e-7


@MODES
def test_tanh(mode):
    x = np.concatenate([np.linspace(-12, 12, count(mode)), np.geomspace(1e-30, 1, 999)]).astype(np.float32)
    assert units(programs.evaluate(mode, "tanh", x), np.tanh(x.astype(float))) < 4
    assert programs.evaluate(mode, "tanh", np.float32([-100, 100, 0])).tolist() == [-1, 1, 0]


@MODES
def test_rsqrt(mode):
    x = np.geomspace(1e-37, 1e38, count(mode)).astype(np.float32)
    assert units(programs.evaluate(mode, "rsqrt", x), 1 / np.sqrt(x.astype(float))) < 1.5


def bf16(x):
    """Rounding to bfloat16, to nearest with ties to even, by exact integer arithmetic."""
    bits = x.view(np.uint32).astype(np.uint64)
    down = bits >> 16
    rest = bits & 0xFFFF
    up = (rest > 0x8000) | ((rest == 0x8000) & (down & 1 == 1))
    rounded = ((down + up) << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.nan, rounded)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_conversions_round_to_nearest_even(seed):
    bits = np.random.default_rng(seed).integers(0, 2**32, 4096, dtype=np.uint32)
    bits[::4] &= 0xFFFF_E000  # exact halves, and ties of bfloat16
    bits[1::4] = bits[1::4] & 0x8FFF_F000 | 0x3000_0000  # where half precision has denormals and ties
    x = bits.view(np.float32)
    for mode in ("fast", "lanes"):
        np.testing.assert_array_equal(programs.evaluate(mode, "bf16", x), bf16(x))
        with np.errstate(over="ignore"):
            half = x.astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(programs.evaluate(mode, "f16", x), half)


def test_every_half_survives():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    result = programs.evaluate("fast", "f16", halves)
    np.testing.assert_array_equal(result, halves)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(halves))
