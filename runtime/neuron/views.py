"""Buffers and views of them as the ISA has them: offset, sizes and strides in elements of one buffer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import wrap
from mpkc.dialects.tile_buffers import RotateOp, kept_dimensions
from mpkc.runtime.neuron import isa as text
from mpkc.runtime.neuron.isa import AluOp, Number, Operand, Register, View
from mpkc.runtime.neuron.shared import Shared


@dataclass(frozen=True)
class Shown:
    """A strided part of a buffer."""

    buffer: str
    offset: Operand
    sizes: tuple[Operand, ...]
    strides: tuple[Operand, ...]
    element: str


class Writer(Protocol):
    """Where the arithmetic of offsets is written."""

    values: dict[SSAValue, Operand]

    def emit(self, item: text.Item, /) -> None: ...

    def register(self) -> Register: ...

    def compute(self, op: AluOp, *operands: Operand) -> Register: ...


class Views:
    """The views of one stream; what is known is folded, the rest is computed where the view is made."""

    def __init__(self, shared: Shared, writer: Writer):
        self.shared, self.writer = shared, writer
        self.shown: dict[SSAValue, Shown] = {}

    def enter(self, buffers: Iterable[SSAValue]) -> None:
        """The whole buffers, where the stream begins; those in far memory may have sizes known at run time alone."""
        for value in buffers:
            buffer = self.shared.buffers[value]
            sizes: list[Operand] = []
            for axis, size in enumerate(buffer.shape):
                sizes.append(self._size(buffer.name, axis) if size is None else size)
            strides: list[Operand] = [1]
            for size in reversed(sizes[1:]):
                strides.append(self.multiply(strides[-1], size))
            strides = strides[::-1] if sizes else []
            self.shown[value] = Shown(buffer.name, 0, tuple(sizes), tuple(strides), buffer.element)

    def _size(self, buffer: str, axis: int) -> Register:
        register = self.writer.register()
        self.writer.emit(text.Move(register, text.SizeRef(buffer, axis)))
        return register

    def dimension(self, op: memref.DimOp) -> Operand:
        """What memref.dim gives."""
        axis, sizes = self.writer.values[op.index], self.shown[op.source].sizes
        if not isinstance(axis, int) or not 0 <= axis < len(sizes):
            raise OpError(op, f"asks for a dimension that is none of the {len(sizes)}, or known at run time alone")
        return sizes[axis]

    def view(self, op: Operation) -> None:
        """Make a view of a view."""
        match op:
            case memref.SubviewOp():
                self.shown[op.result] = self._subview(op)
            case memref.ReinterpretCastOp():
                self.shown[op.result] = self._reinterpret(op)
            case RotateOp():
                self.shown[op.result] = self._rotate(op)
            case _:
                raise AssertionError(f"{op.name} is no view")

    def operand(self, op: Operation, value: SSAValue, indices: Sequence[SSAValue] | None) -> View | Number:
        """An operand of a tile instruction.

        Args:
            indices: of the one element that is meant, where not all of the buffer is.
        """
        if not isa(value.type, MemRefType):
            number = self.shared.floats.get(value)
            return Number(self.writer.values[value] if number is None else number, str(value.type))
        shown = self.shown[value]
        if indices is None:
            return View(shown.buffer, shown.offset, shown.sizes, shown.strides, shown.element)
        at = [self.writer.values[index] for index in indices]
        offset = self._moved(shown.offset, at, shown.strides)
        return View(shown.buffer, offset, (1,) * len(at), shown.strides, shown.element)

    def _subview(self, op: memref.SubviewOp) -> Shown:
        source = self.shown[op.source]
        offsets = self._mixed(op.static_offsets.iter_values(), op.offsets)
        sizes = self._mixed(op.static_sizes.iter_values(), op.sizes)
        steps = self._mixed(op.static_strides.iter_values(), op.strides)
        offset = self._moved(source.offset, offsets, source.strides)
        strides = [self.multiply(stride, step) for stride, step in zip(source.strides, steps, strict=True)]
        kept = kept_dimensions(op)
        assert kept is not None, "verified"
        return Shown(
            source.buffer,
            offset,
            tuple(size for at, size in enumerate(sizes) if at in kept),
            tuple(stride for at, stride in enumerate(strides) if at in kept),
            source.element,
        )

    def _reinterpret(self, op: memref.ReinterpretCastOp) -> Shown:
        """Other sizes and strides over a contiguous buffer, from an element on."""
        source = self.shown[op.source]
        (offset,) = self._mixed(op.static_offsets.iter_values(), op.offsets)
        sizes = self._mixed(op.static_sizes.iter_values(), op.sizes)
        strides = self._mixed(op.static_strides.iter_values(), op.strides)
        return Shown(source.buffer, self.add(source.offset, offset), tuple(sizes), tuple(strides), source.element)

    def _rotate(self, op: RotateOp) -> Shown:
        source = self.shown[op.source]
        slots, *rest = source.sizes
        assert isinstance(slots, int), "verified"
        slot = self._modulo(self.writer.values[op.index], slots, _not_negative(op.index))
        offset = self.add(source.offset, self.multiply(slot, source.strides[0]))
        return Shown(source.buffer, offset, tuple(rest), source.strides[1:], source.element)

    def _mixed(self, static: Iterable[int], dynamic: Iterable[SSAValue]) -> list[Operand]:
        run_time = iter(dynamic)
        return [self.writer.values[next(run_time)] if number == DYNAMIC_INDEX else number for number in static]

    def _moved(self, offset: Operand, indices: Sequence[Operand], strides: Sequence[Operand]) -> Operand:
        for index, stride in zip(indices, strides, strict=True):
            offset = self.add(offset, self.multiply(index, stride))
        return offset

    # Arithmetic that folds what is known.

    def add(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return wrap(a + b, IndexType())
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.writer.compute(AluOp.ADD, *((b, a) if isinstance(a, int) else (a, b)))

    def multiply(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return wrap(a * b, IndexType())
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.writer.compute(AluOp.MULT, *((b, a) if isinstance(a, int) else (a, b)))

    def _modulo(self, index: Operand, n: int, not_negative: bool) -> Operand:
        """What is left over, 0 or more, of an index by the number of slots."""
        if isinstance(index, int):
            return index % n
        if n == 1:
            return 0
        if n & (n - 1) == 0:
            return self.writer.compute(AluOp.AND, index, n - 1)
        if not_negative:
            return self.writer.compute(AluOp.REMU, index, n)
        whole = self.writer.compute(AluOp.FLOOR_DIV, index, n)
        return self.writer.compute(AluOp.SUB, index, self.writer.compute(AluOp.MULT, whole, n))


def _not_negative(index: SSAValue) -> bool:
    """Whether an index is known to be 0 or more: one of a loop that starts there."""
    loop = index.block.parent_op() if isinstance(index, BlockArgument) and index.index == 0 else None
    return isinstance(loop, scf.ForOp) and isinstance(loop.lb.owner, arith.ConstantOp) and _value(loop.lb.owner) >= 0


def _value(op: arith.ConstantOp) -> int:
    return op.value.value.data if isinstance(op.value, IntegerAttr) else -1
