"""From streams to ISA: what each engine does stays as it was, and costs what it has to."""

from dataclasses import replace
from pathlib import Path

import pytest
from isa_executor import as_streams_have_it, run_engines
from stream_programs import Generator, execute
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1, i32
from xdsl.ir import Block

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.scalars import SCALAR_OPS, evaluate, wrap
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.parsing import parse_module
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.runtime.machine import machine
from mpkc.runtime.machine.description import Dma
from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.alu import binary, unary
from mpkc.runtime.neuron.arithmetic import alu_of
from mpkc.runtime.neuron.emit import emission, emit
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.registers import TooManyRegisters
from mpkc.runtime.neuron.text import instruction_text, print_isa
from mpkc.runtime.verify.registers import check_registers
from mpkc.semaphores import compile_program

GENERIC = machine("generic")
UNLIMITED = replace(GENERIC, limits=replace(GENERIC.limits, registers=None))
ARGUMENTS = ((2, 1, 0), (1, 4, 1), (0, 2, 1))


def parsed(body: str, arguments: str = "%n : index", semaphores: str = '"s0", "s1"', engine: str = "e0") -> StreamsOp:
    """Streams of one engine, with a few constants."""
    module = parse_module(
        f"sem.streams @program({arguments}) counters ui32 semaphores [{semaphores}] {{\n"
        f'  sem.stream "{engine}" {{\n'
        "    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n    %c2 = arith.constant 2 : index\n"
        "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
        f"{body}\n  }}\n}}\n"
    )
    verify(module)
    (streams,) = module.ops
    assert isinstance(streams, StreamsOp)
    return streams


def lines(streams: StreamsOp, device=GENERIC) -> list[str]:
    """The code of the only engine, without directives."""
    (engine,) = emit(streams, device).engines
    return [
        f"{item.name}:" if isinstance(item, isa.Label) else instruction_text(item)
        for item in engine.body
        if not isinstance(item, isa.Iteration)
    ]


@pytest.mark.parametrize("clean", [lambda _: None, drop_counters, lambda s: (simplify(s), drop_counters(s))])
def test_random_streams(clean):
    """Every wait, threshold, instruction, directive and barrier, in their order; and text that reads back."""
    for seed in range(30):
        streams = Generator(seed).streams()
        clean(streams)
        program = emit(streams, UNLIMITED)
        for arguments in ARGUMENTS:
            engines = run_engines(program, dict(zip("nmk", arguments, strict=True)))
            for engine, expected in execute(streams, list(arguments)).items():
                events = as_streams_have_it(engines[engine].events)
                assert [_without_resets(event) for event in events] == [_without_resets(e) for e in expected]
        if seed < 5:
            assert read_isa(print_isa(program)) == program


def _without_resets(event):
    """Each engine resets what it signals, and these streams signal nothing."""
    return event[:1] if event[0] == "barrier" else event


def test_a_counter_is_one_addition():
    streams = parsed("""
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%r = %zero) -> (i32) {
      sem.iteration "a" depth 1
      %r1 = arith.addi %r, %one : i32
      %end = scf.for %j = %c0 to %n step %c1 iter_args(%q = %r1) -> (i32) {
        sem.iteration "b" depth 2
        %q1 = arith.addi %q, %one : i32
        sem.wait "s0" >= %q1 : i32
        sem.inst @P engine "e0" cost 64 {signal = "s1"}
        scf.yield %q1 : i32
      }
      scf.yield %end : i32
    }""")
    assert lines(streams) == [
        "REGISTER_MOVE r0 = argument(n)",
        "REGISTER_MOVE r3 = 0",
        "REGISTER_MOVE r1 = 0",
        "COMPARE_BRANCH r1 ge r0 -> L1",
        "L0:",
        "REGISTER_ALU r3 = r3 add 1 : i32",
        "REGISTER_MOVE r2 = 0",
        "COMPARE_BRANCH r2 ge r0 -> L3",
        "L2:",
        "REGISTER_ALU r3 = r3 add 1 : i32",
        "INST @P S[0]>=r3 S[1]++@complete cost=64 depth=2",
        "REGISTER_ALU r2 = r2 add 1",
        "COMPARE_BRANCH r2 lt r0 -> L2",
        "L3:",
        "REGISTER_ALU r1 = r1 add 1",
        "COMPARE_BRANCH r1 lt r0 -> L0",
        "L1:",
    ]
    use = emission(streams, GENERIC).registers["e0"]
    assert (use.program, use.synchronization) == (3, 1)


def test_a_mask_is_one_operation_and_a_trip_none():
    """A comparison and its extension to an integer; the index as a counter of 32 bits."""
    streams = parsed("""
    scf.for %i = %c0 to %n step %c1 {
      sem.iteration "a" depth 1
      %past = arith.cmpi uge, %i, %c2 : index
      %mask = arith.extui %past : i1 to i32
      %trip = arith.index_cast %i : index to i32
      %t = arith.muli %mask, %trip : i32
      sem.wait "s0" >= %t : i32
      sem.inst @P engine "e0" cost 64
    }""")
    assert lines(streams)[4:7] == [
        "REGISTER_ALU r2 = r1 is_geu 2",
        "REGISTER_ALU r2 = r2 mult r1 : i32",
        "INST @P S[0]>=r2 cost=64 depth=1",
    ]


def test_waits_and_branches():
    """The last wait is the instruction's own; a comparison is made by its branch; constants are immediates."""
    streams = parsed("""
    sem.wait "s0" >= %one : i32
    sem.wait "s1" >= %one : i32
    sem.inst @P engine "e0" cost 64
    %more = arith.cmpi ult, %n, %c2 : index
    scf.if %more {
      sem.iteration "then" depth 0
      sem.marker @M engine "e0" {signal = "s0"}
    }""")
    assert lines(streams) == [
        "REGISTER_MOVE r0 = argument(n)",
        "NOP S[0]>=1",
        "INST @P S[1]>=1 cost=64",
        "COMPARE_BRANCH r0 geu 2 -> L0",
        "NOP @M S[0]++@complete",
        "L0:",
    ]


def test_one_iteration_takes_no_branch():
    streams = parsed("""
    %r = scf.for %i = %c1 to %c2 step %c1 iter_args(%a = %zero) -> (i32) {
      sem.iteration "a" depth 1
      %b = arith.addi %a, %one : i32
      sem.inst @P engine "e0" cost 64
      scf.yield %b : i32
    }
    sem.wait "s0" >= %r : i32
    sem.inst @Q engine "e0" cost 64 after [@P offset 0]
    scf.for %i = %c0 to %c2 step %c1 {
      sem.iteration "b" depth 1
      sem.inst @R engine "e0" cost 64 after [@P offset 1]
    }""")
    assert lines(streams) == [
        "INST @P cost=64 depth=1",
        "INST @Q S[0]>=1 cost=64 after=[P []]",
        "REGISTER_MOVE r0 = 0",
        "L0:",
        "INST @R cost=64 after=[P never] depth=1",
        "REGISTER_ALU r0 = r0 add 1",
        "COMPARE_BRANCH r0 lt 2 -> L0",
    ]


def test_barriers():
    streams = parsed('sem.inst @P engine "e0" cost 64 {signal = "s0"}\nsem.barrier reset ["s0", "s1"]')
    assert lines(streams)[1:] == ["DRAIN", "HANDSHAKE", "RESET S[0]", "HANDSHAKE"]


def test_parts_of_transfers_are_counted():
    """On a DMA queue a retirement adds 1 for each part, and thresholds count parts."""
    device = replace(GENERIC, dma=Dma(16, ("q",)))
    body = """
    scf.for %i = %c0 to %n step %c1 {
      sem.iteration "a" depth 1
      %t = arith.index_cast %i : index to i32
      sem.wait "s0" >= %t : i32
      sem.inst @P engine "q" cost 64 {signal = "s0"}
    }
    sem.wait "s0" >= %one : i32
    sem.inst @Q engine "q" cost 64"""
    streams = parsed(body, engine="q")
    found = lines(streams, device)
    assert "REGISTER_ALU r2 = r1 mult 16 : i32" in found
    assert "INST @P S[0]>=r2 S[0]+=16@complete cost=64 depth=1" in found
    assert "INST @Q S[0]>=16 cost=64" in found
    assert not check_registers(streams, emit(streams, device)).failed


def test_thresholds_of_transfers_are_scaled_once():
    """Where they are computed, in front of the loops that they do not change in."""
    body = """
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (i32) {
      sem.iteration "a" depth 1
      sem.inst @P engine "q" cost 64 {signal = "s0"}
      %b = arith.addi %a, %one : i32
      scf.for %j = %c0 to %n step %c1 {
        sem.iteration "b" depth 2
        sem.wait "s0" >= %b : i32
        sem.inst @Q engine "q" cost 64
        sem.wait "s0" >= %b : i32
        sem.inst @R engine "q" cost 64
      }
      scf.yield %b : i32
    }
    sem.wait "s0" >= %r : i32
    sem.inst @S engine "q" cost 64"""
    streams, device = parsed(body, engine="q"), replace(GENERIC, dma=Dma(16, ("q",)))
    found = lines(streams, device)
    scaled = [at for at, line in enumerate(found) if "mult 16" in line]
    assert len(scaled) == 2, "%b and %r, each once"
    assert scaled[0] < found.index("L2:") < next(at for at, line in enumerate(found) if "@Q" in line)
    assert not check_registers(streams, emit(streams, device)).failed


def test_too_many_registers():
    sums = "\n".join(f"%x{at} = arith.addi %y, %c{at + 10} : i32" for at in range(70))
    constants = "\n".join(f"%c{at + 10} = arith.constant {at + 10} : i32" for at in range(70))
    waits = "\n".join(f'sem.wait "s0" >= %x{at} : i32' for at in range(70))
    body = f'%y = arith.index_cast %n : index to i32\n{constants}\n{sums}\n{waits}\nsem.inst @P engine "e0" cost 64'
    with pytest.raises(TooManyRegisters, match=r'engine "e0" needs 70 registers, .* and has 64: 6 too many') as caught:
        emit(parsed(body), GENERIC)
    assert caught.value.needed.total - caught.value.available == 6
    assert emission(parsed(body), UNLIMITED).added_registers == caught.value.needed.synchronization


def test_what_has_no_form_is_refused():
    inlined = parsed('sem.iteration "a" depth 1\nsem.inst @P engine "e0" cost 64')
    with pytest.raises(OpError, match="the loop of this iteration is gone"):
        emit(inlined, GENERIC)
    told = parsed('sem.iteration "a" depth 1\nsem.inst @P engine "e0" cost 64 {depth = 1 : i64}')
    assert lines(told) == ["INST @P cost=64 depth=1"]
    view = parsed(
        "%s = memref.subview %x[0] [4] [1] : memref<8xf32, #tile.space<far>> to "
        "memref<4xf32, strided<[1]>, #tile.space<far>>\n"
        'tile.copy %s -> %t engine "e0" : memref<4xf32, strided<[1]>, #tile.space<far>> -> '
        "memref<4xf32, #tile.space<near>>",
        "%x : memref<8xf32, #tile.space<far>>, %t : memref<4xf32, #tile.space<near>>",
    )
    with pytest.raises(OpError, match="run sem-lower-views first"):
        emit(view, GENERIC)


def test_kernels_become_text_that_reads_back():
    """Every operation of tile that the examples use has its form."""
    opcodes = set()
    for name in ("matmul", "softmax", "rmsnorm", "adamw", "attention", "moe"):
        text = (Path(__file__).parents[2] / "examples" / "tile" / f"{name}.mlir").read_text()
        (program,) = parse_module(text).ops
        emitted = compile_program(program, "per-loop", GENERIC).emission.program
        assert read_isa(print_isa(emitted)) == emitted
        opcodes |= {item.opcode for engine in emitted.engines for item in engine.body if isinstance(item, isa.Tile)}
    assert {"DMA_COPY", "MATMUL", "ACTIVATE", "TENSOR_TENSOR", "TENSOR_REDUCE"} <= opcodes


SAMPLES = (0, 1, 2, 3, -1, -2, 31, 127, -128, 2**31 - 1, -(2**31))


@pytest.mark.parametrize("kind", sorted(SCALAR_OPS - {arith.ConstantOp, arith.SelectOp}, key=lambda op: op.name))
def test_registers_compute_what_the_stream_does(kind):
    """Each arith operation as an operation of registers, on sample operands of several widths."""
    for source, result in _types(kind):
        block = Block(arg_types=[source, source])
        for op in _operations(kind, block, result):
            block.add_op(op)
            for a in SAMPLES:
                for b in SAMPLES if len(op.operands) > 1 else (0,):
                    given = [_as(a, source), _as(b, source)][: len(op.operands)]
                    try:
                        expected = evaluate(op, given)
                    except OpError:
                        continue
                    found = alu_of(op)
                    if found is None:
                        assert given[0] == expected, f"{op} of {given}"
                        continue
                    compute = unary if len(given) == 1 else binary
                    assert compute(*found)(*given) == expected, f"{op} of {given}"


def _types(kind):
    index, i8 = IndexType(), IntegerType(8)
    if kind is arith.IndexCastOp:
        return [(index, i32), (i32, index), (i1, index), (i8, index)]
    if kind in (arith.ExtSIOp, arith.ExtUIOp):
        return [(i1, i32), (i8, i32)]
    if kind is arith.TruncIOp:
        return [(i32, i8), (i32, i1)]
    return [(i32, i32), (index, index), (i8, i8)]


def _operations(kind, block, result):
    if kind is arith.CmpiOp:
        return [arith.CmpiOp(*block.args, predicate) for predicate in range(10)]
    if kind in (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp):
        op = kind(block.args[0], result)
        # a use that looks beyond the lowest bits, so that a cast to fewer is not left out
        block.add_op(arith.SelectOp(arith.ConstantOp(IntegerAttr(1, i1)).result, op.results[0], op.results[0]))
        return [op]
    return [kind(*block.args)]


def _as(value, type_):
    return wrap(value, type_)
