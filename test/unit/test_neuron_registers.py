"""Registers of ISA programs: allocation, and the check that knows nothing of it."""

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from isa_executor import run_engines
from isa_mutations import mutants
from semaphore_fuzz import make_program
from stream_programs import Generator
from test_neuron_emit import ARGUMENTS, GENERIC, UNLIMITED, lines, parsed

from mpkc.parsing import parse_module
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.emit import Emission, emission
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.text import print_isa
from mpkc.runtime.verify.registers import check_registers
from mpkc.semaphores import compile_program

EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"

CLEAN = (lambda _: None, drop_counters, lambda streams: (simplify(streams), drop_counters(streams)))


def failures(streams, emitted: Emission, program: isa.Program | None = None) -> list[str]:
    own = {engine: use.program for engine, use in emitted.registers.items()}
    return [failure.message for failure in check_registers(streams, program or emitted.program, own).failures]


def events(program: isa.Program, arguments) -> list | None:
    """What the only engine does; None where it reads what nothing has written, or does not end."""
    try:
        (engine,) = run_engines(program, dict(zip("nmk", arguments, strict=True))).values()
    except AssertionError:
        return None
    return engine.events


def test_random_streams():
    checked = 0
    for seed in range(60):
        streams = Generator(seed).streams()
        CLEAN[seed % 3](streams)
        emitted = emission(streams, UNLIMITED)
        assert failures(streams, emitted) == [], f"seed {seed}"
        checked += check_registers(streams, emitted.program).count
    assert checked > 5_000


@pytest.mark.parametrize("kind", ["per-instruction", "per-loop", "per-engine", "barrier"])
def test_allocated_programs(kind):
    """What the allocator writes for random programs, with conditionals, while loops and values."""
    for seed in range(12):
        compiled = compile_program(make_program(Random(seed)).op, kind, UNLIMITED)
        assert failures(compiled.streams, compiled.emission) == [], f"seed {seed}"


def test_mutants():
    """Each change to the code that changes what an engine does is caught; few others are let through."""
    caught = equivalent = 0
    for seed in range(45):
        streams = Generator(seed).streams(1)
        CLEAN[seed % 3](streams)
        program = emission(streams, UNLIMITED).program
        runs = (*ARGUMENTS, (5, 2, 1), (4, 4, 0))
        expected = [events(program, arguments) for arguments in runs]
        for what, engine in mutants(program.engines[0], 12, seed):
            mutant = replace(program, engines=(engine,))
            if check_registers(streams, mutant).failed:
                caught += 1
            else:
                assert [events(mutant, arguments) for arguments in runs] == expected, f"seed {seed} {what}"
                equivalent += 1
    assert caught > 200
    assert equivalent < 0.08 * caught


SWAP = """
    %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %one) -> (i32, i32) {
      sem.iteration "a" depth 1
      sem.wait "s0" >= %x : i32
      sem.wait "s1" >= %y : i32
      sem.inst @P engine "e0" cost 64
      scf.yield %y, %x : i32, i32
    }"""


def test_values_that_change_places():
    """A parallel copy goes through a third register; one after the other is caught."""
    streams = parsed(SWAP)
    emitted = emission(streams, GENERIC)
    assert failures(streams, emitted) == []
    moves = [line for line in lines(streams) if line.startswith("REGISTER_MOVE")][-3:]
    assert moves == ["REGISTER_MOVE r4 = r2", "REGISTER_MOVE r2 = r3", "REGISTER_MOVE r3 = r4"]
    (engine,) = emitted.program.engines
    wrong = [item for item in engine.body if not isinstance(item, isa.Move) or item.dest != isa.Register(4)]
    body = tuple(
        replace(item, source=isa.Register(2)) if isinstance(item, isa.Move) and item.source == isa.Register(4) else item
        for item in wrong
    )
    mutant = replace(emitted.program, engines=(replace(engine, body=body),))
    assert failures(streams, emitted, mutant)


COUNTED = """
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%r = %zero) -> (i32) {
      sem.iteration "a" depth 1
      %r1 = arith.addi %r, %one : i32
      sem.wait "s0" >= %r1 : i32
      sem.inst @P engine "e0" cost 64 {signal = "s1"}
      scf.yield %r1 : i32
    }"""


@pytest.mark.parametrize(
    ("item", "wrong", "message"),
    [
        ("REGISTER_ALU r2 = r2 add 1 : i32", None, "nothing has written it|read before it is computed|must hold"),
        ("REGISTER_MOVE r2 = 0", None, "nothing has written it"),
        ("REGISTER_MOVE r2 = 0", "REGISTER_MOVE r2 = 1", "r2 must hold %zero"),
        ("REGISTER_ALU r2 = r2 add 1 : i32", "REGISTER_ALU r2 = r2 add 2 : i32", "r2 must hold"),
        ("REGISTER_ALU r2 = r2 add 1 : i32", "REGISTER_ALU r2 = r2 add 1", "r2 must hold"),
        ("REGISTER_ALU r1 = r1 add 1", "REGISTER_ALU r1 = r2 add 1", "r2"),
        ("INST @P S[0]>=r2 S[1]++@complete", "INST @P S[0]>=r1 S[1]++@complete", "r1"),
        ("INST @P S[0]>=r2 S[1]++@complete", "INST @P S[1]>=r2 S[1]++@complete", "sem.wait is not what the code has"),
        ("INST @P S[0]>=r2 S[1]++@complete", "INST @Q S[0]>=r2 S[1]++@complete", "sem.inst is not what the code has"),
        ("INST @P S[0]>=r2 S[1]++@complete", "INST @P S[0]>=r2", "sem.inst is not what the code has"),
        ("INST @P S[0]>=r2 S[1]++@complete", "INST @P S[1]++@complete", "sem.wait is not what the code has"),
        ("COMPARE_BRANCH r1 lt r0 -> L0", "COMPARE_BRANCH r1 le r0 -> L0", "scf.for is not what the code has"),
        ("COMPARE_BRANCH r1 lt r0 -> L0", "COMPARE_BRANCH r1 lt r2 -> L0", "r2"),
        (".iteration a 1", ".iteration b 1", "sem.iteration is not what the code has"),
    ],
)
def test_each_mistake(item, wrong, message):
    streams = parsed(COUNTED)
    emitted = emission(streams, GENERIC)
    text = print_isa(emitted.program)
    assert text.count(item) == 1
    changed = text.replace(item, wrong) if wrong else "\n".join(line for line in text.split("\n") if item not in line)
    (found,) = failures(streams, emitted, read_isa(changed))
    assert re.search(message, found), found


def test_purposes_stay_apart():
    """What waits alone need is in no register of the program, and nothing but waits reads it."""
    streams = parsed(COUNTED)
    emitted = emission(streams, GENERIC)
    assert (emitted.registers["e0"].program, emitted.added_registers) == (2, 1)
    for own in ({"e0": 1}, {"e0": 3}):
        (failure,) = check_registers(streams, emitted.program, own).failures
        assert "for waits alone" in failure.message


@pytest.mark.parametrize("name", ["matmul", "softmax", "rmsnorm", "adamw", "attention", "moe"])
def test_kernels(name):
    """Offsets, sizes and strides in registers are those of the stream's views."""
    (program,) = parse_module((EXAMPLES / f"{name}.mlir").read_text()).ops
    for kind in ("per-loop", "barrier"):
        compiled = compile_program(program, kind, GENERIC)
        assert failures(compiled.streams, compiled.emission) == []
        for engine in compiled.emission.program.engines:
            for what, mutant in mutants(engine, 4, 0):
                others = [mutant if each.name == engine.name else each for each in compiled.emission.program.engines]
                changed = replace(compiled.emission.program, engines=tuple(others))
                assert failures(compiled.streams, compiled.emission, changed), what
