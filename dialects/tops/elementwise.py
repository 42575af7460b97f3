"""Operators on elements at the same place."""

from collections.abc import Mapping, Sequence

import numpy as np
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
    expect,
    expect_float,
    shape_of,
)


class ElementwiseOp(Operator):
    """Two tensors [rows, features] of one type to a third."""

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        a, b = operands
        shape_of(a, 2, "a")
        expect_float(a, "a")
        expect(a == b, f"a is {a} and b is {b}, but they must be alike")
        return (a,)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        box = tasks.box(tasks.along(0), tasks.along(1))
        return [Access(0, Mode.READ, *box), Access(1, Mode.READ, *box), Access(2, Mode.WRITE, *box)]

    def flops(self) -> int:
        rows, features = shape_of(self.result.type, 2, "result")
        return rows * features


@irdl_op_definition
class AddOp(ElementwiseOp):
    """a + b."""

    name = "tops.add"

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (operands[0] + operands[1],)


@irdl_op_definition
class MulOp(ElementwiseOp):
    """a · b, element by element."""

    name = "tops.mul"

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (operands[0] * operands[1],)


@irdl_op_definition
class SiluMulOp(Operator):
    """silu(gate) · up, where gate and up alternate column by column: x is [rows, 2 features]."""

    name = "tops.silu_mul"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (x,) = operands
        rows, columns = shape_of(x, 2, "x")
        expect(columns % 2 == 0, f"x has {columns} columns, but gate and up need an even number")
        return (TensorType(expect_float(x, "x"), (rows, columns // 2)),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        gate, up = operands[0][:, 0::2], operands[0][:, 1::2]
        return (gate / (1 + np.exp(-gate)) * up,)

    def unit(self, operand: int) -> int:
        return 2

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        rows, (lo, hi) = tasks.along(0), tasks.along(1)
        return [
            Access(0, Mode.READ, *tasks.box(rows, (2 * lo, 2 * hi))),
            Access(1, Mode.WRITE, *tasks.box(rows, (lo, hi))),
        ]

    def flops(self) -> int:
        rows, features = shape_of(self.result.type, 2, "result")
        return 5 * rows * features
