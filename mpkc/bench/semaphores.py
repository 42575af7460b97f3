"""How long a large multi-engine program takes from IR to ISA text, and how fast the simulator runs it."""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Region

from mpkc.cli.errors import NEW_OBJECTS
from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem import InstOp, ProgramOp
from mpkc.dialects.sem_distance import offset
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_lower_views import lower_views
from mpkc.passes.sem_simplify import simplify
from mpkc.runtime.machine import Limits, machine
from mpkc.runtime.neuron.emit import emission
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.runtime.neuron.text import print_isa

LOOPS, INSTRUCTIONS, ENGINES, TRIPS = 1_000, 50, 5, 4
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """CPU seconds of one step, on one core.

    Attributes:
        instructions: of the program, or, where it runs, executed.
    """

    name: str
    instructions: int
    seconds: float

    @property
    def rate(self) -> float:
        """Instructions a second."""
        return self.instructions / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class ScaleBenchmark:
    """The steps of both programs.

    Attributes:
        seconds: from the larger program to its text.
        doubling: how many times as long twice the instructions take.
    """

    rows: Sequence[Row]
    seconds: float
    doubling: float

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def bench_scale(told: Callable[[str], None], loops: int = LOOPS) -> ScaleBenchmark:
    """A program of `loops` loops and one of half as many, each in a process of its own."""
    rows: list[Row] = []
    totals: list[float] = []
    for count in (loops // 2, loops):
        told(f"{count * INSTRUCTIONS:,} instructions in {count:,} loops")
        done = subprocess.run(
            [sys.executable, "-m", "mpkc.bench.semaphores", str(count)], check=True, stdout=subprocess.PIPE, text=True
        )
        found = [Row(**row) for row in json.loads(done.stdout)]
        rows += found
        totals.append(sum(row.seconds for row in found if not row.name.startswith("simulate")))
    return ScaleBenchmark(rows, totals[1], totals[1] / totals[0])


def synthetic_program(loops: int) -> ModuleOp:
    """Loops one after the other, 50 instructions on five engines in each.

    Every second instruction depends on the one before it, on another engine: in the same iteration, or one or two back.
    The number of iterations is known when the program runs.
    """
    index = IndexType()
    body = Block(arg_types=[index])
    body.args[0].name_hint = "n"
    zero, one = arith.ConstantOp(IntegerAttr(0, index)), arith.ConstantOp(IntegerAttr(1, index))
    body.add_ops([zero, one])
    for number in range(loops):
        inner = Block(arg_types=[index])
        for place in range(INSTRUCTIONS):
            after = [offset(f"I{number}_{place - 1}", place // 2 % 3)] if place % 2 else None
            inner.add_op(InstOp(f"I{number}_{place}", f"e{place % ENGINES}", 64, after))
        inner.add_op(scf.YieldOp())
        body.add_op(scf.ForOp(zero, body.args[0], one, [], Region(inner)))
    return ModuleOp([ProgramOp("scale", Region(body))])


def scale_stages(loops: int) -> list[Row]:
    """Compile a synthetic program step by step, and simulate it, in this process."""
    rows: list[Row] = []
    instructions = loops * INSTRUCTIONS

    def timed(name: str, step: Callable[[], T]) -> T:
        started = time.process_time()
        found = step()
        rows.append(Row(name, instructions, time.process_time() - started))
        return found

    module = synthetic_program(loops)
    device = replace(machine("generic"), limits=Limits())  # a semaphore for each engine and loop
    program = next(iter(module.ops))
    assert isinstance(program, ProgramOp)
    timed("verify", lambda: verify(module))
    streams = timed("sem-allocate", lambda: allocate(program)).streams
    ModuleOp([streams])
    timed("sem-lower-views", lambda: lower_views(streams))
    timed("sem-simplify", lambda: simplify(streams))
    timed("sem-drop-counters", lambda: drop_counters(streams))
    emitted = timed("emit, registers", lambda: emission(streams, device)).program
    text = timed("print", lambda: print_isa(emitted))
    read = read_isa(text)
    for name, values in (("simulate, time alone", False), ("simulate, values and races", True)):
        started = time.process_time()
        result = simulate(read, device, {"n": TRIPS}, values=values, races=values)
        rows.append(Row(name, result.instructions, time.process_time() - started))
    return rows


if __name__ == "__main__":
    gc.set_threshold(NEW_OBJECTS)
    print(json.dumps([asdict(row) for row in scale_stages(int(sys.argv[1]))]))
