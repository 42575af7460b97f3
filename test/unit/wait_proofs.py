"""Programs and streams for the proof of waits, from text or from the allocator."""

import re

from xdsl.ir import Operation

from mpkc.dialects.diagnostics import verify
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.semaphores.bounds import entries, trips
from mpkc.runtime.verify.report import Check
from mpkc.runtime.verify.waits import prove_waits
from mpkc.verification import rescues

CONSTANTS = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
"""
BOUNDS = {"a": 2**20, "b": 2**29}


def only(text: str) -> Operation:
    module = parse_module(text)
    verify(module)
    operation = module.body.block.first_op
    operation.detach()
    return operation


def prove(program: str, streams: str, width: int = 32, sign: str = "u", **options) -> Check:
    streams = re.sub(r"\bi32\b", f"i{width}", streams).replace("COUNTERS", f"{sign}i{width}")
    return prove_waits(only(program), only(streams), **{"entries": BOUNDS, **options})


def streams(*each: str, semaphores: str = '"s"', arguments: str = "%n : index") -> str:
    return f"sem.streams @p({arguments}) counters COUNTERS semaphores [{semaphores}] {{\n{''.join(each)}}}\n"


def stream(engine: str, body: str) -> str:
    return f'sem.stream "{engine}" {{\n{CONSTANTS}{body}\n}}\n'


def refuted(check: Check, *words: str) -> None:
    assert check.failed
    assert any(all(word in failure.message for word in words) for failure in check.failures), check.failures


def allocated(program: str, kind: str, counters: str = "ui32", clean: bool = True, **options) -> tuple:
    """A program, its streams, and what `prove_waits` is told of them."""
    parsed = only(program)
    found = allocate(parsed, kind, counters, **options)
    if clean:
        simplify(found.streams)
        drop_counters(found.streams)
    structure = found.plan.structure
    told = {"rescued": [(each.consumer, each.producer) for each in rescues(found.plan)]}
    for name, bounds in (("entries", entries(structure)), ("trips", trips(structure))):
        told[name] = {loop.name: most for loop, most in bounds.items() if most is not None}
    return parsed, found.streams, told
