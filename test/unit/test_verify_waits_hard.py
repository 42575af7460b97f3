"""The proof of waits where it takes more: resets, promises, values, bounds of loops that other loops compute."""

import pytest
import sem_figures
from wait_proofs import allocated, prove, refuted, stream, streams

from mpkc.dialects.sem_streams import BarrierOp, IterationOp, ReadOp, WaitOp
from mpkc.runtime.verify.waits import prove_waits

# Counters of few bits start again at nearly every iteration.
PIPELINE = """sem.program @p(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    sem.inst @L engine "e0" cost 1 after [@S offset 2]
    sem.inst @M engine "e1" cost 1 after [@L offset 0]
    sem.inst @S engine "e2" cost 1 after [@M offset 0, @L offset 1]
  }
}"""

# What is declared bounds these loops, which runs on some %m would break.
WHILES = """sem.program @p(%n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %a = %c0 to %n step %c1 {
    scf.while (%x = %c0) : (index) -> index {
      scf.while (%y = %c0) : (index) -> index {
        sem.inst @P engine "e0" cost 1
        sem.inst @C engine "e1" cost 1 after [@P offset 0, @P offset 1]
        %more = arith.cmpi ult, %y, %m : index
        scf.condition(%more) %y : index
      } do {
      ^bb0(%y1 : index):
        %y2 = arith.addi %y1, %c1 : index
        scf.yield %y2 : index
      } attributes {most = 3 : i64}
      %again = arith.cmpi ult, %x, %m : index
      scf.condition(%again) %x : index
    } do {
    ^bb0(%x1 : index):
      sem.inst @Q engine "e0" cost 1 after [@C offset 0]
      %x2 = arith.addi %x1, %c1 : index
      scf.yield %x2 : index
    } attributes {most = 3 : i64}
  }
}"""


@pytest.mark.parametrize("kind", ["per-loop", "per-instruction"])
@pytest.mark.parametrize("counters", ["ui2", "si3", "ui3", "si4", "ui4"])
def test_epochs_of_few_iterations(counters: str, kind: str) -> None:
    program, written, told = allocated(PIPELINE, kind, counters)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


@pytest.mark.parametrize("counters", ["ui4", "si5", "ui5"])
def test_epochs_over_loops_of_declared_length(counters: str) -> None:
    program, written, told = allocated(WHILES, "per-instruction", counters)
    assert "sem.barrier reset" in str(written)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


# The number of an iteration is what the index has come from a bound that only an earlier loop knows.
STRIDES = """sem.program @p(%n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = scf.for %a = %c0 to %n step %c1 iter_args(%x = %c0) -> (index) {
    scf.yield %m : index
  }
  scf.for %b = %low to %n step %m {
    sem.inst @C engine "e1" cost 1 after [@P offset 2]
    sem.inst @P engine "e0" cost 1
  }
}"""


def test_index_from_a_bound_that_a_loop_computed() -> None:
    program, written, told = allocated(STRIDES, "per-loop")
    assert "divui" in str(written)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


def test_invariant_is_not_taken_for_given_where_it_is_to_be_shown() -> None:
    """That %h is at most 1000 behind the inner loop follows from that in front of it, not the other way round."""
    program = sem_figures.program(
        "p",
        """scf.for %a = %c0 to %n step %c1 {
          sem.inst @P engine "e0" cost 1
          scf.for %b = %c0 to %n step %c1 {
            sem.inst @C engine "e1" cost 1 after [@P offset 0]
          }
        }""",
    )
    producer = """scf.for %a = %c0 to %n step %c1 {
      sem.iteration "a" depth 1
      sem.inst @P engine "e0" cost 1 {signal = "s"}
    }"""
    consumer = """%many = arith.constant 1000 : i32
    %z = scf.for %a = %c0 to %n step %c1 iter_args(%r = %zero) -> (i32) {
      sem.iteration "a" depth 1
      %r1 = arith.addi %r, %one : i32
      %q = scf.for %b = %c0 to %n step %c1 iter_args(%h = %r1) -> (i32) {
        sem.iteration "b" depth 2
        %few = arith.cmpi ule, %h, %many : i32
        %t = arith.select %few, %h, %zero : i32
        sem.wait "s" >= %t : i32
        sem.inst @C engine "e1" cost 1 after [@P offset 0]
        scf.yield %h : i32
      }
      scf.yield %r1 : i32
    }"""
    refuted(prove(program, streams(stream("e0", producer), stream("e1", consumer))), "@C", "1001", "too early")


def body(text: str) -> str:
    """A program whose arguments are small."""
    head = "sem.program @p(%n : index, %m : index) attributes {maxima = {n = 1000 : index, m = 1000 : index}} {"
    return f"{head}\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n{text}\n}}"


# Both loops of an engine signal one semaphore, which counts on from the first in the second.
CONSECUTIVE = """scf.for %a = %c0 to %n step %c1 {
  sem.inst @P engine "e0" cost 1
  sem.inst @D engine "e1" cost 1 after [@P offset 1]
}
scf.for %b = %c0 to %m step %c1 {
  sem.inst @Q engine "e0" cost 1
  sem.inst @C engine "e1" cost 1 after [@Q offset 2, @P offset 0]
}"""


@pytest.mark.parametrize("counters", ["ui32", "si32"])
@pytest.mark.parametrize("text", [CONSECUTIVE, f"scf.for %x = %c0 to %n step %c1 {{\n{CONSECUTIVE}\n}}"])
def test_offset_behind_what_another_loop_signalled(text: str, counters: str) -> None:
    program, written, told = allocated(body(text), "per-engine", counters)
    assert '"e0.all"' in str(written)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


# A run of B after the first begins with what an earlier one left in the history of C.
CLAMPED = body("""scf.for %a = %c0 to %n step %c1 {
  scf.for %b = %c0 to %m step %c1 {
    scf.for %c = %c0 to %b step %c1 {
      sem.inst @P engine "e0" cost 1 after [@P distance [0, 1, -1]]
    }
  }
}""").replace("1000", "100")


def test_part_of_an_earlier_iteration_in_a_loop_that_runs_again() -> None:
    program, written, told = allocated(CLAMPED, "per-loop")
    assert told["rescued"] == []
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


# A loop that the reader has no part in stands between the use of the value of the last iteration and the next value.
CARRIED = body("""%z = scf.for %a = %c0 to %n step %c1 iter_args(%x = %c1) -> (index) {
  scf.for %b = %c0 to %x step %c1 {
    sem.inst @I engine "e1" cost 1
  }
  scf.for %c = %c0 to %n step %c1 {
    sem.inst @J engine "e2" cost 1
  }
  %v = sem.value @V engine "e0" cost 1 : index
  scf.yield %v : index
}""")


@pytest.mark.parametrize("kind", ["per-loop", "per-instruction", "per-engine"])
def test_read_of_a_value_that_is_carried_on(kind: str) -> None:
    program, written, told = allocated(CARRIED, kind)
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures
    read = next(op for op in written.streams["e1"].walk() if isinstance(op, ReadOp))
    wait = read.prev_op
    assert isinstance(wait, WaitOp)
    wait.detach()
    wait.erase()
    refuted(prove_waits(program, written, **told), "@V.e1", "too early")


# A barrier stands behind a loop that the engine of C does not run.
BARRIER = """scf.for %x = %c0 to %n step %c1 {
  scf.for %a = %c0 to %n step %c1 {
    sem.inst @P engine "e0" cost 1
  }
  scf.for %b = %c0 to %m step %c1 {
    sem.inst @C engine "e1" cost 1 after [@P DISTANCE]
  } {semaphores = "barrier"}
}"""


@pytest.mark.parametrize("distance", ["offset 0", "distance [1]", "distance [2]"])
def test_barrier_behind_a_loop_that_the_engine_does_not_run(distance: str) -> None:
    program, written, told = allocated(body(BARRIER.replace("DISTANCE", distance)), "per-loop")
    assert '"a"' not in str(written.streams["e1"])
    check = prove_waits(program, written, **told)
    assert not check.failed, check.failures


@pytest.mark.parametrize("lost", [True, False])
def test_barrier_in_front_of_that_loop(lost: bool) -> None:
    program, written, told = allocated(body(BARRIER.replace("DISTANCE", "offset 0")), "per-loop")
    for stream_of in written.streams.values():
        barrier = next(op for op in stream_of.walk() if isinstance(op, BarrierOp))
        around = barrier.parent
        barrier.detach()
        if not lost:
            begins = next(op for op in around.ops if isinstance(op, IterationOp))
            around.insert_op_after(barrier, begins)
    check = prove_waits(program, written, **told)
    refuted(check, "@C", "[1, 1]", "too early")
