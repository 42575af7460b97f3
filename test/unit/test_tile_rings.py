"""The discipline of rings against runs: what the verifier accepts never blocks, what it refuses for room would."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.tile import KernelOp
from mpkc.parsing import parse_module
from mpkc.runtime.reference.tile import run_kernel

HEAD = """
!page = memref<2xf32, #tile.space<near>>
tile.kernel @k() engines ["e", "f"] {
%z = arith.constant 0.0 : f32
%true = arith.constant true
%o = memref.alloc() : !page
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : index
"""


class Random:
    """A random program on two rings: pages acquired, filled, read and released; loops that keep or release."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.pages = 0
        sizes = [self.random.randint(1, 4) for _ in range(2)]
        self.lines = [f"%R{at} = tile.ring {size} x 8" for at, size in enumerate(sizes)]
        self.block(3)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def acquire(self, ring: int) -> str:
        self.pages += 1
        page = f"%p{self.pages}x"
        self.line(f"{page} = tile.acquire %R{ring} : !page")
        self.line(f'tile.fill %z -> {page} engine "e" : f32 -> !page')
        self.line(f'tile.copy {page} -> %o engine "f" : !page -> !page')
        return page

    def block(self, depth: int) -> None:
        live: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(["acquire", "release", "loop", "if", "kept"])
            if kind == "acquire":
                live.append(self.acquire(self.random.randrange(2)))
            elif kind == "release" and live:
                self.release(live.pop(self.random.choice([0, 0, 0, -1])))
            elif kind == "loop" and depth:
                self.loop(self.random.randint(1, 3))
                self.block(depth - 1)
                self.line("}")
            elif kind == "if" and depth:
                self.line("scf.if %true {")
                self.block(depth - 1)
                self.line("}")
            elif kind == "kept":
                self.kept(self.random.randrange(2), self.random.randint(1, 3))
        for page in live:
            self.release(page)

    def loop(self, trips: int) -> int:
        self.pages += 1
        self.line(f"scf.for %i{self.pages}x = %c0 to %c{trips} step %c1 {{")
        return self.pages

    def release(self, page: str) -> None:
        self.line(f"tile.release {page} : !page")

    def kept(self, ring: int, trips: int) -> None:
        self.loop(trips)
        self.acquire(ring)
        self.line("}")
        held = f"%h{self.loop(trips)}x"
        self.line(f"{held} = tile.held %R{ring} : !page")
        self.line(f'tile.copy {held} -> %o engine "f" : !page -> !page')
        if self.random.random() < 0.3:
            self.release(self.acquire(1 - ring))
        self.release(held)
        self.line("}")


def outcome(action) -> str:
    try:
        action()
    except OpError as err:
        return err.message
    return ""


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_the_verifier_agrees_with_runs(seed: int) -> None:
    module = parse_module(HEAD + "\n".join(Random(seed).lines) + "\n}")
    (kernel,) = module.ops
    assert isinstance(kernel, KernelOp)
    said = outcome(lambda: verify(module))
    ran = outcome(lambda: run_kernel(kernel, []))
    assert bool(said) == bool(ran), (said, ran)
    if "it has" in said:
        assert "are live: nothing can release one" in ran


@pytest.mark.parametrize("pages", [1, 2, 3, 4])
def test_the_bound_is_exact(pages: int) -> None:
    random_program = Random(0)
    random_program.lines = [f"%R0 = tile.ring {pages} x 8"]
    live = [random_program.acquire(0) for _ in range(3)]
    for page in live:
        random_program.release(page)
    said = outcome(lambda: verify(parse_module(HEAD + "\n".join(random_program.lines) + "\n}")))
    assert bool(said) == (pages < 3)
