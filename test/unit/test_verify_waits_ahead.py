"""Waits in front of loops: judged at the first instruction in them, which surely has to come."""

from random import Random

import pytest
import sem_figures
import sem_programs
from semaphore_checks import KINDS, make_lean
from wait_proofs import only, prove, refuted, stream, streams

from mpkc.dialects.diagnostics import OpError
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.semaphores.bounds import entries, trips
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.verify.product import check_product
from mpkc.runtime.verify.report import Check
from mpkc.runtime.verify.waits import prove_waits
from mpkc.verification import rescues

# L loads what M multiplies in all of its loop b, or of b and c; E frees the accumulator that M two trips later takes.
PROGRAM = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      sem.inst @L engine "e0" cost 1
      sem.inst @L2 engine "e0" cost 1
      scf.for %b = TRIPS step %c1 {
        scf.for %c = %c0 to %c3 step %c1 {
          sem.inst @W engine "e1" cost 1 after [@L offset 0]
          sem.inst @M engine "e1" cost 1 after [@L offset 0, @E offset 2]
        }
      }
      sem.inst @E engine "e2" cost 1 after [@M offset 0]
    }""",
)
LOADS = stream(
    "e0",
    """scf.for %a = %c0 to %n step %c1 {
      sem.iteration "a" depth 1
      sem.inst @L engine "e0" cost 1 {signal = "l"}
      sem.inst @L2 engine "e0" cost 1 {signal = "l"}
    }""",
)
MULTIPLIES = """
    %six = arith.constant 6 : i32
    %ends:2 = scf.for %a = %c0 to %n step %c1 iter_args(%ra = %zero, %back = %zero) -> (i32, i32) {
      sem.iteration "a" depth 1
      %r = arith.addi %ra, %one : i32
      %twice = arith.muli %r, %two : i32
      %loads = arith.subi %twice, %one : i32
      OUTSIDE
      scf.for %b = TRIPS step %c1 {
        sem.iteration "b" depth 2
        BETWEEN
        scf.for %c = %c0 to %c3 step %c1 {
          sem.iteration "c" depth 3
          FIRST
          sem.inst @W engine "e1" cost 1 after [@L offset 0]
          SECOND
          sem.inst @M engine "e1" cost 1 after [@L offset 0, @E offset 2] {signal = "m"}
        }
      }
      scf.yield %r, %ra : i32, i32
    }"""
STORES = stream(
    "e2",
    """%end = scf.for %a = %c0 to %n step %c1 iter_args(%m = %zero) -> (i32) {
      sem.iteration "a" depth 1
      %after = scf.for %b = TRIPS step %c1 iter_args(%mb = %m) -> (i32) {
        sem.iteration "b" depth 2
        %all = scf.for %c = %c0 to %c3 step %c1 iter_args(%mc = %mb) -> (i32) {
          sem.iteration "c" depth 3
          %more = arith.addi %mc, %one : i32
          scf.yield %more : i32
        }
        scf.yield %all : i32
      }
      sem.wait "m" >= %after : i32
      sem.inst @E engine "e2" cost 1 after [@M offset 0] {signal = "e"}
      scf.yield %after : i32
    }""",
)
LOADED = 'sem.wait "l" >= %loads : i32'
FREED = 'sem.wait "e" >= %back : i32'


def sources(trips: str = "%c0 to %c3", **places: str) -> tuple[str, str]:
    """The program and its streams, with waits at places of the stream of e1."""
    body = MULTIPLIES
    for place in ("OUTSIDE", "BETWEEN", "FIRST", "SECOND"):
        body = body.replace(place, places.get(place.lower(), ""))
    text = streams(LOADS, stream("e1", body), STORES, semaphores='"l", "m", "e"')
    return PROGRAM.replace("TRIPS", trips), text.replace("TRIPS", trips)


def proved(trips: str = "%c0 to %c3", **places: str) -> Check:
    program, text = sources(trips, **places)
    return prove(program, text, sign="s", entries={"a": 2**20, "b": 2**22, "c": 2**24})


def compared(trips: str = "%c0 to %c3", **places: str) -> list[str]:
    """What a run of every small trip count finds wrong."""
    program, text = sources(trips, **places)
    runs = [bindings_of({"n": n}) for n in range(5)]
    text = text.replace("COUNTERS", "si32")
    return [failure.message for failure in check_product(only(program), only(text), runs)]


@pytest.mark.parametrize("place", ["outside", "between", "first"])
def test_first_wait_stands_in_front_of_the_loops_that_begin_with_it(place: str) -> None:
    places = {place: LOADED, "second": FREED}
    check = proved(**places)
    assert not check.failed, check.failures
    assert compared(**places) == []


@pytest.mark.parametrize("place", ["outside", "between"])
def test_loop_that_may_not_run(place: str) -> None:
    check = proved("%c1 to %n", **{place: LOADED, "second": FREED})
    if place == "between":  # in front of c, which runs three times
        assert not check.failed, check.failures
    else:
        refuted(check, "@W", '"l"', "in front of a loop that may have no iteration")


def test_loop_that_runs_wherever_the_one_around_it_does() -> None:
    check = proved("%c0 to %n", outside=LOADED, second=FREED)
    assert not check.failed, check.failures


def test_loop_that_runs_in_some_lanes_only() -> None:
    """Where b has no iteration, nothing of e1 runs, and the wait holds nothing back."""
    assert compared("%c1 to %n", outside=LOADED, second=FREED) == []
    early = compared("%c1 to %n", outside=LOADED.replace("%loads", "%ra"), second=FREED)
    assert any("EARLY" in message for message in early)


@pytest.mark.parametrize(
    ("change", "word", "told"),
    [
        (("%loads", "%twice"), "late", "LATE"),
        (("%loads", "%ra"), "early", "EARLY"),
        (("%loads", "%six"), "late", "LATE"),
    ],
)
def test_wrong_threshold(change: tuple[str, str], word: str, told: str) -> None:
    wrong = LOADED.replace(*change)
    refuted(proved(outside=wrong, second=FREED), "@W", f"too {word}")
    assert any(told in message for message in compared(outside=wrong, second=FREED))


@pytest.mark.parametrize("place", ["outside", "between", "first"])
def test_wait_of_a_later_instruction_comes_too_late_for_the_first(place: str) -> None:
    """W may run before E frees what M writes."""
    places = {place: LOADED + "\n" + FREED}
    refuted(proved(**places), "@W", '"e"', "too late")
    assert any("LATE" in message and '"e"' in message for message in compared(**places))


def test_wait_that_is_missing_behind() -> None:
    refuted(proved(outside=LOADED), "@M", "too early")
    assert any("EARLY" in message for message in compared(outside=LOADED))


@pytest.mark.parametrize(
    "behind",
    [
        "%x = scf.while (%y = %zero) : (i32) -> i32 { %f = arith.constant false\nscf.condition(%f) %y : i32 } do {\n"
        '^bb0(%z : i32):\nsem.inst @I engine "e" cost 1\nscf.yield %z : i32 }',
        'scf.if %flag { sem.inst @I engine "e" cost 1\nscf.yield }',
        "scf.for %i = %c0 to %c3 step %c1 { sem.barrier reset [] }",
        'scf.for %i = %c0 to %c3 step %c1 { sem.iteration "i" depth 1 }\nsem.inst @I engine "e" cost 1',
    ],
)
def test_what_a_wait_stands_in_front_of(behind: str) -> None:
    body = f'%flag = arith.constant true\nsem.wait "s" >= %zero : i32\n{behind}'
    with pytest.raises(OpError, match="a wait without an instruction behind it"):
        only(streams(stream("e", body)).replace("COUNTERS", "ui32"))


@pytest.mark.parametrize("seed", [103, 105, 109])
def test_streams_as_auto_cleans_them_up(seed: int) -> None:
    """Waits in front of loops, carried thresholds and counters that indices are, on random programs."""
    program = only(sem_programs.random_program(Random(seed)).text)
    made = allocate(program, KINDS[seed % 3], ("si32", "ui32")[seed % 2], shifted=3)
    make_lean(made.streams)
    structure = made.plan.structure
    bounds = [{loop.name: most for loop, most in of(structure).items() if most is not None} for of in (entries, trips)]
    late = [(each.consumer, each.producer) for each in rescues(made.plan)]
    check = prove_waits(program, made.streams, late, *bounds)
    assert not check.failed, check.failures
