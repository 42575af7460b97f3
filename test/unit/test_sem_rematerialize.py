"""Thresholds that are computed again where they are needed: the same waits, with fewer registers."""

from random import Random

import pytest
from semaphore_checks import CONTEXT, expect_exact
from semaphore_fuzz import bindings_of_runs, make_program
from semaphore_text import inst, loop, program
from test_sem_random import load
from xdsl.dialects.builtin import ModuleOp

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_streams import BarrierOp
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_rematerialize import RematerializePass, rematerialize
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.emit import emission, register_use
from mpkc.runtime.verify.product import Product
from mpkc.semaphores import clean_up

GENERIC = machine("generic")
# Engine c waits for three producers of a, and in between for three of b: two multiples of one counter.
WAITING = "".join(
    inst(f"C{n}", "c", f"@A{n} offset 0, @B{n} offset 0") + inst(f"D{n}", "c", f"@C{n} offset 0") for n in range(3)
)
TWO = program(loop("".join(inst(f"A{n}", "a") + inst(f"B{n}", "b") for n in range(3)) + WAITING))


def cleaned(op, kind="per-loop", lean=True):
    made_for = allocate(op, kind, shifted=3 if lean else 0)
    ModuleOp([made_for.streams])
    clean_up(made_for.streams, lean)
    return made_for


def test_registers_are_saved():
    streams = cleaned(load(TWO)).streams
    before = register_use(streams, "c", GENERIC)
    assert before == emission(streams, GENERIC).registers["c"]
    rematerialize(streams.streams["c"], lambda: register_use(streams, "c", GENERIC).synchronization <= 3)
    verify(streams)
    assert register_use(streams, "c", GENERIC).synchronization < before.synchronization


def test_nothing_is_done_where_it_fits():
    streams = cleaned(load(TWO)).streams
    before = str(streams)
    rematerialize(streams.streams["c"], lambda: True)
    assert str(streams) == before


@pytest.mark.parametrize("seed", range(40))
def test_waits_stay_exact(seed):
    made = make_program(Random(seed))
    product = Product(made.op, bindings=bindings_of_runs(Random(seed), made))
    made_for = cleaned(made.op, Random(seed).choice(("per-loop", "per-instruction", "per-engine")), seed % 2 == 0)
    module = made_for.streams.parent_op()
    assert isinstance(module, ModuleOp)
    RematerializePass(steps=20).apply(CONTEXT, module)
    verify(made_for.streams)
    barriers = any(isinstance(op, BarrierOp) for op in made_for.streams.walk())
    expect_exact(product, made_for, "rematerialized", barriers=barriers)
