"""Counts of a multi-engine program, what each kind of semaphores costs it, and the formula of each wait."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import structure_of
from mpkc.passes.semaphores.needs import Form, Need
from mpkc.passes.semaphores.plan import Plan
from mpkc.runtime.machine import Machine
from mpkc.semaphores import ALLOCATED, Compiled, EngineProgram, compile_program, prepare


@dataclass(frozen=True)
class KindRow:
    """What one kind of semaphores costs; nothing but `refused` where the program can't have it.

    Attributes:
        registers: that synchronization adds, the most on one engine.
        code_bytes: of all engines.
    """

    kind: str
    semaphores: int | None = None
    registers: int | None = None
    code_bytes: int | None = None
    remarks: int = 0
    refused: str | None = None


@dataclass(frozen=True)
class WaitRow:
    """One wait.

    Attributes:
        threshold: its formula.
        why: the dependency, and what makes the formula right.
    """

    instruction: str
    producer: str
    semaphore: str
    threshold: str
    why: str


@dataclass(frozen=True)
class EngineStats:
    """Counts of a program with its dependencies extracted.

    Attributes:
        loops: conditionals left out.
        instructions: by engine.
        dependencies: by the way in which a threshold is found; see `FORMS`.
        kinds: what each kind of semaphores costs.
    """

    loops: int
    conditionals: int
    instructions: Mapping[str, int]
    dependencies: Mapping[str, int]
    kinds: tuple[KindRow, ...]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


FORMS: Mapping[Form, str] = {
    Form.NOW: "the same iteration",
    Form.BACK: "iterations back, in the loop that carries it",
    Form.PASSED: "the iteration before, in an inner loop behind the consumer",
    Form.ENDED: "iterations back, in an inner loop",
    Form.CLAMPED: "iterations back, up to an inner iteration",
    Form.SLIDING: "all iterations but the last ones",
    Form.BEFORE: "a value is overwritten",
}


def engine_stats(program: EngineProgram, machine: Machine, counters: str | None) -> EngineStats:
    """Compile a program with each kind of semaphores, and count."""
    prepared = prepare(program, "per-loop", machine)
    structure = structure_of(prepared)
    rows: list[KindRow] = []
    forms = Counter[str]()
    for kind in (*ALLOCATED, "unrolled"):
        try:
            found = compile_program(program, kind, machine, counters)
        except OpError as err:
            rows.append(KindRow(kind, refused=err.message))
            continue
        if kind == "per-loop":
            forms = Counter(_form(need) for need in found.plan.needs.all)
        rows.append(_costs(kind, found, machine))
    loops = [loop for loop in structure.loops if loop.parent is not None]
    counted = sum(loop.counted for loop in loops)
    instructions = Counter(instruction.engine for instruction in structure.instructions)
    return EngineStats(counted, len(loops) - counted, dict(instructions), dict(forms), tuple(rows))


def _costs(kind: str, found: Compiled, machine: Machine) -> KindRow:
    program = found.emission.program
    code_bytes = program.code_bytes(machine.instruction_bytes)
    return KindRow(kind, len(program.semaphores), found.emission.added_registers, code_bytes, len(found.remarks))


def _form(need: Need) -> str:
    return "by a marker" if need.stands_for else FORMS[need.form]


def waits_of(plan: Plan) -> Iterator[WaitRow]:
    """Every wait of a plan, with its formula."""
    for consumer, needs in plan.waits.items():
        for need in needs:
            group, (place, members) = plan.groups.of[need.producer], plan.positions[need.producer]
            owed, why = _owed(need)
            if group.kind == "barrier":
                threshold, why = str(place), f"{why}; static between two barriers"
            elif group.kind == "per-engine":
                threshold = f"signals of {group.engine} up to @{need.producer.name}"
                threshold += f", less those of {need.k} iterations" if need.k else ""
            elif members == 1:
                threshold = owed
            else:
                scaled = f"{members} * {owed}" if " " not in owed else f"{members} * ({owed})"
                threshold = f"{scaled} - {members - place}" if place < members else scaled
                why = f"{why}; K = {place} of N = {members}"
            yield WaitRow(consumer.name, need.producer.name, group.name, threshold, why)


def _owed(need: Need) -> tuple[str, str]:
    """How often the producer must have retired, and why."""
    entries = f"r_{need.producer.loop.name}" if need.producer.loop.parent else "1"
    around = need.loop.name if need.loop else ""
    stands = f"; @{need.producer.name} stands for @{need.stands_for.name}" if need.stands_for else ""
    match need.form:
        case Form.NOW:
            return entries, f"the producer has come as far as the consumer{stands}"
        case Form.BEFORE:
            return f"{entries} - 1", "the value is overwritten once it has been read"
        case Form.BACK if need.earlier:
            last = "1" if need.k == 1 else f"min(iteration of {around}, {need.k})"
            return f"{entries} - {last}", f"what ran before {around} is owed, too{stands}"
        case Form.PASSED if need.earlier:
            return entries, f"all so far: what is behind the consumer has not begun again{stands}"
        case Form.BACK:
            return f"{entries} - {need.k}", f"from iteration {need.k + 1} of {around} on, else nothing{stands}"
        case Form.PASSED:
            return entries, f"from iteration 2 of {around} on: what is behind the consumer has not begun again{stands}"
        case Form.SLIDING:
            return f"{entries} - {need.k}", f"all that ever ran is owed but the last {need.k}, if that is any{stands}"
        case Form.ENDED:
            before = f" or {around} began" if need.earlier else ""
            return (
                f"{entries} as iteration -{need.k} of {around} ended{before}",
                f"held in registers, one for each iteration back{stands}",
            )
        case Form.CLAMPED:
            inner = need.inner.name if need.inner else ""
            return (
                f"{entries} as iteration -{need.k} of {around} came to iteration -{need.d} of {inner}",
                f"bounded by the trips of {inner} then; held in registers, one for each iteration back{stands}",
            )
