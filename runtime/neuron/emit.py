"""From streams to ISA: the neuron target's code generator (docs/streams.md).

Each stream becomes the code of one engine, with the instructions that it had, in their order. Structured control flow
becomes branches, the last wait before an instruction that instruction's own, a barrier DRAIN, HANDSHAKE, RESET,
HANDSHAKE; then registers are allocated.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mpkc.dialects.sem_streams import StreamsOp
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import Counters, Program
from mpkc.runtime.neuron.lowering import Lowering
from mpkc.runtime.neuron.paths import Paths
from mpkc.runtime.neuron.registers import RegisterUse, allocate_registers
from mpkc.runtime.neuron.shared import Shared


@dataclass(frozen=True)
class Emission:
    """A program of the ISA.

    Attributes:
        registers: what the registers of each engine are for.
    """

    program: Program
    registers: Mapping[str, RegisterUse]

    @property
    def added_registers(self) -> int:
        """The registers that synchronization adds, the most on one engine."""
        return max((use.synchronization for use in self.registers.values()), default=0)


def emission(streams: StreamsOp, machine: Machine) -> Emission:
    """The ISA program of verified streams, and what its registers are for.

    Args:
        machine: its limits hold for each engine; transfers of its DMA queues count in parts.

    Raises:
        OpError: an operation that has no form in the ISA.
        TooManyRegisters: a stream that needs more registers than an engine has.
    """
    shared, paths = Shared(streams, machine), Paths(streams)
    allocated = [
        allocate_registers(Lowering(stream, shared, paths).run(), stream, machine.limits.registers)
        for stream in streams.streams.values()
    ]
    program = Program(
        name=streams.sym_name.data,
        engines=tuple(each.engine for each in allocated),
        counters=Counters(streams.counters.width.data, streams.signed),
        arguments=tuple(shared.arguments),
        buffers=tuple(shared.buffers.values()),
        values=tuple(shared.values.values()),
        semaphores=streams.semaphore_names,
    )
    return Emission(program, {each.engine.name: each.use for each in allocated})


def register_use(streams: StreamsOp, engine: str, machine: Machine) -> RegisterUse:
    """What the registers of one engine are for, as many as they are."""
    stream = streams.streams[engine]
    code = Lowering(stream, Shared(streams, machine), Paths(streams)).run()
    return allocate_registers(code, stream, None).use


def emit(streams: StreamsOp, machine: Machine) -> Program:
    """The ISA program of verified streams; see `emission`."""
    return emission(streams, machine).program
