"""The readable form of a task graph."""

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttr, StringAttr, SymbolNameConstraint, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.tgraph_operators import OperatorInfo, function_named, infos_of_function
from mpkc.dialects.tgraph_reading import read_rows
from mpkc.dialects.tgraph_rules import verify_table
from mpkc.dialects.tgraph_table import Form, Table


@irdl_op_definition
class GraphOp(IRDLOperation):
    """A task graph, tasks and events in the order of their numbers.

        tgraph.graph @g of @mlp normalized {
          tgraph.tasks @rms_norm_0 operator 0 kind "rms_norm" grid [1]
          ...
        }

    `of` names the function whose operators the tasks belong to; `normalized` or `linear` is what the graph promises.
    """

    name = "tgraph.graph"

    sym_name = prop_def(SymbolNameConstraint())
    of = opt_prop_def(FlatSymbolRefAttr)
    form = prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), SymbolTable(), NoTerminator(), IsolatedFromAbove())

    def __init__(self, name: str, of: str | None, form: Form, ops: Sequence[Operation]):
        properties: dict[str, Attribute] = {"sym_name": StringAttr(name), "form": StringAttr(form)}
        if of is not None:
            properties["of"] = SymbolRefAttr(of)
        super().__init__(properties=properties, regions=[Region(Block(ops))])

    def read(self) -> tuple[Table, tuple[OperatorInfo, ...]]:
        """The graph as a table, not yet verified, and the operators that its tasks belong to.

        Raises:
            OpError: at a row that can't be understood.
            VerifyException: where the function of the graph is missing, or has no grids.
        """
        infos = None
        if self.of is not None:
            infos = infos_of_function(function_named(self, self.of.root_reference.data))
        return read_rows(tuple(self.body.block.ops), Form(self.form.data), infos)

    def verify_(self) -> None:
        if self.form.data not in tuple(Form):
            raise VerifyException(f"form is {self.form.data}, but must be one of {', '.join(Form)}")
        verify_table(*self.read())

    @classmethod
    def parse(cls, parser: Parser) -> "GraphOp":
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        if parser.parse_optional_keyword("of"):
            properties["of"] = SymbolRefAttr(parser.parse_symbol_name())
        form = parser.parse_optional_keyword_in((Form.NORMALIZED, Form.LINEAR)) or Form.GENERAL
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        return cls.create(
            properties=properties | {"form": StringAttr(form)},
            attributes=attributes.data if attributes else {},
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        if self.of is not None:
            printer.print_string(" of ")
            printer.print_attribute(self.of)
        if self.form.data != Form.GENERAL:
            printer.print_string(f" {self.form.data}")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
