"""The table form of a task graph: one operation, a dense attribute for each column."""

from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FlatSymbolRefAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.lists import Column, column
from mpkc.dialects.tgraph_operators import (
    OperatorAttr,
    OperatorInfo,
    function_named,
    infos_of_function,
    infos_of_records,
)
from mpkc.dialects.tgraph_rules import verify_table
from mpkc.dialects.tgraph_table import Form, Table

Dense = DenseIntOrFPElementsAttr[IntegerType]


@irdl_op_definition
class TableOp(IRDLOperation):
    """A task graph in the form that passes and the runtime work on.

        tgraph.table @mlp_graph of @mlp linear {
          task_operator = dense<[0, 1, 1]> : tensor<3xi32>, ...
        }

    `of` names the function whose operators the tasks belong to. A graph without one brings records of its operators:
    `operators [#tgraph.operator<"A" "attention" 2>]`. `normalized` or `linear` is what the table promises.
    """

    name = "tgraph.table"

    sym_name = prop_def(SymbolNameConstraint())
    of = opt_prop_def(FlatSymbolRefAttr)
    operators = opt_prop_def(ArrayAttr[OperatorAttr])
    form = prop_def(StringAttr)
    task_operator = prop_def(Dense)
    task_tile = prop_def(Dense)
    task_device = prop_def(Dense)
    event_device = prop_def(Dense)
    wait_offsets = prop_def(Dense)
    waits = prop_def(Dense)
    trigger_offsets = prop_def(Dense)
    triggers = prop_def(Dense)
    event_first = opt_prop_def(Dense)
    event_last = opt_prop_def(Dense)
    task_worker = opt_prop_def(Dense)

    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, owner: str | Sequence[OperatorInfo], table: Table):
        """A table named `name` of the function named `owner`, or of operators of its own."""
        source: dict[str, Attribute]
        if isinstance(owner, str):
            source = {"of": SymbolRefAttr(owner)}
        else:
            source = {"operators": ArrayAttr([OperatorAttr.of(info) for info in owner])}
        super().__init__(properties={"sym_name": StringAttr(name), **source, **_attributes(table)})

    def replace_by(self, table: Table) -> "TableOp":
        """Put a table of the same name and operators in this one's place."""
        owner = self.of.root_reference.data if self.of else self.infos()
        new = TableOp(self.sym_name.data, owner, table)
        new.attributes, new.location = dict(self.attributes), self.location
        Rewriter.replace_op(self, new)
        return new

    @property
    def table(self) -> Table:
        """The columns, as views of the attributes' bytes; the same one until a property changes.

        Raises:
            VerifyException: where a column is not a list of i32.
        """
        known = _TABLES.get(self)
        if known is None or known[0] != self.properties:
            known = _TABLES[self] = dict(self.properties), self._read()
        return known[1]

    def _read(self) -> Table:
        columns = {name: _view(name, self.properties[name]) for name in COLUMNS if name in self.properties}
        try:
            form = Form(self.form.data)
        except ValueError:
            raise VerifyException(f"form is {self.form.data}, but must be one of {', '.join(Form)}") from None
        return Table(form, **columns)

    def infos(self) -> tuple[OperatorInfo, ...]:
        """The operators that `task_operator` indexes; raises VerifyException where they can't be known."""
        if self.of is not None:
            return infos_of_function(function_named(self, self.of.root_reference.data))
        return infos_of_records(self.operators) if self.operators else ()

    def verify_(self) -> None:
        if self.of is not None and self.operators is not None:
            raise VerifyException("has operators of its own, but those of its function are meant: remove one of them")
        verify_table(self.table, self.infos())

    @classmethod
    def parse(cls, parser: Parser) -> "TableOp":
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        if parser.parse_optional_keyword("of"):
            properties["of"] = SymbolRefAttr(parser.parse_symbol_name())
        if parser.parse_optional_keyword("operators"):
            properties["operators"] = ArrayAttr(
                parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_attribute)
            )
        form = parser.parse_optional_keyword_in(FORMS) or Form.GENERAL
        properties["form"] = StringAttr(form)
        at = parser.pos
        given = parser.parse_optional_attr_dict()
        for name in COLUMNS:
            if name in given:
                properties[name] = given.pop(name)
            elif name != "task_worker" and (name not in LINEAR_COLUMNS or form == Form.LINEAR):
                parser.raise_error(f"a {form} table needs the column {name}", at, parser.pos)
        return cls.create(properties=properties, attributes=given)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        if self.of is not None:
            printer.print_string(" of ")
            printer.print_attribute(self.of)
        if self.operators is not None:
            printer.print_string(" operators ")
            with printer.in_square_brackets():
                printer.print_list(self.operators, printer.print_attribute)
        if self.form.data != Form.GENERAL:
            printer.print_string(f" {self.form.data}")
        rows = {name: self.properties[name] for name in COLUMNS if name in self.properties} | self.attributes
        printer.print_string(" {")
        with printer.indented():
            for number, (name, value) in enumerate(rows.items()):
                printer.print_string("," if number else "")
                printer.print_string(f"\n{name} = ")
                printer.print_attribute(value)
        printer.print_string("\n}")


_TABLES = WeakKeyDictionary[TableOp, tuple[dict[str, Attribute], Table]]()  # what was read, and from which properties

LINEAR_COLUMNS = ("event_first", "event_last", "task_worker")
COLUMNS = (
    "task_operator",
    "task_tile",
    "task_device",
    "event_device",
    "wait_offsets",
    "waits",
    "trigger_offsets",
    "triggers",
    *LINEAR_COLUMNS,
)
FORMS = (Form.NORMALIZED, Form.LINEAR)


def dense(values: Column) -> Dense:
    """A column as an attribute, from its bytes."""
    return DenseIntOrFPElementsAttr(TensorType(i32, [len(values)]), BytesAttr(column(values).tobytes()))


def _attributes(table: Table) -> Mapping[str, Attribute]:
    return {"form": StringAttr(table.form), **{name: dense(value) for name, value in table.columns.items()}}


def _view(name: str, attribute: Attribute) -> Column:
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    dense = cast(Dense, attribute)
    if dense.type != TensorType(i32, [len(dense)]):
        raise VerifyException(f"{name} is {dense.type}, but must be tensor<{len(dense)}xi32>")
    return np.frombuffer(dense.data.data, dtype=np.int32)
