"""Rows as columns."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from mpkc.dialects.tops.base import (
    Access,
    Array,
    Dimension,
    Mode,
    Operator,
    Tasks,
    expect_float,
    shape_of,
)


@irdl_op_definition
class TransposeOp(Operator):
    """x [features, rows] as [rows, features]; the grid cuts the result."""

    name = "tops.transpose"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (x,) = operands
        return (TensorType(expect_float(x, "x"), shape_of(x, 2, "x")[::-1]),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (operands[0].T,)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        rows, features = tasks.along(0), tasks.along(1)
        return [
            Access(0, Mode.READ, *tasks.box(features, rows)),
            Access(1, Mode.WRITE, *tasks.box(rows, features)),
        ]
