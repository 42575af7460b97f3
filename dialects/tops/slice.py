"""Every n-th column, such as the gates of a fused gate and up."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from mpkc.dialects.tops.base import (
    Access,
    Array,
    Dimension,
    Mode,
    Operator,
    Tasks,
    expect,
    expect_float,
    shape_of,
)


@irdl_op_definition
class SliceOp(Operator):
    """Columns offset, offset + step, offset + 2 step, ... of x [rows, columns], to its end."""

    name = "tops.slice"

    x = operand_def(TensorType)
    offset = prop_def(IntegerAttr)
    step = prop_def(IntegerAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (x,) = operands
        rows, columns = shape_of(x, 2, "x")
        offset, step = properties["offset"], properties["step"]
        assert isinstance(offset, IntegerAttr)
        assert isinstance(step, IntegerAttr)
        first, distance = offset.value.data, step.value.data
        expect(0 <= first < columns, f"offset is {first}, but x has columns 0 to {columns - 1}")
        expect(distance >= 1, f"step is {distance}, but must be at least 1")
        return (TensorType(expect_float(x, "x"), (rows, -((first - columns) // distance))),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (np.ascontiguousarray(operands[0][:, self.offset.value.data :: self.step.value.data]),)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        rows, (lo, hi) = tasks.along(0), tasks.along(1)
        offset, step = self.offset.value.data, self.step.value.data
        columns = (offset + lo * step, offset + (hi - 1) * step + 1)
        return [
            Access(0, Mode.READ, *tasks.box(rows, columns), step=(1, step)),
            Access(1, Mode.WRITE, *tasks.box(rows, (lo, hi))),
        ]
