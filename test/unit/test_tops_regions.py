"""The regions that the tasks of a grid declare, against what `evaluate` does.

For every operator, random sizes and random grids: the tasks write each element of every result once, what stands
outside of the regions that a task reads does not matter to what it writes, and what stands inside does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpkc import tops
from mpkc.dialects.tops import ExpertLinearOp, LinearOp
from mpkc.dialects.tops.base import Access, Array, Mode, Operator, Tasks
from mpkc.runtime.reference.tops import is_buffer


@dataclass
class Case:
    """An operator, arrays for its operands, and how those that hold indices can be replaced by others in bounds."""

    op: Operator
    operands: list[Array]
    others: dict[int, Callable[[np.random.Generator], Array]] = field(default_factory=dict)

    def run(self, operands: list[Array]) -> list[Array]:
        """The results, then the buffers after the operator."""
        operands = [array.copy() for array in operands]
        with np.errstate(invalid="ignore", over="ignore"):
            results = self.op.evaluate(*operands)
        return [*results, *(operands[i] for i in self.buffers)]

    @property
    def buffers(self) -> list[int]:
        return [i for i, operand in enumerate(self.op.operands) if is_buffer(operand.type)]

    def owned(self, tasks: Tasks, task: int) -> list[Array]:
        """Which elements of `run` are this task's where the region that it writes is more, because data decides."""
        shapes = [array.shape for array in self.run(self.operands)]
        masks = [np.ones(shape, bool) for shape in shapes]
        lo, hi = (ends[task] for ends in tasks.along(0))
        if isinstance(self.op, ExpertLinearOp):
            slots = self.operands[2].reshape(-1)
            masks[0][:] = ((lo <= slots) & (slots < hi))[:, None]
        for mask in masks[len(self.op.results) :]:  # a row's cache is its own pages
            mask[:] = False
            mask[self.operands[3][lo:hi]] = True
        return masks


def make(function, arrays, others=None, buffers=(), **attributes) -> Case:
    program = tops.Program("test")
    declare = [program.buffer if i in buffers else program.input for i in range(len(arrays))]
    values = [
        new(f"a{i}", array.shape, "i32" if array.dtype == np.int32 else "f32")
        for i, (new, array) in enumerate(zip(declare, arrays, strict=True))
    ]
    function(*values, **attributes)
    (op,) = values[0].ssa.owner.ops
    return Case(op, list(arrays), others or {})


def floats(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def indices(shape, below):
    return lambda rng: rng.integers(below, size=shape, dtype=np.int32)


def few(rng, least=1, most=7):
    return int(rng.integers(least, most))


def elementwise(function):
    return lambda rng: make(function, [floats(rng, rows := few(rng), columns := few(rng)), floats(rng, rows, columns)])


def linear(rng):
    rows, inner, out = few(rng), few(rng), few(rng)
    residual = [floats(rng, rows, out)] if rng.integers(2) else []
    return make(tops.linear, [floats(rng, rows, inner), floats(rng, out, inner), *residual])


def matmul(rng):
    inner = few(rng)
    return make(tops.matmul, [floats(rng, few(rng), inner), floats(rng, inner, few(rng))])


def rms_norm(rng):
    features = few(rng)
    return make(tops.rms_norm, [floats(rng, few(rng), features), floats(rng, features)], epsilon=1e-5)


def embedding(rng):
    rows, entries = few(rng), few(rng, 2)
    index = indices((rows,), entries)
    return make(tops.embedding, [index(rng), floats(rng, entries, few(rng))], {0: index})


def argmax_partial(rng):
    columns = few(rng, 1, 20)
    return make(tops.argmax_partial, [floats(rng, few(rng), columns)], parts=few(rng, 1, columns + 1))


def argmax_reduce(rng):
    shape = few(rng), few(rng, 2)
    index = indices(shape, 1000)
    return make(tops.argmax_reduce, [floats(rng, *shape), index(rng)], {1: index})


def rope(rng):
    rows, heads, half = few(rng), few(rng), few(rng, 1, 4)
    positions = indices((rows,), 100)
    style = ("pairs", "halves")[rng.integers(2)]
    arrays = [floats(rng, rows, heads * 2 * half), positions(rng)]
    return make(tops.rope, arrays, {1: positions}, heads=heads, rope_base=10.0, rope_style=style)


def attention(rng):
    rows, kv_heads, group, dim, page_size = few(rng, 1, 4), few(rng, 1, 4), few(rng, 1, 3), 2 * few(rng, 1, 3), 2
    row_pages, own = 2, 3  # pages in a row's table, pages that are its own

    def pages(rng):
        return np.array([row * own + rng.permutation(own)[:row_pages] for row in range(rows)], np.int32)

    def positions(rng):
        return rng.integers(1, row_pages * page_size, rows, dtype=np.int32)

    cache = rows * own, kv_heads, page_size, dim
    arrays = [floats(rng, rows, kv_heads * (group + 2) * dim), floats(rng, *cache), floats(rng, *cache)]
    norms = [floats(rng, dim), floats(rng, dim)] if rng.integers(2) else []
    return make(
        tops.attention,
        [*arrays, pages(rng), positions(rng), *norms],
        {3: pages, 4: positions},
        buffers=(1, 2),
        heads=kv_heads * group,
        rope_base=10.0,
        rope_style=("pairs", "halves")[rng.integers(2)],
        **({"epsilon": 1e-5} if norms else {}),
    )


def topk_softmax(rng):
    experts = few(rng, 2)
    renormalize = bool(rng.integers(2))
    k = few(rng, 2 if renormalize else 1, experts + 1)
    return make(tops.topk_softmax, [floats(rng, few(rng), experts)], k=k, renormalize=renormalize)


def expert_linear(rng):
    rows, k, experts, inner = few(rng), few(rng, 1, 4), few(rng, 2), few(rng)
    chosen = indices((rows, k), experts)
    x_rows = rows * k if rng.integers(2) else rows
    return make(
        tops.expert_linear,
        [floats(rng, x_rows, inner), floats(rng, experts, few(rng), inner), chosen(rng)],
        {2: chosen},
    )


def expert_sum(rng):
    rows, k, features = few(rng), few(rng, 1, 4), few(rng)
    residual = [floats(rng, rows, features)] if rng.integers(2) else []
    return make(tops.expert_sum, [floats(rng, rows * k, features), floats(rng, rows, k), *residual])


def strided(rng):
    columns = few(rng, 1, 12)
    offset, step = few(rng, 0, columns), few(rng, 1, 5)
    return make(tops.slice, [floats(rng, few(rng), columns)], offset=offset, step=step)


CASES = {
    "add": elementwise(tops.add),
    "argmax_partial": argmax_partial,
    "argmax_reduce": argmax_reduce,
    "attention": attention,
    "embedding": embedding,
    "expert_linear": expert_linear,
    "expert_sum": expert_sum,
    "linear": linear,
    "matmul": matmul,
    "mul": elementwise(tops.mul),
    "reduce": lambda rng: make(tops.reduce, [floats(rng, few(rng), few(rng))], kind="sum"),
    "rms_norm": rms_norm,
    "rope": rope,
    "silu_mul": lambda rng: make(tops.silu_mul, [floats(rng, few(rng), 2 * few(rng))]),
    "slice": strided,
    "softmax": lambda rng: make(tops.softmax, [floats(rng, few(rng), few(rng, 2))]),
    "topk_softmax": topk_softmax,
    "transpose": lambda rng: make(tops.transpose, [floats(rng, few(rng), few(rng))]),
}


def test_every_operator_has_a_case():
    names = {op.name for op in tops.tops.Tops.operations if issubclass(op, Operator)}
    assert {f"tops.{name}" for name in CASES} == names


def box(access: Access, task: int, shape: tuple[int, ...]) -> Array:
    """The task's region as a mask."""
    mask = np.zeros(shape, bool)
    steps = access.step or (1,) * len(shape)
    mask[tuple(slice(*ends) for ends in zip(access.lo[task], access.hi[task], steps, strict=True))] = True
    return mask


def check(case: Case, tasks: Tasks, accesses: list[Access], rng: np.random.Generator) -> None:
    """Raise AssertionError where `accesses` are not the regions that the tasks of the operator touch."""
    before = case.run(case.operands)
    check_boxes(case, tasks, accesses)
    check_cover(case, tasks, accesses, before)
    for task in map(int, rng.permutation(tasks.count)[:4]):
        written, inside = written_by(case, tasks, accesses, task), read_by(case, accesses, task)
        check_outside(case, written, inside, before, rng)
        check_inside(case, written, inside, before, rng)


def check_boxes(case: Case, tasks: Tasks, accesses: list[Access]) -> None:
    values = [*case.op.operands, *case.op.results]
    assert sorted(access.value for access in accesses) == list(range(len(values)))
    for access in accesses:
        shape = values[access.value].type.get_shape()
        assert access.lo.shape == access.hi.shape == (tasks.count, len(shape))
        assert access.lo.dtype == access.hi.dtype == np.int64
        assert (access.lo >= 0).all()
        assert (access.lo < access.hi).all()
        assert (access.hi <= shape).all()
        written = access.value >= len(case.op.operands)
        assert access.mode is (Mode.WRITE if written else Mode.UPDATE if access.value in case.buffers else Mode.READ)


def check_cover(case: Case, tasks: Tasks, accesses: list[Access], before: list[Array]) -> None:
    """The tasks write every element of every result once."""
    for access in accesses:
        if access.mode is Mode.WRITE:
            result = access.value - len(case.op.operands)
            writers = np.zeros(before[result].shape, int)
            for task in range(tasks.count):
                writers += box(access, task, writers.shape) & case.owned(tasks, task)[result]
            assert (writers == 1).all(), f"written {writers.min()} to {writers.max()} times"


def written_by(case: Case, tasks: Tasks, accesses: list[Access], task: int) -> list[Array]:
    """Which elements of each output of `run` the task writes."""
    first, results = len(case.op.operands), range(len(case.op.results))
    by_value = {access.value: access for access in accesses}
    values = [*(first + result for result in results), *case.buffers]
    owned = case.owned(tasks, task)
    return [mask & box(by_value[value], task, mask.shape) for value, mask in zip(values, owned, strict=True)]


def read_by(case: Case, accesses: list[Access], task: int) -> list[Array]:
    """Which elements of each operand the task reads."""
    by_value = {access.value: access for access in accesses}
    return [box(by_value[i], task, array.shape) for i, array in enumerate(case.operands)]


def check_outside(case, written, inside, before, rng, tries=1) -> None:
    """What stands outside of `inside` does not matter to the elements `written`."""

    def wild(i: int, array: Array) -> Array:
        numbers = np.where(rng.random(array.shape) < 0.5, np.float32(np.nan), 100 * floats(rng, *array.shape))
        return case.others[i](rng) if i in case.others else numbers

    for _ in range(tries):
        arrays = enumerate(zip(case.operands, inside, strict=True))
        after = case.run([np.where(mask, array, wild(i, array)) for i, (array, mask) in arrays])
        for old, new, mask in zip(before, after, written, strict=True):
            assert np.array_equal(old[mask], new[mask]), "reads more than it declares"


def check_inside(case, written, inside, before, rng) -> None:
    """What stands inside matters, operand by operand."""
    if not any(mask.any() for mask in written[: len(case.op.results)]):
        return  # no slot has an expert of this task
    for i, mask in enumerate(inside):
        assert any(matters(case, before, written, i, mask, rng) for _ in range(50)), f"does not need operand {i}"


def matters(case, before, written, i, mask, rng) -> bool:
    """Whether other elements inside of a task's region of operand i change what it writes."""
    array = case.operands[i]
    noise = case.others[i](rng) if i in case.others else 3 * floats(rng, *array.shape)
    after = case.run([np.where(mask, noise, array) if j == i else old for j, old in enumerate(case.operands)])
    return any(not np.array_equal(old[m], new[m]) for old, new, m in zip(before, after, written, strict=True))


def random_tasks(case: Case, rng: np.random.Generator) -> Tasks:
    dimensions = case.op.dimensions()
    return Tasks(dimensions, tuple(few(rng, 1, dimension.most + 1) for dimension in dimensions))


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_tasks_touch_what_they_declare(name, seed):
    rng = np.random.default_rng(seed)
    case = CASES[name](rng)
    tasks = random_tasks(case, rng)
    check(case, tasks, case.op.accesses(tasks), rng)


@pytest.mark.parametrize("name", CASES)
def test_a_grid_of_single_elements(name):
    rng = np.random.default_rng(0)
    case = CASES[name](rng)
    dimensions = case.op.dimensions()
    tasks = Tasks(dimensions, tuple(dimension.most for dimension in dimensions))
    check(case, tasks, case.op.accesses(tasks), rng)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_an_operand_that_is_not_declared_is_caught(name, seed):
    """Each operand in turn: the operator reads it, but its region is empty."""
    rng = np.random.default_rng(seed)
    case = CASES[name](rng)
    tasks = random_tasks(case, rng)
    accesses = case.op.accesses(tasks)
    before = case.run(case.operands)
    task = next(t for t in range(tasks.count) if case.owned(tasks, t)[0].any())
    written, inside = written_by(case, tasks, accesses, task), read_by(case, accesses, task)
    for i in range(len(inside)):
        forgotten = [np.zeros_like(mask) if j == i else mask for j, mask in enumerate(inside)]
        with pytest.raises(AssertionError, match="reads more than it declares"):
            check_outside(case, written, forgotten, before, rng, tries=50)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("early", [False, True])
def test_a_result_that_is_not_written_is_caught(name, early):
    """The region of the only task ends one element early, or starts one late."""
    rng = np.random.default_rng(3)
    case = CASES[name](rng)
    dimensions = case.op.dimensions()
    tasks = Tasks(dimensions, (1,) * len(dimensions))
    *others, result = case.op.accesses(tasks)
    axis = np.eye(result.lo.shape[1], dtype=np.int64)[0]
    wrong = replace(result, hi=result.hi - axis) if early else replace(result, lo=result.lo + axis)
    with pytest.raises(AssertionError, match="written 0 to [01] times"):
        check_cover(case, tasks, [*others, wrong], case.run(case.operands))


class ForgetfulLinearOp(LinearOp):
    """Does not declare the last input feature."""

    def accesses(self, tasks: Tasks) -> list[Access]:
        x, *rest = super().accesses(tasks)
        return [replace(x, hi=x.hi - [0, 1]), *rest]


class GreedyLinearOp(LinearOp):
    """Declares that every task writes the first feature."""

    def accesses(self, tasks: Tasks) -> list[Access]:
        *rest, result = super().accesses(tasks)
        return [*rest, replace(result, lo=result.lo * [1, 0])]


@pytest.mark.parametrize(
    ("kind", "message"),
    [(ForgetfulLinearOp, "reads more than it declares"), (GreedyLinearOp, "written 1 to 2 times")],
)
def test_a_wrong_operator_is_caught(kind, message):
    rng = np.random.default_rng(1)
    arrays = [floats(rng, 4, 4), floats(rng, 6, 4)]
    right = make(tops.linear, arrays)
    wrong = kind.create(operands=right.op.operands, result_types=right.op.result_types)
    case = Case(wrong, arrays)
    tasks = Tasks(wrong.dimensions(), (2, 2))
    with pytest.raises(AssertionError, match=message):
        check(case, tasks, wrong.accesses(tasks), rng)
