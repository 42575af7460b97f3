"""tgraph: tasks, and the events that order them (docs/tgraph.md), in a readable form and as a table."""

from xdsl.ir import Dialect

from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_operators import OperatorAttr
from mpkc.dialects.tgraph_rows import EventOp, EventsOp, TaskOp, TasksOp
from mpkc.dialects.tgraph_selection import SelectionAttr
from mpkc.dialects.tgraph_table_op import TableOp

TGraph = Dialect(
    "tgraph",
    [EventOp, EventsOp, GraphOp, TableOp, TaskOp, TasksOp],
    [OperatorAttr, SelectionAttr],
)
