"""What each instruction of a tile program reads and writes: which part of which buffer.

Two arguments, or two allocations, are two buffers. The integer that a tile.value gives is no memory: an allocator of
semaphores makes every engine that uses it wait for it, and the next one wait for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from mpkc.dialects.sem_structure import Instruction, Structure
from mpkc.dialects.tile_buffers import RotateOp, kept_dimensions
from mpkc.dialects.tile_transfer import TileInstruction, ValueOp
from mpkc.dialects.tile_types import Access, Buffer
from mpkc.passes.tile_integers import Affine, Integers


@dataclass(frozen=True)
class Step:
    """`count` places, each `stride` behind the one before; None: not known."""

    stride: int | None
    count: int | None


@dataclass(frozen=True)
class Span:
    """The places of a region along one coordinate of its buffer: `start` + multiples of each step.

    Attributes:
        start: None where it is not known.
        extent: the size of the buffer along the coordinate, None where it is not known.
    """

    start: Affine | None
    steps: tuple[Step, ...]
    extent: int | None


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a buffer.

    Attributes:
        root: the buffer, an argument or an allocation.
        spans: one for each dimension of the buffer; `flat`: one, for its elements in order.
    """

    root: SSAValue
    spans: tuple[Span, ...]
    flat: bool = False

    def flattened(self) -> "Region":
        """The same part, by the order of elements in memory; sizes that are not known make it all of the buffer."""
        if self.flat or len(self.spans) < 2:
            return replace(self, flat=True)
        start, steps, stride = Affine(), list[Step](), 1
        for span in reversed(self.spans):
            if span.start is None or stride is None:
                return Region(self.root, (Span(None, (), None),), flat=True)
            start += span.start.times(stride)
            steps += [Step(None if s.stride is None else s.stride * stride, s.count) for s in span.steps]
            stride = None if span.extent is None else stride * span.extent
        return Region(self.root, (Span(start, tuple(steps), stride),), flat=True)


@dataclass(frozen=True)
class Touch:
    """An instruction that reads or writes a region."""

    instruction: Instruction
    region: Region
    writes: bool


@dataclass(frozen=True)
class _Dimension:
    """A dimension of a view: along which coordinate of the buffer it goes, and how."""

    coordinate: int
    step: Step


@dataclass(frozen=True)
class _View:
    """A view of a buffer: where it begins along each coordinate, and its dimensions."""

    root: SSAValue
    starts: tuple[Affine | None, ...]
    extents: tuple[int | None, ...]
    dimensions: tuple[_Dimension, ...]
    flat: bool = False

    @property
    def region(self) -> Region:
        spans = [
            Span(start, tuple(d.step for d in self.dimensions if d.coordinate == at and d.step.count != 1), extent)
            for at, (start, extent) in enumerate(zip(self.starts, self.extents, strict=True))
        ]
        return Region(self.root, tuple(spans), self.flat)

    def moved(self, at: int, by: Affine) -> "_View":
        """The view, `by` further along its dimension `at`."""
        dimension, starts = self.dimensions[at], list(self.starts)
        start, stride = starts[dimension.coordinate], dimension.step.stride
        known = start is not None and (stride is not None or by == Affine())
        starts[dimension.coordinate] = start + by.times(stride or 0) if start is not None and known else None
        return replace(self, starts=tuple(starts))

    def without(self, at: int) -> "_View":
        """The view without its dimension `at`: its first place there."""
        return replace(self, dimensions=(*self.dimensions[:at], *self.dimensions[at + 1 :]))


class Accesses:
    """The regions that the instructions of a program touch."""

    def __init__(self, structure: Structure, integers: Integers):
        self._structure = structure
        self._integers = integers
        self._views: dict[SSAValue, _View] = {}
        self._regions: dict[SSAValue, Region] = {}

    def touches(self) -> Iterator[Touch]:
        """What each instruction reads and writes, by instruction in textual order."""
        for instruction in self._structure.instructions:
            op = instruction.op
            if isinstance(op, TileInstruction):
                for index, access in op.accesses():
                    region = self._element(op) if isinstance(op, ValueOp) else self._region(op.operands[index])
                    yield Touch(instruction, region, access is Access.WRITE)

    def _region(self, buffer: SSAValue) -> Region:
        if buffer not in self._regions:
            self._regions[buffer] = self._view(buffer).region
        return self._regions[buffer]

    def _element(self, op: ValueOp) -> Region:
        view = self._view(op.source)
        for index in op.indices:
            view = view.moved(0, self._integers.of(index)).without(0)
        return view.region

    def _view(self, buffer: SSAValue) -> _View:
        chain: list[SSAValue] = []
        while buffer not in self._views:
            chain.append(buffer)
            owner = buffer.owner
            if not isinstance(owner, memref.SubviewOp | memref.ReinterpretCastOp | RotateOp):
                self._views[buffer] = _whole(buffer)
                break
            buffer = owner.source
        for value in reversed(chain):
            match value.owner:
                case memref.SubviewOp() as op:
                    self._views[value] = self._subview(op)
                case memref.ReinterpretCastOp() as op:
                    self._views[value] = self._reinterpret(op)
                case RotateOp() as op:
                    index = self._integers.modulo(self._integers.of(op.index), op.source.type.get_shape()[0])
                    self._views[value] = self._views[op.source].moved(0, index).without(0)
                case _:
                    pass
        return self._views[chain[0]] if chain else self._views[buffer]

    def _subview(self, op: memref.SubviewOp) -> _View:
        view = self._views[op.source]
        offsets = self._mixed(op.static_offsets.iter_values(), op.offsets)
        strides = self._mixed(op.static_strides.iter_values(), op.strides)
        sizes = self._sizes(op.static_sizes.iter_values(), op.sizes)
        for at, offset in enumerate(offsets):
            view = view.moved(at, offset)
        kept = kept_dimensions(op)
        assert kept is not None, "verified"
        dimensions: list[_Dimension] = []
        for at, (dimension, stride, size) in enumerate(zip(view.dimensions, strides, sizes, strict=True)):
            if at in kept:
                whole = dimension.step.stride
                step = None if whole is None or stride.terms else whole * stride.constant
                dimensions.append(_Dimension(dimension.coordinate, Step(step, size)))
        return replace(view, dimensions=tuple(dimensions))

    def _reinterpret(self, op: memref.ReinterpretCastOp) -> _View:
        source = self._views[op.source].region.flattened()
        (span,) = source.spans
        (offset,) = self._mixed(op.static_offsets.iter_values(), op.offsets)
        strides = self._mixed(op.static_strides.iter_values(), op.strides)
        sizes = self._sizes(op.static_sizes.iter_values(), op.sizes)
        dimensions = [
            _Dimension(0, Step(None if stride.terms else stride.constant, size))
            for stride, size in zip(strides, sizes, strict=True)
        ]
        start = None if span.start is None else span.start + offset
        return _View(source.root, (start,), (span.extent,), tuple(dimensions), flat=True)

    def _mixed(self, static: Iterator[int], dynamic: tuple[SSAValue, ...]) -> list[Affine]:
        run_time = iter(dynamic)
        return [self._integers.of(next(run_time)) if n == DYNAMIC_INDEX else Affine(n) for n in static]

    def _sizes(self, static: Iterator[int], dynamic: tuple[SSAValue, ...]) -> list[int | None]:
        run_time = iter(dynamic)
        return [self._integers.most(next(run_time)) if n == DYNAMIC_INDEX else n for n in static]


def _whole(buffer: SSAValue) -> _View:
    shape = [None if size < 0 else size for size in cast(Buffer, buffer.type).get_shape()]
    dimensions = tuple(_Dimension(at, Step(1, size)) for at, size in enumerate(shape))
    return _View(buffer, (Affine(),) * len(shape), tuple(shape), dimensions)
