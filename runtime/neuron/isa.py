"""The instruction set of the neuron target as data: a program is a header and one stream for each engine (docs/isa.md).

Registers hold integers: an `index` has 64 bits, an `iN` is kept as the signed integer of its N bits, an `i1` as 0 or 1
(`mpkc.dialects.scalars`). Nothing here refers to IR: `text` prints a program, `reader` reads it, `simulator` runs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

INDEX_BITS = 64
INSTRUCTION_BYTES = 64
"""Of every instruction, where a machine does not say otherwise (it fits barrier-free, table 2)."""

EVERY: Literal["*"] = "*"
Component: TypeAlias = int | Literal["*"]


@dataclass(frozen=True, slots=True)
class Register:
    """`r9`, one of the engine's own."""

    number: int


Operand: TypeAlias = Register | int
"""A register or an immediate integer."""


@dataclass(frozen=True, slots=True)
class ArgumentRef:
    """An argument of the program, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class SizeRef:
    """`size(x, 0)`: how large a dimension of a far buffer is."""

    buffer: str
    axis: int


@dataclass(frozen=True, slots=True)
class Number:
    """An operand of a tile instruction that is no tile: `r5:index`, `-1e+30:f32`, `scale:f32`."""

    value: Register | int | float | ArgumentRef
    type: str


@dataclass(frozen=True, slots=True)
class View:
    """`x@r3[64,512]:[512,1]:f32`: a strided part of a buffer; offset and strides count elements of it."""

    buffer: str
    offset: Operand
    sizes: tuple[Operand, ...]
    strides: tuple[Operand, ...]
    element: str


@dataclass(frozen=True, slots=True)
class Wait:
    """`S[4]>=r9`: the instruction issues once the semaphore is at least the threshold (see `Counters`)."""

    semaphore: int
    threshold: Operand


@dataclass(frozen=True, slots=True)
class Update:
    """`S[6]++@complete`, `S[6]+=16@complete`: added when the instruction retires.

    On a DMA queue each part of a transfer adds its share when that part has arrived.
    """

    semaphore: int
    amount: int = 1


@dataclass(frozen=True, slots=True)
class After:
    """What an opaque instruction reads: what `producer` wrote `distance` ago; it enters the value that it writes.

    Attributes:
        producer: the label of an opaque instruction.
        distance: a component for each counted loop that both share, outermost first; None where it is never owed.
    """

    producer: str
    distance: tuple[Component, ...] | None


class AluOp(StrEnum):
    """What REGISTER_ALU computes; comparisons write 0 or 1."""

    ADD = "add"
    SUB = "sub"
    MULT = "mult"
    DIV = "div"
    DIVU = "divu"
    FLOOR_DIV = "floordiv"
    CEIL_DIV = "ceildiv"
    CEIL_DIVU = "ceildivu"
    REM = "rem"
    REMU = "remu"
    MIN = "min"
    MAX = "max"
    MINU = "minu"
    MAXU = "maxu"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"
    SHRU = "shru"
    IS_EQ = "is_eq"
    IS_NE = "is_ne"
    IS_LT = "is_lt"
    IS_LE = "is_le"
    IS_GT = "is_gt"
    IS_GE = "is_ge"
    IS_LTU = "is_ltu"
    IS_LEU = "is_leu"
    IS_GTU = "is_gtu"
    IS_GEU = "is_geu"
    SELECT = "select"
    """`r9 = r1 select r2, r3`: r2 where r1 is not 0, else r3."""
    SEXT = "sext"
    """The signed value of an integer of `bits` bits: what arith.extsi and arith.index_cast of an iN are."""
    ZEXT = "zext"
    """The unsigned value of an integer of `bits` bits."""
    TRUNC = "trunc"
    """The lowest `bits` bits."""


ARITY: Mapping[AluOp, int] = {op: 2 for op in AluOp} | {
    AluOp.SELECT: 3,
    AluOp.SEXT: 1,
    AluOp.ZEXT: 1,
    AluOp.TRUNC: 1,
}


class Condition(StrEnum):
    """When COMPARE_BRANCH jumps."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    LTU = "ltu"
    LEU = "leu"
    GTU = "gtu"
    GEU = "geu"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """What takes a place in the code of an engine.

    Attributes:
        line: where it stands in the text that it was read from, from 1; 0 where it was not read. It is no part of
            what makes two instructions equal.
    """

    line: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Move(Instruction):
    """`REGISTER_MOVE r8 = 0`."""

    dest: Register
    source: Operand | ArgumentRef | SizeRef


@dataclass(frozen=True, slots=True)
class Alu(Instruction):
    """`REGISTER_ALU r9 = r8 add 1 : i32`; in `index` arithmetic where no width is named.

    Attributes:
        bits: the width of the operands and, but for comparisons and extensions, of the result; see SEXT, ZEXT, TRUNC.
    """

    dest: Register
    op: AluOp
    operands: tuple[Operand, ...]
    bits: int = INDEX_BITS


@dataclass(frozen=True, slots=True)
class Branch(Instruction):
    """`COMPARE_BRANCH r0 ge r1 -> L1`, `COMPARE_BRANCH always -> L0`.

    Attributes:
        operands: two; none where the condition is ALWAYS.
        target: a label of the same engine.
    """

    condition: Condition
    operands: tuple[Operand, ...]
    target: str
    bits: int = INDEX_BITS


@dataclass(frozen=True, slots=True)
class Drain(Instruction):
    """`DRAIN`: goes on once everything that this engine issued has retired."""


@dataclass(frozen=True, slots=True)
class Handshake(Instruction):
    """`HANDSHAKE e0 e1`: goes on once each of these engines is at one with them; of all where none is named."""

    engines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reset(Instruction):
    """`RESET S[0] S[3]`: these semaphores become 0."""

    semaphores: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued(Instruction):
    """What enters the pipeline of its engine: it issues after its wait and retires in order, which is when it updates.

    Attributes:
        label: its name in reports, traces and `after`; several instructions of one engine may share it (copies of one).
        depth: how many components its iteration has: the counted loops around it.
    """

    label: str | None = None
    wait: Wait | None = None
    update: Update | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Nop(Issued):
    """`NOP S[4]>=r9`, a wait alone; `NOP @marker S[6]++@complete`, one that retires in order and says so."""


@dataclass(frozen=True, slots=True)
class Read(Issued):
    """`READ dst=r5 src=@V`: what was last written to the mailbox of a value."""

    dest: Register
    value: str


@dataclass(frozen=True, slots=True)
class Opaque(Issued):
    """`INST @P cost=64 latency=200 after=[Q[0,2], R[1,*]]`; `VALUE @V ...` also writes its mailbox, from the bindings.

    Attributes:
        latency: ns from issue to retirement; the cost where it is None.
        is_value: whether it is a VALUE; its label is then the name of its mailbox.
    """

    cost: int
    latency: int | None = None
    after: tuple[After, ...] = ()
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Tile(Issued):
    """An instruction on tiles, such as `TENSOR_TENSOR S[4]>=r9 op=mul dst=... src0=... src1=...`.

    Attributes:
        opcode: a key of `tile_forms.FORMS`, which says what operands and options it has.
        operands: tiles and numbers by key, in the order of the form; optional ones may be left out.
        options: words, integers, and True for flags, by key.
    """

    opcode: str
    operands: Mapping[str, View | Number]
    options: Mapping[str, str | int] = field(default_factory=dict[str, str | int])


@dataclass(frozen=True, slots=True)
class Label:
    """`L0:`, a place in the code of one engine."""

    name: str


@dataclass(frozen=True, slots=True)
class Iteration:
    """`.iteration b 2`: an iteration of the loop `b`, the second counted loop from outside, begins; no code, no time.

    Depth 0 is for a branch of a conditional, which iterations do not count.
    """

    loop: str
    depth: int


Item: TypeAlias = Instruction | Label | Iteration


@dataclass(frozen=True, slots=True)
class Engine:
    """The stream of one engine; it ends at its end.

    Attributes:
        registers: how many it uses, r0 and on.
    """

    name: str
    registers: int
    body: tuple[Item, ...]

    @property
    def instructions(self) -> Iterator[Instruction]:
        """What takes a place in its code, in order."""
        return (item for item in self.body if isinstance(item, Instruction))


@dataclass(frozen=True, slots=True)
class Counters:
    """The integers that semaphores hold: `ui32`, `si8`; they wrap, and waits compare in that signedness."""

    bits: int = 32
    signed: bool = False

    def __str__(self) -> str:
        return f"{'s' if self.signed else 'u'}i{self.bits}"


@dataclass(frozen=True, slots=True)
class Argument:
    """A number that every engine can read: `index`, `iN` or a float."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that every engine can reach; the far ones are arguments, the others hold nothing at the start.

    Attributes:
        space: far, near or accumulator.
        shape: None for a size that is known when the program runs; only in far memory.
        element: a type of MLIR.
    """

    name: str
    space: str
    shape: tuple[int | None, ...]
    element: str


@dataclass(frozen=True, slots=True)
class Value:
    """A mailbox: a run-time integer, `index` or `i1`, that one instruction writes and every engine can READ."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the neuron target.

    Attributes:
        semaphores: their names; S[i] is number i. Each is updated by instructions of one engine.
    """

    name: str
    engines: tuple[Engine, ...]
    counters: Counters = Counters()
    arguments: tuple[Argument, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    values: tuple[Value, ...] = ()
    semaphores: tuple[str, ...] = ()

    def code_bytes(self, instruction_bytes: int = INSTRUCTION_BYTES) -> int:
        """The size of the code of all engines; labels and directives take no place in it."""
        return instruction_bytes * sum(1 for engine in self.engines for _ in engine.instructions)
