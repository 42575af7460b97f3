"""`tgraph-fuse-predecessors`: one event for all that the same tasks trigger.

MPK, "predecessor-set fusion". These events become active at the same time, so nothing is lost.

    {A, B} -> {O}, {A, B} -> {P}        {A, B} -> {O, P}
"""

from dataclasses import dataclass

from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.passes.event_fusion import fuse
from mpkc.passes.table_pass import TablePass


@dataclass(frozen=True)
class FusePredecessorsPass(TablePass):
    """Merge the events that have the same InTasks."""

    name = "tgraph-fuse-predecessors"

    def rewrite(self, op: TableOp, table: Table) -> Table:
        return fuse(table, table.triggering)
