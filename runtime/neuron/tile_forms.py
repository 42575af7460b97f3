"""The tile instructions of the ISA: what each is written with, and the operation of `tile` that it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa
from xdsl.utils.test_value import create_ssa_value

from mpkc.dialects.tile_compute import FillOp, IotaOp, MapOp, MatmulOp, ReduceOp, SelectOp, TransposeOp
from mpkc.dialects.tile_transfer import CopyOp, GatherOp, ScatterOp, ValueOp
from mpkc.dialects.tile_types import BINARY, UNARY, Function, FunctionAttr, Reduction, ReductionAttr

Operands: TypeAlias = Mapping[str, SSAValue]
Options: TypeAlias = Mapping[str, str | int]
Properties: TypeAlias = dict[str, Attribute]


@dataclass(frozen=True)
class Form:
    """What follows the opcode, in this order: words, operands, numbers, flags, each by its key.

    Attributes:
        build: the operation with these operands, options and properties.
        operands: the keys of tiles and numbers; those in `optional` may be left out.
        words: the keys of words and what each may be; those in `optional` may be left out.
    """

    build: Callable[[Operands, Options, Properties], Operation]
    operands: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()

    @property
    def keys(self) -> tuple[str, ...]:
        """All of them, in the order in which they are printed."""
        return (*self.words, *self.operands, *self.numbers, *self.flags)


def _copy(v: Operands, o: Options, p: Properties) -> Operation:
    return CopyOp(operands=[v["src"], v["dst"], []], properties=p)


def _gather(v: Operands, o: Options, p: Properties) -> Operation:
    return GatherOp(operands=[v["src"], v["rows"], v["dst"], []], properties=p)


def _scatter(v: Operands, o: Options, p: Properties) -> Operation:
    return ScatterOp(operands=[v["src"], v["dst"], v["rows"], []], properties=p | _flags(o, "add"))


def _value(v: Operands, o: Options, p: Properties) -> Operation:
    source = v["src"].type
    assert isa(source, MemRefType)
    zero = create_ssa_value(IndexType())
    return ValueOp(operands=[v["src"], [zero] * source.get_num_dims()], properties=p, result_types=[IndexType()])


def _matmul(v: Operands, o: Options, p: Properties) -> Operation:
    more = [v["accumulate"]] if "accumulate" in v else []
    flags = _flags(o, "transpose_lhs", "transpose_rhs")
    return MatmulOp(operands=[v["lhs"], v["rhs"], v["dst"], more], properties=p | flags)


def _map(v: Operands, o: Options, p: Properties) -> Operation:
    inputs = [v[key] for key in ("src", "src0", "src1") if key in v]
    return MapOp(operands=[inputs, v["dst"]], properties=p | {"function": FunctionAttr(Function(str(o["op"])))})


def _select(v: Operands, o: Options, p: Properties) -> Operation:
    return SelectOp(operands=[v["mask"], v["src0"], v["src1"], v["dst"]], properties=p)


def _reduce(v: Operands, o: Options, p: Properties) -> Operation:
    more = [v["accumulate"]] if "accumulate" in v else []
    p = p | {"reduction": ReductionAttr(Reduction(str(o["op"]))), "axis": _axis(o)}
    if "of" in o:
        p["function"] = FunctionAttr(Function(str(o["of"])))
    return ReduceOp(operands=[v["src"], v["dst"], more], properties=p)


def _transpose(v: Operands, o: Options, p: Properties) -> Operation:
    return TransposeOp(operands=[v["src"], v["dst"]], properties=p)


def _fill(v: Operands, o: Options, p: Properties) -> Operation:
    return FillOp(operands=[v["value"], v["dst"]], properties=p)


def _iota(v: Operands, o: Options, p: Properties) -> Operation:
    return IotaOp(operands=[v["start"], v["dst"]], properties=p | {"axis": _axis(o)})


def _flags(o: Options, *names: str) -> Properties:
    return {name: UnitAttr() for name in names if name in o}


def _axis(o: Options) -> Attribute:
    return IntegerAttr(int(o["axis"]), i64)


_UNARY = tuple(function.value for function in Function if function in UNARY)
_BINARY = tuple(function.value for function in Function if function in BINARY)
_REDUCTIONS = tuple(reduction.value for reduction in Reduction)
_MORE = frozenset({"accumulate"})

FORMS: Mapping[str, Form] = {
    "DMA_COPY": Form(_copy, ("dst", "src")),
    "DMA_GATHER": Form(_gather, ("dst", "src", "rows")),
    "DMA_SCATTER": Form(_scatter, ("dst", "rows", "src"), flags=("add",)),
    "TENSOR_COPY": Form(_copy, ("dst", "src")),
    "TENSOR_LOAD": Form(_value, ("src",)),
    "MATMUL": Form(
        _matmul, ("dst", "lhs", "rhs", "accumulate"), flags=("transpose_lhs", "transpose_rhs"), optional=_MORE
    ),
    "ACTIVATE": Form(_map, ("dst", "src"), {"op": _UNARY}),
    "TENSOR_TENSOR": Form(_map, ("dst", "src0", "src1"), {"op": _BINARY}),
    "TENSOR_SELECT": Form(_select, ("dst", "mask", "src0", "src1")),
    "TENSOR_REDUCE": Form(
        _reduce,
        ("dst", "src", "accumulate"),
        {"op": _REDUCTIONS, "of": _UNARY},
        numbers=("axis",),
        optional=_MORE | {"of"},
    ),
    "TRANSPOSE": Form(_transpose, ("dst", "src")),
    "MEMSET": Form(_fill, ("dst", "value")),
    "IOTA": Form(_iota, ("dst", "start"), numbers=("axis",)),
}
"""By opcode. Copies to or from far memory are DMA_COPY, others TENSOR_COPY; `tile.map` is ACTIVATE with one operand,
TENSOR_TENSOR with two; TENSOR_LOAD writes the mailbox that its label names."""


def engine_property(engine: str) -> Properties:
    """The property that every operation of `tile` has."""
    return {"engine": StringAttr(engine)}
