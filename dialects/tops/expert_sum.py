"""The weighted sum of what the chosen experts gave."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def

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
class ExpertSumOp(Operator):
    """Row r is the sum over j of weights[r, j] · slots[r · k + j] (+ residual[r]).

    slots is [rows · k, features], weights [rows, k], residual and result [rows, features].
    """

    name = "tops.expert_sum"

    slots = operand_def(TensorType)
    weights = operand_def(TensorType)
    residual = opt_operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        slots, weights = operands[:2]
        count, features = shape_of(slots, 2, "slots")
        rows, k = shape_of(weights, 2, "weights")
        expect_float(weights, "weights")
        expect(count == rows * k, f"slots has {count} rows, but weights of {rows} rows and {k} choices need {rows * k}")
        result = TensorType(expect_float(slots, "slots"), (rows, features))
        for residual in operands[2:]:
            expect(residual == result, f"residual is {residual}, but the sum is {result}")
        return (result,)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        slots, weights, *residual = operands
        total = np.einsum("rk,rkf->rf", weights, slots.reshape(*weights.shape, -1))
        return (total + residual[0] if residual else total,)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, k = shape_of(self.weights.type, 2, "weights")
        (lo, hi), features = tasks.along(0), tasks.along(1)
        box = tasks.box((lo, hi), features)
        residual = [Access(2, Mode.READ, *box)] if self.residual else []
        return [
            Access(0, Mode.READ, *tasks.box((lo * k, hi * k), features)),
            Access(1, Mode.READ, *tasks.box((lo, hi), k)),
            *residual,
            Access(len(self.operands), Mode.WRITE, *box),
        ]

    def flops(self) -> int:
        slots, features = shape_of(self.slots.type, 2, "slots")
        return 2 * slots * features
