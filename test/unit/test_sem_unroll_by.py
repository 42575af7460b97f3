"""Loops unrolled by a factor wait for exactly what the programs before did."""

from collections import Counter, defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sem_programs import programs
from unrolled_programs import load, needs, static, values_of_copies
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.sem_maxima import maxima_of
from mpkc.dialects.sem_structure import structure_of
from mpkc.passes.sem_unroll_by import factors_of, unroll_by
from mpkc.passes.tile_extract_dependencies import extract_dependencies
from mpkc.runtime.reference.sem import run_program
from mpkc.runtime.reference.tile import run_kernel

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SEEN: Counter[str] = Counter()


def program(body: str, head: str = "()"):
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(7))
    return load(f"sem.program @p{head} {{\n{constants}\n{body}\n}}")


def inst(label: str, after: str = "", engine: str = "e0") -> str:
    return f'sem.inst @{label} engine "{engine}" cost 1' + (f" after [{after}]" if after else "")


def loop(name: str, trips: int, body: str, factor: int = 0) -> str:
    attribute = f" {{unroll = {factor}}}" if factor else ""
    return f"scf.for %{name} = %c0 to %c{trips} step %c1 {{\n{body}\n}}{attribute}"


def after(loaded) -> dict[str, list[str]]:
    unroll_by(loaded)
    verify(loaded.parent_op())
    return {
        each.label: [f"{edge.producer.label} {list(edge.counted)}" for edge in each.edges]
        for each in structure_of(loaded).instructions
    }


def test_one_loop():
    body = inst("P", "@C offset 3") + "\n" + inst("C", "@P offset 0, @C offset 1", "e1")
    assert after(program(loop("i", 6, body, 2))) == {
        "P.0": ["C.1 [2]"],
        "C.0": ["P.0 [0]", "C.1 [1]"],
        "P.1": ["C.0 [1]"],
        "C.1": ["P.1 [0]", "C.0 [0]"],
    }


def test_what_stands_outside_waits_for_the_last_copy():
    text = loop("i", 2, loop("j", 4, inst("P", "@C offset 1"), 4) + "\n" + inst("C", "@P offset 0", "e1"))
    assert after(program(text))["C"] == ["P.3 [0]"]
    assert [after(program(text))[f"P.{copy}"] for copy in (0, 2)] == [["C [1]"], []]
    never = loop("j", 4, inst("P"), 2) + "\n" + inst("C", "@P offset 1", "e1")
    assert after(program(never))["C"] == []


def test_a_target_behind_the_last_iteration_is_the_last_copy():
    nest = loop("i", 2, loop("j", 4, inst("P") + "\n" + inst("C", "@P distance [1, -2]", "e1"), 2))
    found = after(program(nest))
    assert found["C.0"] == ["P.0 [1, -1]", "P.1 [1, 0]"]
    assert found["C.1"] == ["P.1 [1, -1]"]
    every = loop("i", 2, loop("j", 4, inst("P") + "\n" + inst("C", "@P distance [1, *]", "e1"), 2))
    assert after(program(every))["C.0"] == ["P.1 [1, '*']"]


def test_values_keep_their_maxima_and_loops_what_they_promise():
    body = '%v = sem.value @V engine "e0" cost 1 : index'
    text = loop("i", 6, body, 3).replace("unroll = 3", "unroll = 3, most = 6")
    loaded = program(text, "() attributes {maxima = {V = 7 : index}}")
    assert list(after(loaded)) == ["V.0", "V.1", "V.2"]
    assert maxima_of(loaded) == {"V.0": 7, "V.1": 7, "V.2": 7}
    (unrolled,) = (op for op in loaded.walk() if isinstance(op, scf.ForOp))
    assert unrolled.attributes["most"].value.data == 2


REFUSED = {
    "remainder": (loop("i", 6, inst("P"), 4), "can't unroll 6 iterations by 4: use one of 2, 3, 6"),
    "unknown trips": (loop("i", 6, inst("P"), 2).replace("%c6", "%n"), "how often it runs is not known"),
    "not innermost": (loop("i", 2, loop("j", 2, inst("P")), 2), "only innermost loops are"),
    "factor": (loop("i", 6, inst("P"), 2).replace("unroll = 2", "unroll = 0"), "unroll is a number of iterations"),
    "no loop": (f"scf.if %flag {{ {inst('P')} }} {{unroll = 2}}", "'scf.if' can't be unrolled by a factor"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    body, message = REFUSED[case]
    with pytest.raises(OpError, match=message) as found:
        unroll_by(program(body, "(%n : index, %flag : i1)"))
    assert found.value.op.location.line.data > 7


def test_a_tile_kernel_computes_the_same():
    kernel = load(
        """
!far = memref<8x4xf32, #tile.space<far>>
!row = memref<1x4xf32, strided<[4, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x1x4xf32, #tile.space<near>>
!tile = memref<1x4xf32, #tile.space<near>>
tile.kernel @halve(%x : !far, %y : !far) engines ["load", "scalar", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %slots = memref.alloc() : !slots
  %half = arith.constant 0.5 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    %tile = tile.rotate %slots[%i] : !slots -> !tile
    %from = memref.subview %x[%i, %c0] [1, 4] [1, 1] : !far to !row
    %to = memref.subview %y[%i, %c0] [1, 4] [1, 1] : !far to !row
    tile.copy %from -> %tile engine "load" : !row -> !tile
    tile.map neg %tile -> %tile engine "scalar" : !tile -> !tile
    tile.copy %tile -> %to engine "store" : !tile -> !row
  } {unroll = 4}
}""".replace("  %half = arith.constant 0.5 : f32\n", "")
    )
    extract_dependencies(kernel)
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    before = run_kernel(kernel, [x, np.zeros_like(x)])["y"]
    unroll_by(kernel)
    verify(kernel.parent_op())
    assert len(structure_of(kernel).instructions) == 12
    np.testing.assert_array_equal(run_kernel(kernel, [x, np.zeros_like(x)])["y"], before)
    np.testing.assert_array_equal(before, -x)


def check(loaded, bindings: dict, rng: Random) -> None:
    """Unroll what can be, and compare what each execution needs."""
    copy = loaded.parent_op().clone().body.block.first_op
    for op in copy.walk():
        if isinstance(op, scf.ForOp) and (factors := list(factors_of(op, 6))):
            op.attributes["unroll"] = IntegerAttr(rng.choice(factors), i64)
            SEEN["loops"] += 1
    unroll_by(copy)
    verify(copy.parent_op())
    unrolled = structure_of(copy)
    names = {each.label for each in unrolled.instructions} | set(loaded.argument_names)
    before, behind = run_program(loaded, bindings), run_program(copy, values_of_copies(bindings, names))
    for engine in {each.engine for each in before.executions}:
        run = [each.name for each in before.executions if each.engine == engine]
        assert run == [each.name.split(".")[0] for each in behind.executions if each.engine == engine]
    assert accumulated(behind) == accumulated(before)
    SEEN["dependencies of copies"] += sum(len(each.edges) for each in unrolled.instructions if "." in each.label)


@given(programs(edges=8), st.randoms(use_true_random=False))
@SETTINGS
def test_copies_need_what_the_program_needed(program, rng):
    """Random programs whose arguments are constants."""
    check(load(static(program.text, program.arguments)), drop(program.bindings, program.arguments), rng)


def accumulated(trace) -> dict[tuple, dict[str, int]]:
    """What each execution needs, and what those before it on its engine do."""
    of_engine: defaultdict[str, dict[str, int]] = defaultdict(dict)
    found, number, needed = {}, Counter(), needs(trace)
    for execution in trace.executions:
        name = execution.name.split(".")[0]
        so_far = of_engine[execution.engine]
        for producer, count in needed[name, number[name]]:
            so_far[producer] = max(so_far.get(producer, 0), count)
        found[name, number[name]] = dict(so_far)
        number[name] += 1
    return found


def drop(bindings: dict, names) -> dict:
    return {name: value for name, value in bindings.items() if name not in names}


@given(st.randoms(use_true_random=False))
@SETTINGS
def test_nests_need_what_they_needed(rng):
    """Two loops, with dependencies both ways at random distances."""

    def somewhere(label: str) -> str:
        inner = rng.choice([rng.randint(-3, 4), "*"])
        return f"@{label} distance [{rng.randint(0, 2)}, {inner}]"

    def positive(text: str) -> bool:
        outer, inner = text.split("[")[1][:-1].split(", ")
        return outer != "0" or (inner != "*" and int(inner) > 0)

    edges = [edge for edge in (somewhere(rng.choice("PC")) for _ in range(4)) if positive(edge)]
    body = inst("P", ", ".join(edges[:2])) + "\n" + inst("C", ", ".join(["@P offset 0", *edges[2:]]), "e1")
    check(program(loop("i", rng.randint(1, 3), loop("j", rng.choice([2, 3, 4, 6]), body))), {}, rng)


def test_random_programs_had_what_is_tested():
    if SEEN:
        assert SEEN["loops"] > 40
        assert SEEN["dependencies of copies"] > 100
