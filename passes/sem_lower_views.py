"""sem-lower-views: make the offsets of views arithmetic that is written down (barrier-free, section 3.3).

A view of a view, a slot of a rotating buffer and an element become one `memref.reinterpret_cast` of the buffer itself,
whose offset, sizes and strides are integers of the stream: what registers hold. Then they are folded, shared and
hoisted like all other arithmetic.

    %slot = tile.rotate %b[%i]           %k = arith.andi %i, %c1
                                   ->    %o = arith.muli %k, %c2048
                                         %slot = memref.reinterpret_cast %b to offset: [%o], sizes: ..., strides: ...
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_streams import StreamOp, StreamsOp
from mpkc.dialects.tile_buffers import RotateOp, kept_dimensions
from mpkc.dialects.tile_transfer import TileInstruction, ValueOp
from mpkc.passes.scalar_folding import constant_of

MOST_ARRAYS = 4096  # that are remembered

Number: TypeAlias = SSAValue | int


@dataclass(frozen=True)
class Part:
    """A strided part of a buffer; offset and strides count elements."""

    root: SSAValue
    offset: Number
    sizes: tuple[Number, ...]
    strides: tuple[Number, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same part whenever it is used."""
        return all(isinstance(number, int) for number in (self.offset, *self.sizes, *self.strides))


def lower_views(streams: StreamsOp) -> None:
    """Write down the arithmetic of views in place.

    Raises:
        OpError: a dimension whose number is not known.
    """
    for stream in streams.streams.values():
        _Views(stream).run()


class _Views:
    """The views of one stream, in the order in which they are made."""

    def __init__(self, stream: StreamOp):
        self.stream = stream
        self.parts: dict[SSAValue, Part] = {}
        self.wholes: dict[SSAValue, SSAValue] = {}
        self.fixed: dict[tuple[Part, Attribute], memref.ReinterpretCastOp] = {}
        self.before: Operation | None = None

    def run(self) -> None:
        self.before = self.stream.body.block.first_op
        for root in dict.fromkeys(operand for op in self.stream.walk() for operand in op.operands):
            if isa(root.type, MemRefType) and not self.stream.is_ancestor(root.owner):
                self.root(root)
        self.block(self.stream.body.block)
        if self.fixed and (first := self.stream.body.block.first_op) is not None:
            self.stream.body.block.insert_ops_before(list(self.fixed.values()), first)

    def root(self, root: SSAValue) -> None:
        """A buffer as a whole; sizes that are known at run time alone are asked for where the stream begins."""
        assert isa(root.type, MemRefType)
        shape = root.type.get_shape()
        sizes: list[Number] = [
            self.write(memref.DimOp(root, self.constant(axis))) if size == DYNAMIC_INDEX else size
            for axis, size in enumerate(shape)
        ]
        strides: list[Number] = [1]
        for size in reversed(sizes[1:]):
            strides.append(self.times(strides[-1], size))
        part = Part(root, 0, tuple(sizes), tuple(reversed(strides)) if sizes else ())
        self.parts[root] = part
        if DYNAMIC_INDEX in shape:
            self.wholes[root] = self.cast(part, root.type)

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            self.before = op
            match op:
                case memref.DimOp() if op.source in self.parts and not self._asks_for_root(op):
                    self.dimension(op)
                case memref.SubviewOp():
                    self.replace(op, self.subview(op))
                case memref.ReinterpretCastOp() if op.result not in self.parts:
                    self.replace(op, self.reinterpreted(op))
                case RotateOp():
                    self.replace(op, self.rotated(op))
                case TileInstruction():
                    self.instruction(op)
                case _:
                    for region in op.regions:
                        for nested in region.blocks:
                            self.block(nested)

    def _asks_for_root(self, op: memref.DimOp) -> bool:
        """Whether it is one of those that `root` wrote."""
        axis = constant_of(op.index)
        part = self.parts[op.source]
        return axis is not None and axis < len(part.sizes) and part.sizes[axis] is op.result

    def replace(self, op: memref.SubviewOp | memref.ReinterpretCastOp | RotateOp, part: Part) -> None:
        result = self.cast(part, op.result.type)
        result.name_hint = result.name_hint or op.result.name_hint
        op.result.replace_all_uses_with(result)
        _erase(op)

    def cast(self, part: Part, type_: Attribute) -> SSAValue:
        """A view of that type; one that no run-time integer decides is made once, where the stream begins."""
        if not part.is_fixed:
            return self.write(self.view(part, type_))
        if (part, type_) not in self.fixed:
            self.fixed[part, type_] = self.view(part, type_)
        return self.fixed[part, type_].result

    def view(self, part: Part, type_: Attribute) -> memref.ReinterpretCastOp:
        offset = (part.offset,)
        values = [_values(numbers) for numbers in (offset, part.sizes, part.strides)]
        op = memref.ReinterpretCastOp.create(  # its constructor takes five times as long
            operands=[part.root, *chain.from_iterable(values)],
            result_types=[type_],
            properties={
                "static_offsets": _array(offset),
                "static_sizes": _array(part.sizes),
                "static_strides": _array(part.strides),
                "operandSegmentSizes": _segments(1, *map(len, values)),
            },
        )
        self.parts[op.result] = part
        return op

    # What views show.

    def dimension(self, op: memref.DimOp) -> None:
        axis, sizes = constant_of(op.index), self.parts[op.source].sizes
        if axis is None or not 0 <= axis < len(sizes):
            raise OpError(op, f"asks for a dimension that is none of the {len(sizes)}, or not known")
        size = sizes[axis]
        op.result.replace_all_uses_with(self.constant(size) if isinstance(size, int) else size)
        _erase(op)

    def subview(self, op: memref.SubviewOp) -> Part:
        source, kept = self.parts[op.source], kept_dimensions(op)
        assert kept is not None, "verified"
        offsets = _known(_mixed(op.static_offsets.iter_values(), op.offsets))
        sizes = _mixed(op.static_sizes.iter_values(), op.sizes)
        steps = _mixed(op.static_strides.iter_values(), op.strides)
        strides = [self.times(stride, step) for stride, step in zip(source.strides, steps, strict=True)]
        return Part(
            source.root,
            self.moved(source.offset, offsets, source.strides),
            tuple(size for at, size in enumerate(sizes) if at in kept),
            tuple(stride for at, stride in enumerate(strides) if at in kept),
        )

    def reinterpreted(self, op: memref.ReinterpretCastOp) -> Part:
        """Other sizes and strides over a contiguous buffer, from an element on."""
        source = self.parts[op.source]
        (offset,) = _known(_mixed(op.static_offsets.iter_values(), op.offsets))
        sizes = _mixed(op.static_sizes.iter_values(), op.sizes)
        strides = _mixed(op.static_strides.iter_values(), op.strides)
        return Part(source.root, self.plus(source.offset, offset), tuple(sizes), tuple(strides))

    def rotated(self, op: RotateOp) -> Part:
        source = self.parts[op.source]
        slots, *sizes = source.sizes
        assert isinstance(slots, int), "verified"
        offset = self.plus(source.offset, self.times(self.slot(op.index, slots), source.strides[0]))
        return Part(source.root, offset, tuple(sizes), source.strides[1:])

    def slot(self, index: SSAValue, slots: int) -> Number:
        """The index modulo the number of slots, 0 or more also for an index below 0."""
        if (known := constant_of(index)) is not None or slots == 1:
            return (known or 0) % slots
        if slots & (slots - 1) == 0:
            return self.write(arith.AndIOp(index, self.constant(slots - 1)))
        if _is_not_negative(index):
            return self.write(arith.RemUIOp(index, self.constant(slots)))
        whole = self.write(arith.FloorDivSIOp(index, self.constant(slots)))
        return self.write(arith.SubiOp(index, self.write(arith.MuliOp(whole, self.constant(slots)))))

    def instruction(self, op: TileInstruction) -> None:
        """Name buffers of sizes that are not known by what is known when the program runs; elements by their place."""
        for index, operand in enumerate(op.operands):
            if operand in self.wholes:
                op.operands[index] = self.wholes[operand]
        if isinstance(op, ValueOp) and any(constant_of(index) != 0 for index in op.indices):
            part = self.parts[op.source]
            ones = (1,) * len(part.sizes)
            type_ = MemRefType(op.source.type.element_type, ones, memory_space=op.source.type.memory_space)
            offset = self.moved(part.offset, _known(op.indices), part.strides)
            zero = self.constant(0)
            op.operands = [self.cast(Part(part.root, offset, ones, part.strides), type_), *(zero for _ in ones)]

    # Arithmetic.

    def moved(self, offset: Number, indices: Sequence[Number], strides: Sequence[Number]) -> Number:
        for index, stride in zip(indices, strides, strict=True):
            offset = self.plus(offset, self.times(index, stride))
        return offset

    def plus(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.write(arith.AddiOp(self.value(a), self.value(b)))

    def times(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.write(arith.MuliOp(self.value(a), self.value(b)))

    def value(self, number: Number) -> SSAValue:
        return self.constant(number) if isinstance(number, int) else number

    def constant(self, number: int) -> SSAValue:
        return self.write(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def write(self, op: Operation) -> SSAValue:
        """Put an operation in front of the one that is being read."""
        assert self.before is not None
        assert self.before.parent is not None
        self.before.parent.insert_op_before(op, self.before)
        op.location = self.before.location
        return op.results[0]


def _mixed(static: Iterable[int], dynamic: Iterable[SSAValue]) -> list[Number]:
    run_time = iter(dynamic)
    return [next(run_time) if number == DYNAMIC_INDEX else number for number in static]


def _known(numbers: Sequence[Number]) -> list[Number]:
    """Integers in the place of constants."""
    found = [number if isinstance(number, int) else constant_of(number) for number in numbers]
    return [number if integer is None else integer for number, integer in zip(numbers, found, strict=True)]


def _values(numbers: Sequence[Number]) -> list[SSAValue]:
    """Those that are known only at run time."""
    return [number for number in numbers if isinstance(number, SSAValue)]


def _array(numbers: Sequence[Number]) -> DenseArrayBase[IntegerType]:
    """Those that are known, and a mark in the place of the others."""
    return _dense(tuple(number if isinstance(number, int) else DYNAMIC_INDEX for number in numbers))


@lru_cache(MOST_ARRAYS)
def _dense(numbers: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, numbers)


@cache
def _segments(*counts: int) -> DenseArrayBase[IntegerType]:
    """How many operands there are of each kind."""
    return DenseArrayBase.from_list(i32, counts)


def _is_not_negative(index: SSAValue) -> bool:
    """Whether an index is known to be 0 or more: that of a loop which starts there."""
    loop = index.block.parent_op() if isinstance(index, BlockArgument) and index.index == 0 else None
    lower = constant_of(loop.lb) if isinstance(loop, scf.ForOp) else None
    return lower is not None and lower >= 0


def _erase(op: Operation) -> None:
    assert op.parent is not None
    op.parent.erase_op(op)


class LowerViewsPass(ModulePass):
    """Write down the arithmetic of views."""

    name = "sem-lower-views"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                lower_views(streams)
