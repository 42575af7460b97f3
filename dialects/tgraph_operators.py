"""The operators whose tasks a graph holds: those of a function, or records of its own where there is none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.tgraph_table import EMPTY
from mpkc.dialects.tops.base import Operator


@dataclass(frozen=True)
class OperatorInfo:
    """What a graph knows of an operator.

    Attributes:
        name: for messages and symbols; unique in the graph.
        kind: what its tasks do, for example "linear".
        grid: the number of parts along each of its dimensions.
        cost: nanoseconds of one of its tasks, where it is known.
    """

    name: str
    kind: str
    grid: tuple[int, ...]
    cost: int | None = None

    @property
    def count(self) -> int:
        """The number of its tasks."""
        return int(np.prod(self.grid, dtype=np.int64))


@irdl_attr_definition
class OperatorAttr(ParametrizedAttribute):
    """An operator of a graph that has no function: `#tgraph.operator<"A" "attention" 2 cost 900>`, two tasks."""

    name = "tgraph.operator"

    label: StringAttr
    kind: StringAttr
    tasks: IntAttr
    cost: IntAttr | NoneAttr

    @staticmethod
    def of(info: OperatorInfo) -> "OperatorAttr":
        cost = NoneAttr() if info.cost is None else IntAttr(info.cost)
        return OperatorAttr(StringAttr(info.name), StringAttr(info.kind), IntAttr(info.count), cost)

    @property
    def info(self) -> OperatorInfo:
        cost = self.cost.data if isinstance(self.cost, IntAttr) else None
        return OperatorInfo(self.label.data, self.kind.data, (self.tasks.data,), cost)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            label, kind = (StringAttr(parser.parse_str_literal()) for _ in range(2))
            tasks = IntAttr(parser.parse_integer(allow_negative=False))
            cost = parser.parse_optional_keyword("cost")
            return label, kind, tasks, IntAttr(parser.parse_integer(allow_negative=False)) if cost else NoneAttr()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.label.data)
            printer.print_string(" ")
            printer.print_string_literal(self.kind.data)
            printer.print_string(f" {self.tasks.data}")
            if isinstance(self.cost, IntAttr):
                printer.print_string(f" cost {self.cost.data}")


def operators_in(function: FuncOp) -> list[Operator]:
    """The operators of a function in program order: the numbers of the column `task_operator` index this list."""
    return [op for block in function.body.blocks for op in block.ops if isinstance(op, Operator)]


def kind_of(op: Operator) -> str:
    """The kind of an operator's tasks: its name without the dialect."""
    return op.name.partition(".")[2]


def signature(op: Operator) -> object:
    """Equal for operators that a grid cuts alike: of one name, with equal types, properties and dimensions."""
    types = tuple(op.operand_types), tuple(op.result_types)
    return op.name, types, frozenset(op.properties.items()), op.dimensions()


def infos_of_function(function: FuncOp) -> tuple[OperatorInfo, ...]:
    """The operators of a partitioned function; raises VerifyException where one has no grid."""
    infos: list[OperatorInfo] = []
    for number, op in enumerate(operators_in(function)):
        if op.grid is None:
            raise VerifyException(f"operator {number} of @{function.sym_name.data}, {op.name}, has no grid")
        infos.append(OperatorInfo(f"{kind_of(op)}_{number}", kind_of(op), op.grid))
    return tuple(infos)


def function_named(graph: Operation, name: str) -> FuncOp:
    """The function that a graph is of; raises VerifyException where there is none of that name."""
    table = graph.parent_op()
    found = SymbolTable.lookup_symbol(table, name) if table is not None else None
    if not isinstance(found, FuncOp):
        raise VerifyException(f"is of @{name}, but there is no function of that name beside it")
    return found


def infos_of_records(records: ArrayAttr[OperatorAttr]) -> tuple[OperatorInfo, ...]:
    """The operators of a graph that has no function."""
    return tuple(record.info for record in records)


def task_name(infos: Sequence[OperatorInfo], number: int, operator: int, tile: int) -> str:
    """How messages call a task: its operator and its place in the grid, and its number in the table."""
    if operator == EMPTY:
        return f"empty task {number}"
    info = infos[operator]
    return info.name if info.count == 1 else f"{info.name}[{tile}]"
