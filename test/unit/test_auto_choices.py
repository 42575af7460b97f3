"""Each choice of `auto` shows where it is the one that pays: semaphores of their own, native counters, what is carried
from one iteration to the next, waits in front of loops, barriers in one loop of several."""

from dataclasses import replace

import pytest
from sem_figures import loop, program
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mpkc.auto import Budget
from mpkc.dialects.engine import label_of
from mpkc.dialects.sem_streams import StreamOp, WaitOp
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.runtime.machine import Dma, Machine, machine
from mpkc.runtime.neuron.simulator import simulate
from mpkc.semaphores import Compiled, EngineProgram, clean_up, compile_program

GENERIC = machine("generic")
SIGNED = replace(GENERIC, semaphore=replace(GENERIC.semaphore, signed=True))


def inst(label: str, engine: str, *after: str, cost: int = 40) -> str:
    needs = f" after [{', '.join(after)}]" if after else ""
    return f'sem.inst @{label} engine "{engine}" cost {cost}{needs}\n'


def parsed(text: str) -> EngineProgram:
    """A program that runs at most 1,000 iterations."""
    (found,) = parse_module(text.replace("index) {", "index) attributes {maxima = {n = 1000 : index}} {", 1)).ops
    return found


def pairs(count: int, cost: int) -> EngineProgram:
    """Producers on one engine, each with a consumer on another one, and a slot for what it hands over."""
    producers = [inst(f"P{k}", "e0", f"@C{k} offset 1", cost=cost) for k in range(count)]
    consumers = [inst(f"C{k}", "e1", f"@P{k} offset 0", cost=cost) for k in range(count)]
    return parsed(program("pairs", loop("".join(producers + consumers))))


def time_of(found: Compiled, device: Machine = GENERIC) -> float:
    given = {each.name: 12 for each in found.emission.program.arguments}
    result = simulate(found.emission.program, device, given, values=False)
    assert result.ok
    return result.time_ns


def plain_time(given: EngineProgram, device: Machine = GENERIC) -> float:
    return min(time_of(compile_program(given, kind, device), device) for kind in ("per-loop", "barrier"))


def test_what_costs_the_most_has_a_semaphore_of_its_own() -> None:
    """Where there are not enough for all, those who are waited for on the critical path have one, and others share."""
    given = pairs(4, cost=10)
    chosen = compile_program(given, "auto", GENERIC, budget=Budget(semaphores=4))
    own = StringAttr("per-instruction")
    kinds = {label_of(op): op.attributes.get("semaphores") for op in chosen.program.walk() if label_of(op)}
    assert 0 < sum(kind == own for kind in kinds.values()) < len(kinds)
    assert chosen.program.attributes["semaphores"] != own
    assert len(chosen.emission.program.semaphores) <= 4
    assert time_of(chosen) < 0.8 * time_of(compile_program(given, "auto", GENERIC, budget=Budget(semaphores=2)))


def test_a_native_counter_is_the_threshold() -> None:
    """The index of a loop that waits for one producer an iteration says how often it ran: no register counts it."""
    given = parsed(program("chain", loop(inst("P", "e0", cost=10) + inst("C", "e1", "@P offset 0", cost=10))))
    chosen, plain = (compile_program(given, kind, GENERIC) for kind in ("auto", "per-loop"))
    assert (chosen.emission.added_registers, plain.emission.added_registers) == (0, 1)
    assert time_of(chosen) < time_of(plain)


def test_a_threshold_is_updated_once_an_iteration() -> None:
    """Registers keep thresholds that loops would compute again for each wait."""
    given = pairs(3, cost=40)
    chosen = compile_program(given, "auto", SIGNED, budget=Budget(semaphores=2))
    loops = [op for op in chosen.streams.walk() if isinstance(op, scf.ForOp)]
    waits = [op for op in chosen.streams.walk() if isinstance(op, WaitOp)]
    kept = {value for each in loops for value in each.body.block.last_op.operands}
    assert any(wait.threshold in kept for wait in waits)
    assert time_of(chosen, SIGNED) < 0.8 * plain_time(given, SIGNED)


def test_a_wait_that_stays_the_same_stands_in_front_of_its_loop() -> None:
    """A loop that runs surely, and waits for what ran once, waits once."""
    text = program("once", inst("P", "e0", cost=500) + loop(inst("C", "e1", "@P offset 0", cost=10), trips="c24"))
    given = parsed(text.replace("%c3 =", "%c24 = arith.constant 24 : index\n  %c3 ="))
    chosen = compile_program(given, "auto", GENERIC)
    (wait,) = (op for op in chosen.streams.walk() if isinstance(op, WaitOp))
    assert isinstance(wait.parent_op(), StreamOp)
    assert time_of(chosen) < plain_time(given)


def test_one_loop_has_barriers_and_another_has_none() -> None:
    """Where engines take turns and barriers are cheap, one loop has them; a pipeline beside it would lose by them."""
    turns = loop(inst("A", "e0", "@B offset 1") + inst("B", "e1", "@A offset 0"))
    pipeline = loop(
        inst("L", "e0", "@S offset 2", cost=2000)
        + inst("M", "e1", "@L offset 0", "@S offset 2", cost=2000)
        + inst("S", "e2", "@M offset 0", cost=2000),
        "b",
    )
    device = replace(GENERIC, costs=replace(GENERIC.costs, barrier=1, register=200))
    (given,) = parse_module(program("both", f"{turns}\n{pipeline}")).ops
    chosen = compile_program(given, "auto", device)
    kinds = [op.attributes.get("semaphores") for op in chosen.program.walk() if isinstance(op, scf.ForOp)]
    assert kinds == [StringAttr("barrier"), None]
    assert time_of(chosen, device) < 0.9 * plain_time(given, device)


def test_the_wait_that_ends_last_comes_last() -> None:
    """So that the other costs nothing while it holds; here it is the one for an earlier iteration."""
    consumer = inst("C", "e2", "@Late offset 1", "@Early offset 0")
    body = inst("Early", "e0", cost=10) + consumer + inst("Late", "e1", "@C offset 0", cost=100)
    chosen = compile_program(parsed(program("two", loop(body))), "auto", GENERIC)
    waits = [op for op in chosen.streams.streams["e2"].walk() if isinstance(op, WaitOp)]
    assert [wait.producer_names for wait in waits] == [("Early",), ("Late",)]


def test_without_a_simulation_the_nearest_producer_comes_last() -> None:
    """Clean-up orders waits by their distances, as far as nobody knows which ends last."""
    consumer = inst("C", "e2", "@Here offset 0", "@Before offset 1")
    body = inst("Here", "e0") + consumer + inst("Before", "e1", "@C offset 0")
    streams = allocate(parsed(program("two", loop(body))), "per-loop").streams
    ModuleOp([streams])
    clean_up(streams, lean=True, latest={})
    waits = [op for op in streams.streams["e2"].walk() if isinstance(op, WaitOp)]
    assert [wait.producer_names for wait in waits] == [("Before",), ("Here",)]


def test_thresholds_are_computed_again_within_a_budget_of_registers() -> None:
    """Rather than kept, where registers are few; otherwise only barriers would need none."""
    given = pairs(3, cost=40)
    chosen = compile_program(given, "auto", SIGNED, budget=Budget(semaphores=2, registers=2))
    assert chosen.emission.added_registers <= 2
    assert time_of(chosen, SIGNED) < 0.3 * time_of(compile_program(given, "barrier", SIGNED), SIGNED)


@pytest.mark.parametrize("semaphores", [3, 2])
def test_transfers_take_turns_where_semaphores_are_few(semaphores: int) -> None:
    """Which is better than barriers, that need one alone."""
    device = replace(GENERIC, dma=Dma(16, ("e0",)))
    loads = [f'sem.inst @L{k} engine "e0" cost 500 latency 900 after [@C offset 2]\n' for k in range(3)]
    consumer = inst("C", "e1", *(f"@L{k} offset 0" for k in range(3)), cost=500)
    given = parsed(program("loads", loop("".join(loads) + consumer)))
    chosen = compile_program(given, "auto", device, budget=Budget(semaphores))
    assert len(chosen.emission.program.semaphores) <= semaphores
    assert time_of(chosen, device) < 0.8 * time_of(compile_program(given, "barrier", device), device)


def test_producers_share_a_semaphore_where_that_costs_nothing() -> None:
    """Though one more may be used."""
    producers = [
        inst(f"{name}{k}", engine, f"@C{k} offset 1") for name, engine in (("P", "e0"), ("Q", "e3")) for k in range(2)
    ]
    consumers = [inst(f"C{k}", "e1", f"@P{k} offset 0", f"@Q{k} offset 0") for k in range(2)]
    given = parsed(program("tiles", loop("".join(producers + consumers))))
    few, more = (compile_program(given, "auto", GENERIC, budget=Budget(semaphores=most)) for most in (4, 5))
    assert [len(each.emission.program.semaphores) for each in (few, more)] == [4, 4]
    assert time_of(more) == time_of(few)
