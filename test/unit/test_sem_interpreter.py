"""The interpreter of sem in program order: the figures of the paper, control flow, values, bindings."""

import pytest
from sem_figures import FIG5, FIGURES, loop, program

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_structure import structure_of
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.bindings import Bindings, parse_bindings
from mpkc.runtime.reference.sem import instruction_value, owed, run_program

CONTEXT = new_context()


def load(text: str) -> ProgramOp:
    module = parse_module(text, "test.mlir", CONTEXT)
    verify(module)
    found = module.body.block.first_op
    assert isinstance(found, ProgramOp)
    return found


def run(text: str, bind: str = ""):
    return run_program(load(text), parse_bindings(bind))


def order(text: str, bind: str = "") -> list[str]:
    return [execution.name for execution in run(text, bind).executions]


def owed_by(trace, name: str) -> list[list[int | None]]:
    return [[wait.owed for wait in execution.waits] for execution in trace.of(name)]


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_owe_what_the_paper_says(figure):
    text, n, consumer, expected = FIGURES[figure]
    loaded = load(text)
    trace = run_program(loaded, {"n": n})
    assert [waits[0] for waits in owed_by(trace, consumer)] == expected
    (edge,) = structure_of(loaded).by_label[consumer].edges
    assert [owed(trace, edge, execution.iteration) for execution in trace.of(consumer)] == expected


def test_fig5_targets_and_values():
    trace = run(FIG5, "n=2")
    consumers, producers = trace.of("C"), trace.of("P")
    vectors = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (2, 4)]
    targets = [None, None, (1, 1), None, None, (2, 1), (2, 2)]
    assert [execution.iteration for execution in consumers] == vectors
    assert [execution.waits[0].target for execution in consumers] == targets
    read = dict(zip(vectors, (execution.value for execution in producers), strict=True))
    for execution, target in zip(consumers, targets, strict=True):
        written = instruction_value("C", execution.iteration, [read[target] if target else None])
        assert execution.value == written
    assert len({execution.value for execution in trace.executions}) == 14


def test_values_are_the_same_in_every_process():
    assert instruction_value("P", (1, 2), [None, 3]) == 0x9D94DAF7A27D34F9


def test_producer_of_offset_0_runs_first_in_a_run():
    body = (
        'sem.inst @A engine "e0" cost 1 after [@C offset 0]\nsem.inst @B engine "e1" cost 1\n'
        'sem.inst @C engine "e2" cost 1 after [@D offset 0]\nsem.inst @D engine "e1" cost 1'
    )
    assert order(program("p", body), "n=1") == ["B", "D", "C", "A"]


def test_instructions_of_an_engine_keep_their_order():
    body = (
        'sem.inst @A engine "e0" cost 1 after [@D offset 0]\nsem.inst @X engine "e1" cost 1 after [@Y offset 0]\n'
        'sem.inst @D engine "e1" cost 1\nsem.inst @Y engine "e2" cost 1'
    )
    assert order(program("p", body), "n=1") == ["Y", "X", "D", "A"]


def test_a_loop_without_instructions_separates_nothing():
    body = (
        "%m = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c1) -> (index) {\n"
        "%y = arith.addi %x, %x : index\nscf.yield %y : index\n}\n"
    )
    late = 'sem.inst @P engine "e0" cost 1'
    early = 'sem.inst @C engine "e1" cost 1 after [@P offset 0]'
    text = program("p", f"{early}\n{body}{late}\n" + loop('sem.inst @X engine "e2" cost 1', "j", "m"))
    assert order(text, "n=3") == ["P", "C", *8 * ["X"]]


def test_a_target_counts_what_ran_not_what_was_named():
    """Condition (1) is cumulative: with the branch not taken, an older execution is what is owed."""
    body = loop(
        "%odd = arith.remui %a, %c2 : index\n%on = arith.cmpi eq, %odd, %c0 : index\n"
        'scf.if %on {\nsem.inst @P engine "e0" cost 1\n}\n'
        'sem.inst @C engine "e1" cost 1 after [@P offset 0, @P offset 1]'
    )
    trace = run(program("p", f"%c2 = arith.constant 2 : index\n{body}"), "n=4")
    assert owed_by(trace, "C") == [[1, None], [1, 1], [2, 1], [2, 2]]
    assert [wait.target for wait in trace.of("C")[1].waits] == [(2,), (1,)]


def test_nothing_has_run_in_the_target():
    body = loop(
        'scf.for %b = %c0 to %a step %c1 {\nsem.inst @P engine "e0" cost 1\n}\n'
        'sem.inst @C engine "e1" cost 1 after [@P offset 0]'
    )
    trace = run(program("p", body), "n=3")
    assert owed_by(trace, "C") == [[0], [1], [3]]
    assert trace.of("C")[0].value == instruction_value("C", (1,), [None])


def test_every_iteration_and_negative_components():
    body = loop(
        "%m = arith.addi %a, %c1 : index\n"
        + loop(
            'sem.inst @P engine "e0" cost 1\nsem.inst @C engine "e1" cost 1 '
            "after [@P distance [1, *], @P distance [1, -1], @P distance [1, 1]]",
            "b",
            "m",
        )
    )
    loaded = load(program("p", body))
    trace = run_program(loaded, {"n": 3})  # 1, 2 and 3 trips
    edges = structure_of(loaded).by_label["C"].edges
    assert owed_by(trace, "C") == [[owed(trace, edge, e.iteration) for edge in edges] for e in trace.of("C")]
    assert owed_by(trace, "C") == [
        [None, None, None],
        *([1, 1, None], [1, 1, 1]),
        *([3, 3, None], [3, 3, 2], [3, 3, 3]),
    ]
    assert [wait.target for wait in trace.of("C")[2].waits] == [(1, "*"), (1, 3), (1, 1)]


def test_an_edge_between_branches_and_within_one():
    body = loop(
        'scf.if %k {\nsem.inst @P engine "e0" cost 1\nsem.inst @Q engine "e1" cost 1 after [@P offset 1]\n'
        '} else {\nsem.inst @C engine "e1" cost 1 after [@P offset 0]\n}'
    )
    text = program("p", body).replace("(%n : index)", "(%n : index, %k : i1)")
    assert owed_by(run(text, "n=3,k=true"), "Q") == [[None], [1], [2]]
    assert owed_by(run(text, "n=2,k=false"), "C") == [[0], [0]]


def test_top_level_offsets_are_never_owed():
    body = 'sem.inst @P engine "e0" cost 1\nsem.inst @C engine "e1" cost 1 after [@P offset 1, @P distance []]'
    trace = run(program("p", body), "n=0")
    assert [(wait.target, wait.owed) for wait in trace.of("C")[0].waits] == [(None, None), ((), 1)]
    (never, always) = structure_of(load(program("p", body))).by_label["C"].edges
    assert never.never_owed
    assert not always.never_owed


WHILE = program(
    "p",
    """
  %r = scf.while (%w = %c0) : (index) -> (index) {
    sem.inst @B engine "e0" cost 1 after [@A offset 1]
    %k = arith.cmpi slt, %w, %n : index
    scf.condition(%k) %w : index
  } do {
  ^bb0(%x : index):
    sem.inst @A engine "e1" cost 1 after [@B offset 0]
    %y = arith.addi %x, %c1 : index
    scf.yield %y : index
  }
  scf.for %i = %c0 to %r step %c1 {
    sem.inst @C engine "e1" cost 1 after [@B offset 0, @A distance []]
  }""",
)


def test_a_while_loop_counts_its_first_region():
    trace = run(WHILE, "n=2")
    assert [execution.name for execution in trace.executions] == ["B", "A", "B", "A", "B", "C", "C"]
    assert [execution.iteration for execution in trace.of("B")] == [(1,), (2,), (3,)]
    assert owed_by(trace, "A") == [[1], [2]]
    assert owed_by(trace, "B") == [[None], [1], [2]]
    assert owed_by(trace, "C") == [[3, 2], [3, 2]]


def test_index_switch_takes_the_case_or_the_default():
    body = loop(
        "scf.index_switch %a\n"
        'case 1 {\nsem.inst @One engine "e0" cost 1\nscf.yield\n}\n'
        'default {\nsem.inst @Other engine "e0" cost 1\nscf.yield\n}'
    )
    assert order(program("p", body), "n=3") == ["Other", "One", "Other"]


def test_values_and_carried_integers_decide_trips():
    body = """
  %last = scf.for %a = %c0 to %n step %c1 iter_args(%x = %c1) -> (index) {
    scf.for %b = %c0 to %x step %c1 {
      sem.inst @X engine "e1" cost 1
    }
    %v = sem.value @V engine "e0" cost 1 after [@X offset 0] : index
    scf.yield %v : index
  }
  scf.for %c = %c0 to %last step %c1 {
    sem.inst @Y engine "e1" cost 1
  }"""
    assert order(program("p", body), "n=3,V=2,0,4") == ["X", "V", "X", "X", "V", "V", *4 * ["Y"]]


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        ("", "the argument %n has no value: bind it, n=VALUE"),
        ("n=1,2", "the argument %n has 2 values: bind one"),
        ("n=true,V=1", "the argument %n is an index and cannot be true"),
        ("n=2,V=1", "@V runs for the 2nd time and has 1 value"),
        ("n=1", "@V runs for the 1st time and has no value"),
        ("n=1,V=2", "@V is an i1 and cannot be 2"),
        ("n=1,V=true,m=1", "'m' is neither an argument nor a sem.value; there are: n, V"),
        ("n=1,V=true,e1:n=2", r"values for one engine alone \(e1\): in program order all engines must agree"),
    ],
)
def test_wrong_bindings(bind, message):
    text = program("p", loop('%v = sem.value @V engine "e0" cost 1 : i1'))
    with pytest.raises(OpError, match=message):
        run(text, bind)


def test_bindings_for_one_engine():
    bindings = parse_bindings("n=3,e1:n=2")
    assert len(run_program(load(FIG5), bindings.for_engine("e1")).of("P")) == 7
    assert len(run_program(load(FIG5), bindings.for_engine("e0")).of("P")) == 12


def test_a_step_below_1_and_a_loop_without_end():
    stepped = program("p", "scf.for %i = %c0 to %c3 step %n {\n}")
    with pytest.raises(OpError, match=r"test.mlir:5:1: error: the step is 0 here"):
        run(stepped, "n=0")
    with pytest.raises(OpError, match="ran 100 iterations: it seems to run forever"):
        run_program(load(WHILE), {"n": 1000}, limit=100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Bindings()),
        ("n=3,k=true,V=3,1,4", Bindings({"n": (3,), "k": (True,), "V": (3, 1, 4)})),
        ("V=3,1,4,n=2", Bindings({"V": (3, 1, 4), "n": (2,)})),
        ("e1:n=2,n=3", Bindings({"n": (3,)}, {"e1": {"n": (2,)}})),
        ("e1:V=2,3,n=-1", Bindings({"n": (-1,)}, {"e1": {"V": (2, 3)}})),
        (" n = 0x10 , k = false ", Bindings({"n": (16,), "k": (False,)})),
    ],
)
def test_parse_bindings(text, expected):
    parsed = parse_bindings(text)
    assert parsed == expected
    assert repr(parsed) == repr(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "'3' continues no list"),
        ("=3", "'=3' names nothing"),
        ("e1:=3", "'e1:=3' names nothing"),
        ("n=x", "'x' is no value"),
        ("n=", "'' is no value"),
        ("n=1,n=2", "n has a value already"),
        ("n=1,,2", "'' is no value"),
    ],
)
def test_wrong_bind_strings(text, message):
    with pytest.raises(ValueError, match=message):
        parse_bindings(text)
