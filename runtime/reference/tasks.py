"""Runs a task graph task by task in NumPy, in any order that its events allow.

A task sees of its operands only what its operator declares that it reads, and zeros elsewhere; of its results it writes
only what it declares. Values that were planned stand in one pool of bytes, as they do on a device. So an order that the
graph should forbid, a region that is declared too small and a place that is reused too early show in the results.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import EMPTY, Table
from mpkc.dialects.tops.base import Access, Array, Operator
from mpkc.dialects.tops.function import argument_names
from mpkc.dialects.tops.memory import spans
from mpkc.dialects.tops.pool import pool_bytes
from mpkc.dialects.tops.weight import WeightOp
from mpkc.runtime.reference.tops import Weights, numpy_type

Choose = Callable[[Sequence[int]], int]
"""Which of the tasks that may run is next: its place in the list."""


def run_tasks(func: FuncOp, table: Table, inputs: Mapping[str, Array], weights: Weights, choose: Choose) -> list[Array]:
    """The results of a function whose operators have grids, in one order of its tasks.

    Args:
        table: of that function, in any form.
        inputs: an array for each argument; buffers are updated in place.

    Raises:
        ValueError: where tasks are left that nothing starts.
    """
    memory = _Memory(func, inputs, weights)
    tasks = [_Tasks(op, memory) for op in operators_in(func)]
    for task in orders(table, choose):
        operator = int(table.task_operator[task])
        if operator != EMPTY:
            tasks[operator].run(int(table.task_tile[task]))
    terminator = func.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    return [memory.arrays[value].copy() for value in terminator.operands]


def orders(table: Table, choose: Choose) -> list[int]:
    """All tasks, each behind those that it waits for.

    Raises:
        ValueError: where tasks are left that nothing starts.
    """
    events_left: list[int] = table.wait_lists.sizes.tolist()
    triggers_left: list[int] = table.triggers_needed.tolist()
    ready = [task for task, left in enumerate(events_left) if left == 0]
    done: list[int] = []
    while ready:
        at = choose(ready)
        ready[at], ready[-1] = ready[-1], ready[at]
        done.append(ready.pop())
        for event in table.trigger_lists[done[-1]].tolist():
            triggers_left[event] -= 1
            if triggers_left[event] == 0:
                for task in table.waiting[event].tolist():
                    events_left[task] -= 1
                    if events_left[task] == 0:
                        ready.append(task)
    if len(done) < table.task_count:
        raise ValueError(f"{table.task_count - len(done)} of {table.task_count} tasks never start")
    return done


class _Memory:
    """An array for each value: of arguments, of weights, of results; planned results share one pool."""

    def __init__(self, func: FuncOp, inputs: Mapping[str, Array], weights: Weights):
        self.arrays: dict[SSAValue, Array] = {
            argument: inputs[name] for name, argument in zip(argument_names(func), func.args, strict=True)
        }
        places = spans(operators_in(func))
        pool = np.full(pool_bytes(func) or 0, 0xFF, np.uint8)  # NaN, and -1
        for op in func.body.block.ops:
            if isinstance(op, WeightOp):
                self.arrays[op.result] = weights(op)
            elif isinstance(op, Operator):
                for result in op.results:
                    shape, dtype = numpy_type(result.type)
                    lo, hi = places.get(result, (0, 0))
                    raw = pool[lo:hi] if result in places else np.full(int(np.prod(shape)) * 4, 0xFF, np.uint8)
                    self.arrays[result] = raw.view(dtype).reshape(shape)


class _Tasks:
    """The tasks of one operator."""

    def __init__(self, op: Operator, memory: _Memory):
        self.op, self.memory = op, memory
        self.values = [*op.operands, *op.results]
        self.accesses = op.accesses(op.tasks())

    def run(self, tile: int) -> None:
        operands = [np.zeros_like(self.memory.arrays[value]) for value in self.op.operands]
        for access in self.accesses:
            if access.mode.reads:
                region = region_of(access, tile)
                operands[access.value][region] = self.memory.arrays[self.values[access.value]][region]
        with np.errstate(all="ignore"):
            found = [*operands, *self.op.evaluate(*operands)]
        for access in self.accesses:
            if access.mode.writes:
                region = region_of(access, tile)
                self.memory.arrays[self.values[access.value]][region] = found[access.value][region]


def region_of(access: Access, tile: int) -> tuple[slice, ...]:
    """The region of one task as an index."""
    steps = access.step or (1,) * access.lo.shape[1]
    return tuple(map(slice, access.lo[tile].tolist(), access.hi[tile].tolist(), steps))
