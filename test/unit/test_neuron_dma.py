"""DMA queues: a transfer is 16 parts, and a count of 16 says that one is complete only where no other is in flight."""

from dataclasses import replace

import numpy as np
import pytest

from mpkc.runtime.machine import Dma, machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result, simulate
from mpkc.runtime.neuron.simulator.dma import Transfers
from mpkc.runtime.neuron.simulator.semaphores import Release

QUEUES = replace(machine("generic"), dma=Dma(16, ("q", "q2")))
X = np.arange(2 * 16 * 32, dtype=np.float32).reshape(32, 32)

HEADER = """.program two_transfers
.buffer x : far f32[32,32]
.buffer y : far f32[32,32]
.buffer t : near f32[2,16,32]
.semaphore 0 q
.semaphore 1 e
.semaphore 2 q_too
"""
FIRST = "DMA_COPY @T1 S[0]+=16@complete dst=t@0[16,32]:[32,1]:f32 src=x@0[16,32]:[32,1]:f32"
SECOND = "DMA_COPY @T2 {} dst=t@512[16,32]:[32,1]:f32 src=x@512[16,32]:[32,1]:f32"
USE = "DMA_COPY @Use {} dst=y@0[16,32]:[32,1]:f32 src=t@0[16,32]:[32,1]:f32"


def run(queue: list[str], engine: list[str], seed: int | None = None, races: bool = False) -> Result:
    text = "\n".join([HEADER, ".engine q registers 0", *queue, ".engine e registers 0", *engine])
    return simulate(read_isa(text), QUEUES, {}, {"x": X, "y": np.zeros_like(X)}, races=races, seed=seed)


UNSOUND = ([FIRST, SECOND.format("S[0]+=16@complete")], [USE.format("S[0]>=16")])
SOUND = {
    "one transfer": ([FIRST], [USE.format("S[0]>=16")]),
    "both": ([FIRST, SECOND.format("S[0]+=16@complete")], [USE.format("S[0]>=32")]),
    "one after the other": ([FIRST, SECOND.format("S[0]>=16 S[0]+=16@complete")], [USE.format("S[0]>=16")]),
    "semaphores that rotate": ([FIRST, SECOND.format("S[2]+=16@complete")], [USE.format("S[0]>=16")]),
    "the consumer lets the second one go": (
        [FIRST, SECOND.format("S[1]>=1 S[0]+=16@complete")],
        [USE.format("S[0]>=16 S[1]++@complete")],
    ),
}


def test_with_two_in_flight_the_count_of_one_says_nothing() -> None:
    program = read_isa("\n".join([HEADER, ".engine q registers 0", *UNSOUND[0], ".engine e registers 0", *UNSOUND[1]]))
    incomplete = 0
    for seed in range(2000):
        spans = simulate(program, QUEUES, values=False, timeline=True, seed=seed).spans
        incomplete += spans["e"][0].issue < spans["q"][0].retire + QUEUES.costs.signal
    assert incomplete == 2000


def test_then_a_consumer_reads_what_has_not_arrived() -> None:
    found = [run(*UNSOUND, seed=seed).buffers["y"][:16] for seed in range(40)]
    assert any(np.isnan(each).any() for each in found)
    assert not any(np.isnan(each).all() for each in found)
    np.testing.assert_array_equal(run(*UNSOUND).buffers["y"][:16], X[:16])  # parts that happen to arrive in order


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_the_race_detector_finds_it_in_every_schedule(seed: int | None) -> None:
    result = run(*UNSOUND, seed=seed, races=True)
    assert any(race.buffer == "t" and race.earlier.instruction == "T1" for race in result.races)
    count = next(race for race in result.races if race.buffer == "q")
    assert (count.earlier.instruction, count.later.instruction, count.first_element) == ("Use", "T2", 16)


def test_the_race_detector_finds_it_without_memory() -> None:
    queue = ["INST @T1 S[0]+=16@complete cost=10 latency=900", "INST @T2 S[0]+=16@complete cost=10 latency=900"]
    (race,) = run(queue, ["INST @Use S[0]>=16 cost=10 after=[T1 []]"], races=True).races
    assert race.buffer == "q"
    late = [queue[0], "INST @Slow cost=5000", queue[1]]  # here the second one issues when the wait has passed
    (race,) = run(late, ["INST @Use S[0]>=16 cost=10 after=[T1 []]"], races=True).races
    assert (race.buffer, race.earlier.instruction, race.later.instruction) == ("q", "Use", "T2")


@pytest.mark.parametrize("name", [*SOUND])
def test_sound_waits_have_the_data_and_no_race(name: str) -> None:
    assert run(*SOUND[name], races=True).ok
    for seed in range(20):
        result = run(*SOUND[name], seed=seed, races=True)
        assert result.ok, list(map(str, result.races))
        np.testing.assert_array_equal(result.buffers["y"][:16], X[:16])


def test_parts_of_one_engine_stay_in_order_and_transfers_retire_in_order() -> None:
    queue = [FIRST, SECOND.format("S[0]+=16@complete"), FIRST.replace("T1", "T3")]
    text = "\n".join([HEADER, ".engine q registers 0", *queue])
    for seed in range(50):
        result = simulate(read_isa(text), QUEUES, {}, {"x": X, "y": X}, seed=seed, timeline=True)
        retired = [span.retire for span in result.spans["q"]]
        assert retired == sorted(retired)
        assert result.deadlock is None


def test_every_part_counts() -> None:
    assert run([FIRST], [USE.format("S[0]>=16")]).deadlock is None
    assert run([FIRST], [USE.format("S[0]>=17")]).deadlock is not None


def test_an_update_on_a_queue_is_one_for_each_part() -> None:
    with pytest.raises(ValueError, match=r"line 10: q is a DMA queue of generic: .* 16 parts, \+=16, not 1"):
        run(["NOP S[0]++@complete"], [])
    engine = [FIRST.replace("S[0]+=16", "S[1]++"), "NOP S[1]>=1"]
    assert run([], engine).deadlock is None  # on another engine a transfer is an instruction like all others


def test_what_a_count_says() -> None:
    """Against all ways in which parts of 3 transfers in 3 parts can arrive."""
    clock = np.zeros(1, np.int32)
    transfers = Transfers(3)
    for index in range(3):
        transfers.issue(Release(3 * index + 3, 0, index, clock))
    for count in range(10):
        arrived = [
            (a, b, c) for a in range(4) for b in range(4) for c in range(4) if a + b + c == count
        ]  # how many transfers each engine is done with
        assert transfers.complete(count) == min(min(each) for each in arrived)
