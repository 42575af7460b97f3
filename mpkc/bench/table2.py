"""`mpkc bench semaphores`: the programs of barrier-free, table 2, with each kind of semaphores, simulated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mpkc.bench.kernels import KERNELS, Kernel
from mpkc.bench.manual import place_by_hand
from mpkc.bench.paper import PaperRow, budget_of, paper_rows
from mpkc.bench.rows import AUTO, BASELINE, UNROLLED, Busiest, Refused, Row, Sensitivity, Table2, best_of
from mpkc.bench.variations import variations
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile_types import is_float
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import KINDS as ALLOCATED
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import Program
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result, simulate
from mpkc.runtime.neuron.tile_operations import attribute_of
from mpkc.semaphores import KINDS, MANUAL, Compiled, compile_program

Told = Callable[[int, int, str], None]
"""Is told how many steps are done, of how many, and what the next one is."""


@dataclass(frozen=True)
class Built:
    """A kernel with one kind of semaphores: its ISA program, and what goes into it."""

    kind: str
    compiled: Compiled
    program: Program
    bindings: Mapping[str, int | Sequence[int]]


def streams_of(kernel: Kernel, sizes: Mapping[str, int], kind: str, machine: Machine) -> Compiled:
    """The streams of a kernel with a kind of semaphores; `auto` has the budget of the paper's variants.

    Raises:
        OpError: where it can't have that kind.
    """
    if kind == MANUAL:
        return place_by_hand(kernel, sizes, machine)
    if kind == UNROLLED:
        sizes = {**sizes, **kernel.unrolled}
    program = engine_program(parse_module(kernel.build(**sizes), f"{kernel.name}.mlir"))
    assert program is not None
    return compile_program(program, kind, machine, budget=budget_of(kernel.name))


def kinds_of(kernel: Kernel) -> tuple[str, ...]:
    """The kinds of semaphores of a kernel, barrier first: what is allocated, what was placed by hand, the rest."""
    manual = () if kernel.place is None else (MANUAL,)
    return (*ALLOCATED, *manual, *(kind for kind in KINDS if kind not in ALLOCATED))


def build(kernel: Kernel, sizes: Mapping[str, int], kind: str, machine: Machine) -> Built:
    """Compile to ISA text and read it back; raises OpError as `streams_of`."""
    compiled = streams_of(kernel, sizes, kind, machine)
    return Built(kind, compiled, read_isa(compiled.text, f"{kernel.name}.isa"), kernel.bindings(sizes))


def time_of(built: Built, machine: Machine) -> float:
    """The ns that a program takes; raises RuntimeError where it does not come to its end."""
    return run(built, machine).time_ns


def run(built: Built, machine: Machine) -> Result:
    """Simulate time alone; raises RuntimeError where a program does not come to its end."""
    floats = {each.name: 1.0 for each in built.program.arguments if is_float(attribute_of(each.type))}
    result = simulate(built.program, machine, built.bindings, floats, values=False)
    if not result.ok:
        raise RuntimeError(f"{built.program.name}, {built.kind}: {result.fault or result.deadlock}")
    return result


def bench_table2(
    machine: Machine,
    programs: Sequence[str] = (),
    told: Told = lambda done, total, what: None,
    small: bool = False,
    sensitivity: bool = False,
) -> Table2:
    """Compile and simulate.

    Args:
        programs: their names in the table, or those of their kernels; all where there is none.
        small: at reduced sizes, which the paper says nothing of.
        sensitivity: also with each parameter of the machine 25 % up and down: barrier, auto, and what is best beside
            barrier and unrolled.

    Raises:
        KeyError: for a program that there is not.
    """
    chosen = [(of_paper, kernel, kind) for of_paper, kernel in _chosen(programs) for kind in kinds_of(kernel)]
    found: dict[str, _Measured] = {}
    for number, (of_paper, kernel, kind) in enumerate(chosen):
        told(number, len(chosen), f"{of_paper.program} {kind}")
        sizes = kernel.small if small else kernel.full
        measured = found.setdefault(of_paper.program, _Measured(of_paper, kernel, sizes, machine))
        measured.add(kind)
        if sensitivity and kind == kinds_of(kernel)[-1]:
            measured.vary()
    return Table2(
        machine.name,
        [row for each in found.values() for row in each.rows],
        [refused for each in found.values() for refused in each.refused],
        [sensitive for each in found.values() for sensitive in each.sensitivity],
    )


class _Measured:
    """One program of the table: what has been found of it so far."""

    def __init__(self, of_paper: PaperRow, kernel: Kernel, sizes: Mapping[str, int], machine: Machine):
        self.of_paper, self.kernel, self.sizes, self.machine = of_paper, kernel, sizes, machine
        self.rows: list[Row] = []
        self.refused: list[Refused] = []
        self.sensitivity: list[Sensitivity] = []
        self.built: dict[str, Built] = {}

    def add(self, kind: str) -> None:
        """Compile and simulate it with a kind of semaphores, barrier first."""
        try:
            built = build(self.kernel, self.sizes, kind, self.machine)
        except OpError as err:
            self.refused.append(Refused(self.of_paper.program, kind, err.message))
            return
        self.rows.append(self.row(built, run(built, self.machine)))
        if kind != UNROLLED:
            self.built[kind] = built

    def row(self, built: Built, result: Result) -> Row:
        emission, time = built.compiled.emission, result.time_ns
        return Row(
            self.of_paper.program,
            built.kind,
            time / self.rows[0].time_ns if self.rows else 1.0,
            time,
            built.program.code_bytes(self.machine.instruction_bytes),
            emission.added_registers,
            len(built.program.semaphores),
            self.of_paper.figures(built.kind) if self.sizes == self.kernel.full else None,
            tuple(built.compiled.remarks),
            _busiest(result),
        )

    def vary(self) -> None:
        """Simulate it on machines with one parameter changed; then let go of what was compiled."""
        kinds = dict.fromkeys((BASELINE, AUTO, best_of(self.rows).kind))
        varied = [self.built[kind] for kind in kinds if kind in self.built]
        engines = {engine.name for engine in varied[0].program.engines}
        for each in variations(self.machine, engines):
            times = {built.kind: time_of(built, each.machine) for built in varied}
            latency = {kind: time / times[BASELINE] for kind, time in times.items()}
            self.sensitivity.append(Sensitivity(self.of_paper.program, each.parameter, each.factor, latency))
        self.built.clear()


def _busiest(result: Result) -> Busiest:
    name, usage = max(result.engines.items(), key=lambda each: each[1].busy + each[1].control)
    return Busiest(name, *(part / result.time_ns for part in (usage.busy, usage.control, usage.wait)))


def _chosen(programs: Sequence[str]) -> Iterator[tuple[PaperRow, Kernel]]:
    """The rows of the paper with their kernels; all where none is named."""
    known = {name for row in paper_rows() for name in (row.program, row.kernel)}
    for name in programs:
        if name not in known:
            raise KeyError(f"there is no program {name}; there are: {', '.join(row.program for row in paper_rows())}")
    for row in paper_rows():
        if row.kernel in KERNELS and (not programs or {row.program, row.kernel} & set(programs)):
            yield row, KERNELS[row.kernel]
