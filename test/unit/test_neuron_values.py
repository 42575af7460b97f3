"""What ISA programs compute: the hashes of opaque instructions and the contents of memory, as in program order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sem_figures import FIG5

from mpkc.dialects.sem import ProgramOp
from mpkc.parsing import parse_module
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result, simulate
from mpkc.runtime.reference.sem import run_program

GENERIC = machine("generic")


def figure_5(threshold: str = "r7") -> str:
    """Barrier-free, figure 5, with a masked threshold: isGT(trip, 2) (r_B - 2)."""
    return f"""
.program fig5
.argument n : index
.semaphore 0 B

.engine e0 registers 4
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r3 = argument(n)
A:
  COMPARE_BRANCH r0 ge r3 -> end
  .iteration a 1
  REGISTER_ALU r1 = r0 add 3
  REGISTER_MOVE r2 = 0
B:
  COMPARE_BRANCH r2 ge r1 -> next
  .iteration b 2
  INST @P S[0]++@complete cost=64 latency=5000 depth=2
  REGISTER_ALU r2 = r2 add 1
  COMPARE_BRANCH always -> B
next:
  REGISTER_ALU r0 = r0 add 1
  COMPARE_BRANCH always -> A
end:

.engine e1 registers 8
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r3 = argument(n)
  REGISTER_MOVE r4 = 0
A:
  COMPARE_BRANCH r0 ge r3 -> end
  .iteration a 1
  REGISTER_ALU r1 = r0 add 3
  REGISTER_MOVE r2 = 0
B:
  COMPARE_BRANCH r2 ge r1 -> next
  .iteration b 2
  REGISTER_ALU r2 = r2 add 1
  REGISTER_ALU r4 = r4 add 1
  REGISTER_ALU r5 = r2 is_gt 2
  REGISTER_ALU r6 = r4 sub 2
  REGISTER_ALU r7 = r5 mult r6
  REGISTER_ALU r6 = r7 sub 1
  INST @C S[0]>={threshold} cost=64 after=[P [0,2]] depth=2
  COMPARE_BRANCH always -> B
next:
  REGISTER_ALU r0 = r0 add 1
  COMPARE_BRANCH always -> A
end:
"""


def by_name(executions) -> dict[str, list[tuple]]:
    found: dict[str, list[tuple]] = {}
    for each in executions:
        found.setdefault(each.name, []).append((each.engine, each.iteration, each.value))
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, list[tuple]]:
    program = parse_module(FIG5).body.block.first_op
    assert isinstance(program, ProgramOp)
    return by_name(run_program(program, bindings_of({"n": 3})).executions)


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_figure_5_has_the_values_of_program_order(expected: dict[str, list[tuple]], seed: int | None) -> None:
    result = simulate(read_isa(figure_5()), GENERIC, {"n": 3}, explain=True, seed=seed)
    assert by_name(result.executions) == expected
    assert [wait.threshold for wait in result.waits][:7] == [None, None, 1, None, None, 4, 5]


@pytest.mark.parametrize("threshold", ["0", "r6"])
def test_a_consumer_that_is_too_early_writes_something_else(expected: dict, threshold: str) -> None:
    result = simulate(read_isa(figure_5(threshold)), GENERIC, {"n": 3})
    assert by_name(result.executions) != expected


def test_with_a_seed_commits_overlap() -> None:
    text = """.program p
.engine e registers 0
INST @P cost=1 latency=1000
INST @C cost=1 latency=1000 after=[P []]
"""
    values = {simulate(read_isa(text), GENERIC, seed=seed).executions[1].value for seed in range(40)}
    late = simulate(read_isa(text), GENERIC).executions[1].value
    assert late in values
    assert len(values) == 2


HEADER = """.program p
.argument scale : f32
.argument more : i1
.buffer x : far f32[?,8]
.buffer y : far f32[?,8]
.buffer ids : far i32[?]
.buffer t : near f32[2,4,8]
.buffer u : near f32[4,8]
.buffer c : near f32[4,1]
.buffer r : near i32[4]
.buffer m : near i1[4,8]
.buffer acc : accumulator f32[4,4]
.value V : index
.semaphore 0 s
.engine e registers 8
"""
X = np.arange(48, dtype=np.float32).reshape(6, 8) - 20
Y = np.ones((6, 8), np.float32)
IDS = np.array([5, 0, 2, 1], np.int32)
T, U, C = "t@32[4,8]:[8,1]:f32", "u@0[4,8]:[8,1]:f32", "c@0[4,1]:[1,1]:f32"


def execute(*lines: str, **numbers: float) -> Result:
    """Run these instructions one after the other: each waits until the one before it has retired."""
    text = HEADER + "".join(f"{line}\nDRAIN\n" for line in lines)
    inputs = {"x": X, "y": Y, "ids": IDS, "scale": numbers.get("scale", 2.0), "more": numbers.get("more", 1)}
    return simulate(read_isa(text), GENERIC, {}, inputs)


def store(tile: str) -> str:
    return f"DMA_COPY dst=y@0[4,8]:[8,1]:f32 src={tile}"


LOAD = f"DMA_COPY dst={T} src=x@8[4,8]:[8,1]:f32"
TILE = X[1:5]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([LOAD, store(T)], TILE),
        ([LOAD, f"TENSOR_COPY dst={U} src={T}", store(U)], TILE),
        ([LOAD, f"ACTIVATE op=square dst={U} src={T}", store(U)], TILE**2),
        ([LOAD, f"TENSOR_TENSOR op=mul dst={T} src0={T} src1=argument(scale):f32", store(T)], TILE * 2),
        ([f"MEMSET dst={U} value=-1.5:f32", store(U)], np.full((4, 8), -1.5)),
        (["REGISTER_MOVE r1 = 7", f"MEMSET dst={U} value=r1:index", store(U)], np.full((4, 8), 7)),
        ([LOAD, "REGISTER_MOVE r1 = 24", store("t@r1[4,8]:[8,1]:f32")], None),  # reaches what was never written
        (
            [
                LOAD,
                f"TENSOR_REDUCE op=sum of=square dst={C} src={T} axis=1",
                f"TENSOR_TENSOR op=add dst={U} src0={T} src1={C}",
            ]
            + [store(U)],
            TILE + (TILE**2).sum(1, keepdims=True),
        ),
        (
            [LOAD, f"MEMSET dst={C} value=100.0:f32"]
            + [f"TENSOR_REDUCE op=max dst={C} src={T} accumulate=argument(more):i1 axis=1"]
            + [f"TENSOR_TENSOR op=max dst={U} src0={T} src1={C}", store(U)],
            np.full((4, 8), 100),
        ),
        (
            [LOAD, f"TENSOR_TENSOR op=gt dst=m@0[4,8]:[8,1]:i1 src0={T} src1=0.0:f32"]
            + [f"TENSOR_SELECT dst={U} mask=m@0[4,8]:[8,1]:i1 src0={T} src1=0.0:f32", store(U)],
            np.maximum(TILE, 0),
        ),
        (
            ["DMA_COPY dst=r@0[4]:[1]:i32 src=ids@0[4]:[1]:i32"]
            + [f"DMA_GATHER dst={U} src=x@0[6,8]:[8,1]:f32 rows=r@0[4]:[1]:i32", store(U)],
            X[IDS],
        ),
        (["DMA_COPY dst=u@0[4,4]:[8,1]:f32 src=x@4[4,4]:[8,2]:f32", store(U)], None),
    ],
)
def test_tiles_hold_what_program_order_computes(lines: list[str], expected: np.ndarray | None) -> None:
    result = execute(*lines)
    assert result.fault is None
    if expected is None:
        assert np.isnan(result.buffers["y"]).any()
    else:
        np.testing.assert_allclose(result.buffers["y"][:4], expected)
        np.testing.assert_array_equal(result.buffers["y"][4:], 1)
    np.testing.assert_array_equal(result.buffers["x"], X)


def test_matmul_accumulates_and_transposes() -> None:
    square = "u@0[4,4]:[8,1]:f32"
    result = execute(
        "DMA_COPY dst=u@0[4,8]:[8,1]:f32 src=x@0[4,8]:[8,1]:f32",
        f"MATMUL dst=acc@0[4,4]:[4,1]:f32 lhs={square} rhs={square}",
        f"MATMUL dst=acc@0[4,4]:[4,1]:f32 lhs={square} rhs={square} accumulate=1:i1 transpose_rhs",
        "TRANSPOSE dst=u@0[4,4]:[8,1]:f32 src=acc@0[4,4]:[4,1]:f32",
        "DMA_COPY dst=y@0[4,4]:[8,1]:f32 src=u@0[4,4]:[8,1]:f32",
    )
    a = X[:4, :4]
    np.testing.assert_allclose(result.buffers["y"][:4, :4], (a @ a + a @ a.T).T)


@pytest.mark.parametrize("add", ["", " add"])
def test_scatter_writes_rows(add: str) -> None:
    result = execute(
        "DMA_COPY dst=r@0[4]:[1]:i32 src=ids@0[4]:[1]:i32",
        LOAD,
        f"DMA_SCATTER dst=y@0[6,8]:[8,1]:f32 rows=r@0[4]:[1]:i32 src={T}{add}",
    )
    expected = Y.copy()
    expected[IDS] = TILE + (1 if add else 0)
    np.testing.assert_allclose(result.buffers["y"], expected)


def test_a_value_out_of_memory_and_iota() -> None:
    result = execute(
        "TENSOR_LOAD @V src=ids@2[1]:[1]:i32",
        "READ dst=r1 src=@V",
        "IOTA dst=r@0[4]:[1]:i32 start=r1:index axis=0",
        f"DMA_GATHER dst={U} src=x@0[6,8]:[8,1]:f32 rows=r@0[4]:[1]:i32",
        store(U),
    )
    np.testing.assert_array_equal(result.buffers["y"][:4], X[2:6])


def test_faults_of_tiles_name_the_line() -> None:
    text = execute(
        "IOTA dst=r@0[4]:[1]:i32 start=4:index axis=0",
        f"DMA_GATHER dst={U} src=x@0[6,8]:[8,1]:f32 rows=r@0[4]:[1]:i32",
    ).fault
    assert text == "e, ISA line 18: asks for row 6, and a value has 6"


def test_time_alone_needs_the_values_that_come_from_memory() -> None:
    program = read_isa(HEADER + "TENSOR_LOAD @V src=ids@2[1]:[1]:i32\nDRAIN\nREAD dst=r1 src=@V\n")
    inputs = {"x": X, "y": Y, "ids": IDS, "scale": 1.0, "more": 0}
    with pytest.raises(ValueError, match="V comes from memory: bind it, V=1,2,..., or simulate with values"):
        simulate(program, GENERIC, {}, inputs, values=False)
    with pytest.raises(ValueError, match="V comes from memory in a simulation with values: it cannot be bound"):
        simulate(program, GENERIC, {"V": [1]}, inputs)
    assert simulate(program, GENERIC, {"V": [1]}, inputs, values=False).ok


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x", X.astype(np.float64), "x holds f32: its array is of float32, not float64"),
        ("x", X[:, :4], r"x is \?x8, and its array is of shape \(6, 4\)"),
        ("x", None, "the far buffer x has no input"),
        ("t", X, "t is no far buffer of the program; there are: x, y, ids"),
    ],
)
def test_inputs_are_checked(name: str, value: np.ndarray | None, message: str) -> None:
    inputs = {"x": X, "y": Y, "ids": IDS, "scale": 1.0, "more": 0} | {name: value}
    with pytest.raises(ValueError, match=message):
        simulate(read_isa(HEADER), GENERIC, {}, {key: each for key, each in inputs.items() if each is not None})


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_a_consumer_that_does_not_wait_reads_nan(seed: int) -> None:
    text = HEADER + f"{LOAD}\n{store(T)}\n"
    program = read_isa(text)
    inputs = {"x": X, "y": Y, "ids": IDS, "scale": 1.0, "more": 0}
    assert np.isnan(simulate(program, GENERIC, {}, inputs).buffers["y"][:4]).all()
    assert not np.isnan(simulate(program, GENERIC, {}, inputs).buffers["y"][4:]).any()
    found = simulate(program, GENERIC, {}, inputs, seed=seed).buffers["y"][:4]
    assert np.isnan(found).all() or (found == TILE).all()


def test_costs_follow_the_shapes() -> None:
    def spans(*lines: str) -> list[tuple[float, float]]:
        inputs = {"x": X, "y": Y, "ids": IDS, "scale": 1.0, "more": 0}
        result = simulate(read_isa(HEADER + "\n".join(lines)), GENERIC, {}, inputs, timeline=True)
        return [(each.free - each.issue, each.retire - each.issue) for each in result.spans["e"]]

    copy = GENERIC.instructions["copy"]
    assert copy.latency is not None
    assert spans(LOAD) == [(max(64, copy.cost.byte * 128), copy.latency.fixed + copy.latency.byte * 128)]
    registers = "REGISTER_MOVE r1 = 4"
    assert spans(registers, "MEMSET dst=u@0[r1,8]:[8,1]:f32 value=0.0:f32") == spans(f"MEMSET dst={U} value=0.0:f32")
