"""The choice of experts."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr, f32, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

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
from mpkc.dialects.tops.softmax import softmax


@irdl_op_definition
class TopkSoftmaxOp(Operator):
    """The k most likely experts of each row of router logits [rows, experts], the first of equals first.

    The weights [rows, k] are the softmax over all experts, divided by their sum where `renormalize` is set.
    """

    name = "tops.topk_softmax"

    logits = operand_def(TensorType)
    k = prop_def(IntegerAttr)
    renormalize = opt_prop_def(UnitAttr)
    weights = result_def(TensorType)
    experts = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (logits,) = operands
        rows, experts = shape_of(logits, 2, "logits")
        expect_float(logits, "logits")
        k = properties["k"]
        assert isinstance(k, IntegerAttr)
        count = k.value.data
        expect(1 <= count <= experts, f"k is {count}, but 1 to {experts} of {experts} experts can be chosen")
        return TensorType(f32, (rows, count)), TensorType(i32, (rows, count))

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        probabilities = softmax(operands[0])
        experts = np.argsort(-operands[0], axis=1, kind="stable")[:, : self.k.value.data]
        weights = np.take_along_axis(probabilities, experts, axis=1)
        if self.renormalize:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return weights, experts.astype(np.int32)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.logits.type, 2, "logits")
        return (Dimension("rows", rows),)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, experts = shape_of(self.logits.type, 2, "logits")
        rows = tasks.along(0)
        chosen = tasks.box(rows, self.k.value.data)
        return [
            Access(0, Mode.READ, *tasks.box(rows, experts)),
            Access(1, Mode.WRITE, *chosen),
            Access(2, Mode.WRITE, *chosen),
        ]

    def flops(self) -> int:
        rows, experts = shape_of(self.logits.type, 2, "logits")
        return 4 * rows * experts
