"""The index of the largest element of each row, in two steps: maxima of parts of the row, then their maximum."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.rewriter import Rewriter

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
class ArgmaxPartialOp(Operator):
    """The largest element of each of `parts` parts of every row, and its index in the row; the first of equals."""

    name = "tops.argmax_partial"

    x = operand_def(TensorType)
    parts = prop_def(IntegerAttr)
    largest = result_def(TensorType)
    index = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        (x,) = operands
        rows, columns = shape_of(x, 2, "x")
        parts = properties["parts"]
        assert isinstance(parts, IntegerAttr)
        count = parts.value.data
        expect(1 <= count <= columns, f"parts is {count}, but {columns} columns have 1 to {columns} parts")
        return TensorType(expect_float(x, "x"), (rows, count)), TensorType(i32, (rows, count))

    @property
    def has_free_parts(self) -> bool:
        """Whether only an argmax_reduce reads the results, so that the number of parts is nobody else's business."""
        return all(isinstance(use.operation, ArgmaxReduceOp) for result in self.results for use in result.uses)

    def with_parts(self, parts: int) -> "ArgmaxPartialOp":
        """The operator with another number of parts, put in this one's place."""
        types = self.infer([self.x.type], {"parts": IntegerAttr(parts, i64)})
        new = ArgmaxPartialOp.create(
            operands=[self.x],
            properties={"parts": IntegerAttr(parts, i64)},
            attributes=self.attributes,
            result_types=types,
        )
        new.location = self.location
        Rewriter.replace_op(self, new)
        return new

    def _columns(self) -> Dimension:
        return Dimension("columns", shape_of(self.x.type, 2, "x")[1])

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        (x,) = operands
        starts, ends = self._columns().cut(self.parts.value.data)
        index = np.stack(
            [lo + np.argmax(x[:, lo:hi], axis=1) for lo, hi in zip(starts, ends, strict=True)], axis=1
        ).astype(np.int32)
        return np.take_along_axis(x, index, axis=1), index

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.x.type, 2, "x")
        return Dimension("rows", rows), Dimension("parts", self.parts.value.data)

    def accesses(self, tasks: Tasks) -> list[Access]:
        rows, (lo, hi) = tasks.along(0), tasks.along(1)
        starts, ends = self._columns().cut(self.parts.value.data)
        out = tasks.box(rows, (lo, hi))
        return [
            Access(0, Mode.READ, *tasks.box(rows, (starts[lo], ends[hi - 1]))),
            Access(1, Mode.WRITE, *out),
            Access(2, Mode.WRITE, *out),
        ]


@irdl_op_definition
class ArgmaxReduceOp(Operator):
    """The index that belongs to the largest of the partial maxima of each row; the first of equals."""

    name = "tops.argmax_reduce"

    largest = operand_def(TensorType)
    index = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        largest, index = operands
        rows, _ = shape_of(largest, 2, "largest")
        expect_float(largest, "largest")
        expect(element_of(index) == i32, f"index has elements of {element_of(index)}, but must have i32")
        expect(
            shape_of(index, 2, "index") == shape_of(largest, 2, "largest"),
            "largest and index differ in shape",
        )
        return (TensorType(i32, (rows,)),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        largest, index = operands
        part = np.argmax(largest, axis=1)[:, None]
        return (np.take_along_axis(index, part, axis=1)[:, 0],)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.largest.type, 2, "largest")
        return (Dimension("rows", rows),)

    def accesses(self, tasks: Tasks) -> list[Access]:
        _, parts = shape_of(self.largest.type, 2, "largest")
        box = tasks.box(tasks.along(0), parts)
        return [
            Access(0, Mode.READ, *box),
            Access(1, Mode.READ, *box),
            Access(2, Mode.WRITE, *tasks.box(tasks.along(0))),
        ]
