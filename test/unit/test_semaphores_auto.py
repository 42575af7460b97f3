"""What `auto` chooses: never slower than the plain kinds, barriers where they are cheaper, and always right."""

from dataclasses import replace
from random import Random

import pytest
from click.testing import CliRunner
from sem_figures import FIGURES, loop, program
from semaphore_checks import expect_exact
from semaphore_fuzz import bindings_of_runs, make_program

from mpkc.auto import PLAIN, Budget, Choice, choose, search
from mpkc.auto.choice import numbered
from mpkc.auto.critical import control_of, critical_path
from mpkc.auto.steady import MOST_EXECUTIONS, simulated, steady
from mpkc.bench.kernels import KERNELS
from mpkc.bench.paper import budget_of, paper_rows
from mpkc.cli import main
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import label_of
from mpkc.dialects.sem_streams import BarrierOp
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.runtime.machine import Dma, machine
from mpkc.runtime.neuron.simulator import simulate
from mpkc.runtime.verify.product import Product
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
        choose([parsed(SERIAL)], GENERIC, refuse)


def test_it_is_refused_beyond_a_budget():
    given = parsed(BOUNDED)
    free = compile_program(given, "auto", GENERIC)
    least = compile_program(given, "auto", GENERIC, budget=Budget(2, 2))
    assert len(free.emission.program.semaphores) > 2
    assert len(least.emission.program.semaphores) <= 2
    assert least.emission.added_registers <= 2
    message = r"within 1 semaphore: the nearest takes 2 semaphores and \d registers?: 1 too many"
    with pytest.raises(OpError, match=message):
        compile_program(given, "auto", GENERIC, budget=Budget(semaphores=1))


def test_budgets_are_options(tmp_path):
    path = tmp_path / "pipeline.mlir"
    path.write_text(BOUNDED)

    def told(*args: str) -> str:
        return CliRunner().invoke(main, ["compile", str(path), "--target", "neuron", *args]).output

    assert told("--semaphores", "auto", "--budget", "semaphores=2").count("\n.semaphore ") == 2
    assert "1 too many" in told("--semaphores", "auto", "--budget", "semaphores=1")
    assert "use semaphores=N,registers=N,unroll=N" in told("--semaphores", "auto", "--budget", "semaphores=few")
    assert "--budget goes with --semaphores auto" in told("--budget", "registers=2")


UNROLLABLE = program(
    "unrollable",
    loop('sem.inst @A engine "e0" cost 10\nsem.inst @B engine "e1" cost 10 after [@A offset 0]\n', trips="c24"),
).replace("%c3 =", "%c24 = arith.constant 24 : index\n  %c3 =")


def test_it_unrolls_within_a_budget_only(tmp_path):
    """A branch and the counters of an iteration take longer than what it does."""
    given = parsed(UNROLLABLE)
    times = {most: time_of(compile_program(given, "auto", GENERIC, budget=Budget(unroll=most))) for most in (1, 2, 5)}
    assert times[5] < times[2] < times[1]
    assert times[1] == time_of(compile_program(given, "auto", GENERIC))
    compiled = compile_program(given, "auto", GENERIC, budget=Budget(unroll=5))
    assert verify_compiled(compiled, written=False).ok
    assert [label_of(op) for op in compiled.program.walk() if label_of(op)][:3] == ["A.0", "B.0", "A.1"]
    path = tmp_path / "unrollable.mlir"
    path.write_text(UNROLLABLE)
    args = ["compile", str(path), "--target", "neuron", "--semaphores", "auto", "--budget", "unroll=4"]
    assert "@B.3" in CliRunner().invoke(main, args).output


def test_loops_are_unrolled_where_they_say_so():
    given = parsed(UNROLLABLE.replace("\n}\n}", "\n} {unroll = 3}\n}"))
    compiled = compile_program(given, "per-loop", GENERIC)
    assert [label_of(op) for op in compiled.program.walk() if label_of(op)] == [
        "A.0",
        "B.0",
        "A.1",
        "B.1",
        "A.2",
        "B.2",
    ]
    assert verify_compiled(compiled, written=False).ok


LONG = program("long", loop(PIPELINE.split("step %c1 {", 1)[1].rsplit("}", 2)[0], trips="c50000")).replace(
    "%c3 =", "%c50000 = arith.constant 50000 : index\n  %c3 ="
)


def test_long_loops_are_simulated_in_part():
    """What is simulated of them says how long all of it takes; and numbers name the same operations in all lengths."""
    given = parsed(LONG)
    found = steady(given)
    assert len(found.lengths) == 2
    assert all(length.executions < MOST_EXECUTIONS for length in found.lengths)

    def time(length) -> float:
        emitted = compile_program(length.program, "per-loop", GENERIC).emission
        return simulated(emitted.program, GENERIC, length).time_ns

    assert found.time_of(time) == pytest.approx(time_of(compile_program(given, "per-loop", GENERIC)), rel=0.001)
    for length in found.lengths:
        assert [label_of(op) for op in numbered(length.program)] == [label_of(op) for op in numbered(given)]


def test_the_critical_path_goes_from_engine_to_engine():
    """Two engines that take turns: every instruction is on it, and what an engine computes while it waits is not."""
    compiled = compile_program(parsed(SERIAL), "per-loop", GENERIC)
    result = simulate(compiled.emission.program, GENERIC, {"n": 9}, values=False, timeline=True)
    steps = list(critical_path(result))
    assert [step.engine for step in steps[:6]] == ["e1", "e0"] * 3
    assert len(steps) == 18
    control = control_of(result, ["A", "B"])
    assert 0 < sum(control.values()) < result.time_ns / 10


QUEUES = replace(GENERIC, dma=Dma(16, ("e0", "e2")))
TRANSFERS = program(
    "transfers",
    loop(
        'sem.inst @L0 engine "e0" cost 500 latency 900 after [@C offset 2]\n'
        'sem.inst @L1 engine "e0" cost 500 latency 900 after [@C offset 2]\n'
        'sem.inst @L2 engine "e0" cost 500 latency 900 after [@C offset 2]\n'
        'sem.inst @C engine "e1" cost 500 after [@L0 offset 0, @L1 offset 0, @L2 offset 0]\n'
    ),
)


@pytest.mark.parametrize("semaphores", [4, 3, 2])
def test_transfers_take_turns_within_a_budget(semaphores):
    compiled = compile_program(parsed(TRANSFERS), "auto", QUEUES, budget=Budget(semaphores))
    assert len(compiled.emission.program.semaphores) <= semaphores
    assert verify_compiled(compiled, written=False, queues=QUEUES.dma.queues).ok
    again = compile_program(compiled.program, "per-loop", QUEUES)
    assert len(again.emission.program.semaphores) == len(compiled.emission.program.semaphores)


TRN2 = machine("trn2")


@pytest.mark.parametrize("kernel", sorted({row.kernel for row in paper_rows()} - {"moe-2048", "moe-4096"}))
def test_kernels_are_right_within_the_budget_of_the_paper(kernel, monkeypatch):
    monkeypatch.setattr(search, "MOST", search.FEWEST)
    given = engine_program(parse_module(KERNELS[kernel].build(**KERNELS[kernel].small)))
    compiled = compile_program(given, "auto", TRN2, budget=budget_of(kernel))
    sizes = len(compiled.emission.program.semaphores), compiled.emission.added_registers
    assert budget_of(kernel).over(*sizes) == 0
    report = verify_compiled(compiled, written=False, queues=TRN2.dma.queues)
    assert report.ok, report.failures[:3]


@pytest.mark.parametrize("seed", range(10))
def test_waits_of_random_programs_are_exact(seed, monkeypatch):
    monkeypatch.setattr(search, "MOST", search.FEWEST)
    made = make_program(Random(seed))
    product = Product(made.op, bindings=bindings_of_runs(Random(seed), made))
    compiled = compile_program(made.op, "auto", GENERIC, budget=Budget(registers=3) if seed % 2 else Budget())
    barriers = any(isinstance(op, BarrierOp) for op in compiled.streams.walk())
    expect_exact(product, compiled, "auto", barriers=barriers)
