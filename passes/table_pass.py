"""What the passes over tables share."""

from abc import ABC, abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp


class TablePass(ModulePass, ABC):
    """A pass that puts a new table in the place of each one of the module."""

    @abstractmethod
    def rewrite(self, op: TableOp, table: Table) -> Table:
        """The new table; raises OpError(op, ...) where the pass can't work on this one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in list(op.ops):
            if isinstance(found, GraphOp):
                raise OpError(found, f"is in readable form, but {self.name} works on tables: run tgraph-pack first")
            if isinstance(found, TableOp):
                found.replace_by(self.rewrite(found, found.table))
