"""What an allocation promises: its formulas and what they cost, its semaphores, rescues, epochs and budgets."""

from collections import Counter as Figures
from pathlib import Path
from random import Random

import pytest
from semaphore_fuzz import make_program
from semaphore_text import inst, loop, program
from test_sem_random import load
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import OpResult

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.engine import signal_of
from mpkc.dialects.sem_streams import BarrierOp, MarkerOp, StreamsOp, WaitOp
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import KINDS, Allocation, allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.semaphores.counters import Counters, Counts
from mpkc.passes.semaphores.needs import Form
from mpkc.passes.tile_extract_dependencies import extract_dependencies
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.verify.product import check_product
from mpkc.verification import rescues

BOUNDED = "attributes {maxima = {n = 100 : index, m = 100 : index}} "
NOT_COUNTED = (arith.ConstantOp, arith.ExtUIOp, arith.IndexCastOp)


def bounded(body: str):
    """A program with bounds for its arguments, so that no epochs are needed."""
    return load(program(body).replace(") {\n", ") " + BOUNDED + "{\n", 1))


def waits(made: Allocation) -> list[WaitOp]:
    return [op for op in made.streams.walk() if isinstance(op, WaitOp)]


def forms(made: Allocation) -> Figures[Form]:
    return Figures(need.form for needs in made.plan.waits.values() for need in needs)


def alu_operations(wait: WaitOp) -> int:
    """The operations behind a threshold in its iteration, without the counters that stand at its head."""
    work, found = [wait.threshold], set()
    while work:
        value = work.pop()
        if isinstance(value, OpResult) and value.op.parent is wait.parent and value.op not in found:
            if (value.name_hint or "").startswith("r_"):
                continue
            found.add(value.op)
            work += value.op.operands
    return sum(not isinstance(op, NOT_COUNTED) for op in found)


def barriers(streams: StreamsOp) -> int:
    return sum(isinstance(op, BarrierOp) for op in streams.walk())


def expect_exact(op, made: Allocation, runs=((0, 0), (1, 3), (5, 2), (3, 7))) -> None:
    bindings = [bindings_of({"n": n, "m": m, "k": True}) for n, m in runs]
    found = check_product(op, made.streams, bindings, rescues(made.plan), barriers=barriers(made.streams) > 0)
    assert found == [], found[0].message


PAIR = loop(inst("P", "e0") + inst("Q", "e0") + inst("C", "e1", "@P offset 2, @Q offset 3"))
NESTED = loop(
    inst("C", "e1", "@P offset 1") + loop(inst("P", "e0") + inst("Q", "e0"), "b", "m") + inst("D", "e1", "@Q offset 0")
)


def test_alu_operations_a_wait(record_property):
    """3 with a semaphore for each producer, 5 with one for each loop, at most 7 where the formula is guarded."""
    figures = {}
    for name, text in (("in the loop", PAIR), ("nested", NESTED)):
        for kind in ("per-instruction", "per-loop"):
            made = allocate(bounded(text), kind)
            before = max(map(alu_operations, waits(made)))
            ModuleOp([made.streams])
            simplify(made.streams)
            drop_counters(made.streams)
            figures[name, kind] = before, max(map(alu_operations, waits(made)))
    record_property("before and after clean-up", str(figures))
    print(figures)
    assert figures["in the loop", "per-instruction"][0] == 3
    assert figures["in the loop", "per-loop"][0] == 5
    assert 5 < figures["nested", "per-loop"][0] <= 7
    assert all(after <= before for before, after in figures.values())
    assert any(after < before for before, after in figures.values())


def test_figures_cost_what_table_1_says():
    """Semaphores and counters on random programs: O(N), O(L E) and O(E); two counters a loop and its histories."""
    for seed in range(60):
        op = make_program(Random(seed)).op
        for kind in KINDS:
            plan = allocate(op, kind).plan
            loops, engines = len(plan.structure.loops), len(plan.structure.engines)
            producers = len(plan.groups.of)
            whole = sum(group.kind == "per-engine" for group in plan.groups.all.values())
            most = {"per-instruction": producers, "per-loop": loops * engines, "barrier": engines}.get(
                kind, loops * engines
            )
            assert len(plan.groups.all) <= most
            assert whole <= engines
            for engine in plan.structure.engines:
                counters = Counters(plan, engine)
                once = [c for c in counters.carried if c.counts is not Counts.SIGNALS]
                assert len(once) <= 2 * loops
                assert sum(c.counts is Counts.TRIP for local in counters.local.values() for c in local) <= loops
                histories = sum(need.k + 1 for need in plan.waits_of(engine) if need.form in (Form.ENDED, Form.CLAMPED))
                assert sum(len(local) for local in counters.local.values()) <= loops + histories


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_waited_for_signals(kind):
    for seed in range(40):
        made = allocate(make_program(Random(seed)).op, kind)
        waited = {wait.semaphore.data for wait in waits(made)}
        signals = Figures(signal for op in made.streams.walk() if (signal := signal_of(op)) is not None)
        assert set(signals) == waited == set(made.streams.semaphore_names)
        assert sum(signals.values()) == len(made.plan.groups.of)
        verify(ModuleOp([made.streams]))


def test_dominated_waits_are_dropped():
    text = loop(
        inst("P", "e0")
        + inst("Q", "e0")
        + inst("C", "e1", "@P offset 1, @P offset 2, @Q offset 1, @P offset 0, @Q offset 0")
    )
    made = allocate(bounded(text))
    assert [wait.producer_names for wait in waits(made)] == [("Q",)]
    assert forms(made) == {Form.NOW: 1}
    expect_exact(bounded(text), made)


def test_trips_are_computed_only_where_an_offset_needs_them():
    without = allocate(bounded(loop(inst("P", "e0") + inst("C", "e1", "@P offset 0"))))
    assert not any(isinstance(op, arith.CmpiOp) for op in without.streams.walk())
    assert any(isinstance(op, arith.CmpiOp) for op in allocate(bounded(PAIR)).streams.walk())


# What section 5.2 leaves to barriers.

RESCUED = {
    "nested producer, offset 3": (
        loop(loop(inst("P", "e0"), "b", "m") + inst("C", "e1", "@P offset 3")),
        {Form.ENDED: 1},
    ),
    "carried by the outer loop, both in the inner one": (
        loop(loop(inst("P", "e0") + inst("C", "e1", "@P distance [1, *]"), "b", "m")),
        {Form.ENDED: 1},
    ),
    "the same iteration of the inner loop, one outer iteration back": (
        loop(loop(inst("P", "e0") + inst("C", "e1", "@P distance [1, 0]"), "b", "m")),
        {Form.CLAMPED: 1},
    ),
    "the next iteration of the inner loop, two outer iterations back": (
        loop(loop(inst("P", "e0") + inst("C", "e1", "@P distance [2, -1]"), "b", "m")),
        {Form.CLAMPED: 1},
    ),
    "a gap over two levels": (
        loop(loop(loop(inst("P", "e0") + inst("C", "e1", "@P distance [1, 0, 0]"), "c", "c2"), "b", "m")),
        {Form.BACK: 1},
    ),
    "an offset beyond what a history may take": (
        loop(loop(inst("P", "e0"), "b", "m") + inst("C", "e1", "@P offset 20")),
        {Form.BACK: 1},
    ),
}


@pytest.mark.parametrize("name", RESCUED)
@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine"])
def test_rescued_without_a_barrier(name, kind):
    text, expected = RESCUED[name]
    op = bounded(text)
    made = allocate(op, kind)
    assert forms(made) == expected
    assert not barriers(made.streams)
    by_marker = Form.BACK in expected
    assert sum(isinstance(each, MarkerOp) for each in made.streams.walk()) == by_marker
    assert any("waits for a marker behind @P" in text for _, text in made.plan.remarks) == by_marker
    expect_exact(op, made, runs=((0, 0), (1, 3), (25, 2), (5, 7)))


def test_what_is_never_owed_is_told():
    made = allocate(bounded(inst("P", "e0") + inst("C", "e1", "@P offset 1")))
    assert [text for _, text in made.plan.remarks] == ["@C after @P is never owed"]
    assert waits(made) == []


# Kinds by region.


def test_regions_choose_their_kind():
    text = (
        loop(inst("P", "e0") + inst("Q", "e0") + inst("C", "e1", "@P offset 1, @Q offset 2"))[:-2]
        + '} {semaphores = "per-instruction"}\n'
        + loop(inst("R", "e0") + inst("D", "e1", "@R offset 0"))[:-2]
        + '} {semaphores = "barrier"}\n'
    )
    op = bounded(text)
    made = allocate(op, "per-loop")
    assert {group.kind for group in made.plan.groups.all.values()} == {"per-instruction", "barrier"}
    # At the entry and at the end of the loop, in both streams.
    assert barriers(made.streams) == 4
    expect_exact(op, made)


def test_semaphores_of_an_engine_where_the_count_is_exact():
    """A producer below the shared loop, whose trips vary, gets the semaphore of its loop, with a remark."""
    op = bounded(NESTED + loop(inst("R", "e0") + inst("E", "e1", "@R offset 2")))
    made = allocate(op, "per-engine")
    assert {group.kind for group in made.plan.groups.all.values()} == {"per-engine", "per-loop"}
    assert sum("depends on trip counts" in text for _, text in made.plan.remarks) == 2
    expect_exact(op, made)


# Bits.


@pytest.mark.parametrize("counters", ["ui8", "si8", "ui5"])
@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine"])
def test_eight_bits_over_a_thousand_iterations(kind, counters):
    op = load(program(PAIR + NESTED.replace("@C", "@C2").replace("@P", "@P2").replace("@Q", "@Q2")))
    made = allocate(op, kind, counters)
    assert made.plan.resets
    expect_exact(op, made, runs=((1000, 3), (3, 1000)))


def test_a_counter_that_would_pass_32_bits_is_reset():
    made = allocate(load(program(PAIR)), "per-loop")
    (reset,) = made.plan.resets
    assert reset.epoch.iterations == (2**32 - 1) // 2
    assert reset.engines == ("e0", "e1")
    assert not allocate(bounded(PAIR), "per-loop").plan.resets


def test_only_engines_that_take_part_meet():
    """An engine without a part in what is reset runs on: figure 1."""
    body = inst("I0", "e0") + loop(inst("P", "e1") + inst("C", "e2", "@P offset 2")) + inst("I5", "e0")
    made = allocate(load(program(body)))
    assert not any(isinstance(op, scf.ForOp | BarrierOp) for op in made.streams.streams["e0"].walk())
    assert any(isinstance(op, BarrierOp) for op in made.streams.streams["e1"].walk())


def test_what_no_iteration_boundary_can_hold_shares_less():
    """300 producers in one iteration, and semaphores of 8 bits: each producer gets its own."""
    producers = [f"P{i}" for i in range(300)]
    after = ", ".join(f"@{label} offset 1" for label in producers[::100])
    body = "".join(inst(label, "e0") + inst(f"C{label}", "e1", f"@{label} offset 0") for label in producers)
    op = load(program(loop(body + inst("C", "e2", after))))
    made = allocate(op, "per-loop", "ui8")
    assert {group.kind for group in made.plan.groups.all.values()} == {"per-instruction"}
    assert [text for _, text in made.plan.remarks] == [
        "no iteration boundary can hold a reset of 'e0.a': their producers share less"
    ]
    expect_exact(op, made, runs=((300, 0),))


# Budgets.

MANY = "".join(
    loop(inst(f"P{i}", "e0") + inst(f"Q{i}", "e0") + inst(f"C{i}", "e1", f"@P{i} offset 1, @Q{i} offset 2"))
    for i in range(6)
)


@pytest.mark.parametrize(("budget", "kinds"), [(20, 12), (8, 6), (3, 1), (1, 1)])
def test_kinds_are_mixed_to_fit(budget, kinds):
    op = bounded(MANY)
    made = allocate(op, "per-instruction", semaphores=budget)
    assert len(made.plan.groups.all) <= min(budget, kinds + 2)
    expect_exact(op, made)


def test_what_does_not_fit_says_by_how_much():
    body = "".join(inst(f"P{e}", f"e{e}") + inst(f"C{e}", "c", f"@P{e} offset 0") for e in range(5))
    with pytest.raises(OpError, match="needs 5 semaphores even .* there are 3: 2 too many"):
        allocate(bounded(loop(body)), "per-loop", semaphores=3)


@pytest.mark.parametrize("counters", ["u32", "ui1", "f32", "ui"])
def test_counters_that_are_none(counters):
    with pytest.raises(ValueError, match="use ui or si and a number of bits"):
        allocate(bounded(PAIR), counters=counters)


def test_tiled_matmul_with_double_buffered_inputs_needs_no_barrier():
    """Offset 2 on a producer below the carrier, which section 5.2 of the paper leaves to a barrier."""
    text = (Path(__file__).parents[2] / "examples" / "tile" / "matmul.mlir").read_text()
    module = parse_module(text)
    (kernel,) = (op for op in module.ops if op.sym_name.data == "matmul")
    loops = [op for op in kernel.walk() if isinstance(op, scf.ForOp)]
    assert len(loops) == 3
    for op in loops:
        op.attributes["most"] = IntegerAttr(64, 64)
    extract_dependencies(kernel)
    made = allocate(kernel)
    (again,) = [need for source, needs in made.plan.waits.items() if source.name == "copy0" for need in needs]
    assert (again.producer.name, again.form, again.k, again.earlier) == ("matmul0", Form.BACK, 2, True)
    assert not barriers(made.streams)
    assert rescues(made.plan) == []


@pytest.mark.parametrize("counters", ["ui8", "si8"])
def test_more_signals_between_two_barriers_than_a_semaphore_holds(counters):
    body = "".join(inst(f"P{i}", "e0") + inst(f"C{i}", "e1", f"@P{i} offset 0") for i in range(300))
    op = load(program(loop(body)))
    made = allocate(op, "barrier", counters)
    assert {group.kind for group in made.plan.groups.all.values()} == {"per-instruction"}
    expect_exact(op, made, runs=((3, 0),))


@pytest.mark.parametrize("counters", ["ui2", "si3", "ui3"])
@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine"])
def test_distances_beyond_what_a_counter_holds(kind, counters):
    """An epoch may be shorter than a distance, and a distance longer than any count."""
    op = load(
        program(loop(inst("P", "e0", "@C offset 2") + inst("Q", "e0") + inst("C", "e1", "@Q offset 0, @P offset 9")))
    )
    made = allocate(op, kind, counters)
    assert made.plan.resets
    expect_exact(op, made, runs=((1, 0), (3, 0), (40, 0)))


def test_sharing_comes_before_barriers():
    """One semaphore is enough for one engine, without a barrier, whatever kind was asked for; and that is told."""
    op = bounded(MANY)
    for kind in ("per-instruction", "per-loop", "per-engine"):
        made = allocate(op, kind, semaphores=1)
        assert [group.kind for group in made.plan.groups.all.values()] == ["per-engine"]
        assert not barriers(made.streams)
        told = [text for _, text in made.plan.remarks]
        assert any(text.startswith("the machine has 1 semaphore: producers of engine") for text in told) == (
            kind != "per-engine"
        )
        expect_exact(op, made)
