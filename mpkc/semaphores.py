"""From a multi-engine program to ISA text: dependencies, semaphores, clean-up, registers (barrier-free, sections 4-6).

What a machine has is a limit: where a kind of semaphores needs more registers than an engine has, histories give way to
markers, then semaphores of engines to those of loops, then the innermost loops get barriers, and a remark says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from mpkc.auto import UNLIMITED, Budget, Choice, choose
from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError, describe, verify
from mpkc.dialects.engine import engine_of, is_instruction, label_of
from mpkc.dialects.sem_rules import check_rules
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.dialects.sem_structure import Loop
from mpkc.dialects.tile_transfer import TileInstruction
from mpkc.passes.sem_allocate import KINDS as ALLOCATED
from mpkc.passes.sem_allocate import Allocation, allocate, counter_type
from mpkc.passes.sem_carry_thresholds import carry_thresholds
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_hoist_waits import hoist_waits
from mpkc.passes.sem_lower_views import lower_views
from mpkc.passes.sem_order_transfers import order_transfers
from mpkc.passes.sem_order_waits import Latest, order_waits
from mpkc.passes.sem_rematerialize import rematerialize
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.sem_sink_steps import sink_steps
from mpkc.passes.sem_unroll import unroll
from mpkc.passes.sem_unroll_by import unroll_by, unrolled_by
from mpkc.passes.sem_use_indices import use_indices
from mpkc.passes.semaphores.needs import MOST_HISTORY
from mpkc.passes.semaphores.plan import Plan
from mpkc.passes.tile_extract_dependencies import extract_dependencies
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.emit import Emission, emission, register_use
from mpkc.runtime.neuron.registers import TooManyRegisters
from mpkc.runtime.neuron.text import print_isa

EngineProgram = sem.ProgramOp | tile.KernelOp
"""A multi-engine program."""

KINDS = (*ALLOCATED, "unrolled", "auto")
MANUAL = "manual"
"""What the attribute `semaphores` of streams says that a person placed."""

HISTORY_OF_LEAN = 3  # iterations back that registers keep, where a mask would take more operations


@dataclass(frozen=True)
class Compiled:
    """A program and what it was compiled to.

    Attributes:
        program: as it was allocated: dependencies extracted, loops unrolled.
        streams: after clean-up.
        plan: who waits for whom and why.
        emission: the ISA program, named as the program is.
        told: remarks, with the operations that they are about.
    """

    program: EngineProgram
    streams: StreamsOp
    plan: Plan
    emission: Emission
    told: tuple[tuple[Operation, str], ...]

    @cached_property
    def text(self) -> str:
        """The ISA text."""
        return print_isa(self.emission.program)

    @cached_property
    def labelled(self) -> dict[str, Operation]:
        """The instructions of the program by label."""
        instructions = (op for op in self.program.walk() if is_instruction(op))
        return {label: op for op in instructions if (label := label_of(op)) is not None}

    @property
    def remarks(self) -> list[str]:
        """What is told, as `file:line:col: remark: text`; each once, in the order of the program."""
        return list(dict.fromkeys(f"{describe(op)}: remark: {text}" for op, text in self.told))

    @property
    def module(self) -> ModuleOp:
        """The program and its streams in one module, which `mpkc verify` and the others take."""
        streams = self.streams.clone()
        streams.sym_name = StringAttr(f"{self.program.sym_name.data}.streams")
        return ModuleOp([self.program.clone(), streams])


def compile_program(
    program: EngineProgram, kind: str, machine: Machine, counters: str | None = None, budget: Budget = UNLIMITED
) -> Compiled:
    """Compile a verified program, which is left as it is.

    Args:
        kind: of semaphores, one of KINDS, for what no attribute `semaphores` says otherwise for.
        machine: its limits hold.
        counters: the arithmetic of semaphores, such as `ui8`; that of the machine where it is None.
        budget: what `auto` may use.

    Raises:
        OpError: an engine that the machine has not; what can't be allocated, or does not fit, and by how much.
        ValueError: counters that are none.
    """
    counters = counters or counters_of(machine)
    kind = "auto" if _kind(program) == "auto" else kind
    if kind != "auto":
        return _verified(_Fitting(prepare(program, kind, machine), _left(kind), machine, counters).run())

    def fitted(candidate: EngineProgram, choice: Choice) -> Compiled:
        style = Style(choice.lean, choice.latest, choice.carried, budget.registers)
        return _Fitting(candidate, choice.kind, machine, counters, style).run()

    prepared = with_dependencies(program, kind, machine)
    best, choice = choose([prepared, *unrolled_by(prepared, budget.unroll)], machine, fitted, budget)
    chosen = choice.given_to(best, machine.dma.queues if machine.dma else ())
    check_rules(chosen, chosen.argument_names)
    return _verified(fitted(chosen, choice))


def read_streams(program: EngineProgram, streams: StreamsOp, kind: str, machine: Machine) -> Compiled:
    """A program with streams that are there already, as the compiler or a person wrote them.

    Args:
        kind: the one that the streams were made for; it decides which waits may be longer than has to be, unless a
            person placed them.
    """
    counters = f"{'s' if streams.signed else 'u'}i{streams.counters.width.data}"
    prepared = prepare(program, kind, machine)
    plan = allocate(prepared, _left(kind), counters, machine.limits.semaphores, parts=parts_of(machine)).plan
    try:
        told = () if is_manual(streams) else tuple(plan.remarks)
        return Compiled(prepared, streams, plan, _named(emission(streams, machine), prepared), told)
    except TooManyRegisters as err:
        raise OpError(prepared, err.message) from err


def is_manual(streams: StreamsOp) -> bool:
    """Whether a person placed the semaphores of streams: their waits may ask for more than is owed."""
    return streams.attributes.get("semaphores") == StringAttr(MANUAL)


def counters_of(machine: Machine) -> str:
    """The arithmetic of a machine's semaphores, such as `ui32`."""
    return f"{'si' if machine.semaphore.signed else 'ui'}{machine.semaphore.bits}"


def parts_of(machine: Machine) -> int:
    """The most that an update adds to a semaphore: one, or the parts of a transfer."""
    return machine.dma.parts if machine.dma else 1


def prepare(program: EngineProgram, kind: str, machine: Machine) -> EngineProgram:
    """A copy of a program with all its dependencies written down, and unrolled where it is to be."""
    prepared = with_dependencies(program, kind, machine)
    if machine.dma:
        order_transfers(prepared, machine.dma.queues)
    check_rules(prepared, prepared.argument_names)
    return prepared


def with_dependencies(program: EngineProgram, kind: str, machine: Machine) -> EngineProgram:
    """As `prepare`, with transfers not yet ordered."""
    _check_kinds(program, kind)
    for op in program.walk():
        if is_instruction(op) and not machine.has_engine(engine_of(op)):
            raise OpError(
                op, f'{machine.name} has no engine "{engine_of(op)}"; there are: {", ".join(machine.engines)}'
            )
    prepared = program.clone()
    if any(isinstance(op, TileInstruction) for op in prepared.walk()):
        extract_dependencies(prepared)
    unroll_by(prepared)
    if kind == "unrolled" or any(_kind(op) == "unrolled" for op in prepared.walk()):
        unroll(prepared, kind == "unrolled")
    return prepared


def clean_up(streams: StreamsOp, lean: bool = False, latest: Latest | None = None, carried: bool = False) -> None:
    """Simplify the arithmetic of streams and drop the counters that nothing needs (barrier-free, section 6.2).

    Args:
        lean: let indices be counters where they can, and step counters where they need no second register.
        latest: which wait of an instruction holds longest, as far as that is known; where this is given, waits move in
            front of loops that do not change them, and that wait comes last which is likely to hold longest.
        carried: let registers keep thresholds from one iteration to the next.
    """
    lower_views(streams)
    simplify(streams)
    if carried:
        carry_thresholds(streams)
        simplify(streams)
    if lean:
        use_indices(streams)
        simplify(streams)
    if latest is not None:
        hoist_waits(streams)
        order_waits(streams, latest)
    drop_counters(streams)
    if lean:
        sink_steps(streams)


def _left(kind: str) -> str:
    """The kind for what is left of a program once it is unrolled, or says itself what was chosen for it."""
    return {"unrolled": "per-engine", "auto": "per-loop"}.get(kind, kind)


def _kind(op: Operation) -> str | None:
    kind = op.attributes.get("semaphores")
    return kind.data if isinstance(kind, StringAttr) else None


def _check_kinds(program: EngineProgram, kind: str) -> None:
    for op in program.walk():
        if op is not program and _kind(op) == "auto":
            raise OpError(op, "semaphores of kind 'auto' are chosen for a whole program")
    for op, each in ((program, kind), *((op, _kind(op)) for op in program.walk())):
        if each is not None and each not in KINDS:
            raise OpError(op, f"unknown kind of semaphores '{each}': use {', '.join(KINDS)}")


def _named(emitted: Emission, program: EngineProgram) -> Emission:
    return replace(emitted, program=replace(emitted.program, name=program.sym_name.data))


@dataclass(frozen=True)
class Style:
    """How streams are cleaned up.

    Attributes:
        lean, latest, carried: see `clean_up`.
        registers: how many synchronization may add on an engine, as far as thresholds can be computed again.
    """

    lean: bool = False
    latest: Latest | None = None
    carried: bool = False
    registers: int | None = None


PLAIN_STYLE = Style()


def _verified(compiled: Compiled) -> Compiled:
    """What is handed out: every instruction is verified in the stream of its engine; candidates are not."""
    verify(compiled.streams)
    return compiled


class _Fitting:
    """Compiles a program until it fits the registers."""

    def __init__(self, program: EngineProgram, kind: str, machine: Machine, counters: str, style: Style = PLAIN_STYLE):
        self.style = style
        self.program, self.kind, self.machine, self.counters = program, kind, machine, counters
        counter_type(counters)
        self.told: list[tuple[Operation, str]] = []

    def run(self) -> Compiled:
        history = MOST_HISTORY
        while True:
            semaphores, parts = self.machine.limits.semaphores, parts_of(self.machine)
            shifted = min(history, HISTORY_OF_LEAN) if self.style.lean else 0
            allocation = allocate(
                self.program, self.kind, self.counters, semaphores, history, parts=parts, shifted=shifted
            )
            try:
                return self.compiled(allocation)
            except TooManyRegisters as err:
                if err.needed.program > err.available:
                    raise OpError(self.program, err.message) from err
                if history:
                    history = 0
                    self.tell(self.program, err, "no registers keep what loops were, markers stand for it")
                elif self.kind == "per-engine":
                    self.kind = "per-loop"
                    self.tell(
                        self.program, err, "producers share the semaphores of their loops instead of their engine's"
                    )
                elif not self.add_barriers(allocation.plan, err):
                    raise OpError(self.program, f"even with barriers in every loop {err.message}") from err

    def compiled(self, allocation: Allocation) -> Compiled:
        streams, plan = allocation.streams, allocation.plan
        ModuleOp([streams])  # passes want operations that stand in a block
        clean_up(streams, self.style.lean, self.style.latest, self.style.carried)
        emitted = emission(streams, self.machine)
        most = self.style.registers
        if most is not None and emitted.added_registers > most:
            self.compute_again(streams, emitted, most)
            emitted = emission(streams, self.machine)
        emitted = _named(emitted, self.program)
        return Compiled(self.program, streams, plan, emitted, (*plan.remarks, *self.told))

    def compute_again(self, streams: StreamsOp, emitted: Emission, most: int) -> None:
        """Compute thresholds where they are needed, where synchronization adds more registers than `most`."""
        for engine, stream in streams.streams.items():
            if emitted.registers[engine].synchronization > most:
                rematerialize(stream, lambda of=engine: register_use(streams, of, self.machine).synchronization <= most)

    def add_barriers(self, plan: Plan, err: TooManyRegisters) -> bool:
        """Give barriers to as many loops, the innermost first, as registers are missing; whether there was one."""
        counted = dict.fromkeys(self.counted_loops(plan, err.engine))
        innermost = sorted(counted, key=lambda loop: -len(loop.path))
        chosen = innermost[: err.needed.total - err.available]
        for loop in chosen:
            loop.op.attributes["semaphores"] = StringAttr("barrier")
            self.tell(loop.op, err, "this loop gets barriers")
        return bool(chosen)

    def counted_loops(self, plan: Plan, engine: str) -> Iterator[Loop]:
        """The loops whose entries an engine counts: for its waits, or up to the next epoch."""
        loops = [need.producer.loop for need in plan.waits_of(engine)]
        loops += [loop for reset in plan.resets if engine in reset.engines for loop in reset.epoch.counters]
        return (loop for loop in loops if loop.parent is not None and loop not in plan.barriers.loops)

    def tell(self, op: Operation, err: TooManyRegisters, what: str) -> None:
        self.told.append((op, f'engine "{err.engine}" has {err.available} registers, which are too few: {what}'))
