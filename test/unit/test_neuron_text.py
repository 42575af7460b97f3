"""ISA text: printing and reading are inverse, and every error has its place."""

import re

import pytest
from hypothesis import given, settings
from neuron_programs import programs
from xdsl.utils.exceptions import ParseError

from mpkc.parsing import error_text
from mpkc.runtime.neuron.isa import Opaque, Program
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.text import print_isa


@settings(max_examples=150)
@given(programs())
def test_what_is_printed_reads_as_the_same_program(program: Program) -> None:
    text = print_isa(program)
    read = read_isa(text)
    assert read == program
    assert print_isa(read) == text


def test_instructions_know_their_lines_and_take_64_bytes() -> None:
    program = read_isa(".program p\n\n.engine e registers 1 // one\nL:\n  INST @P cost=1\n.iteration a 1\n  NOP\n")
    first, second = program.engines[0].instructions
    assert (first.line, second.line) == (5, 7)
    assert first == Opaque(1, label="P")
    assert program.code_bytes() == 128
    assert program.code_bytes(16) == 32


def test_keys_may_stand_in_any_order_and_numbers_be_hexadecimal() -> None:
    text = ".program p\n.engine e registers 0\nINST @P depth=1 after=[P never] latency=0x10 cost=2"
    assert print_isa(read_isa(text)).splitlines()[-1] == "  INST @P cost=2 latency=16 after=[P never] depth=1"


HEADER = """.program p
.counters ui8
.argument n : index
.buffer x : far f32[?,32]
.buffer t : near f32[8,32]
.buffer acc : accumulator f32[8,8]
.value V : index
.semaphore 0 s
.engine e registers 2
"""
TILE = "t@0[8,32]:[32,1]:f32"

WRONG: list[tuple[str, str, str]] = [  # a line behind the header, the text that the caret is under, the message
    ("FLY r0", "FLY", "unknown opcode FLY; there are: REGISTER_MOVE, REGISTER_ALU, COMPARE_BRANCH, DRAIN, HANDSHAKE"),
    ("NOP S[0]>=1 S[0]>=2", "S", "a second wait, but an instruction has at most one: put a NOP with the other one"),
    ("NOP S[0]++@complete S[0]++@complete", "S", "a second update, but an instruction has at most one"),
    ("NOP S[1]>=1", "1", "the program declares 1 semaphore"),
    ("NOP S[0]>1", ">", "'>' has no meaning here"),
    ("NOP S[0]=1", "=", "expected '>=' and a threshold, or '++@complete', found '='"),
    ("NOP S[0]+=0@complete", "0", "expected a number, 1 or more, found 0"),
    ("NOP S[0]>=r2", "r2", "engine e says that it uses 2 registers, from r0 on"),
    ("RESET", "", "expected 'S', found the end of the line"),
    ("REGISTER_MOVE r2 = 0", "r2", "engine e says that it uses 2 registers, from r0 on"),
    ("REGISTER_MOVE n = 0", "n", "expected a register, found 'n'"),
    ("REGISTER_MOVE r0 = 1.5", "1.5", "expected a register or an integer, found '1.5'"),
    ("REGISTER_MOVE r0 = argument(m)", "m", "no argument m; there are: n"),
    ("REGISTER_MOVE r0 = size(x, 2)", "2", "x has 2 dimensions, from 0 on"),
    ("REGISTER_ALU r0 = r1 plus 1", "plus", "no operation plus; there are: add, sub, mult, "),
    ("REGISTER_ALU r0 = r1 add 1 : i65", "i65", "a width of i65: i1 to i64"),
    ("REGISTER_ALU r0 = r1 select 1", "", "expected ',', found the end of the line"),
    ("COMPARE_BRANCH r0 over 1 -> L", "over", "no condition over; there are: eq, ne, lt, le, gt, ge, ltu"),
    ("COMPARE_BRANCH always -> L", "L", "no label L in this engine; there are: none"),
    ("L:\nL:", "L", "a second label L: each label of an engine has a name of its own"),
    ("INST @P", "INST", "INST needs cost="),
    ("INST cost=1", "INST", "INST needs a label, @NAME: it names the instruction in traces"),
    ("INST @P cost=-1", "-1", "expected an integer, 0 or more, found -1"),
    ("INST @P cost=1 cost=2", "cost", "a second cost"),
    ("INST @P cost=1 price=2", "price", "INST has no price; there are: cost, latency, after, depth"),
    ("INST @P cost=1 after=[Q [1]]", "Q", "no INST or VALUE has the label @Q"),
    ("INST @P cost=1 after=[P]", "]", "expected '[', found ']'"),
    ("VALUE @W cost=1", "VALUE", "VALUE writes the value that its label names; there are: V"),
    (
        "VALUE @V cost=1\n.engine f registers 0\nVALUE @V cost=1",
        "VALUE",
        "engine e writes @V too: a value is one engine's",
    ),
    ("READ dst=r0 src=@W", "W", "no value W; there are: V"),
    ("READ dst=r0", "READ", "READ needs src="),
    (f"MEMSET dst={TILE}", "MEMSET", "MEMSET needs value="),
    (f"MEMSET dst={TILE} value=1:i32", "MEMSET", "MEMSET: fills a tile of f32 with i32"),
    (f"MEMSET dst={TILE} value=1:f33", "f33", "unknown type f33: use index, iN or a float type of MLIR"),
    ("MEMSET dst=t@1[8,32]:[32,1]:f32 value=0.0:f32", "MEMSET", "MEMSET: reaches element 256 of t, which has 256"),
    ("MEMSET dst=t@0[8,32]:[32]:f32 value=0.0:f32", "[", "2 sizes and 1 strides: as many of each"),
    ("MEMSET dst=t@0[8,32]:[32,1]:bf16 value=0.0:f32", "bf16", "t holds f32, not bf16"),
    ("MEMSET dst=t@-1[8,32]:[32,1]:f32 value=0.0:f32", "t", "an offset, size or stride below 0"),
    ("MEMSET dst=u@0[8,32]:[32,1]:f32 value=0.0:f32", "u", "no buffer u; there are: x, t, acc"),
    (f"ACTIVATE op=add dst={TILE} src={TILE}", "add", "no op add; there are: cast, neg, abs"),
    (f"TENSOR_COPY dst={TILE} src=x@0[8,32]:[32,1]:f32", "TENSOR_COPY", "a copy to or from far memory is a DMA_COPY"),
    (f"MATMUL dst={TILE} lhs={TILE} rhs={TILE}", "MATMUL", "MATMUL: the destination is in near memory: it must be acc"),
    ("NOP r0", "r0", "NOP has no r0; there are: depth"),
    ('NOP @"\\q"', '"\\q"', "a quoted name has the escapes of JSON"),
    ('NOP @""', '""', "a name is not empty"),
    (".iteration b -1", "-1", "expected a depth, 0 or more, found -1"),
    (".engine e registers 1", "e", "a second stream of engine e: an engine has one"),
    (".buffer u : near f32[1]", ".buffer", ".buffer stands before the first engine"),
    (".loop", ".loop", "unknown directive .loop; there are: .program, .counters"),
    (
        ".engine f registers 0\nNOP S[0]++@complete\n.engine g registers 0\nNOP S[0]++@complete",
        "S",
        "S[0] is updated by",
    ),
]


@pytest.mark.parametrize(("line", "at", "message"), WRONG, ids=[line for line, _, _ in WRONG])
def test_errors_name_the_place(line: str, at: str, message: str) -> None:
    text = HEADER + line
    with pytest.raises(ParseError) as caught:
        read_isa(text, "a.isa")
    told = error_text(caught.value)
    place, shown, carets = told.splitlines()[0], told.splitlines()[1], told.splitlines()[2]
    found = re.fullmatch(r"a\.isa:(\d+):(\d+): error: (.*)", place)
    assert found, told
    assert message in found[3]
    assert shown == text.splitlines()[int(found[1]) - 1]
    column = int(found[2]) - 1
    assert shown[column : column + len(at)] == at, told
    assert carets == " " * column + "^" * max(1, len(at))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no program: it begins with .program NAME"),
        ("NOP", "an instruction outside of an engine: begin with .engine NAME registers N"),
        (".counters ui32", "the first directive is .program NAME"),
        (".program p\n.program q", "a second .program: a file has one"),
        (".program p\n.counters i32", "counters of type i32: ui or si and 2 to 64 bits, such as ui32"),
        (".program p\n.counters ui1", "counters of type ui1: ui or si and 2 to 64 bits, such as ui32"),
        (".program p\n.semaphore 1 s", "semaphores are numbered in order: the next one is 0"),
        (".program p\n.semaphore 0 s\n.semaphore 1 s", "a second semaphore s: each has a name of its own"),
        (".program p\n.argument n : index\n.value n : index", "a second n: each argument, buffer and value has a name"),
        (".program p\n.value v : f32", "a value of type f32: use index or i1"),
        (".program p\n.buffer b : near f32[?]", "a size that is not known is for far memory alone"),
        (".program p\n.buffer b : deep f32[1]", "unknown space deep; there are: far, near, accumulator"),
        (".program p\n.iteration b 1", ".iteration outside of an engine"),
    ],
)
def test_errors_of_headers(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=re.escape(message)):
        read_isa(text)
