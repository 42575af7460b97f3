"""`tgraph-fuse-successors`: one event for all that the same tasks wait on.

MPK, "successor-set fusion". The tasks that wait can't start before all these events are active, so nothing is lost.

    {A} -> {O}, {B} -> {O}        {A, B} -> {O}
"""

from dataclasses import dataclass

from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.event_fusion import fuse
from mpkc.passes.table_pass import TablePass


@dataclass(frozen=True)
class FuseSuccessorsPass(TablePass):
    """Merge the events that have the same OutTasks."""

    name = "tgraph-fuse-successors"

    def rewrite(self, op: TableOp, table: Table) -> Table:
        return fuse(table, table.waiting)
