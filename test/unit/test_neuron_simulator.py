"""The simulator of ISA text: times by hand, waits, handshakes, deadlocks, faults."""

import re
from dataclasses import replace

import pytest

from mpkc.runtime.bindings import parse_bindings
from mpkc.runtime.machine import Limits, Machine, MachineError, machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result, Span, TripCounts, Usage, simulate

GENERIC = machine("generic")  # register 20, wait 10, signal 70, barrier 600

FIGURE_1 = """
.program figure_1
.argument n : index
.semaphore 0 I3

.engine e0 registers 0
  INST @I0 cost=100
  INST @I5 cost=100

.engine e1 registers 2
  INST @I1 cost=100
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r1 = argument(n)
L0:
  COMPARE_BRANCH r0 ge r1 -> L1
  .iteration A 1
  INST @I3 S[0]++@complete cost=700 depth=1
  REGISTER_ALU r0 = r0 add 1
  COMPARE_BRANCH always -> L0
L1:

.engine e2 registers 4
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r1 = argument(n)
L0:
  COMPARE_BRANCH r0 ge r1 -> L1
  .iteration A 1
  REGISTER_ALU r0 = r0 add 1
  REGISTER_ALU r2 = r0 is_gt 2
  REGISTER_ALU r3 = r0 sub 2
  REGISTER_ALU r3 = r3 mult r2
  INST @I2 S[0]>=r3 cost=100 after=[I3 [2]] depth=1
  COMPARE_BRANCH always -> L0
L1:
  INST @I4 cost=100
"""


def run(body: str, *, on: Machine = GENERIC, bindings: str = "", header: str = "", **options: bool | int) -> Result:
    """Simulate a program of this body with three semaphores a, b and c."""
    text = f".program p\n{header}\n.semaphore 0 a\n.semaphore 1 b\n.semaphore 2 c\n{body}"
    return simulate(read_isa(text), on, parse_bindings(bindings), **options)


def span(result: Result, name: str, nth: int = 0) -> Span:
    found = [each for spans in result.spans.values() for each in spans if each.name == name]
    return found[nth]


def test_figure_1() -> None:
    result = simulate(read_isa(FIGURE_1), GENERIC, {"n": 3}, explain=True, timeline=True)
    assert result.ok
    assert [wait.threshold for wait in result.waits] == [None, None, 1]
    assert [wait.iteration for wait in result.waits] == [(1,), (2,), (3,)]
    end_of_loop = max(span(result, "I3", 2).retire, span(result, "I2", 2).retire)
    assert span(result, "I0").retire < span(result, "I5").retire == 200 < end_of_loop
    # e1: 100, two moves, a branch; e2: each iteration takes a branch, four operations and a wait before it issues.
    assert span(result, "I3").issue == 160
    assert [span(result, "I2", n).issue for n in range(2)] == [150, 370 + 10]
    third = span(result, "I2", 2)
    assert (third.arrival, third.issue) == (380 + 100 + 20 + 20 + 80, 160 + 700 + 70)  # the first I3 has been seen
    assert (third.semaphore, third.cause) == ("I3", ("e1", 1))
    assert result.time_ns == 160 + 3 * (700 + 60)  # I3, and the end of its iteration
    assert result.engines["e0"] == Usage(busy=200, wait=0, control=0)
    assert result.engines["e1"] == Usage(busy=100 + 3 * 700, wait=0, control=2 * 20 + 4 * 20 + 3 * 40)
    assert result.engines["e2"].wait == third.issue - third.arrival - 10
    assert simulate(read_isa(FIGURE_1), GENERIC, {"n": 3}, values=False).time_ns == result.time_ns


def test_a_blocked_wait_ends_when_the_update_is_seen() -> None:
    result = run(
        ".engine e0 registers 0\nINST @P S[0]++@complete cost=50 latency=500\n"
        ".engine e1 registers 0\nINST @C S[0]>=1 cost=40\nINST @D S[0]>=1 cost=40\n",
        timeline=True,
        explain=True,
    )
    c, d = span(result, "C"), span(result, "D")
    assert (c.arrival, c.issue, c.free, c.retire) == (0, 570, 610, 610)
    assert (c.semaphore, c.cause) == ("a", ("e0", 0))
    assert (d.arrival, d.issue, d.semaphore) == (610, 620, None)  # a satisfied wait
    assert result.time_ns == 660
    assert result.engines["e1"] == Usage(busy=80, wait=560, control=20)


def test_issue_is_pipelined_and_retirement_is_in_order() -> None:
    result = run(
        ".engine e registers 0\nINST @A cost=10 latency=300\nINST @B S[0]++@complete cost=10 latency=20\n"
        "NOP @M S[1]++@complete\nINST @C S[0]>=1 cost=10\nINST @D S[1]>=1 cost=10\nDRAIN\n",
        timeline=True,
    )
    a, b, m, c, d = (span(result, name) for name in "ABMCD")
    assert (a.issue, a.retire, b.issue, b.retire) == (0, 300, 10, 300)
    assert (m.issue, m.free, m.retire) == (20, 40, 300)
    assert c.issue == 370  # an engine sees its own updates no sooner than others do
    assert (d.arrival, d.issue) == (380, 390)
    assert result.time_ns == 420  # DRAIN takes a register operation
    assert result.engines["e"].wait == pytest.approx(370 - 40 - 10)


def test_handshakes_start_from_the_last_engine() -> None:
    result = run(
        ".engine e0 registers 0\nINST @A S[0]++@complete cost=10 latency=400\nDRAIN\nHANDSHAKE\nRESET S[0]\nHANDSHAKE\n"
        "INST @B cost=10\n"
        ".engine e1 registers 0\nDRAIN\nHANDSHAKE\nHANDSHAKE\nINST @C S[0]>=0 cost=10\n",
        timeline=True,
    )
    assert span(result, "B").issue == 420 + 600 + 20 + 600
    assert span(result, "C").issue == 420 + 600 + 20 + 600 + 10
    assert [each.arrival for each in result.handshakes["e1"]] == [20, 1020]
    assert result.engines["e1"] == Usage(busy=10, wait=400 + 20, control=20 + 600 + 600 + 10)


def test_a_reset_starts_counting_anew() -> None:
    barrier = "DRAIN\nHANDSHAKE\nRESET S[0]\nHANDSHAKE\n"
    other = "DRAIN\nHANDSHAKE\nHANDSHAKE\n"
    body = (
        f".engine e0 registers 0\nINST @A S[0]++@complete cost=10\n{barrier}INST @B S[0]++@complete cost=500\n"
        f".engine e1 registers 0\n{other}INST @C S[0]>={{}} cost=10\n"
    )
    assert span(run(body.format(1), timeline=True), "C").cause == ("e0", 1)
    assert run(body.format(2)).deadlock is not None
    assert run(body.format(2).replace("RESET S[0]", "RESET S[1]")).deadlock is None


@pytest.mark.parametrize(
    ("counters", "updates", "threshold", "passes"),
    [
        ("ui8", 255, 255, True),
        ("ui8", 256, 255, False),  # 256 is 0
        ("ui8", 256, 1, False),
        ("ui8", 257, 1, True),
        ("ui8", 0, 256, True),  # as the counters compare it, 0
        ("si8", 127, 127, True),
        ("si8", 128, 127, False),  # -128
        ("si8", 0, -1, True),
        ("ui8", 0, -1, False),  # 255
    ],
)
def test_counters_wrap(counters: str, updates: int, threshold: int, passes: bool) -> None:
    # All updates come at one time, so that no count in between is seen.
    update = f"INST @P S[0]+={updates}@complete cost=1\n" if updates else ""
    body = f".engine e0 registers 0\n{update}.engine e1 registers 0\nNOP S[0]>={threshold}\n"
    assert (run(body, header=f".counters {counters}").deadlock is None) == passes


def test_values_are_read_in_order_by_every_engine() -> None:
    body = (
        ".engine e0 registers 1\n"
        "VALUE @V S[0]++@complete cost=10 latency=90\nNOP S[1]>=1\nVALUE @V S[0]++@complete cost=10\n"
        ".engine e1 registers 2\n"
        "READ S[0]>=1 S[1]++@complete dst=r0 src=@V\n"
        "COMPARE_BRANCH r0 eq 7 -> L\nINST @WRONG cost=1\nL:\n"
        "READ S[0]>=2 dst=r1 src=@V\nCOMPARE_BRANCH r1 eq -2 -> M\nINST @WRONG cost=1\nM:\n"
    )
    header = ".value V : index"
    result = run(body, bindings="V=7,-2", header=header)
    assert result.ok
    assert [each.name for each in result.executions] == ["V", "V"]
    assert [each.name for each in run(body, bindings="V=7,-1", header=header).executions] == ["V", "V", "WRONG"]
    assert [each.name for each in run(body, bindings="V=7,-2,e1:V=1,2", header=header).executions].count("WRONG") == 2
    short = run(body, bindings="V=7", header=header)
    assert (
        short.fault
        == "e0, ISA line 9: @V runs for the 2nd time and has 1 value: bind one for each execution, V=1,2,..."
    )
    early = run(body.replace("READ S[0]>=1", "READ"), bindings="V=7,-2", header=header)
    assert early.fault == "e1, ISA line 11: reads @V before anything has written it"


def test_a_deadlock_names_all_that_it_needs() -> None:
    result = simulate(read_isa(FIGURE_1), GENERIC, parse_bindings("n=5,e1:n=2"))
    assert result.deadlock is not None
    (blocked,) = result.deadlock.blocked
    assert (blocked.engine, blocked.instruction, blocked.iteration) == ("e2", "I2", (5,))
    assert (blocked.semaphore, blocked.value, blocked.threshold) == ("I3", 2, 3)
    assert (blocked.by, blocked.producers, blocked.ended) == ("e1", ("I3",), True)
    assert FIGURE_1.splitlines()[blocked.line - 1].startswith("  INST @I2")
    assert result.deadlock.loops == (TripCounts("I3", "A", {"e1": 2, "e2": 5}),)
    assert str(result.deadlock) == (
        "deadlock\n"
        "e2: I2 in iteration [5] (ISA line 32) waits for I3 >= 3, which is 2; I3 on e1 updates it, and e1 has ended\n"
        'I3: the loop "A" has run 2 on e1, 5 on e2'
    )


def test_a_cycle_of_waits_is_a_deadlock_of_both() -> None:
    result = run(
        ".engine e0 registers 0\nNOP S[1]>=1\nINST @P S[0]++@complete cost=1\n"
        ".engine e1 registers 0\nNOP S[0]>=1\nINST @Q S[1]++@complete cost=1\n"
    )
    assert result.deadlock is not None
    assert [(each.engine, each.ended) for each in result.deadlock.blocked] == [("e0", False), ("e1", False)]
    assert result.deadlock.loops == ()


def test_a_wait_for_what_nobody_updates_is_a_deadlock() -> None:
    result = run(".engine e0 registers 0\nNOP S[1]>=1\n")
    told = "e0: NOP (ISA line 7) waits for b >= 1, which is 0; no instruction updates it"
    assert str(result.deadlock) == f"deadlock\n{told}"


def test_a_handshake_that_is_not_met_is_a_deadlock() -> None:
    result = run(".engine e0 registers 0\nHANDSHAKE\nHANDSHAKE\n.engine e1 registers 0\nHANDSHAKE\n")
    assert str(result.deadlock) == "deadlock\ne0: is at its handshake 2 (ISA line 8), without e1"


def test_a_handshake_of_some_engines_leaves_the_others_alone() -> None:
    met = "HANDSHAKE e0 e2\n"
    body = f".engine e0 registers 0\n{met}INST @A cost=10\n.engine e1 registers 0\nINST @B cost=10\n"
    result = run(f"{body}.engine e2 registers 0\nDRAIN\n{met}", timeline=True)
    assert result.deadlock is None
    assert span(result, "A").issue == 20 + 600
    assert span(result, "B").issue == 0
    stuck = run(f"{body}.engine e2 registers 0\n").deadlock
    assert str(stuck) == "deadlock\ne0: is at its handshake 1 (ISA line 7), without e2"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("REGISTER_ALU r0 = r1 div r0", "e, ISA line 7: integer division or modulo by zero"),
        ("REGISTER_ALU r0 = r1 shl 32 : i32", "e, ISA line 7: a shift by 32 of an integer of 32 bits"),
        ("L:\nCOMPARE_BRANCH always -> L", "e, ISA line 8: the engines executed 1000 instructions: the program seems"),
        (
            "REGISTER_MOVE r0 = 1\nMEMSET dst=t@r0[8]:[1]:f32 value=0.0:f32",
            "e, ISA line 8: t@1[8]:[1] is not within its 8",
        ),
    ],
)
def test_faults_name_the_line(body: str, fault: str) -> None:
    result = run(f".engine e registers 2\n{body}\n", header=".buffer t : near f32[8]", limit=1000)
    assert result.fault is not None
    assert result.fault.startswith(fault)
    assert not result.ok


@pytest.mark.parametrize(
    ("body", "bindings", "message"),
    [
        ("", "", "the argument n has no value: bind it, n=VALUE"),
        ("", "n=1,2", "the argument n has 2 values: bind one"),
        ("", "n=true", "n is of type index and cannot be true: use an integer"),
        ("", "n=1,k=2", "k is an i1 and cannot be 2: use true or false"),
        ("", "n=1,m=1", "'m' is neither an argument nor a value of the program; there are: n, k"),
        ("", "n=1,k=true,e9:n=1", "the program has no engine e9; there are: e"),
    ],
)
def test_bindings_are_checked(body: str, bindings: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        run(f".engine e registers 0\n{body}", bindings=bindings, header=".argument n : index\n.argument k : i1")


def test_machines_are_checked() -> None:
    small = replace(GENERIC, engines=("e",), limits=Limits(registers=1, semaphores=2), instructions={})
    with pytest.raises(ValueError, match="generic has no engine f; there are: e"):
        run(".engine f registers 0", on=small)
    with pytest.raises(ValueError, match="engine e uses 2 registers, and generic has 1"):
        run(".engine e registers 2", on=small)
    with pytest.raises(ValueError, match="the program uses 3 semaphores, and generic has 2"):
        run(".engine e registers 1", on=small)
    fill = ".engine e registers 0\nMEMSET dst=t@0[8]:[1]:f32 value=0.0:f32"
    with pytest.raises(MachineError, match=r"generic: instructions\.fill: missing: it says what tile\.fill costs"):
        run(fill, on=replace(GENERIC, instructions={}), header=".buffer t : near f32[8]")


def test_results_do_not_depend_on_the_order_of_engines() -> None:
    header, *engines = re.split(r"(?=^\.engine)", FIGURE_1, flags=re.M)
    backwards = read_isa("".join([header, *reversed(engines)]))
    forwards = read_isa(FIGURE_1)
    for n in range(6):
        a, b = (simulate(program, GENERIC, {"n": n}) for program in (forwards, backwards))
        assert (a.time_ns, a.engines) == (b.time_ns, b.engines)


def test_instructions_are_counted() -> None:
    result = simulate(read_isa(FIGURE_1), GENERIC, {"n": 3})
    assert result.instructions == 2 + (3 + 3 * 4 + 1) + (2 + 3 * 7 + 2)
