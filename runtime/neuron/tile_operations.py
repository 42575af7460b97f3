"""Tile instructions of the ISA as operations of `tile`, which verify and compute them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, Builtin, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.utils.test_value import create_ssa_value

from mpkc.dialects.tile_transfer import CopyOp
from mpkc.dialects.tile_types import Space, SpaceAttr, is_float, is_integer
from mpkc.runtime.neuron.isa import Buffer, Number, Operand, Tile, View
from mpkc.runtime.neuron.tile_forms import FORMS, engine_property

MOST_KINDS = 4096  # of instructions that are remembered


class OperandType(NamedTuple):
    """What an operand is.

    Attributes:
        element: the name of a type of numbers.
        space, shape: of a tile, sizes in registers as DYNAMIC_INDEX; none of a number.
    """

    element: str
    space: str | None = None
    shape: tuple[int, ...] = ()


class Kind(NamedTuple):
    """What decides which operation a tile instruction is: all but where its operands are."""

    opcode: str
    engine: str
    operands: tuple[tuple[str, OperandType], ...]
    options: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class TileOperation:
    """The operation that a tile instruction is; instructions of one kind have one.

    Attributes:
        operands: the SSA value that stands for each operand, by key.
    """

    op: Operation
    operands: Mapping[str, SSAValue]


@cache
def attribute_of(type_: str) -> Attribute:
    """The MLIR type that a name such as `f32` means.

    Raises:
        ValueError: where it is no integer or float type.
    """
    context = Context()
    context.load_dialect(Builtin)
    try:
        found = Parser(context, type_).parse_type()
    except Exception as err:  # xDSL's parser meets odd text with errors of any kind
        raise ValueError(f"unknown type {type_}: use index, iN or a float type of MLIR such as f32 or bf16") from err
    if not is_integer(found) and not is_float(found):
        raise ValueError(f"{type_} is no type of numbers: use index, iN or a float type of MLIR")
    return found


def tile_operation(tile: Tile, engine: str, buffers: Mapping[str, Buffer]) -> TileOperation:
    """The operation, not verified; sizes in registers are unknown ones of its types."""
    return _operation(_kind(tile, engine, buffers))


def verify_tile(tile: Tile, engine: str, buffers: Mapping[str, Buffer]) -> None:
    """Check what the instruction is given.

    Raises:
        VerifyException: operands that the operation does not take.
        ValueError: an opcode that is for other memories; a part that is not within its buffer.
    """
    op = _verified(_kind(tile, engine, buffers))
    spaces = {buffers[each.buffer].space for each in tile.operands.values() if isinstance(each, View)}
    if isinstance(op, CopyOp) and tile.opcode != (right := "DMA_COPY" if "far" in spaces else "TENSOR_COPY"):
        raise ValueError(f"a copy {'to or from far memory' if 'far' in spaces else 'on the chip'} is a {right}")
    for operand in tile.operands.values():
        if isinstance(operand, View):
            _check_bounds(operand, buffers[operand.buffer])


def _kind(tile: Tile, engine: str, buffers: Mapping[str, Buffer]) -> Kind:
    operands = ((key, _type(operand, buffers)) for key, operand in tile.operands.items())
    return Kind(tile.opcode, engine, tuple(operands), tuple(tile.options.items()))


def _type(operand: View | Number, buffers: Mapping[str, Buffer]) -> OperandType:
    if isinstance(operand, Number):
        return OperandType(operand.type)
    shape = tuple(size if isinstance(size, int) else DYNAMIC_INDEX for size in operand.sizes)
    return OperandType(operand.element, buffers[operand.buffer].space, shape)


@lru_cache(MOST_KINDS)
def _operation(kind: Kind) -> TileOperation:
    operands = {key: create_ssa_value(_attribute(type_)) for key, type_ in kind.operands}
    op = FORMS[kind.opcode].build(operands, dict(kind.options), engine_property(kind.engine))
    return TileOperation(op, operands)


@lru_cache(MOST_KINDS)
def _verified(kind: Kind) -> Operation:
    op = _operation(kind).op
    op.verify()
    return op


def _attribute(type_: OperandType) -> Attribute:
    element = attribute_of(type_.element)
    if type_.space is None:
        return element
    return MemRefType(element, type_.shape, memory_space=SpaceAttr(Space(type_.space)))


def _check_bounds(view: View, buffer: Buffer) -> None:
    """Refuse a part that is known to reach beyond its buffer; what registers decide is checked when it runs."""
    known = [_known(numbers) for numbers in ((view.offset,), view.sizes, view.strides, buffer.shape)]
    match known:
        case [[offset], list() as sizes, list() as strides, list() as shape] if 0 not in sizes:
            last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
            if last >= prod(shape):
                raise ValueError(f"reaches element {last} of {buffer.name}, which has {prod(shape)}")
        case _:
            pass


def _known(numbers: Sequence[Operand | None]) -> list[int] | None:
    found = [number for number in numbers if isinstance(number, int)]
    return found if len(found) == len(numbers) else None
