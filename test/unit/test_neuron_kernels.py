"""The kernels of examples/tile from program order to ISA text: the same values, no race; without a wait, a race."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.tile import KernelOp
from mpkc.parsing import parse_module
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result, simulate
from mpkc.runtime.reference.tile import Input, run_kernel
from mpkc.semaphores import compile_program

GENERIC = machine("generic")
EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


INPUTS: dict[str, list[Input]] = {
    "matmul": [normal(0, 64, 96), normal(1, 96, 128), zeros(64, 128)],
    "softmax": [5 * normal(0, 150, 256), zeros(150, 256)],
    "rmsnorm": [normal(0, 192, 512), normal(1, 1, 512), zeros(192, 512), zeros(192, 1), 1e-5],
    "adamw": [
        *(np.abs(normal(seed, 192, 128)) for seed in range(4)),
        0.01,
        0.999,
        0.9,
        0.1,
        0.999,
        0.001,
        0.27,
        0.003,
        1e-8,
    ],
    "attention": [*(normal(seed, 128, 64) for seed in range(3)), zeros(128, 64), 0.125],
}


@cache
def kernel(name: str) -> KernelOp:
    module = parse_module((EXAMPLES / f"{name}.mlir").read_text(), f"{name}.mlir")
    verify(module)
    (program,) = module.ops
    assert isinstance(program, KernelOp)
    return program


def inputs(name: str) -> dict[str, Input]:
    return dict(zip(kernel(name).argument_names, INPUTS[name], strict=True))


@cache
def text_of(name: str, kind: str) -> str:
    return compile_program(kernel(name), kind, GENERIC).text


def run(name: str, text: str, seed: int | None = None) -> Result:
    return simulate(read_isa(text, f"{name}.isa"), GENERIC, {}, inputs(name), races=True, seed=seed)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine", "barrier"])
def test_a_kernel_computes_what_program_order_does(name: str, kind: str) -> None:
    expected = run_kernel(kernel(name), inputs(name))
    for seed in (None, 1):
        result = run(name, text_of(name, kind), seed)
        assert result.ok, (result.fault, str(result.deadlock), list(map(str, result.races)))
        for buffer, array in expected.items():
            np.testing.assert_array_equal(result.buffers[buffer], array)


@pytest.mark.parametrize("name", ["matmul", "softmax", "rmsnorm"])
def test_without_any_one_of_its_waits_a_kernel_races(name: str) -> None:
    lines = text_of(name, "per-loop").splitlines()
    waits = [at for at, line in enumerate(lines) if re.search(r"S\[\d+\]>=", line)]
    assert len(waits) >= 5
    for at in waits:
        without = [*lines[:at], re.sub(r" S\[\d+\]>=\S+", "", lines[at]), *lines[at + 1 :]]
        assert run(name, "\n".join(without)).races, lines[at]


def test_double_buffered_matmul_runs_ahead() -> None:
    programs = (read_isa(text_of("matmul", kind)) for kind in ("per-loop", "barrier"))
    ahead, stepwise = (simulate(each, GENERIC, {}, inputs("matmul"), timeline=True) for each in programs)
    assert not any(ahead.handshakes.values())
    assert all(stepwise.handshakes.values())
    assert ahead.time_ns < stepwise.time_ns / 2
