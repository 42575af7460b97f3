"""The driver: kinds that are mixed to fit a machine, remarks, what stays as it is."""

import re
from dataclasses import replace

import pytest
from sem_figures import FIG5, HEAD, loop
from test_semaphores_cli import TILE
from xdsl.dialects.builtin import ModuleOp

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.machine import Limits, machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.semaphores import compile_program

GENERIC = machine("generic")

# Eight loops in one: the consumer's engine has to count the entries of each.
NEST = f"sem.program @nest(%n : index) {{{HEAD}" + loop(
    "\n".join(loop(f'sem.inst @P{i} engine "e0" cost 64', f"b{i}") for i in range(8))
    + '\nsem.inst @C engine "e1" cost 64 after ['
    + ", ".join(f"@P{i} offset 0" for i in range(8))
    + "]"
) + "}"  # fmt: skip


def program_of(text: str):
    module = parse_module(text, "program.mlir", new_context())
    verify(module)
    return module.body.block.first_op


def device(registers: int | None = 64, semaphores: int | None = 256):
    return replace(GENERIC, limits=Limits(registers, semaphores))


def used(compiled) -> int:
    return max(engine.registers for engine in compiled.emission.program.engines)


def test_enough_registers_need_no_remark() -> None:
    compiled = compile_program(program_of(NEST), "per-loop", device())
    assert compiled.remarks == []
    assert used(compiled) > 8


@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine"])
def test_too_few_registers_bring_barriers_and_say_so(kind: str) -> None:
    wanted = used(compile_program(program_of(NEST), kind, device(None)))
    compiled = compile_program(program_of(NEST), kind, device(wanted - 2))
    assert used(compiled) <= wanted - 2
    barriers = [remark for remark in compiled.remarks if "this loop gets barriers" in remark]
    assert 1 <= len(barriers) < 8
    assert all(re.match(r"program.mlir:\d+:\d+: remark: engine \"e\d\" has \d+ registers", each) for each in barriers)
    text = read_isa(compiled.text)
    assert simulate(text, device(wanted - 2), {"n": 3}).ok


def test_what_does_not_fit_says_by_how_much() -> None:
    with pytest.raises(OpError, match=r"needs \d+ registers, .* and has 2: \d+ too many") as told:
        compile_program(program_of(NEST), "per-loop", device(2))
    assert str(told.value).startswith("program.mlir:1:1: error:")


def test_too_few_semaphores_are_shared() -> None:
    many = compile_program(program_of(NEST), "per-instruction", device())
    few = compile_program(program_of(NEST), "per-instruction", device(64, 1))
    assert len(many.emission.program.semaphores) == 8
    assert len(few.emission.program.semaphores) <= 1
    assert any("1 semaphore for this loop" in remark for remark in few.remarks)


@pytest.mark.parametrize("text", [FIG5, TILE], ids=["figure5", "tile"])
def test_a_program_is_left_as_it_is(text: str) -> None:
    program = program_of(text)
    before = str(program)
    compile_program(program, "per-loop", GENERIC)
    assert str(program) == before


def test_an_engine_that_the_device_has_not() -> None:
    with pytest.raises(OpError, match='generic has no engine "e1"; there are: e0'):
        compile_program(program_of(FIG5), "per-loop", replace(GENERIC, engines=("e0",)))


def test_unrolled_loops_are_straight_line_code() -> None:
    text = FIG5.replace("%n : index", "").replace("to %n", "to %c3")
    compiled = compile_program(program_of(text), "unrolled", GENERIC)
    assert "COMPARE_BRANCH" not in compiled.text
    assert compiled.text.count("INST @P") == 3 + 4 + 5


def test_the_same_input_gives_the_same_text() -> None:
    texts = {compile_program(program_of(TILE), "per-engine", GENERIC).text for _ in range(2)}
    assert len(texts) == 1


def test_the_module_of_a_compilation_is_well_formed() -> None:
    module = compile_program(program_of(TILE), "per-loop", GENERIC).module
    verify(module)
    again = parse_module(str(ModuleOp([op.clone() for op in module.ops])), "again.mlir", new_context())
    verify(again)
