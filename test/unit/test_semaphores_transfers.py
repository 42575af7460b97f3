"""Transfers of DMA queues: a semaphore counts one, and that is in flight once."""

from dataclasses import replace

import numpy as np
import pytest
from semaphore_text import inst, loop, program
from test_sem_random import load
from test_semaphores_cli import TILE
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.engine import signal_of
from mpkc.dialects.sem_structure import structure_of
from mpkc.engines import Setup, Watched, compiled, run_compiled
from mpkc.parsing import parse_module
from mpkc.passes.sem_order_transfers import ROTATING, order_transfers
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.machine import Dma, machine
from mpkc.runtime.verify.transfers import check_transfers
from mpkc.verification import verify_compiled

GENERIC = machine("generic")
QUEUES = replace(GENERIC, dma=Dma(16, ("load", "store")))


def kernel():
    module = parse_module(TILE)
    verify(module)
    return module, module.body.block.first_op


def test_a_transfer_waits_for_all_its_earlier_runs():
    op = load(program(loop(loop(inst("T", "load") + inst("U", "load") + inst("C", "e", "@T offset 0"), "b", "m"))))
    order_transfers(op, ["load"])
    verify(op)
    structure = structure_of(op)
    assert [str(edge.counted) for edge in structure.by_label["T"].edges] == ["(0, 1)", "(1, '*')"]
    assert structure.by_label["U"].edges == []  # nothing waits for it


@pytest.mark.parametrize("kind", ["per-loop", "per-engine", "per-instruction", "barrier"])
def test_kernels_run_right_on_queues(kind):
    """16 parts that arrive in any order: right values, no race, whatever the kind."""
    module, op = kernel()
    found = compiled(module, op, Setup(kind, QUEUES))
    signals = [s for each in found.streams.walk() if (s := signal_of(each)) and "copy" in each.name]
    assert len(signals) == len(set(signals))
    assert check_transfers(structure_of(found.program), found.streams, ["load", "store"]).failed == 0
    x = np.arange(24, dtype=np.float32).reshape(6, 4) / 24
    arrays = {"x": x, "y": np.zeros_like(x)}
    result = run_compiled(found, QUEUES, arrays, bindings_of({"n": 6}), 0, Watched(values=True, races=True))
    assert result.deadlock is None
    assert result.races == ()
    np.testing.assert_allclose(result.buffers["y"], np.exp(x), rtol=1e-6)


def test_two_in_flight_are_refused_by_verify_and_seen_as_a_race():
    """The streams that a machine without queues would get: a count of 16 is made of parts of two transfers."""
    module, op = kernel()
    found = compiled(module, op, Setup("per-loop", GENERIC))
    refused = check_transfers(structure_of(found.program), found.streams, ["load", "store"])
    assert refused.failed == 2
    assert "@copy0 may be in flight twice" in refused.failures[0].message
    beside = found.module
    x = np.ones((6, 4), dtype=np.float32)
    again = compiled(beside, next(iter(beside.ops)), Setup("per-loop", QUEUES))
    assert not verify_compiled(again, written=True, queues=("load", "store")).ok
    races = run_compiled(
        again, QUEUES, {"x": x, "y": 0 * x}, bindings_of({"n": 6}), 0, Watched(values=True, races=True)
    ).races
    assert races


def test_transfers_that_share_a_semaphore_are_refused():
    op = load(program(loop(inst("T", "load") + inst("U", "load") + inst("C", "e", "@T offset 0, @U offset 0"))))
    found = compiled(ModuleOp([op.clone()]), op, Setup("per-loop", replace(GENERIC, dma=Dma(16, ("load",)))))
    assert check_transfers(structure_of(found.program), found.streams, ["load"]).failed == 0
    for each in found.streams.walk():
        if signal_of(each) is not None:
            each.attributes["signal"] = StringAttr("T")
    refused = check_transfers(structure_of(found.program), found.streams, ["load"])
    assert 'semaphore "T" counts parts of @T, @U' in refused.failures[0].message
    report = verify_compiled(found, written=True, queues=("load",))
    assert "transfers" in {check.name for check in report.checks if check.failed}


def test_a_semaphore_of_parts_is_reset_as_many_times_sooner():
    op = load(program(loop(inst("T", "load") + inst("C", "e", "@T offset 1"))))
    module = ModuleOp([op.clone()])
    with_parts = compiled(module, op, Setup("per-loop", replace(GENERIC, dma=Dma(16, ("load",))), "ui16"))
    whole = compiled(module, op, Setup("per-loop", GENERIC, "ui16"))
    counts = [found.plan.resets[0].epoch.iterations for found in (whole, with_parts)]
    assert counts == [2**16 - 1, (2**16 - 1) // 16]


UNROLLED = (
    TILE.replace("6x4", "40x4")
    .replace("%n : index", "%m : index")
    .replace("%tiles =", "%n = arith.constant 40 : index\n  %tiles =")
    .replace("2x1x4", "20x1x4")
)  # 20 loads may be in flight


def test_transfers_that_run_once_take_turns_with_a_few_semaphores():
    module = parse_module(UNROLLED)
    found = compiled(module, module.body.block.first_op, Setup("unrolled", QUEUES))
    used = {s for each in found.streams.walk() if (s := signal_of(each)) and "copy" in each.name}
    assert len(used) == 2 * ROTATING
    structure = structure_of(found.program)
    assert check_transfers(structure, found.streams, ["load", "store"]).failed == 0
    x = np.arange(160, dtype=np.float32).reshape(40, 4) / 160
    watched = Watched(values=True, races=True)
    result = run_compiled(found, QUEUES, {"x": x, "y": 0 * x}, bindings_of({"m": 1}), 0, watched)
    assert (result.deadlock, result.races) == (None, ())
    np.testing.assert_allclose(result.buffers["y"], np.exp(x), rtol=1e-6)
    taken = next(s for s in used if s.startswith("load"))
    waiting = next(
        each
        for each in structure.instructions
        if each.engine == "load" and any(e.producer.engine == "load" for e in each.edges)
    )
    waiting.edges[:] = [edge for edge in waiting.edges if edge.producer.engine != "load"]
    refused = check_transfers(structure, found.streams, ["load", "store"])
    assert refused.failed == 1
    assert taken.rsplit(".", 1)[0] in refused.failures[0].message


@pytest.mark.parametrize(("counters", "least"), [("ui4", "ui5"), ("si4", "si6")])
def test_counters_that_hold_no_transfer_say_which_do(counters, least):
    message = f"semaphores of {counters} hold .* at most, and each transfer adds its 16 parts: use {least} or wider"
    with pytest.raises(OpError, match=message):
        compiled(*kernel(), Setup("per-loop", QUEUES, counters))
