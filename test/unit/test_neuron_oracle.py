"""The simulator against times computed another way, on random straight-line programs: rounds up to a fixed point."""

from dataclasses import dataclass
from itertools import permutations
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.isa import Drain, Engine, Nop, Opaque, Program, Update, Wait
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.runtime.neuron.text import print_isa

GENERIC = machine("generic")
ENGINES = 3


@dataclass(frozen=True)
class Step:
    """An instruction; a DRAIN where it has no cost."""

    cost: int | None
    latency: int = 0
    wait: tuple[int, int] | None = None
    updates: bool = False


@st.composite
def steps(draw: st.DrawFn) -> Step:
    if draw(st.integers(0, 9)) == 0:
        return Step(None)
    wait = draw(st.none() | st.tuples(st.integers(0, ENGINES - 1), st.integers(0, 4)))
    return Step(draw(st.integers(0, 200)), draw(st.integers(0, 400)), wait, draw(st.booleans()))


programs = st.lists(st.lists(steps(), max_size=6), min_size=ENGINES, max_size=ENGINES)


def issue_times(engines: list[list[Step]]) -> list[list[float]]:
    """When each instruction issues, infinity for those that never do: each round knows the updates of the last."""
    visible: list[list[float]] = [[] for _ in engines]
    while True:
        issued, updates = [], []
        for own in engines:
            at, retired, times, seen = 0.0, 0.0, [], []
            for step in own:
                if step.cost is None:
                    at = max(at, retired) + GENERIC.costs.register
                    continue
                if step.wait is not None:
                    semaphore, count = step.wait
                    seen_at = [0.0, *visible[semaphore]]  # each count
                    at = max(at + GENERIC.costs.wait, seen_at[count] if count < len(seen_at) else inf)
                times.append(at)
                retired = max(at + step.latency, retired)
                if step.updates and retired < inf:
                    seen.append(retired + GENERIC.costs.signal)
                at += step.cost
            issued.append(times)
            updates.append(seen)
        if updates == visible:
            return issued
        visible = updates


def program_of(engines: list[list[Step]], order: tuple[int, ...]) -> Program:
    """The program, with its engines in this order in the text."""

    def item(engine: int, at: int, step: Step) -> Drain | Opaque:
        if step.cost is None:
            return Drain()
        wait = None if step.wait is None else Wait(*step.wait)
        update = Update(engine) if step.updates else None
        return Opaque(step.cost, step.latency, label=f"I{engine}.{at}", wait=wait, update=update)

    return Program(
        "random",
        tuple(Engine(f"e{at}", 0, tuple(item(at, n, step) for n, step in enumerate(engines[at]))) for at in order),
        semaphores=tuple(f"s{at}" for at in range(ENGINES)),
    )


@settings(max_examples=150)
@given(programs, st.sampled_from([*permutations(range(ENGINES))]), st.booleans())
def test_times_and_deadlocks(engines: list[list[Step]], order: tuple[int, ...], values: bool) -> None:
    expected = issue_times(engines)
    program = read_isa(print_isa(program_of(engines, order)))
    result = simulate(program, GENERIC, values=values, races=values, timeline=True)
    for at, times in enumerate(expected):
        spans = result.spans[f"e{at}"]
        assert [span.issue for span in spans] == [time for time in times if time < inf]
    assert (result.deadlock is not None) == any(time == inf for times in expected for time in times)
    if result.deadlock:
        stuck = {blocked.engine for blocked in result.deadlock.blocked}
        assert stuck == {f"e{at}" for at, times in enumerate(expected) if inf in times}
    assert not result.races


def test_a_nop_with_a_wait_costs_what_an_instruction_of_a_register_operation_does() -> None:
    cost = int(GENERIC.costs.register)
    both = [
        simulate(Program("p", (Engine("e", 0, (first, Opaque(5, label="I"))),), semaphores=("s",)), GENERIC).time_ns
        for first in (Nop(wait=Wait(0, 0)), Opaque(cost, label="N", wait=Wait(0, 0)))
    ]
    assert both[0] == both[1] == 10 + cost + 5
