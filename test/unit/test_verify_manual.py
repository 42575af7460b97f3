"""Streams that a person wrote: waits may be longer than is owed, and loops of constant trips need no counting."""

import pytest

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.runtime.machine import Machine, machine
from mpkc.semaphores import read_streams
from mpkc.verification import verify_compiled

GENERIC = machine("generic")
PROGRAM = """sem.program @p() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c2 step %c1 {
    sem.inst @First engine "e0" cost 64
    scf.for %j = %c0 to %c3 step %c1 {
      sem.inst @Inner engine "e0" cost 64
    }
    sem.inst @Last engine "e0" cost 64
    sem.inst @Each engine "e1" cost 64 after [@Inner offset 0, @First offset 0]
  }
  sem.inst @All engine "e2" cost 64 after [@Inner offset 0]
}
"""
STREAMS = """sem.streams @p.streams() counters si32 semaphores ["e0"] attributes {{semaphores = "{kind}"}} {{
  sem.stream "e0" {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c2 step %c1 {{
      sem.iteration "i" depth 1
      sem.inst @First engine "e0" cost 64 {{signal = "e0"}}
      scf.for %j = %c0 to %c3 step %c1 {{
        sem.iteration "j" depth 2
        sem.inst @Inner engine "e0" cost 64 {{signal = "e0"}}
      }} {{loop = "j"}}
      sem.inst @Last engine "e0" cost 64 {{signal = "e0"}}
    }} {{loop = "i"}}
  }}
  sem.stream "e1" {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %more = arith.constant {step} : i32
    %at_first = arith.constant {each} : i32
    %end = scf.for %i = %c0 to %c2 step %c1 iter_args(%r = %at_first) -> (i32) {{
      sem.iteration "i" depth 1
      sem.wait "e0" >= %r : i32
      sem.inst @Each engine "e1" cost 64 after [@Inner offset 0, @First offset 0]
      %s = arith.addi %r, %more : i32
      scf.yield %s : i32
    }} {{loop = "i"}}
  }}
  sem.stream "e2" {{
    %n = arith.constant {all} : i32
    sem.wait "e0" >= %n : i32
    sem.inst @All engine "e2" cost 64 after [@Inner offset 0]
  }}
}}
"""


def failures(kind: str = "manual", each: int = 4, step: int = 5, all: int = 9) -> list[str]:
    """What is wrong with streams whose waits are for these counts: of First, three of Inner and Last, twice."""
    return checked(PROGRAM + STREAMS.format(kind=kind, each=each, step=step, all=all))


def checked(text: str, device: Machine = GENERIC) -> list[str]:
    """What is wrong with the streams beside a program."""
    module = parse_module(text, "manual.mlir")
    verify(module)
    program = engine_program(module)
    assert program is not None
    (streams,) = (op for op in module.ops if isinstance(op, StreamsOp))
    found = read_streams(program, streams, "per-loop", device)
    report = verify_compiled(found, True, queues=device.dma.queues if device.dma else ())
    return [f"{check.name}: {failure.message}" for check in report.checks for failure in check.failures]


def test_what_is_owed_exactly() -> None:
    assert failures() == []
    assert failures("per-loop") == []


@pytest.mark.parametrize(("each", "all"), [(5, 9), (4, 10), (5, 10)])
def test_waits_may_be_longer_where_a_person_placed_them(each: int, all: int) -> None:
    assert failures(each=each, all=all) == []
    assert any("issues too late" in each for each in failures("per-loop", each=each, all=all))


@pytest.mark.parametrize(("each", "step", "all"), [(3, 5, 9), (4, 4, 9), (4, 5, 8)])
def test_what_is_too_early_is_refused(each: int, step: int, all: int) -> None:
    for kind in ("manual", "per-loop"):
        found = failures(kind, each=each, step=step, all=all)
        assert any("waits: " in each and "issues too early" in each for each in found), found
        assert any("runs: EARLY" in each for each in found), found


@pytest.mark.parametrize(("each", "step", "all"), [(6, 5, 9), (4, 7, 9), (4, 5, 11)])
def test_what_waits_for_what_comes_later_is_refused(each: int, step: int, all: int) -> None:
    """Also where it is no deadlock, as where an engine can run ahead."""
    assert any("waits: " in each and "issues too late" in each for each in failures(each=each, step=step, all=all))


def test_a_deadlock_is_told() -> None:
    assert any("runs: a deadlock" in each for each in failures(all=11))


AHEAD = """sem.program @p(%n : index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {first}
  scf.for %i = %c0 to %n step %c1 {{
    sem.inst @Each engine "e0" cost 64
    {use}
  }}
}}
"""
AHEAD_STREAMS = """sem.streams @s(%n : index) counters si64 semaphores ["e0"] attributes {{semaphores = "manual"}} {{
  sem.stream "e0" {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    {first}
    scf.for %i = %c0 to %n step %c1 {{
      sem.iteration "i" depth 1
      sem.inst @Each engine "e0" cost 64 {{signal = "e0"}}
    }} {{loop = "i"}}
  }}
  sem.stream "e1" {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = arith.constant {count} : i64
    scf.for %i = %c0 to %n step %c1 {{
      sem.iteration "i" depth 1
      sem.wait "e0" >= %w : i64
      {use}
    }} {{loop = "i"}}
  }}
}}
"""
FIRST, USE = 'sem.inst @First engine "e0" cost 64', 'sem.inst @Use engine "e1" cost 64 after [@First offset 0]'


@pytest.mark.parametrize(("count", "told"), [(1, ""), (0, "issues too early"), (2, "issues too late")])
def test_what_comes_behind_in_a_loop_stands_for_what_runs_once(count: int, told: str) -> None:
    found = checked(AHEAD.format(first=FIRST, use=USE) + AHEAD_STREAMS.format(first=FIRST, use=USE, count=count))
    assert (told in " ".join(found)) if told else found == []


def test_what_comes_before_does_not() -> None:
    last = AHEAD.format(first="", use=USE.replace("offset 0", "offset 1")).replace("  }\n}", f"    {FIRST}\n  }}\n}}")
    streams = AHEAD_STREAMS.format(first="", use=USE.replace("offset 0", "offset 1"), count=1)
    streams = streams.replace('{signal = "e0"}\n    } {loop', f'{{signal = "e0"}}\n      {FIRST}\n    }} {{loop', 1)
    assert any("issues too early: @First" in each for each in checked(last + streams))


TRANSFERS = """sem.program @p() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  sem.inst @A engine "load" cost 64 latency 2000
  scf.for %i = %c0 to %c4 step %c1 {
    sem.inst @B engine "load" cost 64 latency 2000
    sem.inst @Use engine "vector" cost 64 after [@A offset 0, @B offset 0]
  }
}
sem.streams @s() counters si32 semaphores ["load"] attributes {semaphores = "manual"} {
  sem.stream "load" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    sem.inst @A engine "load" cost 64 latency 2000 after [] {signal = "load"}
    scf.for %i = %c0 to %c4 step %c1 {
      sem.iteration "i" depth 1
      %n = arith.addi %i, %c1 : index
      %r = arith.index_cast %n : index to i32
      sem.wait "load" >= %r : i32
      sem.inst @B engine "load" cost 64 latency 2000 after [@B distance [1]] {signal = "load"}
    } {loop = "i"}
  }
  sem.stream "vector" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      sem.iteration "i" depth 1
      %n = arith.addi %i, %c2 : index
      %r = arith.index_cast %n : index to i32
      sem.wait "load" >= %r : i32
      sem.inst @Use engine "vector" cost 64 after [@A offset 0, @B offset 0]
    } {loop = "i"}
  }
}
"""


def test_transfers_of_several_loops_may_share_a_semaphore_one_at_a_time() -> None:
    assert checked(TRANSFERS, machine("trn2")) == []
    early = checked(TRANSFERS.replace("arith.index_cast %n", "arith.index_cast %i", 1), machine("trn2"))
    assert any('@B on "load" in iteration [1] adds its parts to "load" where the 1st' in each for each in early), early
    assert any(
        "give each transfer its own" in each for each in checked(TRANSFERS.replace("manual", "x"), machine("trn2"))
    )


BEHIND = """sem.program @p() {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c2 step %c1 {{
    sem.inst @Before engine "e0" cost 64
    scf.for %j = %c0 to %c3 step %c1 {{
      sem.inst @Inner engine "e0" cost 64
      sem.inst @Own engine "e1" cost 64
    }}
    sem.inst @Use engine "e1" cost 64 after [@Inner offset 0]
  }}
}}
sem.streams @s() counters si32 semaphores ["e0"] attributes {{semaphores = "manual"}} {{
  sem.stream "e0" {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c2 step %c1 {{
      sem.iteration "i" depth 1
      sem.inst @Before engine "e0" cost 64 {{signal = "e0"}}
      scf.for %j = %c0 to %c3 step %c1 {{
        sem.iteration "j" depth 2
        sem.inst @Inner engine "e0" cost 64 {{signal = "e0"}}
      }} {{loop = "j"}}
    }} {{loop = "i"}}
  }}
  sem.stream "e1" {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %four = arith.constant 4 : i32
    %first = arith.constant {count} : i32
    %end = scf.for %i = %c0 to %c2 step %c1 iter_args(%r = %first) -> (i32) {{
      sem.iteration "i" depth 1
      scf.for %j = %c0 to %c3 step %c1 {{
        sem.iteration "j" depth 2
        sem.inst @Own engine "e1" cost 64
      }} {{loop = "j"}}
      sem.wait "e0" >= %r : i32
      sem.inst @Use engine "e1" cost 64 after [@Inner offset 0]
      %s = arith.addi %r, %four : i32
      scf.yield %s : i32
    }} {{loop = "i"}}
  }}
}}
"""


@pytest.mark.parametrize(("count", "told"), [(4, ""), (3, "issues too early"), (5, "issues too late")])
def test_what_the_last_iteration_of_a_loop_counted_is_known_behind_it(count: int, told: str) -> None:
    found = checked(BEHIND.format(count=count))
    assert (told in " ".join(found)) if told else found == []
