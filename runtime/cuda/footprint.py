"""How much memory a program needs, and whether it is there (docs/memory.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from mpkc.dialects.tops.function import argument_names
from mpkc.dialects.tops.memory import spans
from mpkc.dialects.tops.pool import pool_bytes
from mpkc.dialects.tops.weight import WeightOp
from mpkc.runtime.cuda.emit import Program
from mpkc.runtime.cuda.image import EVENT, SLOT, layout, task_record
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


def footprint(programs: Sequence[Program], workers: int, schedulers: int) -> Footprint:
    """What programs need that stand in memory beside each other, launched one at a time."""
    weights = {
        (op.key, op.result.type): stored(op.result.type)
        for each in programs
        for op in each.func.walk()
        if isinstance(op, WeightOp)
    }
    arguments: list[tuple[str, Attribute]] = [
        (name, argument.type)
        for each in programs
        for name, argument in zip(argument_names(each.func), each.func.args, strict=True)
    ]
    buffers = {name: stored(type) for name, type in arguments if is_buffer(type)}
    pool = max((pool_bytes(each.func) or 0 for each in programs), default=0)
    return Footprint(
        sum(weights.values()),
        sum(buffers.values()),
        pool + sum(sum(map(stored, _outside(each))) for each in programs),
        sum(map(_record_bytes, programs)) + max(_launch_bytes(each, workers, schedulers) for each in programs),
    )


def is_buffer(type: Attribute) -> bool:
    """Whether a value of this type outlives a run."""
    return isinstance(type, MemRefType)


def stored(type: Attribute) -> int:
    """Bytes that the runtime stores a tensor or buffer in."""
    shape, dtype = layout(type)
    return prod(shape) * np.dtype(dtype).itemsize


def _outside(program: Program) -> Iterable[Attribute]:
    """The types of tensors that have memory of their own: arguments, and results outside of the pool."""
    places = spans(program.operators)
    yield from (arg.type for arg in program.func.args if not is_buffer(arg.type))
    yield from (result.type for op in program.operators for result in op.results if result not in places)


def _record_bytes(program: Program) -> int:
    table = program.table
    return table.task_count * task_record(program.views).itemsize + table.event_count * EVENT.itemsize


def _launch_bytes(program: Program, workers: int, schedulers: int) -> int:
    queues = queue_capacities(program.table, workers, schedulers)
    slots = workers * queues.task + schedulers * queues.event
    return slots * SLOT.itemsize + 4 * (program.table.event_count + 1 + workers + schedulers)


def size_text(size: int) -> str:
    """Bytes for people: `1.23 GB`."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} bytes"
