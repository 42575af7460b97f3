"""The parts of a module that the targets run: its function of tensor operators and its linearized task graph."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_operators import function_named, operators_in
from mpkc.dialects.tgraph_table import Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.dialects.tops.base import Operator


def linear_graph(module: ModuleOp) -> tuple[FuncOp, list[Operator], Table]:
    """The function, its operators and its linearized task graph.

    Raises:
        OpError: where the module has not exactly one table, it is not linear, or it is of no function.
    """
    tables = [op for op in module.ops if isinstance(op, TableOp)]
    if not tables and not any(isinstance(op, Operator) for op in module.walk()):
        raise OpError(module, "has no tensor operators, so there is nothing to run on a target")
    if len(tables) != 1:
        raise OpError(module, f"expected one tgraph.table, found {len(tables)}: run the passes up to tgraph-linearize")
    (op,) = tables
    if op.table.form is not Form.LINEAR:
        raise OpError(op, f"the task graph is {op.table.form}, but a target needs it linear: run tgraph-linearize")
    if op.table.task_count == 0:
        raise OpError(op, "has no tasks, so there is nothing to run on a target")
    if op.of is None:
        raise OpError(op, "the task graph names no function of tensor operators, so its tasks have no bodies")
    func = function_named(op, op.of.root_reference.data)
    return func, list(operators_in(func)), op.table
