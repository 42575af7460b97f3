"""The race detector: every planted race is found, with both sides and the elements, and nothing else is."""

import re

import numpy as np
import pytest

from mpkc.engines import fault_of
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Race, Result, simulate

GENERIC = machine("generic")

PIPELINE = """.program square
.buffer x : far f32[?,32]
.buffer y : far f32[?,32]
.buffer a : near f32[2,8,32]
.buffer b : near f32[2,8,32]
.semaphore 0 load
.semaphore 1 square
.semaphore 2 store

.engine load registers 5
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r1 = size(x, 0)
L0:
  COMPARE_BRANCH r0 ge r1 -> L1
  .iteration i 1
  REGISTER_ALU r2 = r0 floordiv 8
  REGISTER_ALU r3 = r2 sub 1
  REGISTER_ALU r3 = r3 max 0
  REGISTER_ALU r4 = r2 rem 2
  REGISTER_ALU r4 = r4 mult 256
  REGISTER_ALU r2 = r0 mult 32
  DMA_COPY @Load S[1]>=r3 S[0]++@complete dst=a@r4[8,32]:[32,1]:f32 src=x@r2[8,32]:[32,1]:f32 depth=1
  REGISTER_ALU r0 = r0 add 8
  COMPARE_BRANCH always -> L0
L1:

.engine vector registers 6
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r1 = size(x, 0)
L0:
  COMPARE_BRANCH r0 ge r1 -> L1
  .iteration i 1
  REGISTER_ALU r2 = r0 floordiv 8
  REGISTER_ALU r3 = r2 sub 1
  REGISTER_ALU r3 = r3 max 0
  REGISTER_ALU r4 = r2 rem 2
  REGISTER_ALU r4 = r4 mult 256
  REGISTER_ALU r5 = r2 add 1
  NOP S[2]>=r3 depth=1
  ACTIVATE @Square S[0]>=r5 S[1]++@complete op=square dst=b@r4[8,32]:[32,1]:f32 src=a@r4[8,32]:[32,1]:f32 depth=1
  REGISTER_ALU r0 = r0 add 8
  COMPARE_BRANCH always -> L0
L1:

.engine store registers 5
  REGISTER_MOVE r0 = 0
  REGISTER_MOVE r1 = size(x, 0)
L0:
  COMPARE_BRANCH r0 ge r1 -> L1
  .iteration i 1
  REGISTER_ALU r2 = r0 floordiv 8
  REGISTER_ALU r4 = r2 rem 2
  REGISTER_ALU r4 = r4 mult 256
  REGISTER_ALU r3 = r2 add 1
  REGISTER_ALU r2 = r0 mult 32
  DMA_COPY @Store S[1]>=r3 S[2]++@complete dst=y@r2[8,32]:[32,1]:f32 src=b@r4[8,32]:[32,1]:f32 depth=1
  REGISTER_ALU r0 = r0 add 8
  COMPARE_BRANCH always -> L0
L1:
"""
X = np.arange(6 * 8 * 32, dtype=np.float32).reshape(48, 32)


def pipeline(text: str = PIPELINE, seed: int | None = None) -> Result:
    return simulate(read_isa(text), GENERIC, {}, {"x": X, "y": np.zeros_like(X)}, races=True, seed=seed)


def sides(race: Race) -> tuple[str, str, str, str]:
    """The instruction and what it does, on both sides."""
    a, b = race.earlier, race.later
    return (a.instruction, "write" if a.write else "read", b.instruction, "write" if b.write else "read")


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_pipeline_that_waits_for_all_that_it_must_has_no_race(seed: int | None) -> None:
    result = pipeline(seed=seed)
    assert result.ok
    np.testing.assert_array_equal(result.buffers["y"], X**2)


SLOT = "  REGISTER_ALU r4 = r2 rem 2\n  REGISTER_ALU r4 = r4 mult 256\n"
AHEAD = f"r3 = r2 sub 1\n  REGISTER_ALU r3 = r3 max 0\n{SLOT}  REGISTER_ALU r2"
PLANTED: list[tuple[str, str, tuple[str, str, str, str], str]] = [
    ("S[1]>=r3 S[0]++", "S[0]++", ("Load", "write", "Load", "write"), "a"),  # no wait for who read the slot
    ("S[1]>=r3 S[0]++", "S[0]++", ("Square", "read", "Load", "write"), "a"),
    (AHEAD, AHEAD.replace("sub 1", "sub 2"), ("Square", "read", "Load", "write"), "a"),  # one iteration too early
    ("NOP S[2]>=r3 depth=1\n", "", ("Store", "read", "Square", "write"), "b"),
    ("S[0]>=r5 S[1]++", "S[1]++", ("Load", "write", "Square", "read"), "a"),
    ("r5 = r2 add 1", "r5 = r2 add 0", ("Load", "write", "Square", "read"), "a"),
    ("r3 = r2 add 1", "r3 = r2 add 0", ("Square", "write", "Store", "read"), "b"),
    # Slots that overlap:
    (
        SLOT + "  REGISTER_ALU r5",
        SLOT.replace("256", "1") + "  REGISTER_ALU r5",
        ("Square", "read", "Load", "write"),
        "a",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected", "buffer"), PLANTED)
@pytest.mark.parametrize("seed", [None, 5])
def test_a_planted_race_is_found(
    old: str, new: str, expected: tuple[str, str, str, str], buffer: str, seed: int | None
) -> None:
    assert old in PIPELINE
    found = pipeline(PIPELINE.replace(old, new, 1), seed)
    assert not found.ok
    either_way = {expected, (*expected[2:], *expected[:2])}
    assert any(sides(race) in either_way and race.buffer == buffer for race in found.races), list(map(str, found.races))


def test_a_race_names_both_sides_and_the_elements() -> None:
    text = """.program p
.buffer t : near f32[64]
.engine e0 registers 0
MEMSET @A dst=t@8[4,4]:[8,1]:f32 value=1.0:f32
.engine e1 registers 0
.iteration loop 1
MEMSET @B dst=t@12[3,4]:[8,2]:f32 value=1.0:f32 depth=1
"""
    (race,) = simulate(read_isa(text), GENERIC, races=True).races
    # A writes 8..11, 16..19, 24..27, 32..35; B 12, 14, 16, 18, 20, 22, 24, 26, 28, ...
    assert (race.buffer, race.first_element, race.last_element, race.count) == ("t", 16, 34, 1)
    assert str(race) == (
        "race on t[16..34]: nothing orders the write by A on e0 (ISA line 4) and the write by B in iteration [1] on e1 "
        "(ISA line 7); 1 time"
    )


def fills(*lines: str) -> tuple[Race, ...]:
    """The races of an engine e and, behind `--`, an engine f, that fill one tile."""
    text = ".program p\n.buffer t : near f32[8]\n.semaphore 0 s\n.semaphore 1 u\n.engine e registers 0\n"
    for line in lines:
        text += ".engine f registers 0\n" if line == "--" else line.replace("FILL", "MEMSET") + "\n"
    text = re.sub("(MEMSET.*)", r"\1 dst=t@0[8]:[1]:f32 value=1.0:f32", text)
    return simulate(read_isa(text), GENERIC, races=True).races


ORDERED = [
    ["FILL S[0]++@complete", "FILL S[0]>=1"],  # by a wait of its own
    ["FILL", "DRAIN", "FILL"],
    ["FILL", "NOP S[0]++@complete", "FILL S[0]>=1"],  # retirement is in order
    ["FILL S[0]++@complete", "--", "FILL S[0]>=1"],
    ["FILL", "NOP S[0]++@complete", "--", "NOP S[0]>=1", "FILL"],  # issue is in order
    ["FILL S[0]++@complete", "NOP S[1]>=1", "FILL", "--", "NOP S[0]>=1 S[1]++@complete"],  # by way of the other engine
    ["FILL", "DRAIN", "HANDSHAKE", "--", "DRAIN", "HANDSHAKE", "FILL"],
    ["FILL S[0]++@complete", "DRAIN", "HANDSHAKE", "RESET S[0]", "HANDSHAKE", "FILL S[0]++@complete"]
    + ["--", "HANDSHAKE", "HANDSHAKE", "FILL S[0]>=1"],
]
UNORDERED = [
    ["FILL", "FILL"],  # commits overlap
    ["FILL S[0]++@complete", "FILL S[0]>=0"],
    ["FILL", "--", "FILL"],
    ["FILL", "NOP S[0]++@complete", "FILL", "--", "FILL S[0]>=1"],  # with the second one
    ["FILL S[0]++@complete", "--", "NOP S[0]>=1", "DRAIN", "--"][:-1] + ["NOP S[1]++@complete", "FILL", "FILL"],
    ["FILL", "HANDSHAKE", "--", "HANDSHAKE", "FILL"],  # a handshake does not drain
    ["FILL S[0]++@complete", "HANDSHAKE", "RESET S[0]", "HANDSHAKE", "FILL S[0]++@complete"]  # a lost drain
    + ["--", "HANDSHAKE", "HANDSHAKE", "FILL S[0]>=1"],
]


@pytest.mark.parametrize("lines", ORDERED, ids=map(", ".join, ORDERED))
def test_what_is_ordered_does_not_race(lines: list[str]) -> None:
    assert fills(*lines) == ()


@pytest.mark.parametrize("lines", UNORDERED, ids=map(", ".join, UNORDERED))
def test_what_is_not_ordered_races(lines: list[str]) -> None:
    assert fills(*lines)


def test_two_readers_do_not_race_and_each_races_with_a_writer() -> None:
    read = "TENSOR_COPY @R{n} dst=u@{n}[1]:[1]:f32 src=t@0[1]:[1]:f32\n"
    text = ".program p\n.buffer t : near f32[8]\n.buffer u : near f32[8]\n" + "".join(
        f".engine e{n} registers 0\n{read.format(n=n)}" for n in range(3)
    )
    assert simulate(read_isa(text), GENERIC, races=True).races == ()
    text += ".engine w registers 0\nMEMSET @W dst=t@0[8]:[1]:f32 value=0.0:f32\n"
    found = simulate(read_isa(text), GENERIC, races=True).races
    assert {sides(race) for race in found} == {(f"R{n}", "read", "W", "write") for n in range(3)}


def test_rows_race_where_they_are_the_same() -> None:
    text = """.program p
.buffer x : far f32[4,2]
.buffer ids : far i32[4]
.buffer r : near i32[4]
.buffer t : near f32[2,2]
.engine e registers 0
DMA_COPY dst=r@0[4]:[1]:i32 src=ids@0[4]:[1]:i32
MEMSET dst=t@0[2,2]:[2,1]:f32 value=1.0:f32
DRAIN
HANDSHAKE
DMA_SCATTER @A dst=x@0[4,2]:[2,1]:f32 rows=r@0[2]:[1]:i32 src=t@0[2,2]:[2,1]:f32
.engine f registers 0
HANDSHAKE
DMA_SCATTER @B dst=x@0[4,2]:[2,1]:f32 rows=r@2[2]:[1]:i32 src=t@0[2,2]:[2,1]:f32
"""
    x = np.zeros((4, 2), np.float32)

    def races(*ids: int) -> tuple[Race, ...]:
        inputs = {"x": x, "ids": np.array(ids, np.int32)}
        return simulate(read_isa(text), GENERIC, {}, inputs, races=True).races

    assert races(0, 1, 2, 3) == ()
    (race,) = races(0, 3, 2, 3)
    assert (race.buffer, race.first_element, race.last_element) == ("x", 6, 7)


def test_mailboxes_are_memory() -> None:
    text = """.program p
.value V : index
.semaphore 0 v
.semaphore 1 read
.engine e registers 0
VALUE @V S[0]++@complete cost=10
VALUE @V S[1]>=1 S[0]++@complete cost=10
.engine f registers 1
READ @First S[0]>=1 S[1]++@complete dst=r0 src=@V
READ @Second S[0]>=2 dst=r0 src=@V
"""
    assert simulate(read_isa(text), GENERIC, {"V": [1, 2]}, races=True).ok
    overwritten = text.replace("VALUE @V S[1]>=1", "VALUE @V S[0]>=1")
    found = simulate(read_isa(overwritten), GENERIC, {"V": [1, 2]}, races=True).races
    assert {sides(race) for race in found} & {("First", "read", "V", "write"), ("V", "write", "First", "read")}
    assert all(race.buffer == "V" for race in found)
    unread = ".program p\n.value V : index\n.engine e registers 0\n" + "VALUE @V cost=10 latency=90\n" * 2
    assert simulate(read_isa(unread), GENERIC, {"V": [1, 2]}, races=True).ok  # written in the order of retirement


def test_a_fault_does_not_hide_the_race_before_it() -> None:
    racing = PIPELINE.replace("NOP S[2]>=r3 depth=1\n", "", 1)
    beyond = racing.replace("r2 = r0 mult 32\n  DMA_COPY @Store", "r2 = r0 mult 40\n  DMA_COPY @Store", 1)
    told = fault_of(pipeline(beyond))
    assert told is not None
    assert re.search(r"store, ISA line \d+: .*; a race came before: race on b\[", told), told
    assert fault_of(pipeline(racing)) is None


def test_races_need_values() -> None:
    with pytest.raises(ValueError, match="races are looked for in a simulation with values"):
        simulate(read_isa(".program p\n"), GENERIC, values=False, races=True)
