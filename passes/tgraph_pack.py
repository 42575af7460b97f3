"""`tgraph-pack`: from the readable form of a task graph to its table.

tgraph.graph @g {                                    tgraph.table @g operators [...] {
  tgraph.task @A kind "copy" triggers [@e]             task_operator = dense<[0, 1]>, ...
  tgraph.task @B kind "copy" waits [@e]                waits = dense<0>, triggers = dense<0>, ... }
  tgraph.event @e }
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_table_op import TableOp


@dataclass(frozen=True)
class PackPass(ModulePass):
    """Put a table in the place of each readable graph."""

    name = "tgraph-pack"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in [found for found in op.ops if isinstance(found, GraphOp)]:
            table, infos = graph.read()
            new = TableOp(graph.sym_name.data, graph.of.root_reference.data if graph.of else infos, table)
            new.attributes, new.location = dict(graph.attributes), graph.location
            Rewriter.replace_op(graph, new)
