"""Spaces, functions, tokens and rings of the `tile` dialect, and the checks that its verifiers share."""

from enum import Enum, auto
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, MemRefType
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import (
    Attribute,
    OpResult,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import irdl_attr_definition, operand_def, result_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.str_enum import StrEnum

Buffer: TypeAlias = MemRefType[Any]


class Access(Enum):
    """What an instruction does with the memory behind one of its operands."""

    READ = auto()
    WRITE = auto()


class Space(StrEnum):
    """Where a buffer lives, in words that every machine has a memory for."""

    FAR = "far"
    """Global memory, HBM: what a kernel is given and what it leaves behind."""
    NEAR = "near"
    """Shared memory, SBUF: what copy engines fill and compute engines read."""
    ACCUMULATOR = "accumulator"
    """Registers, PSUM: what the matrix engine writes."""


ON_CHIP = (Space.NEAR, Space.ACCUMULATOR)


class Function(StrEnum):
    """An elementwise function of `tile.map`."""

    CAST = "cast"
    NEG = "neg"
    ABS = "abs"
    SQUARE = "square"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    RECIPROCAL = "reciprocal"
    EXP = "exp"
    LOG = "log"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    SILU = "silu"
    GELU_TANH = "gelu_tanh"
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MAX = "max"
    MIN = "min"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


COMPARISONS = frozenset({Function.EQ, Function.NE, Function.LT, Function.LE, Function.GT, Function.GE})
BINARY = COMPARISONS | {Function.ADD, Function.SUB, Function.MUL, Function.DIV, Function.MAX, Function.MIN}
UNARY = frozenset(Function) - BINARY
ON_INTEGERS = COMPARISONS | {
    Function.CAST,
    Function.NEG,
    Function.ABS,
    Function.SQUARE,
    Function.ADD,
    Function.SUB,
    Function.MUL,
    Function.MAX,
    Function.MIN,
}


class Reduction(StrEnum):
    """How `tile.reduce` combines the elements along its axis."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@irdl_attr_definition
class SpaceAttr(EnumAttribute[Space]):
    """The memory space of a buffer: `#tile.space<near>`."""

    name = "tile.space"

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Space:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)


@irdl_attr_definition
class FunctionAttr(EnumAttribute[Function], SpacedOpaqueSyntaxAttribute):
    name = "tile.function"


@irdl_attr_definition
class ReductionAttr(EnumAttribute[Reduction], SpacedOpaqueSyntaxAttribute):
    name = "tile.reduction"


@irdl_attr_definition
class RingType(ParametrizedAttribute, TypeAttribute):
    """A ring of pages of near memory, made by `tile.ring`."""

    name = "tile.ring"


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """The proof that an event was waited for, made by `tile.event_wait`."""

    name = "tile.token"


def buffer_operand() -> SSAValue[Buffer]:
    """Defines an operand that is a buffer."""
    return cast(SSAValue[Buffer], operand_def(MemRefType))


def buffer_result() -> OpResult[Buffer]:
    """Defines a result that is a buffer."""
    return cast(OpResult[Buffer], result_def(MemRefType))


def space_of(type_: Attribute) -> Space | None:
    """The space of a buffer type; None where it names none."""
    if isa(type_, MemRefType) and isinstance(type_.memory_space, SpaceAttr):
        return type_.memory_space.data
    return None


def is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType | IndexType)


def is_float(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat)


def is_static(type_: Buffer) -> bool:
    """Whether every size of a buffer is known."""
    return min(type_.get_shape(), default=0) >= 0


def shape_text(type_: Buffer) -> str:
    return "x".join("?" if size < 0 else str(size) for size in type_.get_shape()) or "()"


def sizes_agree(a: int, b: int) -> bool:
    """Whether two sizes can be the same; an unknown one is compared when the program runs."""
    return a == b or a < 0 or b < 0


def expect_space(type_: Attribute, allowed: tuple[Space, ...], what: str) -> None:
    """Raises VerifyException where a buffer is in none of the `allowed` spaces."""
    space = space_of(type_)
    if space not in allowed:
        found = f"is in {space.value} memory" if space else f"of type {type_} names no space"
        raise VerifyException(f"{what} {found}: it must be {' or '.join(s.value for s in allowed)}")


def expect_shape(type_: Buffer, shape: tuple[int, ...], what: str) -> None:
    """Raises VerifyException where a buffer cannot have this shape."""
    found = type_.get_shape()
    if len(found) != len(shape) or not all(map(sizes_agree, found, shape)):
        expected = "x".join("?" if size < 0 else str(size) for size in shape)
        raise VerifyException(f"{what} is {shape_text(type_)}: it must be {expected}")


def expect_rank(type_: Buffer, rank: int, what: str) -> None:
    """Raises VerifyException where a buffer has another number of dimensions."""
    if type_.get_num_dims() != rank:
        raise VerifyException(f"{what} is {shape_text(type_)}: it must have {rank} dimensions")


def expect_same_element(a: Buffer, b: Buffer, what: str) -> None:
    """Raises VerifyException where two buffers hold elements of different types."""
    if a.element_type != b.element_type:
        raise VerifyException(f"{what} have element types {a.element_type} and {b.element_type}: not the same")
