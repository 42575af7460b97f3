"""One number for each row."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr, TensorType
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

REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "mean": np.mean}


@irdl_op_definition
class ReduceOp(Operator):
    """The sum, maximum or mean of each row: x [rows, features] to [rows, 1]."""

    name = "tops.reduce"

    x = operand_def(TensorType)
    kind = prop_def(StringAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (x,) = operands
        rows, _ = shape_of(x, 2, "x")
        kind = properties["kind"]
        assert isinstance(kind, StringAttr)
        expect(kind.data in REDUCTIONS, f'kind is "{kind.data}", but must be one of: {", ".join(REDUCTIONS)}')
        return (TensorType(expect_float(x, "x"), (rows, 1)),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        return (REDUCTIONS[self.kind.data](operands[0], axis=1, keepdims=True),)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.x.type, 2, "x")
        return (Dimension("rows", rows),)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, features = shape_of(self.x.type, 2, "x")
        rows = tasks.along(0)
        return [Access(0, Mode.READ, *tasks.box(rows, features)), Access(1, Mode.WRITE, *tasks.box(rows, 1))]

    def flops(self) -> int:
        rows, features = shape_of(self.x.type, 2, "x")
        return rows * features
