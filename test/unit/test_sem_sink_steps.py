"""What `auto` makes of a counter in the innermost loop: one addition, at its end."""

from mpkc.bench.kernels import KERNELS
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.isa import Alu, Branch, Label, Move, Nop, Tile
from mpkc.semaphores import compile_program
from mpkc.verification import verify_compiled


def test_auto_counts_the_matmuls_of_all_tiles_with_one_addition() -> None:
    """What the K loop of the tensor engine holds besides the kernel's own operations."""
    kernel, device = KERNELS["matmul"], machine("trn2")
    program = engine_program(parse_module(kernel.build(**{**kernel.full, "m": 2})))
    assert program is not None
    found = compile_program(program, "auto", device)
    (tensor,) = (engine for engine in found.emission.program.engines if engine.name == "tensor")
    at = next(i for i, item in enumerate(tensor.body) if isinstance(item, Tile))
    start = max(i for i in range(at) if isinstance(tensor.body[i], Label))
    end = next(i for i in range(at, len(tensor.body)) if isinstance(tensor.body[i], Branch))
    counted = [item for item in tensor.body[start:end] if isinstance(item, Alu | Move | Nop)]
    assert len(counted) == 4, "accumulate, the place in B, the index, and the count"
    report = verify_compiled(found, written=False, queues=device.dma.queues if device.dma else ())
    assert not [failure.message for check in report.checks for failure in check.failures]
