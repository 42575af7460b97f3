"""Softmax of rows."""

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
    expect_float,
    shape_of,
)


def softmax(x: Array) -> Array:
    """exp(x) / sum(exp(x)) over the last dimension, shifted by the maximum so that nothing overflows."""
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@irdl_op_definition
class SoftmaxOp(Operator):
    """Each row's exponentials, divided by their sum."""

    name = "tops.softmax"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (x,) = operands
        shape_of(x, 2, "x")
        expect_float(x, "x")
        return (x,)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (softmax(operands[0]),)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.x.type, 2, "x")
        return (Dimension("rows", rows),)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, features = shape_of(self.x.type, 2, "x")
        box = tasks.box(tasks.along(0), features)
        return [Access(0, Mode.READ, *box), Access(1, Mode.WRITE, *box)]

    def flops(self) -> int:
        rows, features = shape_of(self.x.type, 2, "x")
        return 4 * rows * features
