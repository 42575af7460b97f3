"""Multiplication by a weight, the operator that a language model spends its time in."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def
from xdsl.utils.exceptions import VerifyException

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
class LinearOp(Operator):
    """x · weight^T (+ residual): x is [rows, in], weight [out, in], residual and result [rows, out]."""

    name = "tops.linear"

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    residual = opt_operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        x, weight = operands[:2]
        rows, inner = shape_of(x, 2, "x")
        out, weight_inner = shape_of(weight, 2, "weight")
        expect_float(weight, "weight")
        expect(inner == weight_inner, f"x has {inner} columns, but weight ([out, in]) has {weight_inner}")
        result = TensorType(expect_float(x, "x"), (rows, out))
        for residual in operands[2:]:
            if residual != result:
                raise VerifyException(f"residual is {residual}, but the product is {result}")
        return (result,)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        product = operands[0] @ operands[1].T
        return (product + operands[2] if len(operands) == 3 else product,)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, out = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", out, self.result_unit)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, inner = shape_of(self.x.type, 2, "x")
        rows, out = tasks.along(0), tasks.along(1)
        box = tasks.box(rows, out)
        residual = [Access(2, Mode.READ, *box)] if self.residual else []
        return [
            Access(0, Mode.READ, *tasks.box(rows, inner)),
            Access(1, Mode.READ, *tasks.box(out, inner)),
            *residual,
            Access(len(self.operands), Mode.WRITE, *box),
        ]

    def flops(self) -> int:
        rows, inner = shape_of(self.x.type, 2, "x")
        out, _ = shape_of(self.weight.type, 2, "weight")
        return 2 * rows * out * inner
