"""The plan of an allocation: who waits for what, who signals which semaphore, what each engine keeps."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from mpkc.dialects.sem_distance import EVERY
from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.passes.semaphores.barriers import Barriers, find_barriers
from mpkc.passes.semaphores.bounds import always
from mpkc.passes.semaphores.epochs import Epoch, EpochError, Tally, plan_epochs
from mpkc.passes.semaphores.groups import Group, Groups, share
from mpkc.passes.semaphores.intervals import Intervals
from mpkc.passes.semaphores.layout import Layout
from mpkc.passes.semaphores.needs import (
    MOST_HISTORY,
    Form,
    Marker,
    Need,
    Needs,
    Read,
    Source,
    joined,
    need_of,
    slid,
    source_of,
    without_dominated,
)
from mpkc.passes.semaphores.slices import Slice


@dataclass(frozen=True)
class Reset:
    """An epoch, and the engines that meet for it: those that signal, or wait for, what is reset."""

    epoch: Epoch
    engines: tuple[str, ...]


@dataclass
class Choices:
    """What is left open by the kinds that a program asks for, and decided by what fits.

    Attributes:
        finer: semaphores that would count too far; their producers share less.
        coarser: kinds for the producers of an engine, in all loops or in one, in place of a finer one.
        barriers: operations that get barriers.
        history: the registers that the history of one loop may take.
        shifted: how many iterations back a history may tell what a mask could, in a loop that holds the producer; with
            any, thresholds may also do without a mask where they tell by themselves that nothing is owed.
    """

    finer: set[str] = field(default_factory=set[str])
    coarser: dict[tuple[str, Loop | None], str] = field(default_factory=dict[tuple[str, Loop | None], str])
    barriers: set[Operation] = field(default_factory=set[Operation])
    history: int = MOST_HISTORY
    shifted: int = 0


@dataclass
class Plan:
    """An allocation, before any code is written.

    Attributes:
        waits: what each source waits for, dominated and satisfied needs left out.
        needs: all of `waits`, and those that were left out.
        groups: the semaphores.
        layouts: the order of each engine.
        positions: (K, N) of each producer: its place, from 1, among those that share its semaphore in its loop
            (between two barriers where it is static), and their number.
        resets: where counters start again.
    """

    structure: Structure
    sources: dict[Operation, Source]
    kinds: "Kinds"
    barriers: Barriers
    needs: Needs = field(default_factory=Needs)
    waits: dict[Source, list[Need]] = field(default_factory=dict[Source, list[Need]])
    groups: Groups = field(default_factory=Groups)
    layouts: dict[str, Layout] = field(default_factory=dict[str, Layout])
    positions: dict[Source, tuple[int, int]] = field(default_factory=dict[Source, tuple[int, int]])
    reads: dict[tuple[str, Operation], Read] = field(default_factory=dict[tuple[str, Operation], Read])
    resets: list[Reset] = field(default_factory=list[Reset])

    @property
    def remarks(self) -> list[tuple[Operation, str]]:
        """What is told, with the operation that it is about."""
        return self.needs.remarks + [(source.op, text) for source, text in self.groups.remarks]

    @cached_property
    def trips(self) -> dict[Loop, int | None]:
        """How many iterations each loop always has; None where constants do not say it."""
        intervals = Intervals(self.structure.program)
        return {loop: always(loop, intervals) for loop in self.structure.loops}

    def shares_engine(self, producer: Source) -> bool:
        """Whether a producer is to share the semaphore of its engine, which is counted in closed form alone."""
        return self.kinds.of_source(producer, self.barriers) == "per-engine"

    def waits_of(self, engine: str) -> Iterator[Need]:
        """What the sources of an engine wait for."""
        return (need for source, needs in self.waits.items() if source.engine == engine for need in needs)


def make_plan(structure: Structure, kind: str, choices: Choices, limit: int | None = None) -> Plan:
    """Plan the semaphores of a program.

    Args:
        kind: of what no attribute `semaphores` says otherwise for.
        limit: the largest value of a semaphore; None where it does not matter.

    Raises:
        EpochError: semaphores that go beyond the limit, where no iteration boundary can hold a reset.
    """
    plan = _plan(structure, kind, choices, exact=True)
    if limit is not None:
        _check_segments(plan, limit)
    if limit is None or not (epochs := plan_epochs(structure, _tallies(plan), limit)):
        return plan
    if any(need.form is Form.CLAMPED for need in plan.needs.all):
        # That formula does not survive resets.
        plan = _plan(structure, kind, choices, exact=False)
        epochs = plan_epochs(structure, _tallies(plan), limit)
    # The engines that meet for a reset have to run its loop.
    plan.resets = _resets(plan, epochs)
    _settle(plan)
    return plan


def _check_segments(plan: Plan, limit: int) -> None:
    """Raise where a semaphore counts beyond the limit from one barrier to the next."""
    for producer, (_, count) in plan.positions.items():
        group = plan.groups.of[producer]
        if group.kind == "barrier" and count > limit:
            message = (
                f"semaphores go up to {limit}, and {count} instructions between two barriers signal '{group.name}'"
            )
            raise EpochError(producer.op, message, (group.name,))


def _plan(structure: Structure, kind: str, choices: Choices, exact: bool) -> Plan:
    sources = {instruction.op: source_of(instruction) for instruction in structure.instructions}
    kinds = Kinds(structure, kind, choices)
    plan = Plan(structure, sources, kinds, find_barriers(structure, kinds.of_loop))
    for edge in structure.edges:
        producer = sources[edge.producer.op]
        shifted = 0 if plan.shares_engine(producer) else choices.shifted
        need = need_of(edge, sources[edge.consumer.op], producer, plan.needs, exact, choices.history, shifted)
        if need is not None:
            plan.needs.all.append(need)
    _settle(plan)
    return plan


def _settle(plan: Plan) -> None:
    """What an engine waits for decides which loops it runs, these which values it reads, for which it waits."""
    size, improved = (), _improve(plan)
    while improved != size:
        size, improved = improved, _improve(plan)
    plan.positions = _positions(plan)


def _tallies(plan: Plan) -> list[Tally]:
    """What counts on each semaphore that no barrier resets."""
    signals: dict[str, dict[Loop, int]] = {}
    counters: dict[str, dict[Loop, None]] = {}
    for source, group in plan.groups.of.items():
        if group.kind != "barrier":
            of_loop = signals.setdefault(group.name, {})
            of_loop[source.loop] = of_loop.get(source.loop, 0) + 1
            if group.kind != "per-engine" and source.loop.parent is not None:
                counters.setdefault(group.name, {})[source.loop] = None
    return [Tally(name, of_loop, tuple(counters.get(name, ()))) for name, of_loop in signals.items()]


def _resets(plan: Plan, epochs: list[Epoch]) -> list[Reset]:
    """The engines of each epoch: those that take part in what its semaphores order, or in what shares its loop."""
    taking_part: dict[Loop, set[str]] = {epoch.loop: set() for epoch in epochs}
    loops = {semaphore: epoch.loop for epoch in epochs for semaphore in epoch.semaphores}
    for consumer, needs in plan.waits.items():
        for need in needs:
            if (loop := loops.get(plan.groups.of[need.producer].name)) is not None:
                taking_part[loop].update((consumer.engine, need.producer.engine))
    engines = plan.structure.engines
    return [Reset(epoch, tuple(e for e in engines if e in taking_part[epoch.loop])) for epoch in epochs]


class Kinds:
    """The kind of semaphores of each loop and source: the nearest attribute's, else the default."""

    def __init__(self, structure: Structure, default: str, choices: Choices):
        self.choices = choices
        self.of_loops: dict[Loop, str] = {}
        for loop in structure.loops:
            inherited = self.of_loops[loop.parent] if loop.parent else default
            given = "barrier" if loop.op in choices.barriers else _kind(loop.op)
            self.of_loops[loop] = given or inherited

    def of_loop(self, loop: Loop) -> str:
        return self.of_loops[loop]

    def of_source(self, source: Source, barriers: Barriers) -> str:
        """The kind of a producer's semaphore; what is said of the instruction itself goes before all else."""
        own = None if isinstance(source, Marker) else _kind(source.op)
        if own is not None and own != "barrier":
            return own
        if source.loop in barriers.loops:
            return "barrier"
        coarser = self.choices.coarser
        kind = self.of_loops[source.loop]
        kind = coarser.get((source.engine, None), coarser.get((source.engine, source.loop), kind))
        return "per-loop" if kind == "barrier" else kind


def _kind(op: Operation) -> str | None:
    kind = op.attributes.get("semaphores")
    return kind.data if isinstance(kind, StringAttr) else None


def _improve(plan: Plan) -> tuple[int, ...]:
    """Lay out every engine, drop what need not be waited for, share semaphores; what tells whether that was new."""
    for engine in plan.structure.engines:
        _lay_out(plan, engine)
    waited: dict[Source, list[Need]] = {}
    for need in plan.needs.all:
        if not plan.barriers.satisfy(need):
            waited.setdefault(need.consumer, []).append(need)
    plan.waits = {consumer: _least(plan, needs) for consumer, needs in waited.items()}
    needs = [need for needs in plan.waits.values() for need in needs]
    kinds = {need.producer: plan.kinds.of_source(need.producer, plan.barriers) for need in needs}
    plan.groups = share(needs, kinds, plan.kinds.choices.finer)
    return (len(plan.reads), len(plan.groups.of), *(layout.kept.size for layout in plan.layouts.values()))


def _least(plan: Plan, needs: list[Need]) -> list[Need]:
    """The needs of one consumer that no other brings.

    Where producers stand in one loop on one engine, the last in program order retires last.
    """
    last: dict[tuple[object, ...], Need] = {}
    if plan.kinds.choices.shifted:
        shared = [need for need in needs if plan.shares_engine(need.producer)]
        others = [need for need in needs if not plan.shares_engine(need.producer)]
        needs = shared + slid(without_dominated(known_before(others, plan)), plan.trips)
    for need in joined(without_dominated(needs)):
        producer = need.producer
        alike = (producer.engine, producer.loop, need.form, need.loop, need.k, need.inner, need.d, need.earlier)
        other = last.setdefault(alike, need)
        places = plan.layouts[producer.engine].place
        if places.get(other.producer, -1) < places.get(producer, -1):
            last[alike] = need
    return list(last.values())


def known_before(needs: list[Need], plan: Plan) -> list[Need]:
    """The needs of one consumer, where it need not tell whether a run of a loop has just begun.

    What it waits for in the iteration around has itself waited for all that its producer did before this run.
    """
    return [replace(need, form=Form.BACK, earlier=True) if _is_known(need, needs, plan) else need for need in needs]


def _is_known(need: Need, needs: list[Need], plan: Plan) -> bool:
    loop = need.loop
    if loop is None or need.k != 1 or need.producer.loop is not loop or need.form not in (Form.BACK, Form.ENDED):
        return False
    around = {each for each in loop.path[1:-1] if each.counted}
    return bool(around) and any(
        around <= _waited_for_before(other.producer, need.producer, plan)
        for other in needs
        if other.form is Form.NOW and other.producer.loop in loop.path[:-1]
    )


def _waited_for_before(source: Source, producer: Source, plan: Plan) -> set[Loop]:
    """The loops of whose last iterations, and earlier ones of that run, `source` has waited for all of a producer."""
    instruction = plan.structure.by_op.get(source.op)
    found: set[Loop] = set()
    for edge in instruction.edges if instruction else ():
        if plan.sources[edge.producer.op] is producer and (carrier := edge.carrier) is not None:
            at = edge.common.index(carrier)
            inner = [d for loop, d in zip(edge.common[at + 1 :], edge.distance[at + 1 :], strict=True) if loop.counted]
            if edge.distance[at] == 1 and all(d == EVERY for d in inner):
                found.add(carrier)
    return found


def _lay_out(plan: Plan, engine: str) -> None:
    """Extend the slice of an engine by what it turned out to need, and order it; adds reads to those of the plan."""
    earlier = plan.layouts.get(engine)
    kept = earlier.kept if earlier else _instructions_of(plan, engine)
    size = kept.size
    groups: dict[Group, None] = {}
    for need in plan.waits_of(engine):
        kept.keep_loop(need.producer.loop)
        groups[plan.groups.of[need.producer]] = None
    for member in (member for group in groups if group.kind == "per-engine" for member in group.members):
        kept.keep_loop(member.loop)
    for reset in plan.resets:
        if engine in reset.engines:
            kept.keep_loop(reset.epoch.loop)
    markers: dict[Operation, list[Marker]] = {}
    for marker in plan.needs.markers.values():
        if marker.engine == engine and (not plan.waits or marker in plan.groups.of):
            markers.setdefault(marker.op, []).append(marker)
    if earlier and kept.size == size and earlier.markers == markers:
        return
    for op in kept.reads:
        if (engine, op) not in plan.reads:
            _add_read(plan, engine, op)
    instructions = {op: source for op, source in plan.sources.items() if source.engine == engine}
    reads = {op: read for (reader, op), read in plan.reads.items() if reader == engine}
    layout = plan.layouts[engine] = Layout(kept, instructions, reads, markers)
    for loop in plan.structure.loops:
        if loop.parent is None or loop.op in kept.control:
            layout.of(loop.block)
    plan.barriers.number(layout, plan.structure)


def _instructions_of(plan: Plan, engine: str) -> Slice:
    """The slice of an engine's instructions and of the loops with barriers."""
    kept = Slice(engine, plan.structure)
    for op, source in plan.sources.items():
        if source.engine == engine:
            kept.keep_loop(source.loop)
            kept.need(op.operands)
    for loop in plan.barriers.loops:
        kept.keep_loop(loop)
    return kept


def _add_read(plan: Plan, engine: str, op: Operation) -> None:
    written = plan.sources[op]
    read = plan.reads[engine, op] = Read(f"{written.name}.{engine}", engine, op, written.loop)
    plan.needs.all += [Need(read, written, Form.NOW), Need(written, read, Form.BEFORE)]


def _positions(plan: Plan) -> dict[Source, tuple[int, int]]:
    """(K, N) of every producer."""
    together: dict[tuple[object, ...], list[Source]] = {}
    for layout in plan.layouts.values():
        for block, items in layout.blocks.items():
            for item in items:
                if isinstance(item, Source) and (group := plan.groups.of.get(item)):
                    segment = plan.barriers.segments[item] if group.kind == "barrier" else 0
                    together.setdefault((group, block, segment), []).append(item)
    return {
        member: (index, len(members)) for members in together.values() for index, member in enumerate(members, start=1)
    }
