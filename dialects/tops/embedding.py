"""Rows of a table."""

from collections.abc import Mapping, Sequence

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
class EmbeddingOp(Operator):
    """Row `index[r]` of the table as row r; the rows that a task reads depend on data, its columns do not."""

    name = "tops.embedding"

    index = operand_def(TensorType)
    table = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        index, table = operands
        (rows,) = shape_of(index, 1, "index")
        _, features = shape_of(table, 2, "table")
        expect(element_of(index) == i32, f"index has elements of {element_of(index)}, but must have i32")
        return (TensorType(expect_float(table, "table"), (rows, features)),)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        index, table = operands
        return (table[index],)

    def index_limits(self) -> dict[int, tuple[int, str]]:
        return {0: (shape_of(self.table.type, 2, "table")[0], "rows of the table")}

    def dimensions(self) -> tuple[Dimension, ...]:
        rows, features = shape_of(self.result.type, 2, "result")
        return Dimension("rows", rows), Dimension("features", features)

    def accesses(self, tasks: Tasks) -> list[Access]:
        entries, _ = shape_of(self.table.type, 2, "table")
        rows, features = tasks.along(0), tasks.along(1)
        result = Access(2, Mode.WRITE, *tasks.box(rows, features))
        gathered = Moved(result.elements, int(result.elements.sum()))  # one row of the table for each of the result
        return [
            Access(0, Mode.READ, *tasks.box(rows)),
            Access(1, Mode.READ, *tasks.box(entries, features), moved=gathered),
            result,
        ]
