"""`tgraph-build`: from operators with grids to tasks and an event for each pair of tasks that depend on each other.

MPK, "MPK uses events to capture dependencies between tasks". A task depends on another where the regions that they
touch overlap: of a tensor, reader on producer; of a buffer (memref), any two accesses one of which writes, in
program order.

    %0 = tops.rms_norm %x, %n {grid = array<i64: 1>} ...        tgraph.table @f_graph of @f {
    %1 = tops.linear %0, %w {grid = array<i64: 1, 2>} ...         task_operator = dense<[0, 1, 1]> ...
                                                                  triggers = dense<[0, 1]>, waits = dense<[0, 1]> ... }
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Index, Lists
from mpkc.dialects.tgraph_operators import operators_in, signature
from mpkc.dialects.tgraph_table import Form, Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.dialects.tops.base import Access, Operator
from mpkc.dialects.tops.overlap import overlaps

Pairs = tuple[Index, Index]


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
        OpError: at an operator that has no grid, or at an operation whose effect on tensors is not known.
    """
    operators = operators_in(function)
    _refuse_unknown(function)
    counts = np.array([op.tasks().count for op in operators], dtype=np.int64)
    first = np.cumsum(counts) - counts
    sources, targets = _task_pairs(operators, first)
    tasks, events = int(counts.sum()), len(sources)
    operator = np.repeat(np.arange(len(operators)), counts)
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


def _task_pairs(operators: list[Operator], first: Index) -> Pairs:
    """(producer, consumer) of every dependency, each pair once: by consumer's, then producer's operator, then task."""
    known = _Known()
    found: defaultdict[tuple[int, int], list[Pairs]] = defaultdict(list)
    writes: defaultdict[SSAValue, list[tuple[int, Access]]] = defaultdict(list)
    reads: defaultdict[SSAValue, list[tuple[int, Access]]] = defaultdict(list)
    for number, op in enumerate(operators):
        values = [*op.operands, *op.results]
        accesses = [(values[access.value], access) for access in known.accesses(op)]
        for value, access in accesses:
            earlier = writes[value] + reads[value] if access.mode.writes else writes[value]
            for producer, before in earlier:
                found[number, producer].append(known.overlaps(before, access))
        for value, access in accesses:
            (writes if access.mode.writes else reads)[value].append((number, access))
    pairs = [
        (sources + first[producer], targets + first[consumer])
        for consumer, producer in sorted(found)
        for sources, targets in [_each_once(found[consumer, producer])]
    ]
    none = np.zeros(0, dtype=np.int64)
    sources, targets = zip(*pairs, strict=True) if pairs else ((none,), (none,))
    return np.concatenate(sources), np.concatenate(targets)


def _each_once(lists: list[Pairs]) -> Pairs:
    if len(lists) == 1:
        return lists[0]
    both = np.unique(np.concatenate([np.stack(pairs, axis=1) for pairs in lists]), axis=0)
    return both[:, 0], both[:, 1]


@dataclass
class _Known:
    """Regions and overlaps computed once for all operators that are alike, as the layers of a model are."""

    regions: dict[object, list[Access]] = field(default_factory=dict[object, list[Access]])
    pairs: dict[tuple[int, int], Pairs] = field(default_factory=dict[tuple[int, int], Pairs])

    def accesses(self, op: Operator) -> list[Access]:
        key = signature(op), op.grid
        if key not in self.regions:
            self.regions[key] = op.accesses(op.tasks())
        return self.regions[key]

    def overlaps(self, before: Access, after: Access) -> Pairs:
        key = id(before), id(after)
        if key not in self.pairs:
            self.pairs[key] = overlaps((before.lo, before.hi), (after.lo, after.hi))
        return self.pairs[key]
