"""The rules of sem: what test/dialects/sem/invalid.mlir refuses has its lawful neighbour here."""

import pytest
from sem_figures import FIGURES, loop, program
from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.engine import (
    Declaration,
    EngineInstruction,
    EngineValue,
    cost_of,
    engine_of,
    is_instruction,
    is_value,
    label_of,
    latency_of,
)
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.reference.sem import run_program


@irdl_op_definition
class PrivateOp(IRDLOperation):
    """An instruction with a result that only its engine knows."""

    name = "probe.private"
    engine = prop_def(StringAttr)
    result = result_def(IndexType)
    traits = traits_def(EngineInstruction())
    assembly_format = "$engine attr-dict"


@irdl_op_definition
class SharedOp(IRDLOperation):
    """An instruction with a result that every engine reads."""

    name = "probe.shared"
    engine = prop_def(StringAttr)
    result = result_def(IndexType)
    traits = traits_def(EngineValue())
    assembly_format = "$engine attr-dict"


@irdl_op_definition
class BufferOp(IRDLOperation):
    name = "probe.buffer"
    traits = traits_def(Declaration())
    assembly_format = "attr-dict"


@irdl_op_definition
class StrangerOp(IRDLOperation):
    name = "probe.stranger"
    assembly_format = "attr-dict"


CONTEXT = new_context()
CONTEXT.load_dialect(Dialect("probe", [PrivateOp, SharedOp, BufferOp, StrangerOp]))


def load(body: str, arguments: str = "%n : index"):
    module = parse_module(program("p", body).replace("%n : index", arguments), "test.mlir", CONTEXT)
    verify(module)
    return module.body.block.first_op


def refused(body: str, message: str, line: int, arguments: str = "%n : index") -> None:
    """`body` breaks a rule in its line `line`, from 1."""
    with pytest.raises(OpError, match=message) as found:
        load(body, arguments)
    assert found.value.op.location.line.data == line + 4


P = 'sem.inst @P engine "e0" cost 1'
CONSUMER = 'sem.inst @C engine "e1" cost 1 after'


@pytest.mark.parametrize(
    "body",
    [
        f"{P}\n{CONSUMER} [@P offset 0]",
        f"{CONSUMER} [@P offset 0]\n{P}",
        f"{CONSUMER.replace('e1', 'e0')} [@P offset 1]\n{P}",
        'sem.inst @P engine "e0" cost 1 after [@P offset 1]',
        f"{loop(P)}\n{CONSUMER} [@P offset 0]",
        loop(f"{CONSUMER} [@P offset 1]\n{loop(P, 'b')}"),
        loop(f"{CONSUMER} [@P distance [1]]\n{loop(P, 'b')}"),
        loop(loop(f"{P}\n{CONSUMER} [@P distance [0, 0], @P distance [1, -3], @P distance [2, *]]", "b")),
        loop(loop(loop(f"{P}\n{CONSUMER} [@P distance [1, *, *], @P distance [0, 1, *]]", "b"), "c")),
        loop(loop(loop(f"{P}\n{CONSUMER} [@P distance [1, *, 0], @P distance [1, 0, -1]]", "b"), "c")),
        f"{P}\n{CONSUMER} [@P distance []]",
        f"{P}\n{CONSUMER} [@P offset 7]",
        'sem.inst @A engine "e0" cost 1 after [@B offset 1]\nsem.inst @B engine "e1" cost 1 after [@A offset 0]',
        loop('%v = sem.value @V engine "e0" cost 1 : index\n' + loop(P, "b", "v")),
        f'{P} {{semaphores = "auto"}}',
        "probe.buffer",
        "%b = memref.alloc() : memref<4xf32>",
        'probe.private "e0"',
    ],
)
def test_lawful_programs(body):
    load(body)


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_lawful(figure):
    verify(parse_module(FIGURES[figure][0], figure, CONTEXT))


def test_else_follows_then():
    body = f"scf.if %k {{\n{P}\n}} else {{\n{CONSUMER} [@P offset 0]\n}}"
    load(body, "%n : index, %k : i1")


def test_the_second_region_of_a_while_follows_the_first():
    def looped(before: str, after: str) -> str:
        return f"scf.while () : () -> () {{\n{before}\nscf.condition(%k)\n}} do {{\n{after}\nscf.yield\n}}"

    arguments = "%n : index, %k : i1"
    load(looped(P, f"{CONSUMER} [@P offset 0, @P distance [1]]"), arguments)
    load(looped(f"{CONSUMER} [@P offset 1]", P), arguments)
    refused(looped(f"{CONSUMER} [@P offset 0]", P), "offset 0 from a later loop or conditional", 2, arguments)
    refused(looped(f"{CONSUMER} [@P distance []]", P), "the wrong number of components", 2, arguments)


@pytest.mark.parametrize(
    "decided",
    [
        "scf.for %i = %c0 to %x step %c1 {\n}",
        "scf.for %i = %x to %n step %c1 {\n}",
        "%y = arith.addi %x, %n : index\nscf.for %i = %c0 to %n step %y {\n}",
        "scf.index_switch %x\ndefault {\nscf.yield\n}",
        "%k = arith.cmpi eq, %x, %n : index\nscf.if %k {\n}",
        "%y = scf.for %i = %c0 to %n step %c1 iter_args(%z = %c1) -> (index) {\nscf.yield %x : index\n}\n"
        "scf.for %j = %c0 to %y step %c1 {\n}",
        "%y = scf.for %i = %c0 to %n step %c1 iter_args(%z = %x) -> (index) {\nscf.yield %n : index\n}\n"
        "scf.for %j = %c0 to %y step %c1 {\n}",
        "%y = scf.for %i = %c0 to %n step %c1 iter_args(%z = %x) -> (index) {\n"
        "scf.for %j = %c0 to %z step %c1 {\n}\nscf.yield %n : index\n}",
        "%r = scf.while (%z = %x) : (index) -> (index) {\n%k = arith.cmpi eq, %z, %n : index\n"
        "scf.condition(%k) %z : index\n} do {\n^bb0(%y : index):\nscf.yield %y : index\n}",
        "%f = scf.if %t -> (index) {\nscf.yield %n : index\n} else {\nscf.yield %x : index\n}\n"
        "scf.for %j = %c0 to %f step %c1 {\n}",
    ],
)
def test_bounds_and_conditions_are_known_to_every_engine(decided):
    body = '%t = arith.constant true\n%x = probe.KNOWN "e0"\n' + decided
    load(body.replace("KNOWN", "shared"))
    with pytest.raises(OpError, match="comes from the result of an instruction that only its engine knows"):
        load(body.replace("KNOWN", "private"))


def test_the_place_of_a_condition_is_that_of_its_reader():
    body = 'probe.buffer\n%x = probe.private "e0"\nscf.for %i = %c0 to %x step %c1 {\n}'
    refused(body, "the upper bound comes from", 3)


def test_a_value_ends_with_its_block():
    """Text cannot say it, a pass can do it."""
    found = load("scf.for %i = %c0 to %n step %c1 {\n%x = arith.constant 2 : index\n}\n%y = arith.addi %n, %n : index")
    *_, loop_op, last = found.body.block.ops
    last.operands[0] = loop_op.body.block.first_op.results[0]
    with pytest.raises(OpError, match="%x is used before it is defined"):
        verify(found)


def test_strangers_are_refused_where_they_stand():
    refused(loop("probe.stranger"), "'probe.stranger' is not allowed in a sem.program", 2)


def test_what_an_engine_instruction_says_of_itself():
    a, b, c = list(
        load(f'{P} \nsem.value @V engine "e1" cost 7 latency 9 : i1\nprobe.shared "e2" {{label = "S"}}').body.block.ops
    )[3:]
    assert [is_instruction(op) for op in (a, b, c)] == [True] * 3
    assert [is_value(op) for op in (a, b, c)] == [False, True, True]
    assert [engine_of(op) for op in (a, b, c)] == ["e0", "e1", "e2"]
    assert [label_of(op) for op in (a, b, c)] == ["P", "V", "S"]
    assert [cost_of(op) for op in (a, b, c)] == [1, 7, None]
    assert [latency_of(op) for op in (a, b, c)] == [1, 9, None]
    refused('probe.shared "e2" {cost = "much"}', "cost is a number of ns", 1)
    refused('probe.shared "e2" {cost = -1 : i64}', "cost is a number of ns", 1)
    refused('probe.shared "e2" {after = 3 : i64}', "after is no list of dependencies: 3 : i64", 1)
    refused('"probe.shared"() : () -> index', "an instruction needs the name of its engine", 1)
    refused('probe.shared "e2" {label = 3 : i64}', "a label is a name that is not empty", 1)


def test_instructions_survive_clean_up():
    """cse, dce and licm keep what waits and signals, and in its order."""
    body = loop(
        "%d = arith.constant 1 : index\n%e = arith.constant 1 : index\n"
        f'%x = arith.addi %d, %e : index\n{P}\n%v = sem.value @V engine "e0" cost 1 : index\n'
        f"{loop(CONSUMER + ' [@P offset 0, @C distance [1, *]]', 'b', 'x')}"
    )
    module = load(body).parent_op()
    before = run_program(module.body.block.first_op, {"n": 3, "V": [1, 2, 3]})
    passes = PassPipeline.parse_spec(Universe.get_multiverse().all_passes, "cse,licm,dce", lambda _, m, __: verify(m))
    size = len(list(module.walk()))
    passes.apply(CONTEXT, module)
    assert len(list(module.walk())) < size
    assert run_program(module.body.block.first_op, {"n": 3, "V": [1, 2, 3]}) == before


@pytest.mark.parametrize("kind", ["barrier", "unrolled"])
def test_kinds_of_loops_are_not_for_instructions(kind):
    text = f'sem.inst @P engine "e0" cost 1 {{semaphores = "{kind}"}}'
    refused(text, f"semaphores of kind '{kind}' are for a loop or a conditional: write it on one", 1)
