"""The tree of loops, the expanded dependencies, and what decides control flow."""

import time

from sem_figures import FIG5, FIG6_BACKWARD, FIG6_FORWARD, loop, program
from xdsl.ir import Block, Region

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem import InstOp, ProgramOp
from mpkc.dialects.sem_distance import offset
from mpkc.dialects.sem_flow import values_deciding
from mpkc.dialects.sem_structure import structure_of
from mpkc.parsing import new_context, parse_module

CONTEXT = new_context()

NEST = program(
    "p",
    """
  scf.for %a = %c0 to %n step %c1 {
    %k = sem.value @V engine "e0" cost 1 : i1
    scf.if %k {
      sem.inst @T engine "e0" cost 1 after [@T offset 1]
    } else {
      sem.inst @E engine "e1" cost 1 after [@T offset 0, @D distance [2]]
    }
    scf.while (%w = %k) : (i1) -> (i1) {
      sem.inst @B engine "e0" cost 1
      scf.condition(%w) %w : i1
    } do {
    ^bb0(%x : i1):
      sem.inst @A engine "e1" cost 1 after [@B distance [1, *]]
      %y = sem.value @Y engine "e1" cost 1 : i1
      scf.yield %y : i1
    }
    scf.index_switch %a
    case 3 {
      sem.inst @S engine "e2" cost 1
      scf.yield
    }
    default {
      sem.inst @D engine "e2" cost 1 after [@S offset 0]
      scf.yield
    }
  }""",
)


def structure(text: str):
    module = parse_module(text, "test.mlir", CONTEXT)
    verify(module)
    return structure_of(module.body.block.first_op)


def test_tree():
    found = structure(NEST)
    assert [str(found_loop.kind) for found_loop in found.loops] == [
        *("program", "for", "then", "else", "while", "after", "case", "case")
    ]
    paths = {i.label: [str(above.kind) for above in i.loop.path] for i in found.instructions}
    assert paths == {
        "V": ["program", "for"],
        "T": ["program", "for", "then"],
        "E": ["program", "for", "else"],
        "B": ["program", "for", "while"],
        "A": ["program", "for", "while", "after"],
        "Y": ["program", "for", "while", "after"],
        "S": ["program", "for", "case"],
        "D": ["program", "for", "case"],
    }
    assert [i.order for i in found.instructions] == list(range(8))
    assert found.engines == ["e0", "e1", "e2"]
    assert [len(i.counted) for i in found.instructions] == [1, 1, 1, 2, 2, 2, 1, 1]
    assert all(found.loop_of[one.block] is one for one in found.loops)


def test_edges():
    edges = {
        (e.producer.label, e.consumer.label): (
            [str(common.kind) for common in e.common],
            e.distance,
            e.counted,
            e.forward,
            str(e.carrier.kind) if e.carrier else None,
        )
        for e in structure(NEST).edges
    }
    assert edges == {
        ("T", "T"): (["program", "for", "then"], (0, 1, 0), (1,), False, "for"),
        ("T", "E"): (["program", "for"], (0, 0), (0,), True, None),
        ("D", "E"): (["program", "for"], (0, 2), (2,), False, "for"),
        ("B", "A"): (["program", "for", "while"], (0, 1, "*"), (1, "*"), True, "for"),
        ("S", "D"): (["program", "for"], (0, 0), (0,), True, None),
    }


def test_the_last_common_loop_is_the_papers():
    for text, nested, forward in ((FIG6_FORWARD, True, True), (FIG6_BACKWARD, True, False), (FIG5, False, True)):
        (edge,) = structure(text).edges
        assert (edge.producer.loop is not edge.common[-1]) is nested
        assert edge.forward is forward
        assert edge.same_run is not nested


def test_what_values_decide():
    body = """
  %r = scf.for %a = %c0 to %n step %c1 iter_args(%x = %c1) -> (index) {
    scf.for %b = %c0 to %x step %c1 {
    }
    %v = sem.value @V engine "e0" cost 1 : index
    %w = sem.value @W engine "e0" cost 1 : index
    %z = arith.addi %v, %w : index
    scf.index_switch %w
    default {
      scf.yield
    }
    scf.yield %z : index
  }
  scf.for %c = %c0 to %r step %c1 {
    scf.for %d = %c0 to %c step %c1 {
    }
  }"""
    found = structure(program("p", body))
    deciding = {
        found.loops.index(decided): [value.label for value in values]
        for decided, values in values_deciding(found).items()
    }
    assert deciding == {2: ["V", "W"], 3: ["W"], 4: ["V", "W"], 5: ["V", "W"]}
    while_loop = structure(NEST)
    kinds = {
        str(decided.kind): [value.label for value in values] for decided, values in values_deciding(while_loop).items()
    }
    assert kinds == {"then": ["V"], "else": ["V"], "while": ["V", "Y"], "after": ["V", "Y"]}


def chain(length: int) -> ProgramOp:
    """One straight-line run in which each instruction follows the one below it and, by engine, one above."""
    instructions = [
        InstOp(f"I{i}", f"e{i % 4}" if i % 4 < 3 else f"f{i}", 1, [offset(f"I{i + 1}", 0)] if i % 4 < 3 else [])
        for i in range(length)
    ]
    return ProgramOp("p", Region(Block(instructions)))


def test_verification_is_near_linear():
    """Eight times the instructions take about eight times as long, not 64 times."""

    def seconds(length: int) -> float:
        made = chain(length)
        started = time.process_time()
        made.verify(verify_nested_ops=False)
        return time.process_time() - started

    small = min(seconds(500) for _ in range(3))
    assert seconds(4000) < 24 * small


def test_deep_nests():
    depth = 30
    body = 'sem.inst @P engine "e0" cost 1 after [@P distance [' + ", ".join("0" * (depth - 1) + "1") + "]]"
    for level in range(depth):
        body = loop(body, f"i{level}x")
    (edge,) = structure(program("p", body)).edges
    assert edge.distance == (*[0] * depth, 1)
