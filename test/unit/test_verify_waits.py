"""The proof of waits: figures and examples written by hand, what clean-up makes of them, and mutants of both."""

import random
import re

import pytest
import sem_figures
import sem_programs
from wait_proofs import BOUNDS, allocated, prove, refuted, stream, streams
from xdsl.dialects import arith, scf

from mpkc.dialects.sem_streams import BarrierOp, WaitOp
from mpkc.runtime.verify.report import Check, WaitFailure
from mpkc.runtime.verify.waits import prove_waits

# Two loops, A around B. P and X run in B; C1 needs P's iterations of A before this one, C2 P two iterations of B
# before, C0 P of this iteration of A.
NEST = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      sem.inst @C1 engine "e1" cost 1 after [@P offset 1]
      %m = arith.addi %a, %c3 : index
      scf.for %b = %c1 to %m step %c1 {
        sem.inst @P engine "e0" cost 1
        sem.inst @X engine "e0" cost 1
        sem.inst @C2 engine "e1" cost 1 after [@P offset 2]
      }
      sem.inst @C0 engine "e1" cost 1 after [@P offset 0]
    }""",
)
NEST_PRODUCER = stream(
    "e0",
    """scf.for %a = %c0 to %n step %c1 {
      sem.iteration "a" depth 1
      %m = arith.addi %a, %c3 : index
      scf.for %b = %c1 to %m step %c1 {
        sem.iteration "b" depth 2
        sem.inst @P engine "e0" cost 1 {signal = "s"}
        sem.inst @X engine "e0" cost 1 {signal = "s"}
      }
    }""",
)

# `$` stands for the name of the wait.
TRUNCATED = """
    %$p = arith.muli %$mask, %$expr : i32
    %$n = arith.muli %$p, %two : i32
    %$ = arith.subi %$n, %one : i32
"""
BRACKET_A = """
    %$n = arith.muli %$expr, %two : i32
    %$d = arith.subi %$n, %one : i32
    %$ = arith.muli %$mask, %$d : i32
"""
GUARDED = """
    %$p = arith.muli %$mask, %$expr : i32
    %$n = arith.muli %$p, %two : i32
    %$g = arith.cmpi GREATER, %$p, %zero : i32
    %$o = arith.extui %$g : i1 to i32
    %$ = arith.subi %$n, %$o : i32
"""


def masked(name: str, trip: str, k: str, expr: str, form: str) -> str:
    """The threshold %NAME for an offset of `k` on the loop with trip register `trip`."""
    mask = f"""
    %$expr = {expr} : i32
    %$m = arith.cmpi GREATER, {trip}, {k} : i32
    %$mask = arith.extui %$m : i1 to i32
    """
    return (mask + form).replace("$", name)


def nest_consumer(
    form: str, k1: str = "%one", expr2: str = "arith.subi %rB2, %two", count: str = "%one", reset: bool = True
) -> str:
    """The stream of e1, with registers rB, tA and tB written as they are in figure 7."""
    start = "%zero" if reset else "%tBold"
    body = f"""
    %rA:3 = scf.for %a = %c0 to %n step %c1 iter_args(%tA = %zero, %rB = %zero, %tBold = %zero) -> (i32, i32, i32) {{
      sem.iteration "a" depth 1
      %tA1 = arith.addi %tA, %one : i32
      {masked("w1", "%tA1", k1, "arith.addi %rB, %zero", form)}
      sem.wait "s" >= %w1 : i32
      sem.inst @C1 engine "e1" cost 1 after [@P offset 1]
      %m = arith.addi %a, %c3 : index
      %rB4:2 = scf.for %b = %c1 to %m step %c1 iter_args(%rB1 = %rB, %tB1 = {start}) -> (i32, i32) {{
        sem.iteration "b" depth 2
        %rB2 = arith.addi %rB1, {count} : i32
        %tB2 = arith.addi %tB1, %one : i32
        {masked("w2", "%tB2", "%two", expr2, form)}
        sem.wait "s" >= %w2 : i32
        sem.inst @C2 engine "e1" cost 1 after [@P offset 2]
        scf.yield %rB2, %tB2 : i32, i32
      }}
      {masked("w0", "%tA1", "%zero", "arith.addi %rB4#0, %zero", form)}
      sem.wait "s" >= %w0 : i32
      sem.inst @C0 engine "e1" cost 1 after [@P offset 0]
      scf.yield %tA1, %rB4#0, %rB4#1 : i32, i32, i32
    }}"""
    return stream("e1", body)


def nest(form: str, sign: str = "u", width: int = 32, most: dict[str, int] | None = BOUNDS, **mutation) -> Check:
    text = streams(NEST_PRODUCER, nest_consumer(form, **mutation))
    text = text.replace("GREATER", "ugt" if sign == "u" else "sgt")
    return prove(NEST, text, width, sign, entries=most)


def test_guarded_formula_is_exact() -> None:
    check = nest(GUARDED)
    assert not check.failed, check.failures
    assert check.count == 8  # three consumers, a goal for each wait and each dependency, and two signals


def test_printed_formula_is_exact_on_signed_integers() -> None:
    assert not nest(TRUNCATED, "s").failed
    assert not nest(BRACKET_A, "s").failed


def test_guarded_formula_on_eight_bits() -> None:
    assert not nest(GUARDED, width=8, most={"a": 50, "b": 127}).failed
    refuted(nest(GUARDED, width=8, most={"a": 50, "b": 128}), "out of its range")


@pytest.mark.parametrize("form", [TRUNCATED, BRACKET_A])
def test_printed_formulas_are_refuted_on_unsigned_integers(form: str) -> None:
    refuted(nest(form), "too late", "4294967295")


def test_bound_on_the_counters() -> None:
    assert not nest(GUARDED, most={"a": 2**20, "b": 2**31 - 1}).failed
    refuted(nest(GUARDED, most={"a": 2**20, "b": 2**31}), "out of its range")
    refuted(nest(GUARDED, most=None), "@C2", "too early")


@pytest.mark.parametrize(
    ("mutation", "words"),
    [
        ({"k1": "%zero"}, ()),  # harmless: P has not run before the first iteration of A
        ({"k1": "%two"}, ("@C1", "[2]", "too early")),
        ({"reset": False}, ()),  # harmless: the engine has waited for P at @C0, in the iteration of A before
        ({"expr2": "arith.subi %rB2, %one"}, ("@C2", "too late")),
        ({"count": "%zero"}, ("@C0", "too early")),
        ({"count": "%two"}, ("@C2", "too late")),
    ],
)
@pytest.mark.parametrize(("form", "sign"), [(GUARDED, "u"), (TRUNCATED, "s")])
def test_mutants_of_the_nest(form: str, sign: str, mutation: dict, words: tuple[str, ...]) -> None:
    check = nest(form, sign, **mutation)
    if words:
        refuted(check, *words)
    else:
        assert not check.failed


def test_trip_register_has_to_start_again() -> None:
    consumer = nest_consumer(GUARDED, reset=False)
    alone = re.sub(r"sem.wait \"s\" >= %w[01] : i32\n\s*sem.inst @C[01].*", "", consumer)
    program = re.sub(r"sem.inst @C[01].*", "", NEST)
    text = streams(NEST_PRODUCER, alone).replace("GREATER", "ugt")
    refuted(prove(program, text), "@C2", "[2, 1]", "too late")


def test_failure_tells_where() -> None:
    failure = next(f for f in nest(GUARDED, k1="%two").failures)
    assert isinstance(failure, WaitFailure)
    assert (failure.instruction, failure.engine, failure.iteration) == ("C1", "e1", (2,))
    assert (failure.semaphore, failure.threshold) == ("s", 0)
    assert failure.owed is not None
    assert failure.trips == {"a": 2, "b": (failure.owed + 1) // 2}


# What the allocator writes, and what clean-up makes of it.


@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine", "barrier"])
@pytest.mark.parametrize("figure", sem_figures.FIGURES)
def test_figures(figure: str, kind: str) -> None:
    program, written, told = allocated(sem_figures.FIGURES[figure][0], kind)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


def random_program(seed: int) -> str:
    return sem_programs.random_program(random.Random(seed)).text


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int) -> None:
    kind = ("per-instruction", "per-loop", "per-engine")[seed % 3]
    program, written, told = allocated(random_program(seed), kind, ("ui32", "si32", "ui16")[seed // 3 % 3])
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


# Nobody says how often A and B run, so counters start again in epochs; the history of B is one of them.
EPOCHS = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      sem.inst @C1 engine "e1" cost 1 after [@P offset 2]
      scf.for %b = %c0 to %c3 step %c1 {
        sem.inst @P engine "e0" cost 1
        sem.inst @X engine "e0" cost 1
        sem.inst @C2 engine "e1" cost 1 after [@P offset 2, @X offset 0]
      }
    }""",
)


@pytest.mark.parametrize("counters", ["ui8", "si8"])
def test_epochs(counters: str) -> None:
    program, written, told = allocated(EPOCHS, "per-loop", counters)
    assert "sem.barrier reset" in str(written)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


@pytest.mark.parametrize("counter", range(4))
def test_epoch_that_leaves_a_counter(counter: int) -> None:
    program, written, told = allocated(EPOCHS, "per-loop", "ui8", clean=False)
    condition = next(op for op in written.streams["e1"].walk() if isinstance(op, scf.IfOp))
    met, kept = (region.block.last_op for region in condition.regions)
    assert len(met.operands) == 4  # of iterations, of P's loop, and its history
    met.operands[counter] = kept.operands[counter]
    assert prove_waits(program, written, **told).failed


def test_epoch_that_leaves_a_semaphore() -> None:
    program, written, told = allocated(EPOCHS, "per-loop", "ui8")
    for engine in ("e0", "e1"):
        barrier = next(op for op in written.streams[engine].walk() if isinstance(op, BarrierOp))
        barrier.semaphores = type(barrier.semaphores)([])
    check = prove_waits(program, written, **told)
    refuted(check, "out of its range")
    refuted(check, "@C2", "too early")


# C needs the iteration of B with its own number, in the iteration of A before: a marker stands for P.
MARKED = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      scf.for %b = %c0 to %n step %c1 {
        scf.for %c = %c0 to %c3 step %c1 {
          sem.inst @P engine "e0" cost 1
        }
        sem.inst @C engine "e1" cost 1 after [@P distance [1, 0]]
      }
    }""",
).replace("@p(%n : index)", "@p(%n : index) attributes {maxima = {n = 1000 : index}}")


def test_marker_for_a_producer() -> None:
    program, written, told = allocated(MARKED, "per-loop")
    assert told["rescued"] == [("C", "P")]
    assert not prove_waits(program, written, **told).failed
    refuted(prove_waits(program, written), "@C", "too late")


@pytest.mark.parametrize(("change", "word"), [(arith.AddiOp, "late"), (arith.MuliOp, "early")])
def test_marker_that_is_awaited_too_late_or_too_early(change: type, word: str) -> None:
    program, written, told = allocated(MARKED, "per-loop", clean=False)
    wait = next(op for op in written.streams["e1"].walk() if isinstance(op, WaitOp))
    other = arith.ConstantOp.from_int_and_width(int(word == "late"), 32)
    changed = change(wait.threshold, other)
    wait.parent.insert_ops_before([other, changed], wait)
    wait.operands[0] = changed.result
    refuted(prove_waits(program, written, **told), "@C", f"too {word}")
