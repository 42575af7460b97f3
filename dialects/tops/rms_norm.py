"""Root-mean-square normalization."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import FloatAttr, TensorType
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
    expect_positive,
    shape_of,
)


def rms_normalize(x: Array, weight: Array, epsilon: float) -> Array:
    """x / sqrt(mean(x^2) + epsilon) * weight, over the last dimension, in float32."""
    mean = np.mean(np.square(x, dtype=np.float32), axis=-1, keepdims=True, dtype=np.float32)
    return x / np.sqrt(mean + np.float32(epsilon)) * weight


@irdl_op_definition
class RmsNormOp(Operator):
    """Each row divided by its root mean square, then scaled by the weight."""

    name = "tops.rms_norm"

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        x, weight = operands
        _, features = shape_of(x, 2, "x")
        expect_float(x, "x")
        expect_float(weight, "weight")
        expect(
            shape_of(weight, 1, "weight") == (features,),
            f"weight must have {features} elements, as x has columns",
        )
        expect_positive(properties, "epsilon")
        return (x,)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        x, weight = operands
        return (rms_normalize(x, weight, self.epsilon.value.data),)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.x.type, 2, "x")
        return (Dimension("rows", rows),)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, features = shape_of(self.x.type, 2, "x")
        box = tasks.box(tasks.along(0), features)
        return [
            Access(0, Mode.READ, *box),
            Access(1, Mode.READ, *tasks.box(features)),
            Access(2, Mode.WRITE, *box),
        ]

    def flops(self) -> int:
        rows, features = shape_of(self.x.type, 2, "x")
        return 4 * rows * features
