"""tgraph-partition: fewest bytes, by trying all grids; and what operators declare that their tasks move."""

import random
from math import ceil, prod

import pytest
from tgraph_cases import parsed, run_passes, table_op
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mpkc import tops
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tops.base import Grid, Operator
from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.passes import tgraph_partition
from mpkc.passes.partition_cost import Bounds, candidates
from mpkc.passes.partition_cuts import Neighbours
from mpkc.passes.partition_grid import loaded
from mpkc.passes.tgraph_partition import PartitionPass
from mpkc.pipelines import Options
from mpkc.targets import HOST_MIN_BYTES, compile_for


def function_of(module: ModuleOp) -> FuncOp:
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    return function


def partitioned(module: ModuleOp, options: str) -> list[Operator]:
    run_passes(module, f"tgraph-partition{{{options}}}")
    return operators_in(function_of(module))


def grids(text: str, options: str) -> list[Grid | None]:
    return [op.grid for op in partitioned(parsed(text), options)]


def linear(rows: int, inner: int, out: int, grid: str = "") -> str:
    x, y, w = f"tensor<{rows}x{inner}xf32>", f"tensor<{rows}x{out}xf32>", f"tensor<{out}x{inner}xf32>"
    return f"""
    func.func @f(%x : {x}) {{
      %w = tops.weight "w" : {w}
      %0 = tops.linear %x, %w {grid} : ({x}, {w}) -> {y}
      func.return
    }}"""


@pytest.mark.parametrize(
    ("rows", "inner", "out", "workers", "grid"),
    [
        (1, 4096, 4096, 128, (1, 125)),  # 33 columns a task instead of 32, so x is read 3 times less
        (1, 4096, 24576, 132, (1, 128)),  # 192 columns a task instead of 187, so x is read 4 times less
        (1, 2048, 4096, 132, (1, 125)),
        (1, 4096, 576, 132, (1, 116)),  # 5 columns: 6 would leave too many workers idle
        (16, 1024, 1024, 128, (1, 128)),  # rows would read the weight again
        (16, 1024, 512, 128, (2, 64)),  # here x would be read too often
        (512, 1024, 64, 128, (32, 4)),  # square tiles share most
        (4096, 64, 32, 128, (128, 1)),  # here x is what is large
    ],
)
def test_fewest_bytes(rows: int, inner: int, out: int, workers: int, grid: Grid) -> None:
    assert grids(linear(rows, inner, out), f"workers={workers}") == [grid]


SHAPES = random.Random(7)


@pytest.mark.parametrize("workers", [132, 148])
@pytest.mark.parametrize(
    ("rows", "inner", "out"),
    [
        (SHAPES.choice([1, 1, 2, 4, 8, 16, 32]), 32 * SHAPES.randint(1, 200), 8 * SHAPES.randint(20, 2000))
        for _ in range(50)
    ],
)
def test_no_other_candidate_loads_fewer_bytes(rows: int, inner: int, out: int, workers: int) -> None:
    """By trying all grids of 0.75 to 2 tasks a worker: of those that keep the workers busy none loads less."""

    def cost(grid: Grid) -> tuple[int, int, int, Grid]:
        r, c = grid
        largest = 4 * inner * (ceil(rows / r) + ceil(out / c))
        return 4 * inner * (c * rows + r * out), ceil(r * c / workers) * largest, r * c, grid

    equal_rows = [parts for parts in range(1, rows + 1) if rows % parts == 0]
    possible = [(r, c) for r in equal_rows for c in range(1, out + 1) if 0.75 * workers <= r * c <= 2 * workers]
    costs = list(map(cost, possible))
    least = min(busiest for _, busiest, _, _ in costs)
    expected = sorted(each for each in costs if each[1] <= least * 33 / 32)
    (op,) = operators_in(function_of(parsed(linear(rows, inner, out))))
    found = candidates(op, Bounds(workers, 512), Neighbours())
    assert [(each.bytes, each.busiest, each.tasks, each.grid) for each in found] == expected


@pytest.mark.parametrize("workers", [132, 148])
@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize("model", ["qwen3-1.7b", "qwen3-30b-a3b"])
def test_wide_operators_of_models_keep_the_workers_busy(model: str, rows: int, workers: int) -> None:
    module = decoding_input(open_model(model), rows, 512, layers=2).module
    wide = 0
    for op in partitioned(module, f"workers={workers}"):
        most = Bounds(workers, 512).most(op)
        possible = prod(dimension.most for dimension in op.dimensions())
        if min(most, possible) >= 0.75 * workers and op.name != "tops.argmax_partial":
            wide += 1
            assert 0.75 * workers <= prod(op.grid or ()) <= 2 * workers, op
    assert wide >= 10


@pytest.mark.parametrize(("workers", "rows"), [(64, 1), (132, 1), (148, 1), (132, 4), (132, 16)])
@pytest.mark.parametrize("model", ["qwen3-1.7b", "qwen3-8b", "qwen3-30b-a3b"])
def test_cuts_fall_together_so_no_task_is_added(model: str, workers: int, rows: int) -> None:
    module = decoding_input(open_model(model), rows, 512, layers=2).module
    run_passes(
        module,
        f"tgraph-partition{{workers={workers}}},tgraph-build,tgraph-prune,tgraph-fuse-successors,"
        "tgraph-fuse-predecessors,tgraph-normalize",
    )
    assert (table_op(module).table.task_operator >= 0).all()


def test_a_grid_that_stands_there_stays() -> None:
    assert grids(linear(4, 64, 96, "{grid = array<i64: 2, 3>}"), "workers=12") == [(2, 3)]


ADD = """
func.func @f(%x : tensor<64x4096xf32>) {
  %0 = tops.add %x, %x : (tensor<64x4096xf32>, tensor<64x4096xf32>) -> tensor<64x4096xf32>
  func.return
}
"""


def test_no_task_is_smaller_than_worth_it() -> None:
    # 3 MiB moved: 48 tasks of 64 KiB.
    assert [prod(grid or ()) for grid in grids(ADD, "workers=128 min_bytes=65536")] == [48]
    assert [prod(grid or ()) for grid in grids(ADD, "workers=128 min_bytes=100000000")] == [1]


ARGMAX = """
func.func @f(%x : tensor<1x4000xf32>) {{
  %m, %i = tops.argmax_partial %x {{parts = 2 : i64{grid}}} : (tensor<1x4000xf32>) -> (tensor<1x2xf32>, tensor<1x2xi32>)
  %0 = tops.argmax_reduce %m, %i : (tensor<1x2xf32>, tensor<1x2xi32>) -> tensor<1xi32>
  func.return
}}
"""


def test_argmax_has_a_part_for_each_worker() -> None:
    partial, _ = partitioned(parsed(ARGMAX.format(grid="")), "workers=32 min_bytes=0")
    assert [str(result.type) for result in partial.results] == ["tensor<1x32xf32>", "tensor<1x32xi32>"]
    assert partial.grid == (1, 32)
    assert grids(ARGMAX.format(grid=", grid = array<i64: 1, 2>"), "workers=32") == [(1, 2), (1,)]


def only_operator(program: tops.Program, result: tops.Value) -> Operator:
    program.returns(result)
    (op,) = operators_in(function_of(program.module()))
    return op


def test_an_embedding_loads_the_rows_that_it_writes() -> None:
    p = tops.Program("f")
    result = tops.embedding(p.input("i", (4,), "i32"), p.weight("w", shape=(1000, 64)))
    assert loaded(only_operator(p, result), (2, 2)).total == 2 * 4 * 4 + 4 * 64 * 4


def test_attention_loads_the_pages_of_its_rows_not_the_pool() -> None:
    p = tops.Program("f")
    qkv = p.input("qkv", (2, 3 * 8))
    keys, values = (p.buffer(name, (100, 1, 16, 8)) for name in "kv")
    where = p.input("pages", (2, 3), "i32"), p.input("positions", (2,), "i32")
    result = tops.attention(qkv, keys, values, *where, heads=1, rope_base=10.0, rope_style="pairs")
    assert loaded(only_operator(p, result), (2, 1)).each.tolist() == [4 * (3 * 8 + 2 * 3 * 16 * 8 + 3 + 1)] * 2


def test_experts_load_what_rows_choose() -> None:
    """2 rows choose 3 of 16 experts each: at most 6 experts are loaded; a task of one expert may be one of them."""
    p = tops.Program("f")
    weight = p.weight("w", shape=(16, 32, 8))
    result = tops.expert_linear(p.input("x", (2, 8)), weight, p.input("e", (2, 3), "i32"))
    op, one = only_operator(p, result), 4 * 32 * 8
    whole, single = loaded(op, (1, 1)), loaded(op, (16, 1))
    assert whole.each.tolist() == [whole.total] == [6 * one + 4 * 2 * 8 + 4 * 6]
    assert set(single.each.tolist()) == {one + 4 * 2 * 8 + 4 * 6}
    assert single.total == 6 * one + 6 * 4 * 8 + 16 * 4 * 6


def test_operators_that_are_alike_are_partitioned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = "tensor<1x4096xbf16>"
    body = "\n".join(f"%{i + 1} = tops.add %{i}, %{i} : ({x}, {x}) -> {x}" for i in range(600))
    module = parsed(f"func.func @f(%0 : {x}) {{ {body} func.return }}")
    costed: list[Operator] = []
    real = tgraph_partition.candidates
    monkeypatch.setattr(tgraph_partition, "candidates", lambda op, *rest: (costed.append(op), real(op, *rest))[1])
    PartitionPass().apply(None, module)  # pyright: ignore[reportArgumentType]
    assert len(costed) <= 4  # the first, the last and those between them


def test_the_host_starts_fewer_tasks() -> None:
    """A task on a CPU costs about a microsecond; two workers do not share a silu of 1,536 elements."""

    def tasks(min_bytes: int) -> list[int]:
        given = decoding_input(open_model("smollm2-135m"), context=64, layers=2)
        operators = compile_for(given, 2, min_bytes=min_bytes).operators
        return [prod(op.grid or ()) for op in operators if op.name == "tops.silu_mul"]

    assert tasks(HOST_MIN_BYTES) == [1, 1]
    assert tasks(Options.min_bytes) == [2, 2]
