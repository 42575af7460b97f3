"""Thresholds that are right because a loop has so many iterations each time, which its bounds say."""

import pytest
import sem_figures
from wait_proofs import only, prove, refuted, stream, streams

from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.verify.product import check_product
from mpkc.runtime.verify.report import Check

# M writes into one of two banks in turns, by the index of b, and E frees it. In a new iteration of a they start again
# with the first one: with four iterations of b, that is the one that is free after all executions of E but the last.
PROGRAM = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      scf.for %b = %c0 to TRIPS step %c1 {
        sem.inst @M engine "e0" cost 1 after [@E offset 2, @E distance [1, -2]]
        sem.inst @E engine "e1" cost 1 after [@M offset 0]
      }
    }""",
)
BODY = """
    %start = arith.constant START : i32
    %end = scf.for %a = %c0 to %n step %c1 iter_args(%t = %start) -> (i32) {
      sem.iteration "a" depth 1
      %next = scf.for %b = %c0 to TRIPS step %c1 iter_args(%tb = %t) -> (i32) {
        sem.iteration "b" depth 2
        INSTRUCTION
        %more = arith.addi %tb, %one : i32
        scf.yield %more : i32
      }
      scf.yield %next : i32
    }"""
M = """sem.wait "e" >= %tb : i32
        sem.inst @M engine "e0" cost 1 after [@E offset 2, @E distance [1, -2]] {signal = "m"}"""
E = """sem.wait "m" >= %tb : i32
        sem.inst @E engine "e1" cost 1 after [@M offset 0] {signal = "e"}"""


def sources(trips: str, start: int) -> tuple[str, str]:
    produced = stream("e0", BODY.replace("START", str(start)).replace("INSTRUCTION", M))
    freed = stream("e1", BODY.replace("START", "1").replace("INSTRUCTION", E))
    text = streams(produced, freed, semaphores='"m", "e"')
    return tuple(
        each.replace("TRIPS", f"%c{trips}").replace("%c3 = arith.constant 3", f"%c{trips} = arith.constant {trips}")
        for each in (PROGRAM, text)
    )


def proved(trips: int, start: int, **options) -> Check:
    program, text = sources(trips, start)
    return prove(program, text, sign="s", entries={"a": 2**20, "b": 2**23}, trips={"b": trips}, **options)


def test_all_but_the_last() -> None:
    check = proved(4, -1)
    assert not check.failed, check.failures


@pytest.mark.parametrize("trips", [5, 7])
def test_more_than_is_owed(trips: int) -> None:
    """Where they start again with a bank that is free for long, only a person waits so long."""
    refuted(proved(trips, -1), "@M", "too late")
    check = proved(trips, -1, rescued=None)
    assert not check.failed, check.failures


@pytest.mark.parametrize(("trips", "start"), [(3, -1), (4, -2), (2, -1)])
def test_less_than_is_owed(trips: int, start: int) -> None:
    """With fewer iterations the dependency reaches the last one."""
    for rescued in ((), None):
        refuted(proved(trips, start, rescued=rescued), "@M", "too early")
    program, text = sources(trips, start)
    wrong = check_product(only(program), only(text.replace("COUNTERS", "si32")), [bindings_of({"n": 3})])
    assert any("EARLY" in failure.message for failure in wrong)
