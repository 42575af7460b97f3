"""Streams that carry thresholds wait for what they waited for, with no more arithmetic in their loops."""

from random import Random

import pytest
from semaphore_fuzz import bindings_of_runs, make_program, out_of_scope
from wait_proofs import only
from xdsl.dialects import arith, scf

from mpkc.dialects.sem_streams import StreamsOp
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_carry_thresholds import carry_thresholds
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.runtime.verify.product import Product

PROGRAMS = 50


def cleaned(streams: StreamsOp, carried: bool) -> StreamsOp:
    simplify(streams)
    if carried:
        carry_thresholds(streams)
        simplify(streams)
    drop_counters(streams)
    return streams


def arithmetic(streams: StreamsOp) -> int:
    """The operations of all streams, inner loops counting for more."""

    def weight(op) -> int:
        loops = 0
        while (op := op.parent_op()) is not None:
            loops += isinstance(op, scf.ForOp | scf.WhileOp)
        return 8**loops

    kinds = (arith.AddiOp, arith.MuliOp)
    return sum(weight(op) for op in streams.walk() if isinstance(op, kinds))


@pytest.mark.parametrize("kind", ["per-loop", "per-engine"])
def test_random_programs_wait_for_the_same(kind: str) -> None:
    changed = fewer = 0
    for seed in range(PROGRAMS):
        rng = Random(seed)
        made = make_program(rng)
        product = Product(made.op, bindings=bindings_of_runs(rng, made, 4))
        shifted = seed % 2 * 3
        before, after = (
            cleaned(allocate(made.op, kind, "si32", shifted=shifted).streams, each) for each in (False, True)
        )
        assert product.observed(after) == product.observed(before), seed
        assert out_of_scope(after) is None, seed
        assert arithmetic(after) <= arithmetic(before), seed
        changed += str(after) != str(before)
        fewer += arithmetic(after) < arithmetic(before)
    assert changed >= fewer >= 3


HISTORY = """
sem.streams @p(%n : index) counters ui32 semaphores ["s"] {
  sem.stream "e0" {
    sem.inst @P engine "e0" cost 1 {signal = "s"}
  }
  sem.stream "e1" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %four = arith.constant 4 : i32
    %less = arith.constant -3 : i32
    %ends:3 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %zero, %back = %zero, %far = %zero) -> (i32, i32, i32) {
      sem.iteration "i" depth 1
      %more = arith.addi %r, %one : i32
      %scaled = arith.muli %far, %four : i32
      %threshold = arith.addi %scaled, %less : i32
      sem.wait "s" >= %threshold : i32 for ["P"]
      sem.inst @C engine "e1" cost 1
      scf.yield %more, %r, %back : i32, i32, i32
    }
    %last = arith.muli %ends#0, %four : i32
    sem.wait "s" >= %last : i32 for ["P"]
    sem.inst @D engine "e1" cost 1
  }
}
"""


def test_history_of_a_threshold_is_one_of_thresholds() -> None:
    streams = cleaned(only(HISTORY), True)
    loop = next(op for op in streams.walk() if isinstance(op, scf.ForOp))
    assert not any(isinstance(op, arith.MuliOp) for op in loop.walk())
    assert len(loop.results) == 3  # of four times as much, and three less
