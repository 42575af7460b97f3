"""tgraph-build: against every pair of tasks, compared box by box."""

import random
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tgraph_cases import SETTINGS, pairs_of_boxes, parsed, run_passes, table_op
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, f32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import irdl_op_definition, operand_def

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tops.base import Access, Dimension, Mode, Operator, Tasks
from mpkc.dialects.tops.overlap import overlaps, stepped_overlaps


@st.composite
def boxes(draw: st.DrawFn, rank: int) -> tuple[np.ndarray, np.ndarray]:
    count = draw(st.integers(0, 7))
    corner = st.tuples(*[st.integers(0, 4)] * rank)
    lo = np.array([draw(corner) for _ in range(count)], dtype=np.int64).reshape(count, rank)
    size = np.array([draw(corner) for _ in range(count)], dtype=np.int64).reshape(count, rank)
    return lo, lo + size


@SETTINGS
@given(st.integers(1, 3).flatmap(lambda rank: st.tuples(boxes(rank), boxes(rank))))
def test_overlaps_are_those_of_all_pairs(case: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]):
    a, b = case
    i, j = overlaps(a, b)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == sorted(pairs_of_boxes(a, b))


@st.composite
def strided(draw: st.DrawFn, rank: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[int, ...]]:
    lo, hi = draw(boxes(rank))
    return (lo, lo + 4 * (hi - lo)), draw(st.sampled_from([(), *product((1, 2, 3, 4, 6), repeat=rank)]))


@SETTINGS
@given(st.integers(1, 2).flatmap(lambda rank: st.tuples(strided(rank), strided(rank))))
def test_strided_regions_overlap_where_they_have_an_element_in_common(case) -> None:
    (a, a_step), (b, b_step) = case
    i, j = stepped_overlaps(a, a_step, b, b_step)
    one, other = (Access(0, Mode.READ, *box, step=step) for box, step in case)
    expected = {(s, t) for s, x in enumerate(elements(one)) for t, y in enumerate(elements(other)) if x & y}
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == sorted(expected)


def random_program(rng: random.Random) -> str:
    """Operators on [rows, width] tensors and on two pairs of caches that several of them update."""
    rows, heads, dim = rng.choice([1, 2, 3]), 2, 4
    hidden = heads * dim
    x, qkv, wide = (f"tensor<{rows}x{width}xf32>" for width in (hidden, 3 * hidden, 2 * hidden))
    cache = f"memref<3x{heads}x2x{dim}xf32>"
    weights = {hidden: "%square", 3 * hidden: "%triple", 2 * hidden: "%double"}
    lines = [f'{name} = tops.weight "w" : tensor<{width}x{hidden}xf32>' for width, name in weights.items()]
    lines.append(f'%norm = tops.weight "n" : tensor<{hidden}xf32>')
    values = ["%x", "%y"]
    for number in range(rng.randint(2, 9)):
        a, b, new = rng.choice(values), rng.choice(values), f"%r{number}"
        kind = rng.randrange(6)
        if kind == 0:
            lines.append(f"{new} = tops.linear {a}, %square, {b} : ({x}, tensor<{hidden}x{hidden}xf32>, {x}) -> {x}")
        elif kind == 1:
            lines.append(f"{new} = tops.add {a}, {b} : ({x}, {x}) -> {x}")
        elif kind == 2:
            lines.append(f"{new} = tops.mul {a}, {b} : ({x}, {x}) -> {x}")
        elif kind == 3:
            lines.append(
                f"{new} = tops.rms_norm {a}, %norm {{epsilon = 1.0e-05 : f64}} : ({x}, tensor<{hidden}xf32>) -> {x}"
            )
        elif kind == 4:
            lines.append(f"{new}w = tops.linear {a}, %double : ({x}, tensor<{2 * hidden}x{hidden}xf32>) -> {wide}")
            lines.append(f"{new} = tops.silu_mul {new}w : ({wide}) -> {x}")
        else:
            layer = rng.choice("ab")
            lines.append(f"{new}q = tops.linear {a}, %triple : ({x}, tensor<{3 * hidden}x{hidden}xf32>) -> {qkv}")
            lines.append(
                f"{new} = tops.attention {new}q, %k{layer}, %v{layer}, %pages, %positions {{heads = {heads} : i64,"
                f' rope_base = 1.0e+04 : f64, rope_style = "pairs"}} : ({qkv}, {cache}, {cache},'
                f" tensor<{rows}x3xi32>, tensor<{rows}xi32>) -> {x}"
            )
        values.append(new)
    caches = ", ".join(f"%{name}{layer} : {cache}" for layer in "ab" for name in "kv")
    return (
        f"func.func @f(%x : {x}, %y : {x}, {caches}, %pages : tensor<{rows}x3xi32>, %positions : tensor<{rows}xi32>)"
        f" -> {x} {{\n" + "\n".join(lines) + f"\nfunc.return {values[-1]} : {x}\n}}"
    )


def dependencies(operators: list[Operator]) -> set[tuple[int, int, int, int]]:
    """(operator, tile) of the earlier and of the later task, for each two that may not swap."""
    found: set[tuple[int, int, int, int]] = set()
    for (i, first), (j, second) in product(enumerate(operators), repeat=2):
        if i >= j:
            continue
        for one, other in product(first.accesses(first.tasks()), second.accesses(second.tasks())):
            values = [[*op.operands, *op.results] for op in (first, second)]
            same = values[0][one.value] is values[1][other.value]
            if same and (one.mode.writes or other.mode.writes):
                found |= {(i, s, j, t) for s, t in pairs_of_accesses(one, other)}
    return found


def pairs_of_accesses(one: Access, other: Access) -> set[tuple[int, int]]:
    """The tasks of both that touch a common element; of strided regions, from all their elements."""
    if not one.step and not other.step:
        return pairs_of_boxes((one.lo, one.hi), (other.lo, other.hi))
    regions, others = elements(one), elements(other)
    return {(s, t) for s, mine in enumerate(regions) for t, theirs in enumerate(others) if mine & theirs}


def elements(access: Access) -> list[set[tuple[int, ...]]]:
    """The indices that each task touches."""
    steps = access.step or (1,) * access.lo.shape[1]
    return [
        set(product(*map(range, lo, hi, steps))) for lo, hi in zip(access.lo.tolist(), access.hi.tolist(), strict=True)
    ]


def pairs_by_name(table: Table) -> list[tuple[int, int, int, int]]:
    sources, targets = table.pairs()
    operator, tile = table.task_operator, table.task_tile
    return [
        (int(operator[s]), int(tile[s]), int(operator[t]), int(tile[t])) for s, t in zip(sources, targets, strict=True)
    ]


@pytest.mark.parametrize("seed", range(25))
def test_events_are_the_dependent_pairs_of_tasks(seed: int) -> None:
    rng = random.Random(seed)
    module = parsed(random_program(rng))
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    operators = operators_in(function)
    for op in operators:
        op.grid = tuple(rng.randint(1, min(4, dimension.most)) for dimension in op.dimensions())
    run_passes(module, "tgraph-build")
    table = table_op(module).table
    found = pairs_by_name(table)
    assert len(found) == table.event_count
    assert set(found) == dependencies(operators)
    assert len(set(found)) == len(found)


class BufferOp(Operator):
    """Touches a buffer of 24 elements, a block of it for each task: every mode, which no operator of tops has.

    With the attribute `test.step` a task touches every step-th element, from its own number on.
    """

    buffer = operand_def(MemRefType)

    def dimensions(self) -> tuple[Dimension, ...]:
        return (Dimension(f"every {self.step or 1} of", 24),)

    @property
    def step(self) -> int | None:
        step = self.attributes.get("test.step")
        return step.value.data if isinstance(step, IntegerAttr) else None

    def accesses(self, tasks: Tasks) -> list[Access]:
        mode = Mode(self.name.removeprefix("test."))
        if self.step is None:
            return [Access(0, mode, *tasks.box(tasks.along(0)))]
        first = np.arange(tasks.count) % self.step
        return [Access(0, mode, *tasks.box((first, np.full(tasks.count, 24))), step=(self.step,))]

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        return ()

    def evaluate(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        return ()


@irdl_op_definition
class ReadOp(BufferOp):
    name = "test.read"


@irdl_op_definition
class WriteOp(BufferOp):
    name = "test.write"


@irdl_op_definition
class UpdateOp(BufferOp):
    name = "test.update"


@pytest.mark.parametrize("seed", range(10))
def test_accesses_of_a_buffer_keep_their_order(seed: int) -> None:
    rng = random.Random(seed)
    type = MemRefType(f32, [24])
    block = Block(arg_types=[type, type])
    for _ in range(7):
        op = rng.choice([ReadOp, WriteOp, UpdateOp]).create(operands=[rng.choice(block.args)])
        op.grid = (rng.randint(1, 5),)
        if rng.random() < 0.5:
            op.attributes["test.step"] = IntegerAttr(rng.randint(2, 7), i64)
        block.add_op(op)
    block.add_op(ReturnOp())
    module = ModuleOp([FuncOp("f", ([type, type], []), Region(block))])
    run_passes(module, "tgraph-build")
    found = pairs_by_name(table_op(module).table)
    assert sorted(found) == sorted(dependencies([op for op in block.ops if isinstance(op, Operator)]))


SLICES = """
func.func @f(%x : tensor<1x24xf32>) {
  %0 = tops.add %x, %x {grid = array<i64: 1, 12>} : (tensor<1x24xf32>, tensor<1x24xf32>) -> tensor<1x24xf32>
  %1 = tops.slice %0 {offset = 1 : i64, step = 6 : i64, grid = array<i64: 1, 4>} : (tensor<1x24xf32>) -> tensor<1x4xf32>
  %2 = tops.slice %0 {offset = 0 : i64, step = 6 : i64, grid = array<i64: 1, 1>} : (tensor<1x24xf32>) -> tensor<1x4xf32>
  func.return
}
"""


def test_a_strided_reader_waits_only_for_who_writes_its_columns() -> None:
    module = parsed(SLICES)
    run_passes(module, "tgraph-build")
    assert set(pairs_by_name(table_op(module).table)) == {
        *((0, 3 * i, 1, i) for i in range(4)), *((0, 3 * i, 2, 0) for i in range(4)),
    }  # fmt: skip


def test_build_refuses_an_operator_without_grid() -> None:
    with pytest.raises(OpError, match="test.mlir:3:3: error: 'tops.add' has no grid: run tgraph-partition first"):
        run_passes(parsed(ADD), "tgraph-build")


def test_build_refuses_what_it_can_not_see_through() -> None:
    module = parsed(
        "func.func @f(%x : tensor<2x4xf32>) { %0 = tensor.cast %x : tensor<2x4xf32> to tensor<?x4xf32> "
        "%1 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> "
        "func.return }"
    )
    with pytest.raises(OpError, match="'tensor.cast' is no tensor operator"):
        run_passes(module, "tgraph-build")


def test_build_refuses_a_second_graph() -> None:
    module = parsed(ADD)
    run_passes(module, "tgraph-partition,tgraph-build")
    with pytest.raises(OpError, match="@f_graph stands there already"):
        run_passes(module, "tgraph-build")


ADD = """
func.func @f(%x : tensor<64x4096xf32>) {
  %0 = tops.add %x, %x : (tensor<64x4096xf32>, tensor<64x4096xf32>) -> tensor<64x4096xf32>
  func.return
}
"""
