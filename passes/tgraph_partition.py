"""`tgraph-partition`: how many tasks share an operator, and along which dimensions.

MPK, "The MPK compiler decomposes". Each operator gets the grid that loads the fewest bytes from device memory into
shared memory, among those of 0.75 to 2 tasks a worker that keep all workers busy (docs/partition.md); of equal
ones the better balanced. One that has a grid keeps it:

    %1 = tops.linear %0, %w : (tensor<1x4096xbf16>, ...) -> tensor<1x4096xbf16>
    %1 = tops.linear %0, %w {grid = array<i64: 1, 128>} : (tensor<1x4096xbf16>, ...) -> tensor<1x4096xbf16>
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tops.argmax import ArgmaxPartialOp
from mpkc.dialects.tops.base import Operator, shape_of
from mpkc.passes.partition_cost import Bounds, Candidate, candidates
from mpkc.passes.partition_cuts import Neighbours


@dataclass(frozen=True)
class PartitionPass(ModulePass):
    """Give every operator without a grid one, and argmax_partial a part for each worker.

    Attributes:
        workers: tasks that run at the same time.
        min_bytes: a task moves at least this much: a smaller one costs more to start than it saves.
    """

    name = "tgraph-partition"

    workers: int = 128
    min_bytes: int = 512

    def __post_init__(self) -> None:
        if self.workers < 1 or self.min_bytes < 0:
            raise ValueError(f"{self.name}: workers is at least 1, min_bytes at least 0")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                for _ in partitioned(function, Bounds(self.workers, self.min_bytes)):
                    pass


def partitioned(function: FuncOp, bounds: Bounds) -> Iterator[tuple[Operator, list[Candidate]]]:
    """Give each operator of a function a grid; it, and the grids that there were to choose from, the taken one first.

    An operator that has a grid comes without candidates. argmax_partial is replaced by one of other parts.
    """
    known, neighbours = dict[object, list[Candidate]](), Neighbours()
    for op in operators_in(function):
        if op.grid is not None:
            yield op, []
            continue
        if isinstance(op, ArgmaxPartialOp) and op.has_free_parts:
            op = op.with_parts(_parts(op, bounds))
        key = neighbours.key(op)
        if key not in known:
            known[key] = candidates(op, bounds, neighbours)
        op.grid = known[key][0].grid
        yield op, known[key]


def _parts(op: ArgmaxPartialOp, bounds: Bounds) -> int:
    """As many parts of a row as the operator that writes it has; where there is none, one for each worker."""
    columns, most = shape_of(op.x.type, 2, "x")[1], bounds.most(op)
    producer = op.x.owner
    grid = producer.grid if isinstance(producer, Operator) else None
    return min(grid[-1] if grid else bounds.workers, most, columns)
