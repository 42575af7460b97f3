"""The named pipelines: which passes lead from tensor operators to a task graph that a target runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_table import Form
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.grids import grids_file
from mpkc.passes.table_pass import TablePass
from mpkc.passes.tgraph_build import BuildPass
from mpkc.passes.tgraph_fuse_predecessors import FusePredecessorsPass
from mpkc.passes.tgraph_fuse_successors import FuseSuccessorsPass
from mpkc.passes.tgraph_launch import LaunchPass
from mpkc.passes.tgraph_linearize import LinearizePass
from mpkc.passes.tgraph_normalize import NormalizePass
from mpkc.passes.tgraph_pack import PackPass
from mpkc.passes.tgraph_partition import PartitionPass
from mpkc.passes.tgraph_plan_memory import PlanMemoryPass
from mpkc.passes.tgraph_prune import PrunePass
from mpkc.passes.tgraph_set_grids import SetGridsPass

Launch = Literal["mixed", "jit", "aot"]


@dataclass(frozen=True)
class Options:
    """What a pipeline depends on besides the program.

    Attributes:
        workers: tasks that run at the same time.
        grids: a table of grids, by its path or by the name of one that comes with mpkc.
        min_bytes: a task moves at least this much.
        launch: `mixed`, or one launch mode for all tasks that may have it: `jit`, `aot`.
    """

    workers: int = 128
    grids: str | None = None
    min_bytes: int = PartitionPass.min_bytes
    launch: Launch = "mixed"


TABLES_ONLY = (TablePass, BuildPass)  # passes that leave what stands beside tables as it was


def grids_of_user(options: Options) -> list[ModulePass]:
    """The pass that sets the grids of the user's table, where there is one."""
    return [SetGridsPass(grids_file(options.grids), options.workers)] if options.grids else []


def task_graph(options: Options) -> list[ModulePass]:
    """From tensor operators to the linearized table (MPK, section 4)."""
    return [
        *grids_of_user(options),
        PartitionPass(options.workers, options.min_bytes),
        PlanMemoryPass(),
        BuildPass(),
        PrunePass(),
        FuseSuccessorsPass(),
        FusePredecessorsPass(),
        NormalizePass(),
        LinearizePass(),
        LaunchPass(options.workers, options.launch),
    ]


def remaining(module: ModuleOp, options: Options) -> list[ModulePass]:
    """The passes of `task_graph` that a module still needs: all, or those after the form its graph has."""
    graphs = [op for op in module.ops if isinstance(op, TableOp | GraphOp)]
    if not graphs:
        return task_graph(options)
    forms = {op.form.data for op in graphs}
    steps: list[ModulePass] = [PackPass()] if any(isinstance(op, GraphOp) for op in graphs) else []
    steps += [NormalizePass()] if Form.GENERAL in forms else []
    return steps + ([] if forms == {Form.LINEAR} else [LinearizePass()])


def run_passes(
    module: ModuleOp, passes: list[ModulePass], ctx: Context, told: Callable[[str], None] | None = None
) -> None:
    """Run the passes in place, with a verification before the first and after each: of tables after passes over tables.

    Raises:
        OpError: where the module is not well-formed, or a pass refuses it.
    """
    verify(module)
    for step in passes:
        if told:
            told(step.name)
        step.apply(ctx, module)
        if isinstance(step, TABLES_ONLY):
            for table in module.ops:
                if isinstance(table, TableOp):
                    verify(table)
        else:
            verify(module)
