"""`tgraph-build`: from operators with grids to tasks and an event for each pair of tasks that depend on each other.

MPK, "MPK uses events to capture dependencies between tasks". A task depends on another where the regions that they
touch overlap: of a tensor, reader on producer; of a buffer (memref), any two accesses one of which writes, in
program order.

    %0 = tops.rms_norm %x, %n {grid = array<i64: 1>} ...        tgraph.table @f_graph of @f {
    %1 = tops.linear %0, %w {grid = array<i64: 1, 2>} ...         task_operator = dense<[0, 1, 1]> ...
                                                                  triggers = dense<[0, 1]>, waits = dense<[0, 1]> ... }
"""

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Lists
from mpkc.dialects.tgraph_dependencies import Regions, dependencies, first_tasks, task_pairs
from mpkc.dialects.tgraph_memory import memory_dependencies
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.dialects.tops.base import Operator


@dataclass(frozen=True)
class BuildPass(ModulePass):
    """Put behind each function that has operators the table @NAME_graph of its tasks."""

    name = "tgraph-build"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [found for found in op.ops if isinstance(found, FuncOp)]:
            if not operators_in(function):
                continue
            name = f"{function.sym_name.data}_graph"
            if SymbolTable.lookup_symbol(op, name) is not None:
                raise OpError(function, f"@{function.sym_name.data} can't get a graph: @{name} stands there already")
            table = TableOp(name, function.sym_name.data, table_of(function))
            table.location = function.location
            Rewriter.insert_op(table, InsertPoint.after(function))


def table_of(function: FuncOp) -> Table:
    """The tasks of a function, operator by operator, and an event for each dependent pair of tasks.

    Raises:
        OpError: at an operator that has no grid, or whose result is put where somebody still needs what stands there;
            at an operation whose effect on tensors is not known.
    """
    operators = operators_in(function)
    _refuse_unknown(function)
    first = first_tasks(operators)
    regions = Regions()
    found = dependencies(operators, regions)
    sources, targets = task_pairs(operators, [*found, *memory_dependencies(operators, regions, found)])
    tasks, events = int(first[-1]), len(sources)
    operator = np.repeat(np.arange(len(operators)), np.diff(first))
    return Table.of_lists(
        Form.GENERAL,
        (operator, np.arange(tasks) - first[operator], np.zeros(tasks, dtype=np.int32)),
        np.zeros(events, dtype=np.int32),
        Lists.of_pairs(targets, np.arange(events), tasks),
        Lists.of_pairs(sources, np.arange(events), tasks),
    )


def _refuse_unknown(function: FuncOp) -> None:
    for op in function.body.block.ops:
        if isinstance(op, Operator):
            if op.grid is None:
                raise OpError(op, f"'{op.name}' has no grid: run tgraph-partition first, or write one")
        elif op.operands and not isinstance(op, ReturnOp):
            raise OpError(op, f"'{op.name}' is no tensor operator, so what it makes of its operands is not known")
