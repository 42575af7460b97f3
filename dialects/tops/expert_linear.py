"""Multiplication by the weights of the chosen experts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from mpkc.dialects.tops.base import (
    Access,
    Array,
    Dimension,
    Mode,
    Moved,
    Operator,
    Tasks,
    element_of,
    expect,
    expect_float,
    shape_of,
)


@irdl_op_definition
class ExpertLinearOp(Operator):
    """Slot s = r · k + j of the result is x · weight[experts[r, j]]^T.

    experts is [rows, k], weight [experts, out, in], the result [rows · k, out]. x is [rows, in], one row for all
    slots of it, or [rows · k, in], one for each slot. A task is a group of experts and a block of features; which
    slots belong to its experts depends on data, so in rows every task touches all of x and of the result. Of the
    box that it writes it leaves the slots of other tasks' experts alone.
    """

    name = "tops.expert_linear"

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    experts = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        x, weight, experts = operands
        x_rows, inner = shape_of(x, 2, "x")
        _, out, weight_inner = shape_of(weight, 3, "weight")
        rows, k = shape_of(experts, 2, "experts")
        expect_float(weight, "weight")
        expect(element_of(experts) == i32, f"experts has elements of {element_of(experts)}, but must have i32")
        expect(inner == weight_inner, f"x has {inner} columns, but weight ([experts, out, in]) has {weight_inner}")
        expect(
            x_rows in (rows, rows * k),
            f"x has {x_rows} rows, but experts of {rows} rows and {k} choices need {rows} or {rows * k}",
        )
        return (TensorType(expect_float(x, "x"), (rows * k, out)),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        x, weight, experts = operands
        slots = experts.reshape(-1)
        x = np.repeat(x, len(slots) // len(x), axis=0)
        result = np.empty((len(slots), weight.shape[1]), x.dtype)
        for expert in np.unique(slots):
            chosen = slots == expert
            result[chosen] = x[chosen] @ weight[expert].T
        return (result,)

    def index_limits(self) -> dict[int, tuple[int, str]]:
        return {2: (shape_of(self.weight.type, 3, "weight")[0], "experts")}

    @property
    def data_dependent(self) -> bool:
        return True

    def dimensions(self) -> tuple[Dimension, ...]:
        experts, out, _ = shape_of(self.weight.type, 3, "weight")
        return Dimension("experts", experts), Dimension("features", out, self.result_unit)

    def accesses(self, tasks: Tasks) -> list[Access]:
        x_rows, inner = shape_of(self.x.type, 2, "x")
        slots, _ = shape_of(self.result.type, 2, "result")
        experts, out = tasks.along(0), tasks.along(1)
        result = Access(3, Mode.WRITE, *tasks.box(slots, out))
        return [
            Access(0, Mode.READ, *tasks.box(x_rows, inner), moved=self._moved_rows(tasks)),
            Access(1, Mode.READ, *tasks.box(experts, out, inner), moved=self._moved_weights(tasks)),
            Access(2, Mode.READ, *tasks.box(*shape_of(self.experts.type, 2, "experts"))),
            replace(result, moved=Moved(result.elements, prod(shape_of(self.result.type, 2, "result")))),
        ]

    def _moved_rows(self, tasks: Tasks) -> Moved:
        """Of x, the rows of the slots that chose an expert of the task: at most all, in each block of features."""
        x_rows, inner = shape_of(self.x.type, 2, "x")
        slots, _ = shape_of(self.result.type, 2, "result")
        groups, blocks = tasks.grid
        rows = slots if x_rows == slots else min(slots, groups * x_rows)
        return Moved(np.full(tasks.count, x_rows * inner), blocks * rows * inner)

    def _moved_weights(self, tasks: Tasks) -> Moved:
        """The weights of the experts that are chosen: at most one expert for each slot."""
        experts, out, inner = shape_of(self.weight.type, 3, "weight")
        slots, _ = shape_of(self.result.type, 2, "result")
        (first, past), (lo, hi) = tasks.along(0), tasks.along(1)
        each = np.minimum(past - first, slots) * (hi - lo) * inner
        return Moved(each, min(experts, slots) * out * inner)

    def flops(self) -> int:
        slots, out = shape_of(self.result.type, 2, "result")
        _, inner = shape_of(self.x.type, 2, "x")
        return 2 * slots * out * inner
