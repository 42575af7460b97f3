"""Unrolled programs wait for exactly what the programs before did."""

from collections import Counter
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sem_figures import FIG5
from sem_programs import programs
from unrolled_programs import load, needs, static, values_of_copies
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_maxima import maxima_of
from mpkc.dialects.sem_structure import Structure, structure_of
from mpkc.passes.sem_unroll import unroll
from mpkc.runtime.reference.sem import run_program
from mpkc.runtime.reference.tile import run_kernel

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
UNROLLED = StringAttr("unrolled")
SEEN: Counter[str] = Counter()


def program(body: str, head: str = "(%n : index)"):
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(5))
    return load(f"sem.program @p{head} {{\n{constants}\n{body}\n}}")


def unrolled(body: str, head: str = "(%n : index)", everything: bool = False) -> dict[str, list[str]]:
    """What each instruction is after, once loops are unrolled."""
    loaded = program(body, head)
    unroll(loaded, everything)
    verify(loaded.parent_op())
    return after(structure_of(loaded))


def after(structure: Structure) -> dict[str, list[str]]:
    found = {}
    for instruction in structure.instructions:
        found[instruction.label] = [f"{e.producer.label} {list(e.counted)}" for e in instruction.edges]
    return found


def loop(name: str, trips: str, body: str, kind: str = "") -> str:
    attribute = f' {{semaphores = "{kind}"}}' if kind else ""
    return f"scf.for %{name} = %c0 to %{trips} step %c1 {{\n{body}\n}}{attribute}"


def inst(label: str, after: str = "", engine: str = "e0") -> str:
    return f'sem.inst @{label} engine "{engine}" cost 1' + (f" after [{after}]" if after else "")


P, U = inst("P"), "unrolled"


def consumer(after: str) -> str:
    return inst("C", after, "e1")


def test_figure_5():
    two = "%c2 = arith.constant 2 : index\n  %c3 ="
    loaded = load(FIG5.replace("%n : index", "").replace("to %n", "to %c2").replace("%c3 =", two))
    unroll(loaded, everything=True)
    verify(loaded.parent_op())
    trace = run_program(loaded)
    owed = {e.name: [wait.owed for wait in e.waits] for e in trace.executions if e.name[0] == "C"}
    assert owed == {"C.0.0": [], "C.0.1": [], "C.0.2": [1], "C.1.0": [], "C.1.1": [], "C.1.2": [1], "C.1.3": [1]}
    edges = after(structure_of(loaded))
    assert [edges[f"C.{key}"] for key in ("0.2", "1.2", "1.3")] == [["P.0.0 []"], ["P.1.0 []"], ["P.1.1 []"]]


def test_carried_by_a_loop_that_stays():
    nest = loop("a", "n", loop("b", "c2", f"{P}\n{consumer('@P distance [1, 0]')}", U))
    assert unrolled(nest) == {"P.0": [], "P.1": [], "C.0": ["P.0 [1]"], "C.1": ["P.1 [1]"]}
    nest = nest.replace("[1, 0]", "[1, 1]")
    assert unrolled(nest) == {"P.0": [], "P.1": [], "C.0": [], "C.1": ["P.0 [1]"]}
    nest = nest.replace("[1, 1]", "[1, -1]")
    assert unrolled(nest) == {"P.0": [], "P.1": [], "C.0": ["P.1 [1]"], "C.1": ["P.1 [1]"]}
    nest = nest.replace("[1, -1]", "[2, *]")
    assert unrolled(nest) == {"P.0": [], "P.1": [], "C.0": ["P.1 [2]"], "C.1": ["P.1 [2]"]}
    nest = nest.replace("[2, *]", "[0, 1]")
    assert unrolled(nest) == {"P.0": [], "P.1": [], "C.0": [], "C.1": ["P.0 [0]"]}


def test_producer_inside_and_consumer_outside():
    forward = loop("a", "c3", P, U) + "\n" + consumer("@P offset 0")
    assert unrolled(forward)["C"] == ["P.2 []"]
    backward = loop("a", "n", consumer("@P offset 1") + "\n" + loop("b", "c3", P, U))
    assert unrolled(backward)["C"] == ["P.2 [1]"]
    inside = P + "\n" + loop("a", "c2", consumer("@P offset 0"), U)
    assert unrolled(inside) == {"P": [], "C.0": ["P []"], "C.1": ["P []"]}


def test_a_copy_that_may_not_run_does_not_stand_for_those_before():
    conditional = "%k = arith.cmpi ult, %n, %c3 : index\n" + loop(
        "b", "c3", f"scf.if %k {{ {P} }}\n{consumer('@P offset 1')}", U
    )
    found = unrolled(conditional)
    assert found["C.0"] == []
    assert found["C.2"] == ["P.1 []", "P.0 []"]
    around = loop("a", "n", conditional)
    assert unrolled(around)["C.2"] == ["P.1 [0]", "P.0 [0]", "P.2 [1]"]


def test_a_branch_that_is_known_is_taken():
    body = f"%k = arith.cmpi eq, %a, %c1 : index\nscf.if %k {{ {P} }}\n{consumer('@P offset 1')}"
    assert unrolled(loop("a", "c4", body, U)) == {
        "P.1": [],
        "C.0": [],
        "C.1": [],
        "C.2": ["P.1 []"],
        "C.3": ["P.1 []"],
    }


def test_a_loop_that_stays_inside():
    nest = loop("a", "c2", loop("b", "n", f"{P}\n{consumer('@P offset 2')}", "per-loop"), U)
    assert unrolled(nest) == {"P.0": [], "P.1": [], "C.0": ["P.0 [2]"], "C.1": ["P.1 [2]"]}
    every = nest.replace("offset 2", "distance [1, *]")
    assert unrolled(every)["C.1"] == ["P.0 []"]
    assert unrolled(every)["C.0"] == []
    certain = every.replace("to %n", "to %c2")
    assert unrolled(certain)["C.1"] == ["P.0 []"]


def test_a_conditional_in_what_carries_the_dependency_may_not_have_run_then():
    pair = f"{P}\n{consumer('@P distance [1, 0]')}"
    found = unrolled(loop("a", "n", f"scf.if %flag {{\n{loop('b', 'c3', pair, U)}\n}}"), "(%n : index, %flag : i1)")
    assert found["C.1"] == ["P.1 [1]", "P.0 [1]", "P.2 [2]"]


def test_an_iteration_that_may_not_be_there():
    """Loop b may have had fewer iterations in the iteration before of a: then its last one is what is owed."""
    pair = f"{P}\n{consumer('@P distance [1, 0, 0]')}"
    nest = loop("a", "n", loop("b", "m", loop("c", "c2", pair, U)))
    found = unrolled(nest, "(%n : index, %m : index)")
    assert found["C.0"] == ["P.0 [1, 0]", "P.1 [1, 1]", "P.1 [2, '*']"]
    assert found["C.1"] == ["P.1 [1, 0]", "P.0 [1, 0]"]
    fixed = nest.replace("to %m", "to %c3")
    assert unrolled(fixed)["C.0"] == ["P.0 [1, 0]"]
    beyond = fixed.replace("[1, 0, 0]", "[1, -1, 0]")
    assert unrolled(beyond)["C.0"] == ["P.0 [1, -1]", "P.1 [1, 0]", "P.1 [2, '*']"]


def test_copies_behind_the_target_count_only_behind_what_is_certain():
    """Loop c ends at 3: beyond, its last iteration is owed, with its last copy; a copy of b before does not matter."""
    pair = f"{P}\n{consumer('@P distance [1, 0, -1, 0]')}"
    nest = loop("a", "n", loop("b", "c2", loop("c", "c3", loop("d", "c2", pair, U), "per-loop"), U))
    found = unrolled(nest)
    assert found["C.1.0"] == ["P.1.0 [1, -1]", "P.0.1 [1]", "P.1.1 [1, 0]"]


def test_a_loop_that_may_not_run_is_not_certain():
    nest = loop("a", "c3", loop("b", "n", P, "per-loop") + "\n" + consumer("@P offset 1"), U)
    assert unrolled(nest)["C.2"] == ["P.1 []", "P.0 []"]
    assert unrolled(nest.replace("to %n", "to %c1"))["C.2"] == ["P.1 []"]


KERNEL = """
!far = memref<6x4xf32, #tile.space<far>>
!rows = memref<2x4xf32, strided<[4, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x2x4xf32, #tile.space<near>>
!tile = memref<2x4xf32, #tile.space<near>>
tile.kernel @halve(%x : !far, %y : !far) engines ["load", "vector", "store"] {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %half = arith.constant 0.5 : f32
  %slots = memref.alloc() : !slots
  scf.for %row = %c0 to %c6 step %c2 {
    %i = arith.divui %row, %c2 : index
    %from = memref.subview %x[%row, 0] [2, 4] [1, 1] : !far to !rows
    %to = memref.subview %y[%row, 0] [2, 4] [1, 1] : !far to !rows
    %t = tile.rotate %slots[%i] : !slots -> !tile
    tile.copy %from -> %t engine "load" {label = "L", after = [#sem.after<@S offset 2>]} : !rows -> !tile
    tile.map mul %t, %half -> %t engine "vector" {label = "M", after = [#sem.after<@L offset 0>]} : !tile, f32 -> !tile
    tile.copy %t -> %to engine "store" {label = "S", after = [#sem.after<@M offset 0>]} : !tile -> !rows
  } {semaphores = "unrolled"}
}
"""


def test_a_kernel():
    kernel = load(KERNEL)
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    before = run_kernel(kernel, [x, np.zeros_like(x)])["y"]
    unroll(kernel)
    verify(kernel.parent_op())
    found = after(structure_of(kernel))
    assert len(found) == 9
    assert [found[f"L.{i}"] for i in range(3)] == [[], [], ["S.0 []"]]
    assert [found[f"{label}.2"] for label in "MS"] == [["L.2 []"], ["M.2 []"]]
    np.testing.assert_array_equal(run_kernel(kernel, [x, np.zeros_like(x)])["y"], before)
    np.testing.assert_array_equal(before, x / 2)


def test_what_ran_in_earlier_iterations_need_not_be_waited_for():
    nest = loop("a", "n", loop("b", "c2", f"{P}\n{consumer('@P offset 0, @P distance [1, *], @P distance [1, 0]')}", U))
    assert unrolled(nest)["C.1"] == ["P.1 [0]"]
    backward = loop("a", "n", loop("b", "c2", f"{consumer('@P offset 1, @P distance [1, *]')}\n{P}", U))
    assert unrolled(backward) == {"P.0": [], "P.1": [], "C.0": ["P.1 [1]"], "C.1": ["P.0 [0]"]}
    conditional = nest.replace(P, f"scf.if %k {{ {P} }}")
    found = unrolled(conditional, "(%n : index, %k : i1)")["C.0"]
    assert found == ["P.0 [0]", "P.1 [1]", "P.0 [1]", "P.1 [2]"]


REFUSED = {
    "argument": (loop("a", "n", P, U), r"can't unroll this loop: its upper bound comes from the argument %n"),
    "value": (
        'scf.for %i = %c0 to %n step %c1 {\n%v = sem.value @V engine "e0" cost 1 : index\n'
        "%w = arith.addi %c1, %v : index\n" + loop("a", "w", P, U) + "\n}",
        "its upper bound comes from the value @V",
    ),
    "index": (loop("i", "n", loop("a", "i", P, U)), "its upper bound comes from the index of loop 'i'"),
    "step": (
        f'scf.for %a = %c0 to %c3 step %n {{ {P} }} {{semaphores = "unrolled"}}',
        "its step comes from the argument",
    ),
    "condition": (
        "%e = scf.while (%w = %c0) : (index) -> index {\n%k = arith.cmpi ult, %w, %n : index\n"
        "scf.condition(%k) %w : index\n} do {\n^bb0(%x : index):\nscf.yield %x : index\n"
        '} attributes {semaphores = "unrolled"}',
        "its condition comes from the argument %n",
    ),
    "one iteration of several loops": (
        loop("a", "c2", loop("b", "n", f"{P}\n{consumer('@P distance [1, 0]')}", "per-loop"), U),
        r"@C.1 after @P, distance \[1, 0\], can't be said once loops around are unrolled: loop 'b' is not unrolled",
    ),
    "no wait by a loop that is no longer shared": (
        loop("a", "c2", loop("b", "n", f"scf.if %flag {{ {P} }}\n{consumer('@P distance [0, 1]')}", "per-loop"), U),
        "some of what it waits for is known only by a loop that it no longer shares",
    ),
    "no wait by a loop whose older iterations count": (
        loop(
            "a", "n", loop("b", "n", loop("c", "c2", f"scf.if %flag {{ {P} }}\n{consumer('@P distance [1, 1, 0]')}", U))
        ),
        "some of what it waits for is known only by a loop that it no longer shares",
    ),
    "promise": (
        f'scf.for %a = %c0 to %c3 step %c1 {{ {P} }} {{semaphores = "unrolled", most = 2}}',
        "the loop has iteration 3, and was declared to run 2 at most",
    ),
    "step 0": (
        f'%z = arith.subi %c1, %c1 : index\nscf.for %a = %c0 to %c3 step %z {{ {P} }} {{semaphores = "unrolled"}}',
        "the step is 0 here",
    ),
    "too many": (
        f'%m = arith.constant 9999999 : index\nscf.for %a = %c0 to %m step %c1 {{ {P} }} {{semaphores = "unrolled"}}',
        "unrolling makes more than 100 copies",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, monkeypatch):
    body, message = REFUSED[case]
    monkeypatch.setattr("mpkc.passes.sem_unroll.MOST_COPIES", 100)
    with pytest.raises(OpError, match=message) as found:
        unrolled(body, "(%n : index, %flag : i1)")
    assert found.value.op.location.line.data > 5


def test_a_while_loop_whose_condition_is_known():
    text = f"""
  %e = scf.while (%w = %c0) : (index) -> index {{
    {inst("T", "@B offset 1")}
    %k = arith.cmpi ult, %w, %c2 : index
    scf.condition(%k) %w : index
  }} do {{
  ^bb0(%x : index):
    {inst("B", "@T offset 0", "e1")}
    %y = arith.addi %x, %c1 : index
    scf.yield %y : index
  }} attributes {{semaphores = "unrolled"}}
  scf.for %i = %c0 to %e step %c1 {{ {inst("X")} }} {{semaphores = "unrolled"}}"""
    assert unrolled(text) == {
        **{"T.0": [], "T.1": ["B.0 []"], "T.2": ["B.1 []"]},
        **{"B.0": ["T.0 []"], "B.1": ["T.1 []"], "X.0": [], "X.1": []},
    }


def test_values_keep_their_maxima_and_labels_stay_unique():
    body = loop("a", "c2", '%v = sem.value @V engine "e0" cost 1 : index\n' + loop("b", "v", P, "per-loop"), U)
    loaded = program(inst("P.1") + "\n" + body, "() attributes {maxima = {V = 7 : index}}")
    unroll(loaded)
    verify(loaded.parent_op())
    assert maxima_of(loaded) == {"V.0": 7, "V.1": 7}
    assert [i.label for i in structure_of(loaded).instructions] == ["P.1", "V.0", "P.0", "V.1", "P.1_"]


def attempt(loaded: ProgramOp) -> ProgramOp | OpError:
    """A copy of a program, unrolled; where that is refused, why, at the place in the program itself."""
    module = loaded.parent_op()
    copied = module.clone()
    ops = dict(zip(copied.walk(), module.walk(), strict=True))
    (copy,) = copied.ops
    try:
        unroll(copy)
    except OpError as refused:
        return OpError(ops[refused.op], refused.message)
    return copy


def check(loaded: ProgramOp, bindings: dict[str, Any], rng: Random) -> None:
    """Unroll random loops, those whose trips are not known left out, and dependencies that can't be kept dropped."""
    everything = rng.random() < 0.3
    for op in dict.fromkeys(each.op for each in structure_of(loaded).loops if each.counted):
        op.attributes["semaphores"] = UNROLLED if everything or rng.random() < 0.6 else StringAttr("per-loop")
    while isinstance(copy := attempt(loaded), OpError):
        op = copy.op
        if "can't unroll" in copy.message:
            op.attributes["semaphores"] = StringAttr("per-loop")
            SEEN["loops refused"] += 1
        else:
            assert "can't be said" in copy.message
            kept = op.properties["after"].data
            op.properties["after"] = ArrayAttr(kept[:-1] if rng.random() < 0.5 else kept[1:])
            SEEN["dependencies refused"] += 1
    verify(copy.parent_op())
    before = run_program(loaded, bindings)
    unrolled = structure_of(copy)
    names = {i.label for i in unrolled.instructions} | set(loaded.argument_names)
    after = run_program(copy, values_of_copies(bindings, names))
    for engine in {e.engine for e in before.executions}:
        run = [e.name for e in before.executions if e.engine == engine]
        assert run == [e.name.split(".")[0] for e in after.executions if e.engine == engine]
    assert needs(after) == needs(before)
    SEEN["copies"] += sum("." in name for name in names)
    SEEN["dependencies of copies"] += sum(len(i.edges) for i in unrolled.instructions if "." in i.label)


@given(programs(edges=8), st.randoms(use_true_random=False))
@SETTINGS
def test_copies_need_what_the_program_needed(program, rng):
    """Random programs, some of whose arguments are constants."""
    constants = {name: value for name, value in program.arguments.items() if rng.random() < 0.7}
    bindings = {name: value for name, value in program.bindings.items() if name not in constants}
    check(load(static(program.text, constants)), bindings, rng)


class Nest:
    """Random nests of loops and conditionals, static or decided by values, around one producer and one consumer."""

    def __init__(self, rng: Random):
        self.rng, self.values, self.counted, self.names = rng, {}, 0, count()
        self.shared = rng.randint(1, 4)
        self.text = self.level(self.shared, ["c0", "c1", "c2", "c2", "c3"], "")

    def level(self, depth: int, bounds: list[str], part: str) -> str:
        """`depth` levels, and in the innermost the producer, the consumer, or further levels around each."""
        if depth == 0:
            if part:
                return self.ends[part]
            self.ends = {"P": inst("P", "", "e0"), "C": inst("C", f"@P distance [{self.distance()}]", "e1")}
            parts = [self.level(self.rng.choice((0, 0, 1, 2)), bounds, each) for each in "PC"]
            self.rng.shuffle(parts)
            return "\n".join(parts)
        name = f"x{next(self.names)}x"
        kind = self.rng.choice(("for", "for", "for", "value", "if"))
        label, before = f"V{name}", ""
        if kind != "for":
            type_, most = ("i1", 1) if kind == "if" else ("index", 3)
            self.values[label] = [self.rng.randint(0, most) for _ in range(40)] * 8
            before = f'%{label} = sem.value @{label} engine "e2" cost 1 : {type_}\n'
        if kind == "if":
            return f"{before}scf.if %{label} {{\n{self.level(depth - 1, bounds, part)}\n}}"
        self.counted += not part
        bound = self.rng.choice(bounds) if kind == "for" else label
        return before + loop(name, bound, self.level(depth - 1, [*bounds, name], part))

    def distance(self) -> str:
        components = [self.rng.choice((0, 0, 0, 1, 1, 2, -1, "*")) for _ in range(self.counted)]
        return ", ".join(map(str, components))


@given(st.randoms(use_true_random=False))
@settings(SETTINGS, max_examples=300)
def test_copies_in_nests_need_what_was_needed(rng):
    nest = Nest(rng)
    try:
        loaded = program(nest.text, "()")
    except OpError:  # no rule of the dialect allows such a distance
        return
    SEEN["nests"] += 1
    check(loaded, nest.values, rng)
