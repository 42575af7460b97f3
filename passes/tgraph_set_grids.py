"""`tgraph-set-grids`: give operators the grids of a table that a user wrote (docs/partition.md).

MPK, "MPK also provides an interface for users to specify custom partitioning strategies". An operator that has a
grid keeps it; those that no line of the table is about are left to tgraph-partition. With the line
`"linear *.o" = [1, "features // 64"]`:

    %1 = tops.linear %0, %w : (tensor<1x4096xbf16>, ...) -> tensor<1x4096xbf16>
    %1 = tops.linear %0, %w {grid = array<i64: 1, 64>} : (tensor<1x4096xbf16>, ...) -> tensor<1x4096xbf16>
"""

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tops.argmax import ArgmaxPartialOp
from mpkc.dialects.tops.base import Operator, shape_of
from mpkc.passes.grid_table import GridTable, Rule


@dataclass(frozen=True)
class SetGridsPass(ModulePass):
    """Give every operator without a grid the one of the first line of the table that matches it.

    Attributes:
        file: the table.
        workers: tasks that run at the same time, for its formulas.
    """

    name = "tgraph-set-grids"

    file: str
    workers: int = 128

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        table = GridTable.read(Path(self.file))
        for function in op.ops:
            if isinstance(function, FuncOp):
                for operator in operators_in(function):
                    if operator.grid is None and (rule := table.rule_of(operator)):
                        self.set_grid(operator, rule)

    def set_grid(self, op: Operator, rule: Rule) -> None:
        """Give `op` the grid of a line; raises OpError, with the line, where it does not fit."""
        try:
            grid = rule.grid(op, self.workers)
            if isinstance(op, ArgmaxPartialOp) and op.has_free_parts:
                op = op.with_parts(max(1, min(grid[-1], shape_of(op.x.type, 2, "x")[1])))
            op.grid = grid
            op.verify_grid()
        except (ValueError, VerifyException) as err:
            wanted = "x".join(map(str, rule.parts))
            raise OpError(op, f"'{op.name}' can't have the grid {wanted} of {rule.place}: {err}") from err
