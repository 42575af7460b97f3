"""`mpkc bench semaphores`: the programs of barrier-free, table 2, with each kind of semaphores, simulated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from mpkc.bench.kernels import KERNELS, Kernel
from mpkc.bench.manual import place_by_hand
from mpkc.bench.paper import Figures, PaperRow, paper_rows
from mpkc.bench.variations import Variation, variations
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile_types import is_float
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import KINDS as ALLOCATED
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import Program
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.runtime.neuron.tile_operations import attribute_of
from mpkc.semaphores import KINDS, MANUAL, Compiled, compile_program

BASELINE = "barrier"
Told = Callable[[int, int, str], None]
"""Is told how many steps are done, of how many, and what the next one is."""


@dataclass(frozen=True)
class Row:
    """One program with one kind of semaphores.

    Attributes:
        latency: relative to barrier.
        registers: that synchronization adds, the most on one engine.
        paper: what the paper says of it; None where it says nothing.
        remarks: what the compiler told.
    """

    program: str
    kind: str
    latency: float
    time_ns: float
    code_bytes: int
    registers: int
    semaphores: int
    paper: Figures | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A program that can't have a kind of semaphores, and why."""

    program: str
    kind: str
    message: str


@dataclass(frozen=True)
class Sensitivity:
    """What becomes of one program when one parameter of the machine is another.

    Attributes:
        parameter, factor: what is multiplied by what.
        latency: relative to barrier, by kind; as it is without the change in `before`.
        best, best_before: the kind of the shortest time.
    """

    program: str
    parameter: str
    factor: float
    latency: Mapping[str, float]
    before: Mapping[str, float]
    best: str
    best_before: str

    @property
    def change(self) -> float:
        """The largest change of a latency."""
        return max(abs(self.latency[kind] - self.before[kind]) for kind in self.latency)

    @property
    def overtaken(self) -> bool:
        """Whether barrier and the best kind beside it change places."""
        return (self.best == BASELINE) != (self.best_before == BASELINE)


@dataclass(frozen=True)
class Table2:
    """All rows, program by program in the order of the paper's table."""

    device: str
    rows: Sequence[Row]
    refused: Sequence[Refused] = ()
    sensitivity: Sequence[Sensitivity] = field(default_factory=tuple[Sensitivity, ...])

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Built:
    """A kernel with one kind of semaphores: its ISA program, and what goes into it."""

    kind: str
    compiled: Compiled
    program: Program
    bindings: Mapping[str, int | Sequence[int]]


def streams_of(kernel: Kernel, sizes: Mapping[str, int], kind: str, machine: Machine) -> Compiled:
    """The streams of a kernel with a kind of semaphores.

    Raises:
        OpError: where it can't have that kind.
    """
    if kind == MANUAL:
        return place_by_hand(kernel, sizes, machine)
    if kind == "unrolled":
        sizes = {**sizes, **kernel.unrolled}
    program = engine_program(parse_module(kernel.build(**sizes), f"{kernel.name}.mlir"))
    assert program is not None
    return compile_program(program, kind, machine)


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
    floats = {each.name: 1.0 for each in built.program.arguments if is_float(attribute_of(each.type))}
    result = simulate(built.program, machine, built.bindings, floats, values=False)
    if not result.ok:
        raise RuntimeError(f"{built.program.name}, {built.kind}: {result.fault or result.deadlock}")
    return result.time_ns


def bench_table2(
    machine: Machine, programs: Sequence[str] = (), told: Told = lambda done, total, what: None, small: bool = False
) -> Table2:
    """Compile and simulate.

    Args:
        programs: their names in the table, or those of their kernels; all where there is none.
        small: at reduced sizes, which the paper says nothing of.

    Raises:
        KeyError: for a program that there is not.
    """
    rows: list[Row] = []
    refused: list[Refused] = []
    chosen = list(_chosen(programs))
    total = sum(len(kinds_of(kernel)) for _, kernel in chosen)
    for of_paper, kernel in chosen:
        barrier = 0.0
        for kind in kinds_of(kernel):
            told(len(rows) + len(refused), total, f"{of_paper.program} {kind}")
            try:
                built = build(kernel, kernel.small if small else kernel.full, kind, machine)
            except OpError as err:
                refused.append(Refused(of_paper.program, kind, err.message))
                continue
            time = time_of(built, machine)
            barrier = barrier or time
            rows.append(_row(of_paper, built, time, time / barrier, machine))
    return Table2(machine.name, rows, refused)


def bench_sensitivity(
    machine: Machine,
    programs: Sequence[str] = (),
    told: Told = lambda done, total, what: None,
    small: bool = False,
    kinds: Sequence[str] | None = None,
) -> list[Sensitivity]:
    """What each parameter of the machine does, 25 % up and down.

    Args:
        programs, small: see `bench_table2`.
        kinds: to look at, barrier among them; all but unrolled where it is None.
    """
    found: list[Sensitivity] = []
    chosen, varied = list(_chosen(programs)), list(variations(machine))
    for number, (of_paper, kernel) in enumerate(chosen):
        wanted = kinds or [kind for kind in kinds_of(kernel) if kind != "unrolled"]
        sizes = kernel.small if small else kernel.full
        all_built = [build(kernel, sizes, kind, machine) for kind in wanted]
        before = {built.kind: time_of(built, machine) for built in all_built}
        for at, variation in enumerate(varied):
            told(number * len(varied) + at, len(chosen) * len(varied), f"{of_paper.program} {variation.parameter}")
            times = {built.kind: time_of(built, variation.machine) for built in all_built}
            found.append(_sensitivity(of_paper.program, variation, times, before))
    return found


def _sensitivity(
    program: str, variation: Variation, times: Mapping[str, float], before: Mapping[str, float]
) -> Sensitivity:
    def relative(given: Mapping[str, float]) -> dict[str, float]:
        return {kind: time / given[BASELINE] for kind, time in given.items()}

    def best(given: Mapping[str, float]) -> str:
        return min(given, key=lambda kind: given[kind])

    return Sensitivity(
        program,
        variation.parameter,
        variation.factor,
        relative(times),
        relative(before),
        best(times),
        best(before),
    )


def _chosen(programs: Sequence[str]) -> Iterator[tuple[PaperRow, Kernel]]:
    """The rows of the paper with their kernels; all where none is named."""
    known = {name for row in paper_rows() for name in (row.program, row.kernel)}
    for name in programs:
        if name not in known:
            raise KeyError(f"there is no program {name}; there are: {', '.join(row.program for row in paper_rows())}")
    for row in paper_rows():
        if row.kernel in KERNELS and (not programs or {row.program, row.kernel} & set(programs)):
            yield row, KERNELS[row.kernel]


def _row(of_paper: PaperRow, built: Built, time: float, latency: float, machine: Machine) -> Row:
    emission = built.compiled.emission
    return Row(
        of_paper.program,
        built.kind,
        latency,
        time,
        built.program.code_bytes(machine.instruction_bytes),
        emission.added_registers,
        len(built.program.semaphores),
        of_paper.kinds.get(built.kind),
        tuple(built.compiled.remarks),
    )
