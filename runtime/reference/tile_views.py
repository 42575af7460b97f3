"""Buffers and views of tile programs as NumPy arrays and views of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, FloatAttr
from xdsl.ir import Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import evaluate
from mpkc.dialects.tile_buffers import RotateOp, kept_dimensions
from mpkc.runtime.reference.elements import Array, unwritten

Values: TypeAlias = dict[SSAValue, Any]
"""A Python number for each number, a NumPy array for each buffer."""


def read(values: Values, operands: Iterable[SSAValue]) -> list[Any]:
    """The values of some operands, in order."""
    return [values[operand] for operand in operands]


def name_of(value: SSAValue) -> str:
    """A value as the program names it, for messages."""
    return f"%{value.name_hint}" if value.name_hint else "a value"


def _constant(op: arith.ConstantOp, values: Values) -> None:
    value = op.value
    values[op.result] = value.value.data if isinstance(value, FloatAttr) else evaluate(op, ())


def _allocate(op: memref.AllocOp, values: Values) -> None:
    type_ = op.memref.type
    values[op.memref] = unwritten(type_.get_shape(), type_.element_type)


def _dim(op: memref.DimOp, values: Values) -> None:
    source, index = read(values, (op.source, op.index))
    if not 0 <= index < source.ndim:
        raise OpError(op, f"asks for dimension {index} of {source.ndim}")
    values[op.result] = source.shape[index]


def _mixed(values: Values, static: Iterable[int], dynamic: Sequence[SSAValue]) -> list[int]:
    run_time = iter(read(values, dynamic))
    return [next(run_time) if number == DYNAMIC_INDEX else number for number in static]


def _subview(op: memref.SubviewOp, values: Values) -> None:
    source: Array = values[op.source]
    offsets = _mixed(values, op.static_offsets.iter_values(), op.offsets)
    sizes = _mixed(values, op.static_sizes.iter_values(), op.sizes)
    strides = _mixed(values, op.static_strides.iter_values(), op.strides)
    parts: list[slice] = []
    for at, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        last = offset + (size - 1) * stride
        if offset < 0 or size < 0 or stride < 1 or (size and last >= source.shape[at]):
            raise OpError(
                op,
                f"shows {size} from {offset} by {stride} of dimension {at}, and {name_of(op.source)} has "
                f"{source.shape[at]} there",
            )
        parts.append(slice(offset, last + 1 if size else offset, stride))
    kept = kept_dimensions(op)
    assert kept is not None, "verified"
    view = source[tuple(parts)]
    drop = tuple(slice(None) if at in kept else 0 for at in range(view.ndim))
    values[op.result] = view[(*drop, ...)]


def _reinterpret(op: memref.ReinterpretCastOp, values: Values) -> None:
    source: Array = values[op.source]
    (offset,) = _mixed(values, op.static_offsets.iter_values(), op.offsets)
    sizes = _mixed(values, op.static_sizes.iter_values(), op.sizes)
    strides = _mixed(values, op.static_strides.iter_values(), op.strides)
    if not source.flags.c_contiguous:
        raise OpError(op, f"{name_of(op.source)} is itself a part of a buffer: reinterpret the whole")
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if min([offset, *sizes, *strides]) < 0 or (0 not in sizes and last >= source.size):
        raise OpError(
            op, f"shows {sizes} by {strides} from {offset}, and {name_of(op.source)} has {source.size} elements"
        )
    flat = source.reshape(-1)[offset:]
    step = source.itemsize
    values[op.result] = np.lib.stride_tricks.as_strided(flat, sizes, [stride * step for stride in strides])


def _rotate(op: RotateOp, values: Values) -> None:
    source, index = read(values, (op.source, op.index))
    values[op.result] = source[index % len(source)]


VIEWS: dict[type[Operation], Callable[[Any, Values], None]] = {
    arith.ConstantOp: _constant,
    memref.AllocOp: _allocate,
    memref.DimOp: _dim,
    memref.SubviewOp: _subview,
    memref.ReinterpretCastOp: _reinterpret,
    RotateOp: _rotate,
}
"""What each operation sets its result to."""
