"""How often loops run at most, against how often they do, and intervals against what is computed."""

from random import Random

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sem_programs import programs

from mpkc.cli import main
from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.scalars import evaluate, is_scalar
from mpkc.dialects.sem_structure import structure_of
from mpkc.parsing import new_context, parse_module
from mpkc.passes.semaphores.bounds import entries, trips
from mpkc.passes.semaphores.intervals import Intervals, whole
from mpkc.runtime.reference.sem import run_program
from mpkc.runtime.reference.tile import run_kernel

CONTEXT = new_context()
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

CONSTANTS = "\n".join(f"%c{i} = arith.constant {i} : index" for i in (0, 1, 2, 3, 4, 16, 100))


def load(text: str):
    module = parse_module(text, "test.mlir", CONTEXT)
    verify(module)
    return module.body.block.first_op


def program(body: str, maxima: str = "", arguments: str = "%n : index"):
    attributes = f"attributes {{maxima = {{{maxima}}}}} " if maxima else ""
    return load(f"sem.program @p({arguments}) {attributes}{{\n{CONSTANTS}\n{body}\n}}")


def bounds(body: str, maxima: str = "", arguments: str = "%n : index") -> dict[str, int | None]:
    found = trips(structure_of(program(body, maxima, arguments)))
    return {loop.name: most for loop, most in found.items() if loop.counted}


X = 'sem.inst @X engine "e0" cost 1'

TRIPS = {
    "constant": (f"scf.for %i = %c1 to %c16 step %c4 {{ {X} }}", "", {"i": 4}),
    "backwards": (f"scf.for %i = %c16 to %c1 step %c4 {{ {X} }}", "", {"i": 0}),
    "argument": (f"scf.for %i = %c0 to %n step %c3 {{ {X} }}", "n = 100 : index", {"i": 34}),
    "unknown": (f"scf.for %i = %c0 to %n step %c3 {{ {X} }}", "", {"i": None}),
    "unknown step": (f"scf.for %i = %c0 to %c16 step %n {{ {X} }}", "", {"i": 16}),
    "most": (f"scf.for %i = %c0 to %n step %c3 {{ {X} }} {{most = 9}}", "", {"i": 9}),
    "most beyond": (f"scf.for %i = %c0 to %c3 step %c1 {{ {X} }} {{most = 9}}", "", {"i": 3}),
    "tile": (
        f"scf.for %i = %c0 to %n step %c4 {{\n%e = arith.addi %i, %c4 : index\n"
        f"scf.for %j = %i to %e step %c1 {{ {X} }}\n}}",
        "",
        {"i": None, "j": 4},
    ),
    "ragged tile": (
        f"scf.for %i = %c0 to %n step %c4 {{\n%e = arith.addi %i, %c4 : index\n%u = arith.minsi %e, %n : index\n"
        f"scf.for %j = %i to %u step %c1 {{ {X} }}\n}}",
        "n = 100 : index",
        {"i": 25, "j": 4},
    ),
    "unsigned minimum of what may be negative": (
        f"%e = arith.addi %n, %c4 : index\n%u = arith.minui %e, %c100 : index\n"
        f"scf.for %i = %n to %u step %c1 {{ {X} }}",
        "",
        {"i": None},
    ),
    "unsigned minimum": (
        f"%e = arith.addi %n, %c4 : index\n%u = arith.minui %e, %c100 : index\n"
        f"scf.for %i = %n to %u step %c1 {{ {X} }}",
        "n = 50 : index",
        {"i": 4},
    ),
    "triangle": (
        f"scf.for %i = %c0 to %n step %c1 {{\nscf.for %j = %c0 to %i step %c1 {{ {X} }}\n}}",
        "n = 100 : index",
        {"i": 100, "j": 99},
    ),
    "value": (
        f'%v = sem.value @V engine "e0" cost 1 : index\nscf.for %i = %c0 to %v step %c1 {{ {X} }}',
        "V = 7 : index",
        {"i": 7},
    ),
    "carried value": (
        "%r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c16) -> (index) {\n"
        f"scf.for %j = %c0 to %t step %c1 {{ {X} }}\n"
        '%v = sem.value @V engine "e0" cost 1 : index\nscf.yield %v : index\n}\n'
        "scf.for %k = %c0 to %r step %c1 { }",
        "V = 70 : index",
        {"i": None, "j": 70, "k": 70},
    ),
    "carried unchanged": (
        "%r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c3) -> (index) {\n"
        f"%s = scf.for %j = %c0 to %t step %c1 iter_args(%u = %t) -> (index) {{ {X}\nscf.yield %u : index }}\n"
        "scf.yield %s : index\n}",
        "",
        {"i": None, "j": 3},
    ),
    "carried and grown": (
        "%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %c3) -> (index) {\n"
        f"scf.for %j = %c0 to %t step %c1 {{ {X} }}\n"
        "%u = arith.addi %t, %c1 : index\nscf.yield %u : index\n}",
        "",
        {"i": 4, "j": None},
    ),
    "conditional": (
        "%b = arith.cmpi ult, %n, %c3 : index\n"
        "%u = scf.if %b -> (index) { scf.yield %c4 : index } else { scf.yield %n : index }\n"
        f"scf.for %i = %c0 to %u step %c1 {{ {X} }}",
        "n = 100 : index",
        {"i": 100},
    ),
    "while": (
        f"%e = scf.while (%w = %n) : (index) -> index {{\n{X}\n%b = arith.cmpi ult, %w, %c3 : index\n"
        "scf.condition(%b) %w : index\n} do {\n^bb0(%x : index):\nscf.yield %x : index\n} attributes {most = 5}",
        "",
        {"while1": 5},
    ),
}


@pytest.mark.parametrize("case", TRIPS)
def test_trips(case):
    body, maxima, expected = TRIPS[case]
    assert bounds(body, maxima) == expected


def test_a_wrapped_end_is_no_short_loop():
    """%n - 3 to %n + 3 may run far: where the sum wraps, it is the lower bound that is greater."""
    body = (
        "%low = arith.addi %n, %c3 : index\n%high = arith.addi %n, %c1 : index\n"
        f"scf.for %i = %low to %high step %c1 {{ {X} }}"
    )
    assert bounds(body) == {"i": None}
    assert bounds(body, "n = 100 : index") == {"i": 98}


def test_entries():
    text = f"""
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %c3 step %c1 {{
      scf.for %k = %c0 to %c4 step %c1 {{ {X} }}
      scf.for %e = %c4 to %c4 step %c1 {{ scf.for %l = %c0 to %n step %c1 {{ }} }}
    }}
  }}"""
    structure = structure_of(program(text))
    loops = {loop.name: loop for loop in structure.loops}

    def named(within: str | None) -> dict[str, int | None]:
        found = entries(structure, within and loops[within])
        return {loop.name: most for loop, most in found.items()}

    assert named(None) == {"program": 1, "i": None, "j": None, "k": None, "e": 0, "l": 0}
    assert named("i") == {"i": 1, "j": 3, "k": 12, "e": 0, "l": 0}
    assert named("j") == {"j": 1, "k": 4, "e": 0, "l": 0}
    assert named("k") == {"k": 1}


@given(programs(), st.booleans())
@SETTINGS
def test_no_loop_runs_more_often(program, declared):
    """Programs with random bounds: with maxima declared, all but while loops are bounded, and never too low."""
    text = program.text
    if declared:
        numbers = {name: [value] for name, value in program.arguments.items() if not isinstance(value, bool)}
        numbers |= {name: v for name, v in program.values.items() if "index" in program.instructions[name].result}
        maxima = ", ".join(f"{name} = {max(values)} : index" for name, values in numbers.items())
        text = text.replace(") {\n", f") attributes {{maxima = {{{maxima}}}}} {{\n", 1)
    loaded = load(text)
    structure = structure_of(loaded)
    most, whole_run = trips(structure), entries(structure)
    ran = dict.fromkeys(structure.instructions, 0)
    for execution in run_program(loaded, program.bindings).executions:
        instruction = structure.by_label[execution.name]
        ran[instruction] += 1
        for loop, iteration in zip(instruction.counted, execution.iteration, strict=True):
            assert most[loop] is None or iteration <= most[loop]
    for instruction, count in ran.items():
        assert whole_run[instruction.loop] is None or count <= whole_run[instruction.loop]
    if declared:
        assert all(most[loop] is not None for loop in structure.loops if loop.kind == "for")


WIDTHS = {"index": 64, "i8": 8, "i32": 32, "i1": 1}
SAME = (
    *("addi", "subi", "muli", "divui", "divsi", "floordivsi", "ceildivsi", "ceildivui", "remui", "remsi", "minui"),
    *("minsi", "maxui", "maxsi", "andi", "ori", "xori", "shli", "shrsi", "shrui"),
)
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def random_arithmetic(rng: Random) -> tuple[str, dict[str, int]]:
    """The text of a program that only computes, and the maxima of its arguments."""
    maxima = {name: rng.choice((0, 1, 5, 100, 10**6, 2**62)) for name in ("a", "b")}
    values = [("%a", "index"), ("%b", "index"), ("%u", "index"), ("%k", "i1")]
    lines = []
    for constant in (-1, 2, 7, rng.randint(-300, 300)):
        type_ = rng.choice(("index", "i8", "i32"))
        values.append((f"%v{len(values)}", type_))
        lines.append(f"{values[-1][0]} = arith.constant {constant % 100 if type_ == 'i8' else constant} : {type_}")

    def value(type_: str) -> str:
        return rng.choice([name for name, t in values[-8:] + values if t == type_])

    for _ in range(14):
        name, type_ = f"%v{len(values)}", rng.choice([t for _, t in values])
        kind = rng.randrange(8)
        if kind == 0:
            other = rng.choice([t for t in WIDTHS if any(t == u for _, u in values)])
            lines.append(f"{name} = arith.{cast(rng, other, type_)} {value(other)} : {other} to {type_}")
            if other == type_ or "index" not in (other, type_) and "cast" in lines[-1]:
                lines.pop()
                continue
        elif kind == 1:
            lines.append(f"{name} = arith.cmpi {rng.choice(PREDICATES)}, {value(type_)}, {value(type_)} : {type_}")
            type_ = "i1"
        elif kind == 2:
            lines.append(f"{name} = arith.select {value('i1')}, {value(type_)}, {value(type_)} : {type_}")
        else:
            lines.append(f"{name} = arith.{rng.choice(SAME)} {value(type_)}, {value(type_)} : {type_}")
        values.append((name, type_))
    declared = ", ".join(f"{name} = {maximum} : index" for name, maximum in maxima.items())
    head = f"sem.program @p(%a : index, %b : index, %u : index, %k : i1) attributes {{maxima = {{{declared}}}}} {{"
    return "\n".join([head, *lines, "}"]), maxima


def cast(rng: Random, source: str, target: str) -> str:
    if "index" in (source, target):
        return "index_cast"
    return rng.choice(("extsi", "extui")) if WIDTHS[source] < WIDTHS[target] else "trunci"


@given(st.randoms(use_true_random=False))
@SETTINGS
def test_every_result_lies_in_its_interval(rng):
    text, maxima = random_arithmetic(rng)
    loaded = load(text)
    intervals = Intervals(loaded)
    for _ in range(12):
        a, b, u, k = loaded.body.block.args
        values = {a: rng.randint(0, maxima["a"]), b: rng.randint(0, maxima["b"])}
        values |= {u: rng.choice((-(2**63), -1, 0, 3, 2**63 - 1)), k: rng.randint(0, 1)}
        for op in loaded.body.block.ops:
            assert is_scalar(op)
            if all(operand in values for operand in op.operands):
                try:
                    values[op.results[0]] = evaluate(op, [values[operand] for operand in op.operands])
                except OpError:
                    continue
        for value, number in values.items():
            low, high = intervals.of(value)
            assert low <= number <= high, value
            least, greatest = whole(value.type)
            assert least <= low
            assert high <= greatest


def test_intervals_are_as_narrow_as_they_can_be_said():
    text = """
  %a = arith.remui %n, %c16 : index
  %b = arith.muli %a, %c4 : index
  %d = arith.shrui %b, %c2 : index
  %e = arith.subi %d, %c100 : index
  %f = arith.divsi %e, %c3 : index
  %g = arith.andi %n, %c3 : index
  %h = arith.index_cast %b : index to i32
  %j = arith.minui %n, %c100 : index
  %k = arith.remsi %n, %c3 : index"""
    loaded = program(text)
    intervals = Intervals(loaded)
    found = {op.results[0].name_hint: intervals.of(op.results[0]) for op in loaded.body.block.ops}
    assert found["a"] == (0, 15)
    assert found["b"] == (0, 60)
    assert found["d"] == (0, 15)
    assert found["e"] == (-100, -85)
    assert found["f"] == (-33, -28)
    assert found["g"] == (0, 3)
    assert found["h"] == (0, 60)
    assert found["j"] == (0, 100)
    assert found["k"] == (-2, 2)


def test_long_chains_are_no_deep_recursion():
    lines = [f"%x{i + 1} = arith.addi %x{i}, %c1 : index" for i in range(3000)]
    body = "\n".join(["%x0 = arith.addi %c0, %c0 : index", *lines])
    assert bounds(f"{body}\nscf.for %i = %c0 to %x3000 step %c1 {{ {X} }}") == {"i": 3000}


PROMISES = {
    "argument": ("sem.program @p(%n : index) attributes {maxima = {n = 3 : index}} {", "}", {"n": 4}, "is 4"),
    "negative": ("sem.program @p(%n : index) attributes {maxima = {n = 3 : index}} {", "}", {"n": -1}, "is -1"),
    "value": (
        "sem.program @p() attributes {maxima = {V = 3 : index}} {",
        'scf.for %i = %c0 to %c3 step %c1 { %v = sem.value @V engine "e0" cost 1 : index }}',
        {"V": [3, 0, 9]},
        "@V is 9 and was declared to lie in 0..3",
    ),
    "for": (
        "sem.program @p(%n : index) {",
        f"scf.for %i = %c0 to %n step %c1 {{ {X} }} {{most = 3}} }}",
        {"n": 4},
        "runs for the 4th time and was declared to run 3 at most",
    ),
    "while": (
        "sem.program @p(%n : index) {",
        "%e = scf.while (%w = %c0) : (index) -> index {\n%b = arith.cmpi ult, %w, %n : index\n"
        "scf.condition(%b) %w : index\n} do {\n^bb0(%x : index):\n%y = arith.addi %x, %c1 : index\n"
        "scf.yield %y : index\n} attributes {most = 4} }",
        {"n": 4},
        "runs for the 5th time and was declared to run 4 at most",
    ),
}


@pytest.mark.parametrize("case", PROMISES)
def test_a_broken_promise_is_told(case):
    head, body, bindings, message = PROMISES[case]
    loaded = load(f"{head}\n{CONSTANTS}\n{body}")
    with pytest.raises(OpError, match=message):
        run_program(loaded, bindings)
    kept = {"n": 3, "V": [3, 0, 3]}
    run_program(loaded, {name: kept[name] for name in bindings})


KERNEL = """
!counts = memref<2xi32, #tile.space<far>>
tile.kernel @k(%counts : !counts, %n : index) engines ["e"] attributes {maxima = {n = 4 : index, V = 3 : index}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = tile.value %counts[%c1] engine "e" {label = "V"} : !counts
    scf.for %j = %c0 to %v step %c1 { } {most = 2}
  }
}
"""


@pytest.mark.parametrize(
    ("count", "n", "message"),
    [
        (2, 4, None),
        (2, 5, "%n is 5 and was declared to lie in 0..4"),
        (4, 1, "%v is 4 and was declared to lie in 0..3"),
        (-1, 1, "%v is -1 and"),
        (3, 1, "the loop runs for the 3rd time and was declared to run 2 at most"),
    ],
)
def test_a_kernel_is_held_to_its_promises(count, n, message):
    module = parse_module(KERNEL, "test.mlir", CONTEXT)
    verify(module)
    (kernel,) = module.ops
    assert list(trips(structure_of(kernel)).values()) == [1, 4, 2]
    counts = np.array([9, count], np.int32)
    if message is None:
        run_kernel(kernel, {"counts": counts, "n": n})
        return
    with pytest.raises(OpError, match=message):
        run_kernel(kernel, {"counts": counts, "n": n})


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        ("n=4,V=3,0,3,1", None),
        ("n=5,V=3,0,3,1,0", "n is 5 and was declared to lie in 0..4"),
        ("n=2,V=3,4", "V is 4 and was declared to lie in 0..3"),
        ("n=2,e0:n=9,V=3,3", "n is 9 and was declared to lie in 0..4"),
    ],
)
def test_a_simulation_holds_a_program_to_its_maxima(tmp_path, bind, message):
    """Counters are planned by these maxima, so nothing beyond them is simulated."""
    text = f"""sem.program @p(%n : index) attributes {{maxima = {{n = 4 : index, V = 3 : index}}}} {{
      {CONSTANTS}
      scf.for %i = %c0 to %n step %c1 {{
        %v = sem.value @V engine "e0" cost 1 : index
        scf.for %j = %c0 to %v step %c1 {{ {X} }}
      }}
    }}"""
    path = tmp_path / "program.mlir"
    path.write_text(text)
    result = CliRunner().invoke(main, ["simulate", str(path), "--bind", bind])
    assert result.exit_code == (0 if message is None else 2)
    assert message is None or f"program.mlir:1:1: error: {message}" in result.stderr
