"""What the streams of a program share: arguments, buffers, semaphores, mailboxes of values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, FloatAttr, MemRefType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, is_value, label_of, signal_of
from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_streams import StreamOp, StreamsOp, WaitOp
from mpkc.dialects.tile_types import is_float, space_of
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron import isa as text
from mpkc.runtime.neuron.isa import Argument, Buffer, Value, View


@dataclass(frozen=True)
class Used:
    """What one stream uses of what stands before the streams.

    Attributes:
        numbers: the integer arguments.
        scalars: the arithmetic, in order.
    """

    numbers: Sequence[SSAValue]
    scalars: Sequence[Operation]


class Shared:
    """What every engine can reach, by the names that the ISA text has for it.

    Attributes:
        names: of arguments and buffers.
        semaphores: the number of each.
        floats: the float that a value is: a constant, or the name of an argument.
        views: the parts of buffers that no register decides, as far as they were asked for.
    """

    def __init__(self, streams: StreamsOp, machine: Machine):
        self.streams, self.machine = streams, machine
        self.names: dict[SSAValue, str] = {}
        self.floats: dict[SSAValue, float | text.ArgumentRef] = {}
        self.semaphores = {name: number for number, name in enumerate(streams.semaphore_names)}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.views: dict[SSAValue, View] = {}
        self.arguments: list[Argument] = []
        self.values: dict[str, Value] = {}
        self._signalled: dict[str, str] = {}
        for arg, name in zip(streams.body.block.args, streams.argument_names, strict=True):
            self._argument(arg, name)
        for op in streams.body.block.ops:
            if isinstance(op, memref.AllocOp):
                self._buffer(op.memref, self._name(op.memref.name_hint or "buffer"))
            elif isinstance(op, StreamOp):
                self._stream(op)

    def _argument(self, arg: SSAValue, name: str) -> None:
        self.names[arg] = name
        if isa(arg.type, MemRefType):
            self._buffer(arg, name)
            return
        self.arguments.append(Argument(name, str(arg.type)))
        if is_float(arg.type):
            self.floats[arg] = text.ArgumentRef(name)

    def _buffer(self, value: SSAValue, name: str) -> None:
        type_ = value.type
        assert isa(type_, MemRefType)
        space = space_of(type_)
        assert space is not None, "verified"
        shape = tuple(None if size == DYNAMIC_INDEX else size for size in type_.get_shape())
        self.names[value] = name
        self.buffers[value] = Buffer(name, space.value, shape, str(type_.element_type))

    def _name(self, wanted: str) -> str:
        """A name that no other buffer or argument has."""
        taken = set(self.names.values())
        number, name = 0, wanted
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _stream(self, stream: StreamOp) -> None:
        for op in stream.walk():
            if is_instruction(op):
                if (signal := signal_of(op)) is not None:
                    self._signalled[signal] = stream.engine.data
                if is_value(op):
                    label = label_of(op)
                    if label is None:
                        raise OpError(op, f"'{op.name}' needs a label: other engines read what it writes by that name")
                    self.values[label] = Value(label, str(op.results[0].type))

    def float_of(self, op: arith.ConstantOp) -> float | None:
        """The number of a float constant."""
        return op.value.value.data if isinstance(op.value, FloatAttr) else None

    def counted_parts(self, semaphore: str) -> int:
        """What a retirement adds to the semaphore: 1, or 1 for each part of a transfer of a DMA queue."""
        dma = self.machine.dma
        return self.parts if dma is not None and self._signalled.get(semaphore) in dma.queues else 1

    @property
    def parts(self) -> int:
        """The parts of a transfer of a DMA queue; 1 where the machine has none."""
        return self.machine.dma.parts if self.machine.dma else 1

    def of_transfers(self, stream: StreamOp) -> set[SSAValue]:
        """The thresholds in a stream that count transfers, where each has several parts."""
        return {
            op.threshold for op in stream.walk() if isinstance(op, WaitOp) and self.counted_parts(op.semaphore.data) > 1
        }

    def resets(self, semaphore: str, engine: str) -> bool:
        """Whether a barrier leaves it to this engine to reset the semaphore: whoever signals it does."""
        return self._signalled.get(semaphore) == engine

    def used_by(self, stream: StreamOp) -> Used:
        """What stands before the streams and is used in one, also through arithmetic before them."""
        found: set[SSAValue] = set()
        work = [operand for op in stream.walk() for operand in op.operands]
        while work:
            value = work.pop()
            if value in found:
                continue
            if isinstance(value, OpResult):
                if value.op.parent is self.streams.body.block:
                    found.add(value)
                    work.extend(value.op.operands)
            elif value.owner is self.streams.body.block:
                found.add(value)
        return Used(
            [arg for arg in self.streams.body.block.args if arg in found and _is_integer(arg.type)],
            [op for op in self._scalars() if op.results[0] in found],
        )

    def _scalars(self) -> Iterator[Operation]:
        return (op for op in self.streams.body.block.ops if type(op) in SCALAR_OPS)


def _is_integer(type_: Attribute) -> bool:
    return not isa(type_, MemRefType) and not is_float(type_)
