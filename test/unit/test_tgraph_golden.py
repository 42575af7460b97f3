"""The published counts of whole models: MPK, table 2, and the reconstruction of its grids."""

import time

import numpy as np
import pytest
from tgraph_cases import parsed, run_passes, table_op

from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_table import Form, Table

WORKERS = 128


def features_grid(size: int) -> int:
    if size / 96 > 400:
        return size // 256
    return 96 if size % 96 == 0 else 64


def dense_model(
    layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int, vocabulary: int = 151936
) -> str:
    """A Qwen3 decoder at batch 1 with the published grids, as tops text."""
    dim = 128
    qkv = (heads + 2 * kv_heads) * dim
    row = f"tensor<1x{hidden}xbf16>"
    cache = f"memref<4x{kv_heads}x16x{dim}xbf16>"
    lines: list[str] = []
    args = ["%token : tensor<1xi32>", "%pages : tensor<1x4xi32>", "%positions : tensor<1xi32>"]
    args += [f"%{name}{layer} : {cache}" for layer in range(layers) for name in ("k", "v")]

    def weight(name: str, *shape: int) -> str:
        type = f"tensor<{'x'.join(map(str, shape))}xbf16>"
        lines.append(f'%{name} = tops.weight "{name}" : {type}')
        return type

    def norm(result: str, x: str) -> None:
        type = weight(f"{result}_w", hidden)
        lines.append(
            f"%{result} = tops.rms_norm %{x}, %{result}_w {{epsilon = 1.0e-06 : f64, grid = array<i64: 1>}}"
            f" : ({row}, {type}) -> {row}"
        )

    def linear(result: str, x: str, inner: int, out: int, parts: int, residual: str = "") -> None:
        type = weight(f"{result}_w", out, inner)
        extra, extra_type = (f", %{residual}", f", tensor<1x{out}xbf16>") if residual else ("", "")
        lines.append(
            f"%{result} = tops.linear %{x}, %{result}_w{extra} {{grid = array<i64: 1, {parts}>}}"
            f" : (tensor<1x{inner}xbf16>, {type}{extra_type}) -> tensor<1x{out}xbf16>"
        )

    table = weight("table", vocabulary, hidden)
    lines.append(f"%x0 = tops.embedding %token, %table {{grid = array<i64: 1, 1>}} : (tensor<1xi32>, {table}) -> {row}")
    for n in range(layers):
        norm(f"a{n}", f"x{n}")
        linear(f"q{n}", f"a{n}", hidden, qkv, features_grid(qkv))
        lines.append(
            f"%t{n} = tops.attention %q{n}, %k{n}, %v{n}, %pages, %positions {{heads = {heads} : i64,"
            f' rope_base = 1.0e+06 : f64, rope_style = "halves", grid = array<i64: 1, {kv_heads}>}}'
            f" : (tensor<1x{qkv}xbf16>, {cache}, {cache}, tensor<1x4xi32>, tensor<1xi32>)"
            f" -> tensor<1x{heads * dim}xbf16>"
        )
        linear(f"o{n}", f"t{n}", heads * dim, hidden, hidden // 64, f"x{n}")
        norm(f"b{n}", f"o{n}")
        gate_up = features_grid(2 * intermediate)
        linear(f"g{n}", f"b{n}", hidden, 2 * intermediate, gate_up)
        lines.append(
            f"%s{n} = tops.silu_mul %g{n} {{grid = array<i64: 1, {gate_up // 2}>}}"
            f" : (tensor<1x{2 * intermediate}xbf16>) -> tensor<1x{intermediate}xbf16>"
        )
        linear(f"x{n + 1}", f"s{n}", intermediate, hidden, hidden // 64, f"o{n}")
    norm("last", f"x{layers}")
    linear("logits", "last", hidden, vocabulary, WORKERS)
    part = f"tensor<1x{WORKERS}x"
    lines.append(
        f"%m, %i = tops.argmax_partial %logits {{parts = {WORKERS} : i64, grid = array<i64: 1, {WORKERS}>}}"
        f" : (tensor<1x{vocabulary}xbf16>) -> ({part}bf16>, {part}i32>)"
    )
    lines.append(
        f"%next = tops.argmax_reduce %m, %i {{grid = array<i64: 1>}} : ({part}bf16>, {part}i32>) -> tensor<1xi32>"
    )
    body = "\n  ".join(lines)
    return (
        f"func.func @model({', '.join(args)}) -> tensor<1xi32> {{\n  {body}\n  func.return %next : tensor<1xi32>\n}}\n"
    )


QWEN3_1_7B = {"layers": 28, "hidden": 2048, "intermediate": 6144, "heads": 16, "kv_heads": 8}
QWEN3_8B = {"layers": 36, "hidden": 4096, "intermediate": 12288, "heads": 32, "kv_heads": 8}
PASSES = (
    "tgraph-partition",
    "tgraph-build",
    "tgraph-prune",
    "tgraph-fuse-successors",
    "tgraph-fuse-predecessors",
    "tgraph-normalize",
    "tgraph-linearize",
)


def compile_graph(text: str) -> dict[str, Table]:
    """The table after each pass; each has been verified and has gone through the readable form and back."""
    module = parsed(text)
    stages: dict[str, Table] = {}
    total = 0.0
    for name in PASSES:
        started = time.process_time()
        run_passes(module, name)
        took = time.process_time() - started
        total += took
        print(f"{name}: {took:.3f} s with verification")
        if name != "tgraph-partition":
            before = table_op(module)
            stages[name] = before.table
            run_passes(module, "tgraph-unpack")
            (graph,) = [op for op in module.ops if isinstance(op, GraphOp)]
            assert len(graph.body.block.ops) < 700
            run_passes(module, "tgraph-pack")
            assert table_op(module).properties == before.properties
    assert total < 5
    return stages


@pytest.mark.parametrize(
    ("shape", "operators", "tasks", "pairs", "events", "published_pairs", "explicit_bytes", "range_bytes"),
    [
        (QWEN3_1_7B, 229, 8155, 61313, 1870, 69468, 65236, 14960),
        (QWEN3_8B, 293, 13867, 147841, 2366, 161708, 110932, 18928),
    ],
    ids=["qwen3-1.7b", "qwen3-8b"],
)
def test_published_counts(
    shape: dict[str, int],
    operators: int,
    tasks: int,
    pairs: int,
    events: int,
    published_pairs: int,
    explicit_bytes: int,
    range_bytes: int,
) -> None:
    stages = compile_graph(dense_model(**shape))
    built, pruned, final = stages["tgraph-build"], stages["tgraph-prune"], stages["tgraph-linearize"]
    # Residual inputs: one from the layer before (or the embedding), one from the output projection.
    residual = shape["layers"] * 2 * shape["hidden"] // 64
    assert built.event_count == built.pair_count == pairs + residual
    assert pruned.event_count == pairs
    assert int(built.task_operator.max()) + 1 == operators
    assert final.form is Form.LINEAR
    assert final.task_count == tasks  # so no empty task
    assert np.all(final.task_operator >= 0)
    assert final.pair_count == pairs
    assert final.event_count + 3 == events
    # What the paper tells of: 4 bytes a successor entry, of begin to all and of all but one task, or 8 bytes an event.
    assert (tasks + final.waiting.sizes.sum()) * 4 == explicit_bytes
    assert events * 8 == range_bytes
    assert pairs + tasks == published_pairs
