"""Random programs all the way: allocated, cleaned up, emitted, read back as text, simulated, and proved.

The values are those of program order: each opaque instruction writes a hash of what it read, so a wait that is missing
or too early shows.
"""

from collections import Counter
from random import Random

import pytest
from semaphore_fuzz import Made, bindings_of_runs, make_program
from xdsl.dialects.builtin import ModuleOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_streams import WaitOp
from mpkc.engines import Setup, Watched, compiled, run_compiled
from mpkc.running.neuron import different
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.simulator import Execution
from mpkc.runtime.reference.sem import run_program
from mpkc.verification import verify_compiled

GENERIC = machine("generic")
KINDS = ("per-loop", "per-instruction", "per-engine", "barrier")
CHUNK = 60


def expect_values(made: Made, seed: int, kind: str) -> None:
    """The simulator of the ISA text writes what the interpreter of the program writes."""
    rng = Random(seed)
    found = compiled(ModuleOp([made.op.clone()]), made.op, Setup(kind, GENERIC))
    for bindings in bindings_of_runs(rng, made, count=2):
        result = run_compiled(found, GENERIC, {}, bindings, seed, Watched(values=True))
        assert result.deadlock is None, (seed, kind, bindings)
        expected = run_program(made.op, bindings).executions
        wanted = [Execution(each.name, each.engine, each.iteration, each.value) for each in expected]
        wrong = list(different(result.executions, wanted))
        assert wrong == [], (seed, kind, bindings, wrong[:3])


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_values_of_random_programs(first):
    for seed in range(first, first + CHUNK):
        expect_values(make_program(Random(seed)), seed, KINDS[seed % len(KINDS)])


def test_a_missing_wait_shows():
    """Streams with one wait less compute other values, or the test above can't fail."""
    shown: Counter[bool] = Counter()
    for seed in range(40):
        made = make_program(Random(seed))
        module = compiled(ModuleOp([made.op.clone()]), made.op, Setup("per-loop", GENERIC)).module
        waits = [op for op in module.walk() if isinstance(op, WaitOp)]
        if not waits:
            continue
        missing = Random(seed).choice(waits)
        missing.detach()
        missing.erase()
        found = compiled(module, made.op, Setup("per-loop", GENERIC))
        for bindings in bindings_of_runs(Random(seed), made, count=2):
            wanted = [
                Execution(each.name, each.engine, each.iteration, each.value)
                for each in run_program(made.op, bindings).executions
            ]
            try:
                result = run_compiled(found, GENERIC, {}, bindings, seed, Watched(values=True))
            except OpError:  # a value read before anything has written it
                shown[True] += 1
            else:
                shown[bool(list(different(result.executions, wanted)))] += 1
    assert shown[True] >= 3, shown


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_pass_every_check(first):
    """z3 proves each wait for all trip counts; runs, registers and text agree."""
    for seed in range(first, first + 20):
        made = make_program(Random(seed))
        found = compiled(ModuleOp([made.op.clone()]), made.op, Setup(KINDS[seed % len(KINDS)], GENERIC))
        report = verify_compiled(found, written=False)
        assert report.ok, (seed, report.failures[0].message)
        assert {"waits", "runs", "trips", "registers", "structure", "deadlock"} <= {each.name for each in report.checks}
