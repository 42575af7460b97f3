"""Device code on the lanes host twins: every schedule gives the result, and planted errors are told."""

import re
import threading

import device_programs as programs
import numpy as np
import pytest

from mpkc.runtime.host.launch import Code, LaunchError

Params = programs.PrimitivesParams


def outcomes(run, seeds=60, tolerance=1e-3):
    """How launches ended, by seed: "right", "wrong" or the name of their error."""
    ends = []
    for seed in range(seeds):
        try:
            ends.append("right" if run(seed=seed) < tolerance else "wrong")
        except LaunchError as error:
            ends.append(error.code.name)
    return ends


@pytest.mark.parametrize(("program", "seeds"), [("Megakernel", 60), ("Ring", 100)])
def test_right_under_every_schedule(program, seeds):
    kernel = programs.Megakernel("lanes") if program == "Megakernel" else programs.Ring()
    assert outcomes(kernel.run, seeds, 1e-4) == ["right"] * seeds


def test_schedules_are_reproducible():
    kernel = programs.Megakernel("lanes", fault=programs.MEGAKERNEL_FAULTS["torn_event"])
    assert outcomes(kernel.run, 20) == outcomes(kernel.run, 20)


@pytest.mark.parametrize(
    ("fault", "ends", "least"),
    [
        ("no_sync_after_load", {"wrong"}, 60),
        ("no_copy_wait", {"wrong"}, 60),
        ("no_free_slot_wait", {"DEADLOCK", "wrong"}, 5),
        ("torn_event", {"DEADLOCK"}, 40),
    ],
)
def test_megakernel_faults_that_show(fault, ends, least):
    kernel = programs.Megakernel("lanes", fault=programs.MEGAKERNEL_FAULTS[fault])
    seen = [end for end in outcomes(kernel.run) if end != "right"]
    assert len(seen) >= least
    assert set(seen) <= ends


@pytest.mark.parametrize("fault", ["relaxed_event", "relaxed_publish", "plain_event"])
def test_megakernel_faults_that_only_a_sanitizer_shows(fault):
    """If one of these starts to fail, the twins have changed what they model."""
    kernel = programs.Megakernel("lanes", fault=programs.MEGAKERNEL_FAULTS[fault])
    assert outcomes(kernel.run, 20) == ["right"] * 20


@pytest.mark.parametrize(
    ("fault", "end", "least"),
    [
        ("no_empty_wait", "wrong", 60),
        ("no_full_wait", "wrong", 60),
        ("signal_before_copy", "wrong", 60),
        ("no_warp_sync", "wrong", 50),
        ("lost_signal", "DEADLOCK", 60),
    ],
)
def test_ring_faults(fault, end, least):
    assert outcomes(programs.Ring(fault=programs.RING_FAULTS[fault]).run).count(end) >= least


@pytest.mark.parametrize("seed", [0, 7])
def test_deadlock_report(seed):
    kernel = programs.Megakernel("lanes", extra_need=1, workers=2, schedulers=1)
    with pytest.raises(LaunchError) as error:
        kernel.run(seed=seed)
    assert error.value.code == Code.DEADLOCK
    lines = error.value.report.splitlines()
    assert lines[0] == "deadlock: no thread can go on"
    for block in (0, 1):
        assert re.fullmatch(
            rf"  block {block}: 63 of 64 threads wait in sync_block at kernel.cu:\d+", lines[1 + 2 * block]
        )
        assert re.fullmatch(
            rf"  block {block} thread 0 spins on task_slot\[\d\] \(last value \d+\)", lines[2 + 2 * block]
        )
    assert re.fullmatch(r"  block 2 thread 0 spins on event_slot\[4\] \(last value 4\)", lines[5])
    assert len(lines) == 6


def test_deadlock_in_shared_memory_is_named_in_every_block():
    with pytest.raises(LaunchError) as error:
        programs.Ring(fault=programs.RING_FAULTS["lost_signal"]).run()
    for block in (0, 1):
        assert f"  block {block} thread 32 spins on semaphore[0] (last value 19)" in error.value.report


MISUSE = [
    (Code.DIVERGENT_BARRIER, r"threads wait for threads that have ended\n.*32 of 64 threads wait in sync_block"),
    (Code.DIVERGENT_BARRIER, r"sync_block at kernel.cu:\d+, but others wait in sync_block at kernel.cu:\d+"),
    (Code.FAULT, r"misaligned copy of 16 bytes from 0x\w+ to 0x\w+4\n  in block 0 thread 3"),
    (Code.DIVERGENT_BARRIER, r"(ballot|sync_warp) at kernel.cu:\d+, but others wait in (sync_warp|ballot)"),
    (Code.FAULT, r"operation on global memory at 0x\w+, which is shared memory"),
    (Code.FAULT, r"operation on shared memory at 0x\w+, which is not this block's"),
    (Code.DIVERGENT_BARRIER, r"ended\n.*31 of 32 lanes wait in sync_warp"),
    (Code.FAULT, r"atomic operation on 0x\w+2, which is not aligned to 4 bytes"),
    (Code.FAULT, r"sync_threads\(2, 48\): ids are 1 to 15, counts multiples of 32"),
    (Code.TIMEOUT, r"the launch did not end in 0.2 s"),
    (Code.FAULT, r"copy to 0x\w+, which is not the block's shared memory"),
]


@pytest.mark.parametrize("mode", range(len(MISUSE)))
@pytest.mark.parametrize("seed", [0, 3])
def test_misuse(mode, seed):
    x, y, words = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(64, np.uint32)
    params = Params(*map(programs.address, (x, y, words)), n=1, mode=mode)
    code, pattern = MISUSE[mode]
    with pytest.raises(LaunchError) as error:
        programs.primitives("lanes").launch("misuse", params, 1, 64, 512, seed=seed, timeout_s=0.2)
    assert error.value.code == code
    assert re.search(pattern, error.value.report)


def test_launch_shapes_that_are_refused():
    library = programs.primitives("lanes")
    with pytest.raises(LaunchError, match="whole warps of 32"):
        library.launch("relay", Params(n=0), 1, 48)
    with pytest.raises(LaunchError, match=r"shared<T>\(\) of \d+ bytes in a launch with 16"):
        library.launch("stage", Params(n=0), 1, 32, 16)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_warp_functions(seed):
    x = np.random.default_rng(seed).standard_normal(128).astype(np.float32)
    y = np.zeros((128, 3), np.float32)
    params = Params(x=programs.address(x), y=programs.address(y))
    programs.primitives("lanes").launch("meet", params, 2, 64, seed=seed)
    warps = x.reshape(4, 32)
    np.testing.assert_allclose(y[:, 0], warps.sum(1).repeat(32), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(y[:, 1], warps[:, 5].repeat(32))
    np.testing.assert_array_equal(y[:, 2], x > 0)


@pytest.mark.parametrize("seed", range(8))
def test_named_barrier(seed):
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    params = Params(x=programs.address(x), y=programs.address(y))
    programs.primitives("lanes").launch("pair", params, 1, 128, 128, seed=seed)
    np.testing.assert_array_equal(y, x[::-1] + 1)


def test_named_barrier_counts_must_agree():
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    params = Params(x=programs.address(x), y=programs.address(y), mode=1)
    with pytest.raises(LaunchError, match=r"sync_threads\(1, (96|64)\) .*, but others expect (64|96) threads") as error:
        programs.primitives("lanes").launch("pair", params, 1, 128, 128)
    assert error.value.code == Code.DIVERGENT_BARRIER


@pytest.mark.parametrize("mode", ["fast", "lanes"])
@pytest.mark.parametrize(("wait", "whole", "ragged"), [(1, False, False), (2, True, False), (3, True, True)])
def test_copies_come_no_earlier_than_they_must(mode, wait, whole, ragged):
    x, y = np.arange(67, dtype=np.float32), np.zeros(67, np.float32)
    params = Params(x=programs.address(x), y=programs.address(y), mode=wait)
    programs.primitives(mode).launch("stage", params, 1, programs.threads_of(mode, 32), 512)
    early = mode == "fast"
    np.testing.assert_array_equal(y[:64], x[:64] if whole or early else np.nan)
    np.testing.assert_array_equal(y[64:], x[64:] if ragged or early else np.nan)


def test_waiting_for_the_host_is_no_deadlock():
    words = np.zeros(2, np.uint32)
    with pytest.raises(LaunchError) as error:
        programs.primitives("lanes").launch(
            "converse", Params(words=programs.address(words), n=1), 1, 32, timeout_s=0.3
        )
    assert error.value.code == Code.TIMEOUT


def test_one_launch_of_a_library_at_a_time():
    """In lanes mode; the second is refused while the first waits for the host."""
    library, words = programs.primitives("lanes"), np.zeros(2, np.uint32)
    params = Params(words=programs.address(words), n=2)
    first = threading.Thread(target=library.launch, args=("converse", params, 1, 32))
    first.start()
    words[0] = 1
    while words[1] != 1:
        pass
    with pytest.raises(LaunchError, match="already running"):
        library.launch("converse", params, 1, 32)
    words[0] = 2
    first.join()
    assert words[1] == 2


def test_many_threads():
    """As many blocks as a large GPU has multiprocessors."""
    turn, counter = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
    params = Params(words=programs.address(turn), counter=programs.address(counter), n=1)
    programs.primitives("lanes").launch("relay", params, 132, 128)
    assert turn[0] == 132
