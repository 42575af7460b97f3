"""The mega-kernel of a tiny model on the CPU: right under every schedule, and planted faults are caught."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mega_kernel
import numpy as np
import pytest
from mega_kernel import NEW, PROMPT, TinyDecoder

from mpkc.runtime.cuda.image import Request
from mpkc.runtime.errors import LaunchFailure
from mpkc.runtime.host.run import HostOptions
from mpkc.runtime.host.sanitize import run_sanitized

needs_clang = pytest.mark.skipif(not shutil.which("clang++-19"), reason="clang++-19 is not installed")
RELAXED_COUNTER, RELAXED_PUBLISH, MISSING_WAIT, WRONG_COUNT = 1, 2, 3, 4


@pytest.fixture(scope="module")
def decoder(tiny_gguf: Callable[..., Path]) -> TinyDecoder:
    return TinyDecoder(tiny_gguf())


@pytest.fixture(scope="module")
def expected(decoder: TinyDecoder) -> list[int]:
    tokens = decoder.expected()
    assert len(set(tokens)) > 1
    return tokens


def test_lanes_are_right_under_100_seeds(decoder: TinyDecoder, expected: list[int]) -> None:
    for seed in range(100):
        assert decoder.tokens(HostOptions("lanes", workers=4, seed=seed)) == expected, f"seed {seed}"


@pytest.mark.parametrize(("workers", "schedulers"), [(1, 1), (2, 1), (4, 1), (4, 4), (16, 1), (16, 5)])
@pytest.mark.parametrize("mode", ["fast", "lanes"])
def test_any_number_of_workers_gives_the_same_tokens(
    tiny_gguf: Callable[..., Path], expected: list[int], mode: Any, workers: int, schedulers: int
) -> None:
    assert TinyDecoder(tiny_gguf(), workers).tokens(HostOptions(mode, workers, schedulers)) == expected


@pytest.mark.parametrize("mode", ["fast", "lanes"])
def test_logits_of_every_step_agree_in_lockstep(decoder: TinyDecoder, mode: Any) -> None:
    run = decoder.run(HostOptions(mode, workers=4))
    fed = list(PROMPT)
    for step, token in enumerate(run.decode(Request(PROMPT, NEW, lockstep=True))):
        expected = decoder.reference.step(fed[step], step)
        assert np.max(np.abs(run.results()[1][0] - expected)) <= 1e-5 * np.max(np.abs(expected))
        if step >= len(PROMPT) - 1:
            fed.append(token)
    assert step == len(PROMPT) + NEW - 2


def test_the_text_ends_at_a_stop_token(decoder: TinyDecoder, expected: list[int]) -> None:
    run = decoder.run(HostOptions("fast", workers=4))
    told = list(run.decode(Request(PROMPT, NEW, stop=(expected[2],))))
    assert told[len(PROMPT) - 1 :] == expected[: expected.index(expected[2]) + 1]


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_caller_that_leaves_early_leaves_no_kernel_behind(decoder: TinyDecoder, lockstep: bool) -> None:
    run = decoder.run(HostOptions("fast", workers=4))
    tokens = run.decode(Request(PROMPT, NEW, lockstep=lockstep))
    next(tokens)
    tokens.close()  # waits for the kernel, which would spin for an hour
    assert not any(thread.name.startswith("mega") for thread in threading.enumerate())


def test_a_program_can_be_launched_again(decoder: TinyDecoder, expected: list[int]) -> None:
    run = decoder.run(HostOptions("fast", workers=4))
    for _ in range(3):
        assert list(run.decode(Request(PROMPT, NEW)))[len(PROMPT) - 1 :] == expected


def test_a_wrong_event_count_is_a_deadlock_that_names_the_event(decoder: TinyDecoder) -> None:
    options = HostOptions("lanes", workers=4, defines={"MPK_FAULT": WRONG_COUNT})
    with pytest.raises(LaunchFailure, match=r"(?s)deadlock.*(task|event) queue slot\[\d+\]"):
        decoder.tokens(options)


def test_a_missing_wait_gives_wrong_tokens(decoder: TinyDecoder, expected: list[int]) -> None:
    options = HostOptions("lanes", workers=4, seed=1, defines={"MPK_FAULT": MISSING_WAIT})
    assert decoder.tokens(options) != expected


def sanitized(path: Path, sanitizer: Any, fault: int = 0, seeds: int = 1) -> tuple[dict[str, Any], list[str]]:
    """What the script printed, and the sanitizer's reports."""
    script = Path(mega_kernel.__file__)
    result = run_sanitized(script, sanitizer, [str(path), sanitizer, str(fault), str(seeds)])
    assert result.stdout, result.stderr
    return json.loads(result.stdout.splitlines()[-1]), result.reports


@needs_clang
@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_sanitizers_find_nothing(tiny_gguf: Callable[..., Path], sanitizer: str) -> None:
    printed, reports = sanitized(tiny_gguf(), sanitizer, seeds=3)
    assert reports == []
    assert printed["outcomes"] == [printed["expected"]] * 3


@needs_clang
@pytest.mark.parametrize("fault", [RELAXED_COUNTER, RELAXED_PUBLISH])
def test_a_relaxed_operation_is_a_race(tiny_gguf: Callable[..., Path], fault: int) -> None:
    _, reports = sanitized(tiny_gguf(), "thread", fault)
    assert any("data race" in report for report in reports)
