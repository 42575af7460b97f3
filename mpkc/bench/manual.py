"""The kernels of barrier-free, table 2, with the semaphores that were placed by hand."""

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, StringAttr

from mpkc.bench.kernels import Kernel
from mpkc.bench.kernels.placement import Placement, bare
from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.runtime.machine import Machine
from mpkc.semaphores import MANUAL, Compiled, EngineProgram, clean_up, counters_of, prepare, read_streams


def place_by_hand(kernel: Kernel, sizes: Mapping[str, int], machine: Machine) -> Compiled:
    """The streams of a kernel that has a placement, as an expert writes them.

    Raises:
        OpError: an engine that the machine has not, or too few registers.
    """
    assert kernel.place is not None
    program = engine_program(parse_module(kernel.build(**sizes), f"{kernel.name}.mlir"))
    assert program is not None
    streams = bare_streams(program, machine)
    placement = Placement(streams)
    kernel.place(placement, sizes)
    placement.write()
    clean_up(streams)
    streams.attributes["semaphores"] = StringAttr(MANUAL)
    verify(streams)
    return read_streams(program, streams, "per-loop", machine)


def bare_streams(program: EngineProgram, machine: Machine) -> StreamsOp:
    """What each engine of a program runs, with no wait and no signal."""
    prepared = prepare(program, "per-instruction", machine)
    streams = bare(allocate(prepared, "per-instruction", counters_of(machine)).streams)
    ModuleOp([streams])  # passes want operations that stand in a block
    clean_up(streams)
    return streams
