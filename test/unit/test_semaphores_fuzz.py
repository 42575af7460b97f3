"""Ten thousand random programs, each kind of semaphores, every small execution; and faults that must be caught.

`make fuzz` runs more of them, with all checks on each.
"""

import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest
from semaphore_checks import check_chunk, check_mutations

CHUNKS = [(first, 250, 3) for first in range(0, 10_000, 250)] + [(first, 250, 4) for first in (20_000, 20_250)]
SEEN = ("executions", "rescued", "joined", "barriers", "kept per-engine", "not per-engine")


@pytest.fixture(scope="module")
def outcome() -> tuple[list[str], Counter[str]]:
    """What is wrong with 10,000 programs of depth 3 and 500 of depth 4, and what was seen; on all cores."""
    wrong: list[str] = []
    figures: Counter[str] = Counter()
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for found, seen in pool.map(check_chunk, CHUNKS):
            wrong += found
            figures += seen
    return wrong, figures


def test_random_programs(outcome):
    """No wait too early, none too late but where a marker stands for a producer, and then no later than that."""
    wrong, figures = outcome
    assert wrong == []
    assert figures["programs"] == 10_500


def test_random_programs_exercise_every_kind(outcome, record_property):
    """Rescued dependencies, barriers of epochs, semaphores of engines kept and given up: none is missing."""
    _, figures = outcome
    print(dict(figures))
    record_property("figures", dict(figures))
    for what in SEEN:
        assert figures[what] > figures["programs"] // 100, what


FAULTS = (
    *("threshold", "constant", "initial value", "mask dropped", "wait dropped"),
    *("signal moved", "signal dropped", "reset lost", "counter not reset"),
)


def test_faults_are_caught(record_property):
    """What changes a wait or a count that is reached is caught; what changes nothing by it is rare."""
    figures: Counter[str] = Counter()
    equivalent = [fault for seed in range(40_000, 40_070) for fault in check_mutations(seed, figures)]
    record_property("figures", dict(figures))
    caught = {fault: figures[f"{fault}, caught"] for fault in FAULTS}
    assert all(caught.values()), caught
    assert len(equivalent) < 0.05 * (len(equivalent) + sum(caught.values())), "\n".join(equivalent)
