"""Buffers and parts of them as the ISA has them: offset, sizes and strides in elements of one buffer."""

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile_rings import constant
from mpkc.runtime.neuron.isa import Number, Operand, SizeRef, View
from mpkc.runtime.neuron.shared import Shared

LOWER_FIRST = "run sem-lower-views first: it makes views parts of buffers with offsets that registers hold"


def size_of(op: memref.DimOp, shared: Shared) -> SizeRef:
    """The size of a far buffer that is known when the program runs.

    Raises:
        OpError: what asks for something else.
    """
    name, axis = shared.names.get(op.source), constant(op.index)
    if name is None or axis is None:
        raise OpError(op, f"'{op.name}' is no dimension of a whole buffer that is known by its number: {LOWER_FIRST}")
    return SizeRef(name, axis)


def tile_operand(op: Operation, value: SSAValue, values: Mapping[SSAValue, Operand], shared: Shared) -> View | Number:
    """An operand of the tile instruction `op`: a part of a buffer, or a number.

    Args:
        values: what holds each integer.

    Raises:
        OpError: a view of a view.
    """
    if (known := shared.views.get(value)) is not None:
        return known
    if not isa(value.type, MemRefType):
        number = shared.floats.get(value)
        return Number(values[value] if number is None else number, str(value.type))
    if (buffer := shared.buffers.get(value)) is not None:
        sizes = [size for size in buffer.shape if size is not None]
        if len(sizes) < len(buffer.shape):
            raise OpError(op, f"'{op.name}' takes a whole buffer of a size that is not known: {LOWER_FIRST}")
        return View(buffer.name, 0, tuple(sizes), _strides(sizes), buffer.element)
    cast = value.op if isinstance(value, OpResult) else None
    if not isinstance(cast, memref.ReinterpretCastOp) or (buffer := shared.buffers.get(cast.source)) is None:
        raise OpError(op, f"'{op.name}' takes a view of a view: {LOWER_FIRST}")
    (offset,) = _mixed(cast.static_offsets.iter_values(), cast.offsets, values)
    sizes = _mixed(cast.static_sizes.iter_values(), cast.sizes, values)
    strides = _mixed(cast.static_strides.iter_values(), cast.strides, values)
    view = View(buffer.name, offset, sizes, strides, buffer.element)
    if len(cast.operands) == 1:
        shared.views[value] = view
    return view


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if sizes else ()


def _mixed(
    static: Iterable[int], dynamic: Iterable[SSAValue], values: Mapping[SSAValue, Operand]
) -> tuple[Operand, ...]:
    run_time = iter(dynamic)
    return tuple(values[next(run_time)] if number == DYNAMIC_INDEX else number for number in static)
