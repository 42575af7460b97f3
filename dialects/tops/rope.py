"""Rotary position embedding, where it is not part of attention."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, TensorType, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from mpkc.dialects.tops.attention import rotate
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
    expect_positive,
    shape_of,
)


@irdl_op_definition
class RopeOp(Operator):
    """Each head of row r turned to position `positions[r]`; x is [rows, heads · dim]."""

    name = "tops.rope"

    x = operand_def(TensorType)
    positions = operand_def(TensorType)
    heads = prop_def(IntegerAttr)
    rope_base = prop_def(FloatAttr)
    rope_style = prop_def(StringAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        x, positions = operands
        rows, columns = shape_of(x, 2, "x")
        expect_float(x, "x")
        expect(
            shape_of(positions, 1, "positions") == (rows,),
            f"positions must have {rows} elements, as x has rows",
        )
        expect(
            element_of(positions) == i32,
            f"positions has elements of {element_of(positions)}, but must have i32",
        )
        heads = properties["heads"]
        assert isinstance(heads, IntegerAttr)
        count = heads.value.data
        expect(
            count >= 1 and columns % (2 * count) == 0,
            f"{columns} columns can't be cut into {count} heads of an even number of elements",
        )
        expect_positive(properties, "rope_base")
        expect(
            properties["rope_style"] in (StringAttr("pairs"), StringAttr("halves")),
            'rope_style is "pairs" or "halves"',
        )
        return (x,)

    @property
    def dim(self) -> int:
        """Elements of a head."""
        return shape_of(self.x.type, 2, "x")[1] // self.heads.value.data

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        x, positions = operands
        heads = x.reshape(len(x), -1, self.dim)
        return (rotate(heads, positions, self.rope_base.value.data, self.rope_style.data).reshape(x.shape),)

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, _ = shape_of(self.x.type, 2, "x")
        return Dimension("rows", rows), Dimension("heads", self.heads.value.data)

    def accesses(self, tasks: Tasks) -> list[Access]:
        rows, (lo, hi) = tasks.along(0), tasks.along(1)
        box = tasks.box(rows, (lo * self.dim, hi * self.dim))
        return [
            Access(0, Mode.READ, *box),
            Access(1, Mode.READ, *tasks.box(rows)),
            Access(2, Mode.WRITE, *box),
        ]

    def flops(self) -> int:
        rows, columns = shape_of(self.x.type, 2, "x")
        return 3 * rows * columns
