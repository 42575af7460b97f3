"""How much memory a program needs, and whether it is there (docs/memory.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tops.base import Operator, bytes_of
from mpkc.dialects.tops.function import argument_names
from mpkc.dialects.tops.memory import spans
from mpkc.dialects.tops.pool import pool_bytes
from mpkc.dialects.tops.weight import WeightOp
from mpkc.runtime.cuda.image import EVENT, SLOT, task_record
from mpkc.runtime.cuda.queues import queue_capacities
from mpkc.runtime.errors import TargetError


class DoesNotFit(TargetError):
    """A program needs more memory than there is; one line with the figures."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of what programs keep in memory while they run; of several that stand beside each other, together.

    Attributes:
        weight_bytes: weights, each once.
        cache_bytes: buffers that outlive a run.
        activation_bytes: the pool, the arguments that are tensors, the results of the functions.
        queue_bytes: tasks, events, their counters and queues.
    """

    weight_bytes: int
    cache_bytes: int
    activation_bytes: int
    queue_bytes: int

    @property
    def peak_bytes(self) -> int:
        """All of it."""
        return self.weight_bytes + self.cache_bytes + self.activation_bytes + self.queue_bytes

    def check(self, available: int, where: str) -> None:
        """Raises DoesNotFit where `available` bytes are not enough."""
        if self.peak_bytes > available:
            raise DoesNotFit(
                f"does not fit: {size_text(self.peak_bytes)} needed (weights {size_text(self.weight_bytes)}, caches "
                f"{size_text(self.cache_bytes)}, activations {size_text(self.activation_bytes)}, tasks and queues "
                f"{size_text(self.queue_bytes)}), but {where} has {size_text(available)} to give: take a smaller "
                "model or a shorter context"
            )


class Planned(Protocol):
    """A linear task graph: a `Program`, or a graph whose operators need no task bodies to be counted."""

    @property
    def func(self) -> FuncOp | None: ...
    @property
    def operators(self) -> Sequence[Operator]: ...
    @property
    def table(self) -> Table: ...
    @property
    def views(self) -> int: ...


def footprint(graphs: Sequence[Planned], workers: int, schedulers: int) -> Footprint:
    """What graphs need that stand in memory beside each other, launched one at a time."""
    functions = [each.func for each in graphs if each.func is not None]
    weights = {
        (op.key, op.result.type): bytes_of(op.result.type)
        for function in functions
        for op in function.walk()
        if isinstance(op, WeightOp)
    }
    arguments: list[tuple[str, Attribute]] = [
        (name, argument.type)
        for function in functions
        for name, argument in zip(argument_names(function), function.args, strict=True)
    ]
    buffers = {name: bytes_of(type) for name, type in arguments if is_buffer(type)}
    inputs = sum(bytes_of(type) for _, type in arguments if not is_buffer(type))
    pool = max((pool_bytes(function) or 0 for function in functions), default=0)
    return Footprint(
        sum(weights.values()),
        sum(buffers.values()),
        pool + inputs + sum(map(_outside_bytes, graphs)),
        sum(map(_record_bytes, graphs)) + max(_launch_bytes(each.table, workers, schedulers) for each in graphs),
    )


def is_buffer(type: Attribute) -> bool:
    """Whether a value of this type outlives a run."""
    return isinstance(type, MemRefType)


def _outside_bytes(graph: Planned) -> int:
    """Bytes of the results that have no place in the pool."""
    places = spans(graph.operators)
    results = (result for op in graph.operators for result in op.results if result not in places)
    return sum(bytes_of(result.type) for result in results)


def _record_bytes(graph: Planned) -> int:
    return graph.table.task_count * task_record(graph.views).itemsize + graph.table.event_count * EVENT.itemsize


def _launch_bytes(table: Table, workers: int, schedulers: int) -> int:
    queues = queue_capacities(table, workers, schedulers)
    slots = workers * queues.task + schedulers * queues.event
    return slots * SLOT.itemsize + 4 * (table.event_count + 1 + workers + schedulers)


def size_text(size: int) -> str:
    """Bytes for people: `1.23 GB`."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} bytes"
