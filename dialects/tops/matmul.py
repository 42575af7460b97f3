"""The product of two activations."""

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
    element_of,
    expect,
    expect_float,
    shape_of,
)


@irdl_op_definition
class MatmulOp(Operator):
    """a · b: a is [rows, inner], b [inner, features], the result [rows, features]."""

    name = "tops.matmul"

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        a, b = operands
        rows, inner = shape_of(a, 2, "a")
        b_inner, features = shape_of(b, 2, "b")
        element = expect_float(a, "a")
        expect(element == element_of(b), f"a is {a} and b is {b}, but their elements must be alike")
        expect(inner == b_inner, f"a has {inner} columns, but b has {b_inner} rows")
        return (TensorType(element, (rows, features)),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (operands[0] @ operands[1],)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, inner = shape_of(self.a.type, 2, "a")
        rows, features = tasks.along(0), tasks.along(1)
        return [
            Access(0, Mode.READ, *tasks.box(rows, inner)),
            Access(1, Mode.READ, *tasks.box(inner, features)),
            Access(2, Mode.WRITE, *tasks.box(rows, features)),
        ]

    def flops(self) -> int:
        rows, inner = shape_of(self.a.type, 2, "a")
        _, features = shape_of(self.b.type, 2, "b")
        return 2 * rows * inner * features
