"""What every operator computes, against formulas written down a second time: loops and einsum in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpkc import tops
from mpkc.dialects.tops.function import only_function
from mpkc.runtime.reference.tops import run_function

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 9)
quick = settings(max_examples=15, deadline=None)


def run(function, *arrays, **attributes):
    """The results of one operator on arguments of these arrays."""
    program = tops.Program("test")
    inputs = {f"a{i}": array for i, array in enumerate(arrays)}
    dtypes = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32"}
    values = [program.input(name, array.shape, dtypes[array.dtype]) for name, array in inputs.items()]
    results = function(*values, **attributes)
    program.returns(*(results if isinstance(results, tuple) else (results,)))
    found = run_function(only_function(program.module()), inputs, weights=None)
    return found if isinstance(results, tuple) else found[0]


def normal(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def close(found, expected, tolerance=2e-5):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@quick
@given(seeds, sizes, sizes, sizes, st.booleans())
def test_linear(seed, rows, inner, out, with_residual):
    rng = np.random.default_rng(seed)
    x, weight, residual = normal(rng, rows, inner), normal(rng, out, inner), normal(rng, rows, out)
    expected = np.einsum("ri,oi->ro", x.astype(float), weight.astype(float))
    if with_residual:
        close(run(tops.linear, x, weight, residual), expected + residual)
    else:
        close(run(tops.linear, x, weight), expected)


@quick
@given(seeds, sizes, sizes, sizes)
def test_matmul_and_transpose(seed, rows, inner, features):
    rng = np.random.default_rng(seed)
    a, b = normal(rng, rows, inner), normal(rng, inner, features)
    close(run(tops.matmul, a, b), np.einsum("ri,if->rf", a.astype(float), b.astype(float)))
    assert np.array_equal(run(tops.transpose, a), np.einsum("ri->ir", a))
    found = run(tops.slice, a, offset=inner // 2, step=2)
    assert np.array_equal(found, np.stack([a[:, column] for column in range(inner // 2, inner, 2)], axis=1))


@quick
@given(seeds, sizes, sizes)
def test_elementwise(seed, rows, features):
    rng = np.random.default_rng(seed)
    a, b, x = normal(rng, rows, features), normal(rng, rows, features), 30 * normal(rng, rows, 2 * features)
    assert run(tops.add, a, b).tolist() == [[a[i, j] + b[i, j] for j in range(features)] for i in range(rows)]
    assert run(tops.mul, a, b).tolist() == [[a[i, j] * b[i, j] for j in range(features)] for i in range(rows)]
    gate, up = x[:, ::2].astype(float), x[:, 1::2].astype(float)
    close(run(tops.silu_mul, x), gate * up * (1 + np.tanh(gate / 2)) / 2)


def test_silu_of_large_numbers_is_finite():
    x = np.array([[-1e4, 3.0, 1e4, 3.0]], np.float32)
    assert np.array_equal(run(tops.silu_mul, x), [[0.0, 3e4]])


@quick
@given(seeds, sizes, sizes)
def test_rows_to_numbers(seed, rows, features):
    rng = np.random.default_rng(seed)
    x = 10 * normal(rng, rows, features)
    for kind, one in (("sum", sum), ("max", max), ("mean", lambda row: sum(row) / len(row))):
        close(run(tops.reduce, x, kind=kind), [[one(row)] for row in x.astype(float)])
    exponentials = [[2.0 ** (e / np.log(2)) for e in row] for row in x.astype(float)]
    close(run(tops.softmax, x), [[e / sum(row) for e in row] for row in exponentials])


def test_softmax_of_large_numbers_is_finite():
    assert np.array_equal(run(tops.softmax, np.array([[1e4, 1e4, -1e4]], np.float32)), [[0.5, 0.5, 0.0]])


@quick
@given(seeds, sizes, sizes, st.sampled_from([1e-6, 1e-2]))
def test_rms_norm(seed, rows, features, epsilon):
    rng = np.random.default_rng(seed)
    x, weight = normal(rng, rows, features), normal(rng, features)
    squares = np.einsum("rf,rf->r", x.astype(float), x.astype(float)) / features
    close(
        run(tops.rms_norm, x, weight, epsilon=epsilon), np.einsum("rf,f,r->rf", x, weight, (squares + epsilon) ** -0.5)
    )


@quick
@given(seeds, sizes, sizes, sizes)
def test_embedding(seed, rows, entries, features):
    rng = np.random.default_rng(seed)
    table, index = normal(rng, entries, features), rng.integers(entries, size=rows, dtype=np.int32)
    one_hot = np.equal.outer(index, np.arange(entries)).astype(np.float32)
    assert np.array_equal(run(tops.embedding, index, table), one_hot @ table)


@quick
@given(seeds, sizes, st.integers(1, 40), st.integers(1, 40))
def test_argmax_in_two_steps(seed, rows, columns, parts):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (rows, columns)).astype(np.float32)  # few values, so there are equals
    largest, index = run(tops.argmax_partial, x, parts=min(parts, columns))
    assert np.array_equal(largest, np.take_along_axis(x, index, axis=1))
    assert (np.diff(index, axis=1) > 0).all()
    found = run(tops.argmax_reduce, largest, index)
    assert found.tolist() == [row.index(max(row)) for row in x.tolist()]


def turned(x, position, base, style):
    """A head in float64, its elements turned as complex numbers."""
    dim = len(x)
    low, high = (slice(0, None, 2), slice(1, None, 2)) if style == "pairs" else (slice(dim // 2), slice(dim // 2, None))
    angles = np.array([position / base ** (2 * i / dim) for i in range(dim // 2)])
    numbers = (x[low] + 1j * x[high]) * np.exp(1j * angles)
    out = np.empty(dim)
    out[low], out[high] = numbers.real, numbers.imag
    return out


styles = st.sampled_from(["pairs", "halves"])


@quick
@given(seeds, sizes, st.integers(1, 3), st.integers(1, 4), styles, st.sampled_from([1e2, 1e5]))
def test_rope(seed, rows, heads, half, style, base):
    rng = np.random.default_rng(seed)
    x, positions = normal(rng, rows, heads * 2 * half), rng.integers(0, 5000, rows, dtype=np.int32)
    expected = [
        np.concatenate([turned(head, position, base, style) for head in row.reshape(heads, -1).astype(float)])
        for row, position in zip(x, positions, strict=True)
    ]
    close(run(tops.rope, x, positions, heads=heads, rope_base=base, rope_style=style), expected, 1e-4)


@quick
@given(seeds, sizes, st.integers(1, 12), st.data(), st.booleans())
def test_topk_softmax(seed, rows, experts, data, renormalize):
    rng = np.random.default_rng(seed)
    k = data.draw(st.integers(1, experts))
    logits = rng.integers(-3, 4, (rows, experts)).astype(np.float32)  # few values, so there are equals
    weights, chosen = run(tops.topk_softmax, logits, k=k, renormalize=renormalize)
    assert chosen.dtype == np.int32
    for row, row_weights, row_chosen in zip(logits.astype(float), weights, chosen, strict=True):
        order = sorted(range(experts), key=lambda e: (-row[e], e))[:k]
        assert row_chosen.tolist() == order
        total = sum(np.exp(row[order])) if renormalize else sum(np.exp(row))
        np.testing.assert_allclose(row_weights, np.exp(row[order]) / total, rtol=1e-5)


@quick
@given(seeds, sizes, st.integers(1, 3), st.integers(1, 6), sizes, sizes, st.booleans(), st.booleans())
def test_experts(seed, rows, k, experts, inner, out, a_row_a_slot, with_residual):
    rng = np.random.default_rng(seed)
    x = normal(rng, rows * k if a_row_a_slot else rows, inner)
    weight, chosen = normal(rng, experts, out, inner), rng.integers(experts, size=(rows, k), dtype=np.int32)
    weights, residual = normal(rng, rows, k), normal(rng, rows, out)
    slots = np.array(
        [
            weight[chosen[r, j]].astype(float) @ x[r * k + j if a_row_a_slot else r].astype(float)
            for r in range(rows)
            for j in range(k)
        ]
    )
    found = run(tops.expert_linear, x, weight, chosen)
    close(found, slots)
    sums = np.array([sum(weights[r, j] * slots[r * k + j] for j in range(k)) for r in range(rows)])
    if with_residual:
        close(run(tops.expert_sum, found, weights, residual), sums + residual, 1e-4)
    else:
        close(run(tops.expert_sum, found, weights), sums, 1e-4)


def plain_attention(q, k, v):
    """q [dim] against k and v [positions, dim]."""
    scores = np.array([q @ row for row in k]) / len(q) ** 0.5
    likely = np.exp(scores - max(scores))
    return likely @ v / sum(likely)


@settings(max_examples=25, deadline=None)
@given(
    seeds,
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    styles,
    st.booleans(),
)
def test_attention(seed, rows, kv_heads, group, half, page_size, style, with_norms):
    """Token by token into scattered pages, over page borders, against whole histories without a cache."""
    rng = np.random.default_rng(seed)
    dim, heads, length, base, epsilon = 2 * half, group * kv_heads, 2 * page_size + 1, 100.0, 1e-3
    spare = 2
    table = rng.permutation(rows * 3 + spare)[: rows * 3].reshape(rows, 3).astype(np.int32)
    start = rng.integers(0, length, rows)  # where each row's text ends, so rows are at different positions
    keys, values = (np.full((rows * 3 + spare, kv_heads, page_size, dim), np.nan, np.float32) for _ in range(2))
    qkv = normal(rng, length, rows, (heads + 2 * kv_heads) * dim)
    norms = [normal(rng, dim), normal(rng, dim)] if with_norms else []
    attributes = {"heads": heads, "rope_base": base, "rope_style": style} | ({"epsilon": epsilon} if norms else {})

    program = tops.Program("test")
    arguments = [
        program.input("qkv", qkv.shape[1:]),
        program.buffer("keys", keys.shape),
        program.buffer("values", values.shape),
        program.input("pages", table.shape, "i32"),
        program.input("positions", (rows,), "i32"),
        *(program.input(f"norm{i}", (dim,)) for i in range(len(norms))),
    ]
    program.returns(tops.attention(*arguments, **attributes))
    func = only_function(program.module())
    for step in range(length):
        positions = np.minimum(step, start).astype(np.int32)  # a row that has ended gives its last token again
        now = qkv[positions, np.arange(rows)]
        inputs = {"qkv": now, "keys": keys, "values": values, "pages": table, "positions": positions}
        inputs |= {f"norm{i}": norm for i, norm in enumerate(norms)}
        (found,) = run_function(func, inputs, weights=None)

    def head(row, position, which, norm):
        """One head in float64; which counts [its q heads | k | v] of each kv head in turn."""
        x = qkv[position, row].reshape(-1, dim)[which].astype(float)
        if norm is not None:
            x = x / np.sqrt(sum(x * x) / dim + epsilon) * norm
        return x

    q_norm, k_norm = norms or (None, None)
    for row, kv, member in np.ndindex(rows, kv_heads, group):
        first, last = kv * (group + 2), start[row]
        k = [turned(head(row, p, first + group, k_norm), p, base, style) for p in range(last + 1)]
        v = np.array([head(row, p, first + group + 1, None) for p in range(last + 1)])
        q = turned(head(row, last, first + member, q_norm), last, base, style)
        at = (kv * group + member) * dim
        close(found[row, at : at + dim], plain_attention(q, k, v), 1e-4)
        np.testing.assert_allclose(
            keys[table[row, last // page_size], kv, last % page_size], k[-1], rtol=1e-4, atol=1e-4
        )
    filled = ~np.isnan(keys[:, 0, :, 0])
    assert filled.sum() == sum(start + 1)  # one slot a position of each row, no other slot is touched


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_small_floats_are_rounded_after_each_operator(dtype):
    """1 + 2^-12 is not a number of either type: 1 stays 1, in f32 it would not."""
    program = tops.Program("test")
    x, y = program.input("x", (1, 2), dtype), program.input("y", (1, 2), dtype)
    program.returns(tops.add(tops.add(x, y), y))
    inputs = {"x": np.array([[1, 300]], np.float32), "y": np.full((1, 2), 2.0**-12, np.float32)}
    (found,) = run_function(only_function(program.module()), inputs, weights=None)
    assert found.tolist() == [[1, 300]]
