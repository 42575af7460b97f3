"""The operations of `tile` as instructions of the ISA: opcode, operands by key, options (`tile_forms`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile_compute import FillOp, IotaOp, MapOp, MatmulOp, ReduceOp, SelectOp, TransposeOp
from mpkc.dialects.tile_rings import constant
from mpkc.dialects.tile_transfer import CopyOp, GatherOp, ScatterOp, TileInstruction, Transfer, ValueOp
from mpkc.dialects.tile_types import Space, space_of
from mpkc.runtime.neuron.views import LOWER_FIRST


@dataclass(frozen=True)
class TileParts:
    """What an operation is made of."""

    opcode: str
    operands: Mapping[str, SSAValue]
    options: Mapping[str, str | int] = field(default_factory=dict[str, str | int])


def tile_parts(op: TileInstruction) -> TileParts:
    """The instruction that `op` is.

    Raises:
        OpError: for what only a worker of a mega-kernel has.
    """
    if isinstance(op, Transfer) and op.tokens:
        raise OpError(op, f"'{op.name}' waits for an event: events are for workers, which the neuron target has not")
    match op:
        case CopyOp():
            far = Space.FAR in (space_of(op.source.type), space_of(op.dest.type))
            return TileParts("DMA_COPY" if far else "TENSOR_COPY", {"dst": op.dest, "src": op.source})
        case GatherOp():
            return TileParts("DMA_GATHER", {"dst": op.dest, "src": op.source, "rows": op.rows})
        case ScatterOp():
            operands = {"dst": op.dest, "rows": op.rows, "src": op.source}
            return TileParts("DMA_SCATTER", operands, _flags(add=op.add))
        case ValueOp():
            if any(constant(index) != 0 for index in op.indices):
                raise OpError(op, f"'{op.name}' takes an element by its indices: {LOWER_FIRST}")
            return TileParts("TENSOR_LOAD", {"src": op.source})
        case MatmulOp():
            operands = {"dst": op.dest, "lhs": op.lhs, "rhs": op.rhs} | _accumulate(op)
            flags = _flags(transpose_lhs=op.transpose_lhs, transpose_rhs=op.transpose_rhs)
            return TileParts("MATMUL", operands, flags)
        case MapOp():
            function: dict[str, str | int] = {"op": op.function.data.value}
            if len(op.inputs) == 1:
                return TileParts("ACTIVATE", {"dst": op.dest, "src": op.inputs[0]}, function)
            return TileParts("TENSOR_TENSOR", {"dst": op.dest, "src0": op.inputs[0], "src1": op.inputs[1]}, function)
        case SelectOp():
            operands = {"dst": op.dest, "mask": op.mask, "src0": op.if_true, "src1": op.if_false}
            return TileParts("TENSOR_SELECT", operands)
        case ReduceOp():
            words: dict[str, str | int] = {"op": op.reduction.data.value, "axis": op.axis.value.data}
            if op.function is not None:
                words["of"] = op.function.data.value
            return TileParts("TENSOR_REDUCE", {"dst": op.dest, "src": op.source} | _accumulate(op), words)
        case TransposeOp():
            return TileParts("TRANSPOSE", {"dst": op.dest, "src": op.source})
        case FillOp():
            return TileParts("MEMSET", {"dst": op.dest, "value": op.value})
        case IotaOp():
            return TileParts("IOTA", {"dst": op.dest, "start": op.start}, {"axis": op.axis.value.data})
        case _:
            raise OpError(op, f"'{op.name}' has no form in the ISA: workers of a mega-kernel do not run there")


def _accumulate(op: MatmulOp | ReduceOp) -> dict[str, SSAValue]:
    return {} if op.accumulate is None else {"accumulate": op.accumulate}


def _flags(**given: object) -> dict[str, str | int]:
    return {name: True for name, flag in given.items() if flag is not None}
