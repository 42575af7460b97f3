"""The programs of barrier-free, table 2 (mpkc/bench/kernels): loops, offsets, code, and values of every kind."""

from functools import cache

import numpy as np
import pytest

from mpkc.bench.kernels import KERNELS, Kernel
from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.sem_structure import Edge, structure_of
from mpkc.dialects.tile import KernelOp
from mpkc.parsing import parse_module
from mpkc.passes.tile_extract_dependencies import extract_dependencies
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.semaphores import compile_program

TRN2 = machine("trn2")
MOE = [name for name in KERNELS if name.startswith("moe")]
TOLERANCE = {"matmul": 1e-4, "matmul-unrolled-k": 1e-4, "flash-attention": 2e-2, **dict.fromkeys(MOE, 1e-2)}


def program_of(kernel: Kernel, full: bool) -> KernelOp:
    module = parse_module(kernel.build(**(kernel.full if full else kernel.small)), f"{kernel.name}.mlir")
    verify(module)
    (program,) = module.ops
    assert isinstance(program, KernelOp)
    return program


def offset_of(edge: Edge) -> int:
    """The distance on the loop that carries a dependency."""
    return next((component for component in edge.counted if isinstance(component, int) and component), 0)


def test_the_table_has_nine_programs() -> None:
    assert list(KERNELS) == ["addmany", "adamw", "flash-attention", "rmsnorm", "matmul", "matmul-unrolled-k", *MOE]
    assert len(KERNELS) == 9
    assert all(kernel.name == name for name, kernel in KERNELS.items())


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in MOE[1:]])
def test_loops_and_offsets_are_those_of_the_table(name: str) -> None:
    program = program_of(KERNELS[name], full=True)
    extract_dependencies(program)
    structure = structure_of(program)
    loops = max(len(instruction.counted) for instruction in structure.instructions)
    across = [edge for edge in structure.edges if edge.producer.engine != edge.consumer.engine]
    offsets = {offset_of(edge) for edge in across}
    print(f"{name}: L {loops}, offsets {sorted(offsets)}; the table: {KERNELS[name].loops}, {KERNELS[name].offsets}")
    assert loops == KERNELS[name].loops
    assert offsets == set(KERNELS[name].offsets)


@cache
def given(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs of a program at its small sizes, and what it is to compute from them."""
    kernel = KERNELS[name]
    inputs = kernel.inputs(kernel.small, np.random.default_rng(0))
    return dict(inputs), dict(kernel.reference(inputs, kernel.small))


@pytest.mark.parametrize("name", [name for name in KERNELS if name != MOE[2]])
@pytest.mark.parametrize("kind", ["barrier", "per-instruction", "per-loop", "per-engine", "unrolled"])
def test_values_are_those_of_numpy_and_nothing_races(name: str, kind: str) -> None:
    kernel = KERNELS[name]
    program = program_of(kernel, full=False)
    if kind == "unrolled" and name in MOE:
        with pytest.raises(OpError, match="%blocks, which is not known before it runs"):
            compile_program(program, kind, TRN2)
        return
    inputs, expected = given(name)
    isa = read_isa(compile_program(program, kind, TRN2).text, f"{name}.isa")
    loaded = {value.name for value in isa.values}
    bindings = {key: value for key, value in kernel.bindings(kernel.small).items() if key not in loaded}
    result = simulate(isa, TRN2, bindings, inputs, races=True)
    assert result.ok, (result.fault, str(result.deadlock), list(map(str, result.races)))
    for buffer, wanted in expected.items():
        found = np.asarray(result.buffers[buffer], np.float32)
        if buffer == "q":  # of 3 bits after the first
            np.testing.assert_allclose(found, wanted, rtol=2**-4, atol=2**-7)
        else:
            assert np.abs(wanted).max() > 0
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=TOLERANCE.get(name, 1e-6))


@pytest.mark.parametrize(
    ("name", "kind", "paper", "within"),
    [
        ("addmany", "per-loop", 27, 0.5),
        ("adamw", "per-loop", 117, 0.5),
        ("adamw", "unrolled", 189, 0.25),
        ("rmsnorm", "barrier", 64, 2.0),
        ("matmul", "per-loop", 101, 0.5),
        ("matmul-unrolled-k", "per-loop", 149, 0.5),
        ("flash-attention", "barrier", 360, 0.5),
        ("flash-attention", "per-loop", 594, 0.5),
        ("moe-384", "per-loop", 149, 2.0),
    ],
)
def test_code_is_about_as_long_as_the_papers(name: str, kind: str, paper: int, within: float) -> None:
    """At full size, in instructions of 64 bytes."""
    compiled = compile_program(program_of(KERNELS[name], full=True), kind, TRN2)
    count = read_isa(compiled.text).code_bytes(1)
    print(f"{name} {kind}: {count} instructions, the paper's {paper}")
    assert abs(count - paper) <= within * paper


def test_each_part_of_a_loop_unrolls_to_what_the_table_counts() -> None:
    """Where all loops are unrolled, the code of the paper is its body times the trips."""
    bodies = {"addmany": (2, 20_000), "rmsnorm": (32, 8_138)}
    for name, (per_trip, paper) in bodies.items():
        kernel = KERNELS[name]
        program = program_of(kernel, full=True)
        extract_dependencies(program)
        body = sum(len(instruction.counted) == 1 for instruction in structure_of(program).instructions)
        trips = next(value for size, value in kernel.full.items() if size in ("trips", "tiles"))
        print(f"{name}: {body} a trip, {body * trips} unrolled; the paper's {per_trip}, {paper}")
        assert abs(body * trips - paper) <= 0.5 * paper
