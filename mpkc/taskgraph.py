"""The linear task graph of an input, whatever it is given as."""

from dataclasses import dataclass

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_operators import OperatorInfo, function_named, operators_in, task_name
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.dialects.tops.base import Operator
from mpkc.inputs import Input
from mpkc.pipelines import Launch, Options, remaining, run_passes


@dataclass(frozen=True)
class TaskGraph:
    """A linear table and what is known of its operators.

    Attributes:
        op: the operation that holds it.
        infos: of each operator.
        operators: those of its function; none where the graph has no function.
    """

    op: TableOp
    table: Table
    infos: tuple[OperatorInfo, ...]
    operators: list[Operator]

    def name(self, task: int) -> str:
        """How messages call a task."""
        return task_name(self.infos, task, int(self.table.task_operator[task]), int(self.table.task_tile[task]))


def linear_task_graph(given: Input, workers: int, grids: str | None = None, launch: Launch = "mixed") -> TaskGraph:
    """The graph of a module that holds one or is compiled to one; the passes that it still needs are run.

    Args:
        grids, launch: as in `Options`.

    Raises:
        OpError: where a pass refuses the program; where the module holds no graph, or several.
    """
    run_passes(given.module, remaining(given.module, Options(workers, grids, launch=launch)), given.ctx)
    tables = [op for op in given.module.ops if isinstance(op, TableOp)]
    if len(tables) != 1:
        found = f"{len(tables)} task graphs" if tables else "no task graph, nor operators to make one of"
        raise OpError(tables[1] if tables else given.module, f"the module has {found}: a program has one")
    (op,) = tables
    function = function_named(op, op.of.root_reference.data) if op.of else None
    return TaskGraph(op, op.table, op.infos(), operators_in(function) if function else [])
