"""Ten thousand random programs, each kind of semaphores, every small execution; and faults that must be caught.

`make fuzz` runs more of them, with all checks on each.
"""

from collections import Counter

import pytest
from semaphore_checks import check_mutations, check_programs

CHUNK = 500
FIGURES: Counter[str] = Counter()


@pytest.mark.parametrize("first", range(0, 10_000, CHUNK))
def test_random_programs(first):
    """No wait too early, none too late but where a marker stands for a producer, and then no later than that."""
    assert list(check_programs(range(first, first + CHUNK), 3, FIGURES)) == []


def test_deep_random_programs():
    assert list(check_programs(range(20_000, 20_000 + CHUNK), 4, FIGURES)) == []


def test_random_programs_exercise_every_kind(record_property):
    """Rescued dependencies, barriers of epochs, semaphores of engines kept and given up: none is missing."""
    figures = Counter(FIGURES)
    if figures["programs"] < CHUNK:
        assert list(check_programs(range(30_000, 30_000 + CHUNK), 3, figures)) == []
    record_property("figures", dict(figures))
    for what in ("executions", "rescued", "barriers", "kept per-engine", "not per-engine"):
        assert figures[what] > figures["programs"] // 100, what
    assert figures["failures"] == 0


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
