"""Whether streams are those of a program: what the allocator writes is, and every change of it is told."""

import random
import re
from collections.abc import Callable

import pytest
import sem_figures
import sem_programs
from xdsl.ir import Operation

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.runtime.verify.streams import check_program, check_structure

KINDS = ("per-instruction", "per-loop", "per-engine", "barrier")


def only(text: str) -> Operation:
    module = parse_module(text)
    verify(module)
    operation = module.body.block.first_op
    assert operation is not None
    operation.detach()
    return operation


def wrong(program: str, streams: str) -> list[str]:
    parsed = only(streams)
    assert isinstance(parsed, StreamsOp)
    return [failure.message for failure in check_structure(only(program), parsed).failures]


@pytest.mark.parametrize("seed", range(12))
def test_streams_of_random_programs(seed: int) -> None:
    program = only(sem_programs.random_program(random.Random(seed)).text)
    assert not any(check.failed for check in check_program(program, program.argument_names))
    streams = allocate(program, KINDS[seed % len(KINDS)]).streams
    assert not check_structure(program, streams).failures
    simplify(streams)
    drop_counters(streams)
    assert not check_structure(program, streams).failures


PROGRAM = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      sem.inst @P engine "e0" cost 64
      sem.inst @X engine "e0" cost 32
      scf.for %b = %c0 to %c3 step %c1 {
        sem.inst @C engine "e1" cost 64 after [@P offset 0]
      }
      %v = sem.value @V engine "e0" cost 8 : index
      scf.for %d = %c0 to %v step %c1 {
        sem.inst @D engine "e1" cost 64
      }
    }""",
)
STREAMS = str(allocate(only(PROGRAM)).streams)
BARRIERS = str(allocate(only(PROGRAM), "barrier").streams)


def test_these_streams_are_right() -> None:
    assert not wrong(PROGRAM, STREAMS)
    assert not wrong(PROGRAM, BARRIERS)


def sub(pattern: str, replacement: str) -> Callable[[str], str]:
    def apply(text: str) -> str:
        changed = re.sub(pattern, replacement, text, count=1)
        assert changed != text
        return changed

    return apply


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (sub(r'sem.inst @X engine "e0" cost 32[^\n]*\n', ""), '@X: is missing in the stream of "e0"'),
        (sub(r"cost 32", "cost 33"), "@X: cost changed"),
        (sub(r"(@C engine \"e1\" cost 64) after \[@P offset 0\]", r"\1"), "@C: after changed"),
        (sub(r"(sem.inst @P [^\n]*\n)(\s*)(sem.inst @X [^\n]*\n)", r"\3\2\1"), "@X: comes before @P on its engine"),
        (sub(r"sem.inst @D ", "sem.inst @E "), "@E is no instruction of the program"),
        (sub(r'sem.iteration "b" depth 2', 'sem.iteration "b" depth 1'), "depth 1 in its directive, but it is 2"),
        (sub(r'sem.iteration "b" depth 2', 'sem.iteration "d" depth 2'), 'runs "d" twice'),
        (sub(r'sem.iteration "b" depth 2', 'sem.iteration "z" depth 2'), "the program has no such loop"),
        (sub(r'\n\s*sem.iteration "d" depth 2', ""), "has no directive"),
        (sub(r"of @V", "of @P"), "reads @P, which is no value of the program"),
    ],
)
def test_changes_are_told(change: Callable[[str], str], told: str) -> None:
    found = wrong(PROGRAM, change(STREAMS))
    assert any(told in message for message in found), found


def test_barrier_that_one_engine_lacks() -> None:
    head, tail = BARRIERS.split('sem.stream "e1"')
    lacking = head + 'sem.stream "e1"' + sub(r"sem.barrier [^\n]*\n", "")(tail)
    assert any('is missing in the stream of "e1"' in message for message in wrong(PROGRAM, lacking))


def test_semaphore_that_is_reset_without_its_engine() -> None:
    program, streams = only(PROGRAM), allocate(only(PROGRAM)).streams
    name = streams.semaphore_names[0]
    barrier = f'sem.barrier reset ["{name}"] among ["e0"]\n'
    text = sub(r"(sem.inst @P )", barrier + r"\1")(str(streams))
    parsed = only(text)
    assert isinstance(parsed, StreamsOp)
    found = [failure.message for failure in check_structure(program, parsed).failures]
    assert any('which "e1" uses without meeting there' in message for message in found), found


def test_rules_and_deadlocks_of_programs() -> None:
    program = only(sem_figures.FIG5)
    assert [check.name for check in check_program(program, program.argument_names)] == ["rules", "deadlock"]
    cycle = sem_figures.program(
        "p",
        'sem.inst @A engine "e0" cost 1 after [@B offset 0]\nsem.inst @B engine "e1" cost 1 after [@A offset 0]',
    )
    refused = parse_module(cycle).body.block.first_op
    (check,) = check_program(refused, refused.argument_names)
    assert check.failed == 1
    assert "@A -> @B -> @A" in check.failures[0].message
