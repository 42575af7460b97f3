"""What `auto` chooses: never slower than the plain kinds, barriers where they are cheaper, and always right."""

from dataclasses import replace

import pytest
from sem_figures import FIGURES, loop, program

from mpkc.auto import PLAIN, Choice, choose
from mpkc.dialects.diagnostics import OpError
from mpkc.parsing import parse_module
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.simulator import simulate
from mpkc.semaphores import compile_program
from mpkc.verification import verify_compiled

GENERIC = machine("generic")
TRIPS = {"n": 12, "m": 3}

# Two engines that take turns: each instruction waits for the one before.
SERIAL = program(
    "serial",
    loop('sem.inst @A engine "e0" cost 64 after [@B offset 1]\nsem.inst @B engine "e1" cost 64 after [@A offset 0]\n'),
)
PIPELINE = program(
    "pipeline",
    loop(
        'sem.inst @L engine "e0" cost 500 after [@C offset 2]\n'
        'sem.inst @C engine "e1" cost 500 after [@L offset 0, @S offset 2]\n'
        'sem.inst @S engine "e2" cost 500 after [@C offset 0]\n'
    ),
)


BOUNDED = PIPELINE.replace("(%n : index) {", "(%n : index) attributes {maxima = {n = 1000 : index}} {")


def parsed(text: str):
    (found,) = parse_module(text).ops
    return found


def time_of(found, on=GENERIC) -> float:
    arguments = {each.name: TRIPS.get(each.name, 1) for each in found.emission.program.arguments}
    result = simulate(found.emission.program, on, arguments, values=False)
    assert result.ok
    return result.time_ns


@pytest.mark.parametrize("text", [PIPELINE, BOUNDED, SERIAL, *(text for text, *_ in FIGURES.values())])
def test_no_plain_kind_is_faster(text):
    given = parsed(text)
    chosen = compile_program(given, "auto", GENERIC)
    least = min(time_of(compile_program(given, kind, GENERIC)) for kind in PLAIN)
    assert time_of(chosen) <= 1.02 * least
    report = verify_compiled(chosen, written=False)
    assert report.ok, report.failures[:3]


def test_what_is_chosen_stands_in_the_program():
    """The program that is returned asks for its semaphores itself: compiling it again gives the same ones."""
    chosen = compile_program(parsed(PIPELINE), "auto", GENERIC)
    again = compile_program(chosen.program, "per-loop", GENERIC)
    assert again.emission.program.semaphores == chosen.emission.program.semaphores


def test_a_program_may_ask_for_it():
    asking = parsed(BOUNDED.replace("attributes {", 'attributes {semaphores = "auto", '))
    asked = compile_program(asking, "per-loop", GENERIC)
    assert asked.text == compile_program(parsed(BOUNDED), "auto", GENERIC).text


def test_registers_keep_thresholds():
    """On machines of signed counters, nothing is computed for the waits of a pipeline but what the loop computes."""
    signed = replace(GENERIC, semaphore=replace(GENERIC.semaphore, signed=True))
    chosen = compile_program(parsed(BOUNDED), "auto", signed)
    plain = compile_program(parsed(BOUNDED), "per-loop", signed)
    assert chosen.emission.added_registers < plain.emission.added_registers
    assert len(chosen.text.splitlines()) < len(plain.text.splitlines())


def test_a_cheap_barrier_is_chosen():
    """Where engines meet for nothing, and registers are dear, static thresholds win."""
    costs = replace(GENERIC.costs, barrier=1, register=200)
    chosen = compile_program(parsed(SERIAL), "auto", replace(GENERIC, costs=costs))
    assert "HANDSHAKE" in chosen.text
    assert "HANDSHAKE" not in compile_program(parsed(BOUNDED), "auto", GENERIC).text


def test_what_never_fits_is_refused():
    def refuse(candidate, choice: Choice):
        raise OpError(candidate, f"{choice.kind} does not fit")

    with pytest.raises(OpError, match="does not fit"):
        choose(parsed(SERIAL), GENERIC, refuse)
