"""The product check: the paper's figures with streams by hand, what it says of faults, a slower check beside it."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sem_figures import FIGURES, loop
from sem_figures import program as sem_program
from semaphore_fuzz import Made, bindings_of_runs, make_program
from semaphore_mutations import mutations
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.engine import is_value, signal_of
from mpkc.dialects.sem_structure import structure_of
from mpkc.parsing import new_context, parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.reference.sem import run_program
from mpkc.runtime.verify.assignments import assignments
from mpkc.runtime.verify.execution import sites_of
from mpkc.runtime.verify.prefixes import blocked
from mpkc.runtime.verify.product import Product, assigned_product, check_product, disagreeing_product
from mpkc.runtime.verify.runs import Integers, ProgramRun, StreamRun, name_of
from mpkc.verification import rescues

CONTEXT = new_context()
SEEDS = st.integers(0, 1 << 20)
SETTINGS = settings(max_examples=25, deadline=None)
CONSTANTS = "".join(f"%c{i} = arith.constant {i} : index\n" for i in (0, 1, 2, 3))
COUNTS = "".join(f"%i{i} = arith.constant {i} : i32\n" for i in (0, 1, 2))
MASK = "%mask = arith.extui %on : i1 to i32\n%t = arith.muli %mask, %owed : i32\n"


def load(text: str):
    module = parse_module(text, "test.mlir", CONTEXT)
    verify(module)
    return module.body.block.first_op


def streams(name: str, semaphores: str, **bodies: str) -> str:
    parts = "".join(f'sem.stream "{engine}" {{\n{CONSTANTS}{COUNTS}{body}\n}}\n' for engine, body in bodies.items())
    return f"sem.streams @{name}(%n : index) counters ui32 semaphores [{semaphores}] {{\n{parts}}}\n"


def outer(body: str) -> str:
    """Loop A of an engine, with the entries of A in %ra, and %g handed through it as %h."""
    return (
        "%za, %zg = scf.for %a = %c0 to %n step %c1 iter_args(%pa = %i0, %g = %i0) -> (i32, i32) {\n"
        f'sem.iteration "a" depth 1\n%ra = arith.addi %pa, %i1 : i32\n{body}\nscf.yield %ra, %h : i32, i32\n'
        '} {loop = "a"}'
    )


def inner(body: str) -> str:
    """Loop B in `outer`, with its entries in %rb."""
    return (
        "%m = arith.addi %a, %c3 : index\n"
        "%h = scf.for %b = %c0 to %m step %c1 iter_args(%pb = %g) -> (i32) {\n"
        f'sem.iteration "b" depth 2\n%rb = arith.addi %pb, %i1 : i32\n{body}\nscf.yield %rb : i32\n}} {{loop = "b"}}'
    )


NO_INNER = "%h = arith.addi %g, %i0 : i32\n"
P = 'sem.inst @P engine "e0" cost 64 {signal = "s"}'
C = 'sem.inst @C engine "e1" cost 64 after [@P offset {}]'
WAIT = 'sem.wait "s" >= %t : i32 for ["P"]\n'
I012 = (
    'sem.inst @I0 engine "e0" cost 64 {}\nsem.inst @I1 engine "e0" cost 64 {{signal = "s"}}',
    '{}sem.wait "s" >= %t : i32\nsem.inst @I2 engine "e1" cost 64 after [@I1 offset 0]',
)
TRIP = "%on = arith.cmpi uge, %{}, %c{} : index\n"

# The streams of figures 5 to 8 as the paper has them, two operations more in figure 8 for unsigned counters.
BY_HAND = {
    "fig5": {
        "e0": outer(inner(P)),
        "e1": outer(inner(TRIP.format("b", 2) + "%owed = arith.subi %rb, %i2 : i32\n" + MASK + WAIT + C.format(2))),
    },
    "fig6_forward": {
        "e0": outer(inner(P)),
        "e1": outer(inner("") + "\n%t = arith.addi %h, %i0 : i32\n" + WAIT + C.format(0)),
    },
    "fig6_backward": {
        "e0": outer(inner(P)),
        "e1": outer(
            TRIP.format("a", 1) + "%owed = arith.addi %g, %i0 : i32\n" + MASK + WAIT + C.format(1) + "\n" + inner("")
        ),
    },
    "fig7": {
        "e0": outer(NO_INNER + I012[0].format("")),
        "e1": outer(NO_INNER + I012[1].format("%t = arith.addi %ra, %i0 : i32\n")),
    },
    "fig8": {
        "e0": outer(NO_INNER + I012[0].format('{signal = "s"}')),
        "e1": outer(NO_INNER + I012[1].format("%t = arith.muli %ra, %i2 : i32\n")),
    },
}


@pytest.mark.parametrize("figure", BY_HAND)
def test_figures_by_hand(figure):
    program, made = load(FIGURES[figure][0]), load(streams(figure, '"s"', **BY_HAND[figure]))
    assert not check_product(program, made)
    assert not check_product(program, made, [bindings_of({"n": n}) for n in range(6)])


@pytest.mark.parametrize(
    ("figure", "right", "wrong", "verdict"),
    [
        ("fig5", "subi %rb, %i2", "subi %rb, %i1", "LATE: @C[1, 3]"),
        ("fig5", "uge, %b, %c2", "uge, %b, %c3", "EARLY: @C[1, 3]"),
        ("fig5", "uge, %b, %c2", "uge, %b, %c1", "LATE: @C[2, 2]"),
        ("fig6_forward", "addi %h, %i0", "subi %h, %i1", "EARLY: @C[1]"),
        ("fig6_backward", "uge, %a, %c1", "uge, %a, %c2", "EARLY: @C[2]"),
        ("fig7", "addi %ra, %i0", "subi %ra, %i1", "EARLY: @I2[1]"),
        ("fig8", "muli %ra, %i2", "addi %ra, %i1", "EARLY: @I2[2]"),
        ("fig8", 'cost 64 {signal = "s"}', "cost 64", "LATE: @I2[1]"),
    ],
)
def test_faults_in_the_figures(figure, right, wrong, verdict):
    text = streams(figure, '"s"', **BY_HAND[figure])
    assert right in text
    found = check_product(load(FIGURES[figure][0]), load(text.replace(right, wrong, 1)), [bindings_of({"n": 3})])
    assert found[0].message.startswith(verdict), found[0].message


def test_a_failure_says_where():
    text = streams("fig5", '"s"', **BY_HAND["fig5"]).replace("subi %rb, %i2", "subi %rb, %i1")
    program = load(FIGURES["fig5"][0])
    (found, *_) = check_product(program, load(text), [bindings_of({"n": 2})])
    assert (found.instruction, found.engine, found.iteration) == ("C", "e1", (1, 3))
    assert (found.semaphore, found.threshold, found.bindings) == ("s", 2, {"n": 2})
    assert found.message == (
        'LATE: @C[1, 3] on "e1" waits until "e0" has retired @P[1, 2], '
        'and may only wait until it has retired @P[1, 1]; waits: "s" >= 2; owed: @P x 1'
    )
    (found, *_) = check_product(program, load(text.replace("uge, %b, %c2", "uge, %b, %c1")))
    assert found.trips["a"] >= 1
    assert found.message.endswith(f"trips: {', '.join(f'{name}={count}' for name, count in found.trips.items())}")


def test_what_engines_run_must_be_the_program():
    program = load(FIGURES["fig7"][0])
    text = streams("fig7", '"s"', **BY_HAND["fig7"])

    def told(right: str, wrong: str) -> str:
        assert right in text
        return check_product(program, load(text.replace(right, wrong, 1)), [bindings_of({"n": 2})])[0].message

    assert told("@I0", "@I9") == 'engine "e0" runs @I9[1] where the program runs @I0[1]'
    swapped = I012[0].format("").splitlines()
    assert "runs @I1[1] where" in told("\n".join(swapped), "\n".join(reversed(swapped)))
    assert "runs nothing more where the program runs @I0[2]" in told("to %n", "to %c1")
    alone = load(streams("fig7", '"s"', e0=BY_HAND["fig7"]["e0"]))
    (found,) = check_product(program, alone)
    assert found.message == "there are streams of ['e0'], and the program has ['e0', 'e1']"


def test_missing_bindings_are_told():
    program, made = load(FIGURES["fig7"][0]), load(streams("fig7", '"s"', **BY_HAND["fig7"]))
    with pytest.raises(OpError, match="the argument %n needs one value"):
        check_product(program, made, [bindings_of({})])


@given(SEEDS)
@SETTINGS
def test_what_is_owed_is_what_the_interpreter_says(seed):
    made = make_program(Random(seed))
    runs = bindings_of_runs(Random(seed), made, 3)
    specification = Product(made.op, bindings=runs).specification
    for lane, bindings in enumerate(runs):
        trace = run_program(made.op, bindings)
        found = [
            (name_of(slot.op), slot.iteration)
            for engine, slots in specification.slots.items()
            for slot, active in zip(slots, specification.active[engine], strict=True)
            if active[lane]
        ]
        assert Counter(found) == Counter((execution.name, execution.iteration) for execution in trace.executions)
        for execution in trace.executions:
            edges = specification.structure.by_label[execution.name].edges
            for edge, wait in zip(edges, execution.waits, strict=True):
                assert specification.owed(edge, [execution.iteration])[0, lane] == (wait.owed or 0)


@given(SEEDS)
@SETTINGS
def test_every_assignment_is_another_run(seed):
    made = make_program(Random(seed))
    structure = structure_of(made.op)
    assigned = assignments(structure, np.random.default_rng(seed))
    run = ProgramRun(structure, sites_of(structure), assigned.lanes, Integers(), assigned)
    assert assigned.lanes <= 200
    if assigned.lanes != 64:
        taken = set()
        for lane in range(assigned.lanes):
            taken.add(tuple(sorted(assigned.lane(lane).items())))
        assert len(taken) == assigned.lanes
    assert all(slot.mask is None or slot.mask.any() for slot in run.slots)


def test_all_assignments_of_a_nest():
    """0, 1 or 2 trips of A, in each 0, 1 or 2 of B: 1 + 3 + 9 executions of each."""
    structure = structure_of(load(FIGURES["fig5"][0]))
    assert assignments(structure, np.random.default_rng(0)).lanes == 13


@given(SEEDS)
@SETTINGS
def test_lawful_programs_end(seed):
    """The rules refuse what deadlocks; where engines disagree, some program blocks."""
    specification = assigned_product(make_program(Random(seed)).op, seed).specification
    assert (stops(specification) == [[len(slots)] for slots in specification.slots.values()]).all()


def stops(specification):
    return blocked([(specification.need[engine], specification.active[engine]) for engine in specification.engines])


def test_engines_that_disagree_block_together():
    program = load(FIGURES["fig6_forward"][0])
    product = disagreeing_product(program, 1)
    ends = [[len(slots)] for slots in product.specification.slots.values()]
    assert (stops(product.specification) != ends).any()
    for kind in ("per-instruction", "per-loop"):
        assert not product.check(allocate(program, kind).streams)


# A slower check, by steps: one lane, one state after the other in a drawn schedule.


def step_by_step(made: Made, streams_op, bindings, rng: Random) -> bool:
    """Whether in every state of one schedule each instruction may issue exactly when its dependencies are satisfied."""
    product = Product(made.op, bindings=[bindings])
    program, parts = product.specification, streams_op.streams
    runs = {engine: StreamRun(streams_op, parts[engine], view).slots for engine, view in program.views.items()}
    done = dict.fromkeys(runs, 0)
    retired, signals = Counter(), Counter()
    while True:
        ready = []
        for engine, slots in runs.items():
            if done[engine] == len(slots):
                continue
            slot = slots[done[engine]]
            waits = all(signals[semaphore] >= threshold % (1 << 32) for semaphore, threshold in slot.waits)
            edges = program.structure.by_label[name_of(slot.op)].edges
            owed = all(retired[e.producer.label] >= program.owed(e, [slot.iteration])[0, 0] for e in edges)
            if waits != owed:
                return False
            if owed:
                ready.append(engine)
        if not ready:
            return True
        engine = rng.choice(ready)
        slot = runs[engine][done[engine]]
        done[engine] += 1
        retired[name_of(slot.op)] += 1
        signals[signal_of(slot.op)] += 1


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_no_schedule_shows_what_the_product_misses(seed):
    """What goes wrong in a drawn schedule, the product finds; what it passes, no schedule shows."""
    rng = Random(seed)
    made = make_program(rng)
    allocation = allocate(made.op, "per-loop")
    if rescues(allocation.plan) or any(is_value(i.op) for i in structure_of(made.op).instructions):
        return
    bindings = bindings_of_runs(rng, made, 1)
    faults = mutations(allocation.streams)
    for fault in rng.sample(faults, min(3, len(faults))):
        undo = fault.apply()
        exact = not Product(made.op, bindings=bindings).check(allocation.streams, barriers=True)
        if exact:
            assert all(step_by_step(made, allocation.streams, bindings[0], rng) for _ in range(3)), fault.kind
        undo()
    assert step_by_step(made, allocation.streams, bindings[0], rng)


def test_reads_and_values_wait_for_each_other():
    """A read without its wait, and a value written again before all have read it."""
    body = '%v = sem.value @V engine "e0" cost 1 : index\n' + loop('sem.inst @X engine "e1" cost 1', "b", "v")
    program = load(sem_program("p", loop(body)))
    streams_op = allocate(program).streams
    product = assigned_product(program)
    assert not product.check(streams_op)
    early = set()
    for fault in mutations(streams_op):
        if fault.kind == "wait dropped":
            undo = fault.apply()
            (found, *_) = product.check(streams_op, strict=True) or [None]
            if found is not None:
                assert found.message.startswith("EARLY")
                early.add((found.instruction, found.engine))
            undo()
    assert early == {("V.e1", "e1"), ("V", "e0")}


def test_a_read_before_a_loop_that_clean_up_inlined():
    """The one iteration of a loop stands in its place, behind the read of a value that it needs further in."""
    once = loop('sem.inst @X engine "e1" cost 1\n' + loop('sem.inst @Y engine "e1" cost 1', "b", "v"), "a", "c1")
    program = load(sem_program("p", '%v = sem.value @V engine "e0" cost 1 : index\n' + once))
    streams_op = allocate(program).streams
    CanonicalizePass().apply(new_context(), ModuleOp([streams_op]))
    assert sum(isinstance(op, scf.ForOp) for op in streams_op.streams["e1"].walk()) == 1
    assert not assigned_product(program).check(streams_op)


def test_a_rescued_wait_is_late_only_until_its_marker():
    body = 'sem.inst @P engine "e0" cost 1\nsem.inst @C engine "e1" cost 1 after [@P distance [1, 0, 1]]'
    program = load(sem_program("p", loop(loop(loop(body, "c"), "b"))))
    allocation, product = allocate(program), assigned_product(program)
    (allowed,) = rescues(allocation.plan)
    assert (allowed.producer, allowed.consumer) == ("P", "C")
    assert not product.check(allocation.streams, [allowed])
    late = product.check(allocation.streams)
    assert late
    assert all(found.message.startswith("LATE: @C") for found in late)
    assert product.check(allocation.streams, [replace(allowed, marker="another")])
    for fault in mutations(allocation.streams):
        if fault.kind == "threshold":
            undo = fault.apply()
            assert product.check(allocation.streams, [allowed]), "a marker too early or too late"
            undo()
