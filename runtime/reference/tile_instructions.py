"""The instructions of `tile` in NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile_compute import FillOp, IotaOp, MapOp, MatmulOp, ReduceOp, SelectOp, TransposeOp
from mpkc.dialects.tile_transfer import CopyOp, GatherOp, ScatterOp, ValueOp
from mpkc.dialects.tile_types import COMPARISONS, Buffer, Function
from mpkc.runtime.reference.elements import Array, rounded, storage_type
from mpkc.runtime.reference.functions import COMBINE, mapped, reduced
from mpkc.runtime.reference.tile_views import Values, name_of, read


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isa(type_, MemRefType) else type_


def write(op: Operation, dest: Array, result: Array, element: Attribute) -> None:
    """Write a result to the destination of `op`, rounded to its element type."""
    if result.shape != dest.shape:
        raise OpError(op, f"its result is of shape {result.shape} here, and its destination of shape {dest.shape}")
    dest[...] = rounded(result, element)


def _compute_type(elements: Sequence[Attribute]) -> Any:
    """f64 where an element is f64, else f32; integers are computed in 64 bits."""
    storage = [storage_type(element) for element in elements]
    if all(dtype.kind in "iub" for dtype in storage):
        return np.int64
    return np.float64 if np.dtype(np.float64) in storage else np.float32


def _copy(op: CopyOp, values: Values) -> None:
    source, dest = read(values, (op.source, op.dest))
    write(op, dest, source, op.dest.type.element_type)


def _rows(op: GatherOp | ScatterOp, values: Values, far: SSAValue) -> Array:
    rows: Array = values[op.rows]
    limit = len(values[far])
    if bad := rows[(rows < 0) | (rows >= limit)].tolist():
        raise OpError(op, f"asks for row {bad[0]}, and {name_of(far)} has {limit}")
    return rows


def _gather(op: GatherOp, values: Values) -> None:
    source, dest = read(values, (op.source, op.dest))
    write(op, dest, source[_rows(op, values, op.source)], op.dest.type.element_type)


def _scatter(op: ScatterOp, values: Values) -> None:
    source, dest = read(values, (op.source, op.dest))
    rows, element = _rows(op, values, op.dest), op.dest.type.element_type
    if source.shape != (len(rows), dest.shape[1]):
        raise OpError(op, f"its source is of shape {source.shape} here, for {len(rows)} rows of {dest.shape[1]}")
    if op.add:
        np.add.at(dest, rows, source)
        dest[rows] = rounded(dest[rows], element)
        return
    if len(np.unique(rows)) < len(rows):
        raise OpError(op, "two rows go to one row: say `add`, or keep them apart")
    dest[rows] = source


def _value(op: ValueOp, values: Values) -> None:
    source: Array = values[op.source]
    indices = tuple(read(values, op.indices))
    if not all(0 <= index < size for index, size in zip(indices, source.shape, strict=True)):
        raise OpError(op, f"reads at {list(indices)}, and {name_of(op.source)} is of shape {source.shape}")
    values[op.result] = int(source[indices])


def _matmul(op: MatmulOp, values: Values) -> None:
    lhs, rhs, dest = read(values, (op.lhs, op.rhs, op.dest))
    lhs, rhs = lhs.T if op.transpose_lhs else lhs, rhs.T if op.transpose_rhs else rhs
    if lhs.shape[1] != rhs.shape[0]:
        raise OpError(op, f"multiplies {lhs.shape[0]}x{lhs.shape[1]} by {rhs.shape[0]}x{rhs.shape[1]} here")
    dtype = _compute_type([op.dest.type.element_type])
    product = lhs.astype(dtype) @ rhs.astype(dtype)
    if op.accumulate and values[op.accumulate]:
        product = dest + product
    write(op, dest, product, op.dest.type.element_type)


def _operands(values: Values, inputs: Sequence[SSAValue], dest: Buffer) -> list[Array]:
    """The inputs in the type that an instruction computes in."""
    dtype = _compute_type([*(_element(value.type) for value in inputs), dest.element_type])
    return [np.asarray(values[value], dtype) for value in inputs]


def _map(op: MapOp, values: Values) -> None:
    function, dest = op.function.data, values[op.dest]
    if function is Function.CAST:
        _write_broadcast(op, read(values, op.inputs)[0], dest)
    elif function in COMPARISONS:
        operands: list[Any] = read(values, op.inputs)
        _write_broadcast(op, mapped(function, operands), dest)
    else:
        _write_broadcast(op, mapped(function, _operands(values, op.inputs, op.dest.type)), dest)


def _select(op: SelectOp, values: Values) -> None:
    mask, if_true, if_false, dest = map(np.asarray, read(values, (op.mask, op.if_true, op.if_false, op.dest)))
    _write_broadcast(op, np.where(mask, if_true, if_false), dest)


def _write_broadcast(op: MapOp | SelectOp, result: Array, dest: Array) -> None:
    try:
        full = np.broadcast_to(result, dest.shape)
    except ValueError:
        raise OpError(op, f"operands of shape {result.shape} here do not broadcast to {dest.shape}") from None
    dest[...] = rounded(full, op.dest.type.element_type)


def _reduce(op: ReduceOp, values: Values) -> None:
    dest: Array = values[op.dest]
    reduction = op.reduction.data
    (source,) = _operands(values, [op.source], op.dest.type)
    if op.function:
        source = mapped(op.function.data, [source])
    result = reduced(reduction, source, op.axis.value.data)
    if op.accumulate and values[op.accumulate]:
        result = COMBINE[reduction](dest, result)
    write(op, dest, result, op.dest.type.element_type)


def _transpose(op: TransposeOp, values: Values) -> None:
    source, dest = read(values, (op.source, op.dest))
    write(op, dest, source.T, op.dest.type.element_type)


def _fill(op: FillOp, values: Values) -> None:
    value, dest = read(values, (op.value, op.dest))
    dest[...] = rounded(np.asarray(value), op.dest.type.element_type)


def _iota(op: IotaOp, values: Values) -> None:
    start, dest = read(values, (op.start, op.dest))
    axis = op.axis.value.data
    shape = [-1 if at == axis else 1 for at in range(dest.ndim)]
    numbers = np.arange(start, start + dest.shape[axis], dtype=np.int64).reshape(shape)
    dest[...] = rounded(numbers, op.dest.type.element_type)


INSTRUCTIONS: dict[type[Operation], Callable[[Any, Values], None]] = {
    CopyOp: _copy,
    GatherOp: _gather,
    ScatterOp: _scatter,
    ValueOp: _value,
    MatmulOp: _matmul,
    MapOp: _map,
    SelectOp: _select,
    ReduceOp: _reduce,
    TransposeOp: _transpose,
    FillOp: _fill,
    IotaOp: _iota,
}
"""What each instruction does to the buffers that it names."""
