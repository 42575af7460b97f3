"""Every naive choice is caught by the product check, and what the allocator does instead is exact."""

from dataclasses import replace

import pytest
from semaphore_cases import CASES

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.parsing import new_context, parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.runtime.bindings import parse_bindings
from mpkc.runtime.verify.product import Product, assigned_product, check_product
from mpkc.verification import rescues

CONTEXT = new_context()
WRITTEN = {name: case for name, case in CASES.items() if case.streams}


def load(text: str):
    module = parse_module(text, "case.mlir", CONTEXT)
    verify(module)
    return module.body.block.first_op


def bound(case):
    """The bindings of a case, and any for what it leaves open."""
    given = parse_bindings(case.bindings)
    return replace(given, values={"n": (0,), "m": (0,), "k": (False,), **given.values})


@pytest.mark.parametrize("name", WRITTEN)
def test_naive_choices_are_caught(name):
    case = CASES[name]
    if case.verdict == "refused":
        with pytest.raises(OpError, match="is signalled by"):
            load(case.streams)
        return
    found = check_product(load(case.program), load(case.streams), [bound(case)], barriers=True)
    assert found
    assert found[0].message.startswith(case.verdict) or case.verdict in found[0].message, found[0].message


@pytest.mark.parametrize("name", CASES)
def test_the_allocator_is_exact(name):
    case = CASES[name]
    program = load(case.program)
    products = Product(program, bindings=[bound(case)]), assigned_product(program)
    for kind in ("barrier", "per-instruction", "per-loop", "per-engine"):
        made = allocate(program, kind)
        for product in products:
            assert not product.check(made.streams, rescues(made.plan), barriers=kind == "barrier")
