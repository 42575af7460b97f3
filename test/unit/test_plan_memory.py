"""Planned memory: places never clash, dependencies are exact to the byte, results are right, mutations are caught."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen3_programs import QWEN3_1_7B, QWEN3_8B, QWEN3_30B_A3B, dense_model, expert_model
from test_tgraph_build import random_program
from tgraph_cases import SETTINGS as MANY
from tgraph_cases import closure, parsed, run_passes, table_op
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_dependencies import Regions, dependencies, first_tasks
from mpkc.dialects.tgraph_memory import fully_after, memory_dependencies
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tops.base import Operator, bytes_of
from mpkc.dialects.tops.memory import ByteRanges, spans
from mpkc.dialects.tops.pool import ALIGNMENT, POOL, aligned, pool_bytes, set_place
from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.passes import tgraph_build
from mpkc.passes.tgraph_plan_memory import PlanMemoryPass, lifetimes, live_bytes, packed
from mpkc.runtime.cuda.emit import Program, compile_programs
from mpkc.runtime.host.run import HostOptions, HostRun
from mpkc.runtime.reference.tops import run_function, seeded_inputs, seeded_weights

SETTINGS = settings(MANY, max_examples=20)
BUILD = "tgraph-build"
REST = "tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-normalize,tgraph-linearize"


def planned(seed: int, reuse: str, passes: str = BUILD) -> ModuleOp:
    """A random program with grids and places, and the passes done that follow."""
    module = parsed(random_program(random.Random(seed)))
    run_passes(module, f"tgraph-partition{{workers=4 min_bytes=0}},tgraph-plan-memory{{reuse={reuse}}},{passes}")
    return module


def function_of(module: ModuleOp) -> tuple[FuncOp, list[Operator]]:
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    return function, operators_in(function)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    """Sizes and lifetimes of blocks."""
    count = draw(st.integers(1, 40))
    sizes = [draw(st.integers(1, 9)) * ALIGNMENT for _ in range(count)]
    starts = [draw(st.integers(0, 30)) for _ in range(count)]
    return sizes, [(start, start + draw(st.sampled_from([0, 1, 1, 2, 3, 20]))) for start in starts]


@SETTINGS
@given(blocks())
def test_blocks_that_conflict_do_not_overlap(case: tuple[list[int], list[tuple[int, int]]]) -> None:
    sizes, times = case
    meet = [
        [j for j, (a, b) in enumerate(times) if j != i and a <= stop and start <= b]
        for i, (start, stop) in enumerate(times)
    ]
    offsets = packed(sizes, meet)
    for i, others in enumerate(meet):
        assert all(offsets[i] + sizes[i] <= offsets[j] or offsets[j] + sizes[j] <= offsets[i] for j in others)
    bound = max(sum(size for size, (a, b) in zip(sizes, times, strict=True) if a <= now <= b) for now in range(60))
    assert max(offset + size for offset, size in zip(offsets, sizes, strict=True)) <= 1.6 * bound


@SETTINGS
@given(st.integers(0, 10**9), st.sampled_from(["ordered", "any"]))
def test_results_that_are_needed_together_have_bytes_of_their_own(seed: int, reuse: str) -> None:
    function, operators = function_of(planned(seed, reuse))
    pool, places, results = pool_bytes(function), spans(operators), lifetimes(operators)
    assert pool is not None
    assert {each.value for each in results} == set(places)
    for i, a in enumerate(results):
        lo, hi = places[a.value]
        assert lo % ALIGNMENT == 0
        assert hi <= pool
        for b in results[i + 1 :]:
            apart = hi <= places[b.value][0] or places[b.value][1] <= lo
            assert apart or b.producer > a.last
    assert live_bytes(operators) <= pool <= sum(aligned(bytes_of(each.value.type)) for each in results)


def touched(operators: Sequence[Operator]) -> dict[tuple[int, int], tuple[set[int], set[int]]]:
    """Of (operator, tile) the bytes of the pool that it reads and that it writes, element by element."""
    places, found = spans(operators), {}
    for number, op in enumerate(operators):
        values = [*op.operands, *op.results]
        for tile in range(op.tasks().count):
            reads, writes = found[number, tile] = set(), set()
            for access in op.accesses(op.tasks()):
                value = values[access.value]
                if value in places:
                    elements = np.arange(np.prod(value.type.get_shape())).reshape(value.type.get_shape())
                    box = elements[tuple(map(slice, access.lo[tile], access.hi[tile]))].ravel()
                    bytes_ = {places[value][0] + 4 * int(i) + k for i in box for k in range(4)}
                    (writes if access.mode.writes else reads).update(bytes_)
    return found


@pytest.mark.parametrize("reuse", ["ordered", "any"])
@pytest.mark.parametrize("seed", range(12))
def test_tasks_that_touch_the_same_bytes_are_in_order(seed: int, reuse: str) -> None:
    module = planned(seed, reuse)
    _, operators = function_of(module)
    table, bytes_of_task = table_op(module).table, touched(operators)
    name = list(zip(table.task_operator.tolist(), table.task_tile.tolist(), strict=True))
    reach = closure(set(zip(*map(np.ndarray.tolist, table.pairs()), strict=True)), len(name))
    for i, (reads, writes) in enumerate(map(bytes_of_task.get, name)):
        for j, (later_reads, later_writes) in enumerate(map(bytes_of_task.get, name)):
            if name[i][0] < name[j][0] and (writes & (later_reads | later_writes) or reads & later_writes):
                assert reach[i, j], (name[i], name[j])


@pytest.mark.parametrize("seed", range(12))
def test_dependencies_of_memory_have_bytes_in_common(seed: int) -> None:
    _, operators = function_of(planned(seed, "any"))
    bytes_of_task = touched(operators)
    for each in memory_dependencies(operators, Regions()):
        pairs = set(zip(each.sources.tolist(), each.targets.tolist(), strict=True))
        box = bytes_of_access(operators, each.producer, each.value, each.before)
        for source in range(operators[each.producer].tasks().count):
            for target in range(operators[each.consumer].tasks().count):
                common = box(source) & bytes_of_task[each.consumer, target][1]
                assert ((source, target) in pairs) == bool(common)


def bytes_of_access(operators: Sequence[Operator], number: int, value, access) -> Callable[[int], set[int]]:
    place, shape = spans(operators)[value][0], value.type.get_shape()
    elements = np.arange(np.prod(shape)).reshape(shape)

    def of(tile: int) -> set[int]:
        box = elements[tuple(map(slice, access.lo[tile], access.hi[tile]))].ravel()
        return {place + 4 * int(i) + k for i in box for k in range(4)}

    return of


@SETTINGS
@given(st.integers(0, 10**9))
def test_operators_that_are_said_to_be_in_order_are(seed: int) -> None:
    module = planned(seed, "ordered")
    _, operators = function_of(module)
    table, first = table_op(module).table, first_tasks(operators)
    reach = closure(set(zip(*map(np.ndarray.tolist, table.pairs()), strict=True)), table.task_count)
    for number, after in enumerate(fully_after(operators, dependencies(operators, Regions()))):
        for later in range(len(operators)):
            if after >> later & 1:
                assert reach[first[number] : first[number + 1], first[later] : first[later + 1]].all()


@SETTINGS
@given(st.integers(0, 10**9))
def test_ordered_reuse_leaves_the_graph_as_it_was(seed: int) -> None:
    plain = parsed(random_program(random.Random(seed)))
    run_passes(plain, f"tgraph-partition{{workers=4 min_bytes=0}},{BUILD}")
    assert table_op(planned(seed, "ordered")).properties == table_op(plain).properties


@pytest.mark.parametrize(
    ("write", "shape", "tasks", "pairs", "events"),
    [
        (dense_model, QWEN3_1_7B, 8155, 69468, 1870),
        (dense_model, QWEN3_8B, 13867, 161708, 2366),
        (expert_model, QWEN3_30B_A3B, 17155, 135140, 1142),
    ],
    ids=["qwen3-1.7b", "qwen3-8b", "qwen3-30b-a3b"],
)
def test_published_counts_hold_with_planned_memory(
    write: Callable[..., str], shape: dict[str, int], tasks: int, pairs: int, events: int
) -> None:
    module = parsed(write(**shape))
    run_passes(module, f"tgraph-plan-memory,{BUILD},{REST}")
    table = table_op(module).table
    assert (table.task_count, table.pair_count + tasks, table.event_count + 3) == (tasks, pairs, events)
    _, operators = function_of(module)
    assert len(memory_dependencies(operators, Regions())) > 500  # places are used again


@pytest.mark.parametrize(("model", "most"), [("smollm2-135m", 1.12), ("qwen3-8b", 1.11)])
def test_pools_of_models_are_near_the_bound(model: str, most: float) -> None:
    for rows in (1, 8):
        given = decoding_input(open_model(model), rows=rows, context=64)
        run_passes(given.module, "tgraph-partition")
        ratio = {}
        for reuse in ("ordered", "any"):
            function, operators = function_of(given.module)
            function.attributes.pop(POOL, None)
            PlanMemoryPass(reuse).apply(given.ctx, given.module)
            ratio[reuse] = (pool_bytes(function) or 0) / live_bytes(operators)
        print(f"{model}, {rows} rows: {ratio['ordered']:.3f} of the bound, {ratio['any']:.3f} where any may share")
        assert 1 == ratio["any"] <= ratio["ordered"] <= most


CHAIN = """
func.func @f(%x : tensor<1x64xf32>) -> tensor<1x64xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  %1 = tops.add %0, %x {grid = array<i64: 1, 2>} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  %2 = tops.add %1, %x {grid = array<i64: 1, 2>} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  %3 = tops.add %2, %0 {grid = array<i64: 1, 2>} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  func.return %3 : tensor<1x64xf32>
}
"""


def test_places_that_are_written_are_kept_and_checked() -> None:
    module = parsed(CHAIN)
    function, operators = function_of(module)
    function.attributes[POOL] = IntegerAttr(512, i64)
    for op, offset in zip(operators, (0, 256, 0, -1), strict=True):
        set_place(op, [offset])
    with pytest.raises(OpError, match=r"on bytes 0 to 256 .* bytes 0 to 256 hold a value that add_3 still needs"):
        run_passes(module, f"tgraph-plan-memory,{BUILD}")


def test_an_operator_may_not_write_over_what_it_reads() -> None:
    module = parsed(CHAIN)
    function, operators = function_of(module)
    function.attributes[POOL] = IntegerAttr(768, i64)
    for op, offset in zip(operators, (0, 256, 256, -1), strict=True):
        set_place(op, [offset])
    with pytest.raises(OpError, match="that add_2 still needs"):
        run_passes(module, BUILD)


def test_contiguous_regions_are_one_range() -> None:
    _, operators = function_of(parsed(CHAIN))
    (access, *_) = operators[1].accesses(operators[1].tasks())
    ranges = ByteRanges.of_access(access, operators[1].operands[0])
    assert list(zip(ranges.lo.tolist(), ranges.hi.tolist(), strict=True)) == [(0, 128), (128, 256)]


def test_a_long_chain_needs_two_places() -> None:
    x = "tensor<1x64xf32>"
    body = "\n".join(
        f"%{i + 1} = tops.add %{i}, %0 {{grid = array<i64: 1, 1>}} : ({x}, {x}) -> {x}" for i in range(1000)
    )
    module = parsed(f"func.func @f(%0 : {x}) {{ {body} func.return }}")
    PlanMemoryPass().apply(None, module)  # type: ignore[arg-type]
    assert pool_bytes(function_of(module)[0]) == 2 * ALIGNMENT


PROGRAMS = range(16)


def programs() -> list[Program]:
    """Random programs whose places any may share, all of one source."""
    return compile_programs([planned(seed, "any", f"{BUILD},{REST}") for seed in PROGRAMS])


def wrong(programs: Sequence[Program], seeds: Sequence[int]) -> int:
    """How many of the programs give another result than the reference under one of the schedules."""
    return sum(any(not agrees(program, seed) for seed in seeds) for program in programs)


def agrees(program: Program, seed: int) -> bool:
    weights, inputs = seeded_weights(1), seeded_inputs(program.func, 2)
    expected = run_function(program.func, {name: np.array(array) for name, array in inputs.items()}, weights)
    found = HostRun(program, weights, inputs, HostOptions("lanes", workers=4, seed=seed)).run()
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(found, expected, strict=True))


def test_random_programs_are_right_in_planned_memory() -> None:
    assert wrong(programs(), range(4)) == 0


def test_missing_dependencies_of_memory_give_wrong_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tgraph_build, "memory_dependencies", lambda *_: [])
    assert wrong(programs(), range(4)) > 0
