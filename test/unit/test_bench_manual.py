"""Semaphores placed by hand (mpkc/bench/kernels/manual): values, races, proofs, what is left out is seen, figures."""

import numpy as np
import pytest

from mpkc.bench.kernels import KERNELS
from mpkc.bench.manual import place_by_hand
from mpkc.bench.table2 import kinds_of
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate

TRN2 = machine("trn2")
PLACED = [name for name, kernel in KERNELS.items() if kernel.place is not None]
TOLERANCE = {"matmul": 1e-4, "matmul-unrolled-k": 1e-4, "flash-attention": 2e-2, "moe": 1e-2}


@pytest.mark.parametrize("name", PLACED)
def test_manual_comes_behind_what_is_allocated(name: str) -> None:
    kinds = kinds_of(KERNELS[name])
    assert kinds[0] == "barrier"
    assert kinds.index("per-engine") + 1 == kinds.index("manual") == kinds.index("unrolled") - 1


@pytest.mark.parametrize("name", PLACED)
def test_values_are_those_of_numpy_and_nothing_races(name: str) -> None:
    kernel = KERNELS[name]
    inputs = dict(kernel.inputs(kernel.small, np.random.default_rng(0)))
    isa = read_isa(place_by_hand(kernel, kernel.small, TRN2).text, f"{name}.isa")
    loaded = {value.name for value in isa.values}
    bindings = {key: value for key, value in kernel.bindings(kernel.small).items() if key not in loaded}
    result = simulate(isa, TRN2, bindings, inputs, races=True)
    assert result.ok, (result.fault, str(result.deadlock), list(map(str, result.races)))
    for buffer, wanted in kernel.reference(inputs, kernel.small).items():
        found = np.asarray(result.buffers[buffer], np.float32)
        if buffer == "q":  # of 3 bits after the first
            np.testing.assert_allclose(found, wanted, rtol=2**-4, atol=2**-7)
        else:
            tolerance = TOLERANCE.get("moe" if name.startswith("moe") else name, 1e-6)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=tolerance)
