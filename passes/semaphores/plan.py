"""The plan of an allocation: who waits for what, who signals which semaphore, what each engine keeps."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from mpkc.dialects.sem_structure import Loop, Structure, structure_of
from mpkc.passes.semaphores.barriers import Barriers, find_barriers
from mpkc.passes.semaphores.groups import Groups, share
from mpkc.passes.semaphores.layout import Layout
from mpkc.passes.semaphores.needs import (
    Form,
    Marker,
    Need,
    Needs,
    Read,
    Source,
    need_of,
    source_of,
    without_dominated,
)
from mpkc.passes.semaphores.slices import Slice


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
        remarks: what is told, with the operation that it is about.
        epochs: after how many iterations of a loop all counters start again.
    """

    structure: Structure
    sources: dict[Operation, Source]
    barriers: Barriers
    needs: Needs = field(default_factory=Needs)
    waits: dict[Source, list[Need]] = field(default_factory=dict[Source, list[Need]])
    groups: Groups = field(default_factory=Groups)
    layouts: dict[str, Layout] = field(default_factory=dict[str, Layout])
    positions: dict[Source, tuple[int, int]] = field(default_factory=dict[Source, tuple[int, int]])
    reads: dict[tuple[str, Operation], Read] = field(default_factory=dict[tuple[str, Operation], Read])
    epochs: dict[Loop, int] = field(default_factory=dict[Loop, int])

    @property
    def remarks(self) -> list[tuple[Operation, str]]:
        """What is told, with the operation that it is about."""
        return self.needs.remarks + [(source.op, text) for source, text in self.groups.remarks]

    def waits_of(self, engine: str) -> Iterator[Need]:
        """What the sources of an engine wait for."""
        return (need for source, needs in self.waits.items() if source.engine == engine for need in needs)


def make_plan(program: Operation, kind: str, epochs: bool = False) -> Plan:
    """Plan the semaphores of a verified program.

    Args:
        kind: of what no attribute `semaphores` says otherwise for.
        epochs: whether counters will be reset while the program runs, which some formulas do not survive.

    Raises:
        OpError: what no program may hold.
    """
    structure = structure_of(program)
    sources = {instruction.op: source_of(instruction) for instruction in structure.instructions}
    kinds = Kinds(structure, kind)
    plan = Plan(structure, sources, find_barriers(structure, kinds.of_loop))
    for edge in structure.edges:
        need = need_of(edge, sources[edge.consumer.op], sources[edge.producer.op], plan.needs, exact=not epochs)
        if need is not None:
            plan.needs.all.append(need)
    # What an engine waits for decides which loops it runs, and these which values it reads, for which it waits.
    size, improved = (), _improve(plan, kinds)
    while improved != size:
        size, improved = improved, _improve(plan, kinds)
    plan.positions = _positions(plan)
    return plan


class Kinds:
    """The kind of semaphores of each loop and source: the nearest attribute's, else the default."""

    def __init__(self, structure: Structure, default: str):
        self.of_loops: dict[Loop, str] = {}
        for loop in structure.loops:
            inherited = self.of_loops[loop.parent] if loop.parent else default
            self.of_loops[loop] = _kind(loop.op) or inherited

    def of_loop(self, loop: Loop) -> str:
        return self.of_loops[loop]

    def of_source(self, source: Source, barriers: Barriers) -> str:
        """The kind of a producer's semaphore."""
        if source.loop in barriers.loops:
            return "barrier"
        kind = _kind(source.op) if not isinstance(source, Marker) else None
        kind = kind or self.of_loops[source.loop]
        return "per-loop" if kind == "barrier" else kind


def _kind(op: Operation) -> str | None:
    kind = op.attributes.get("semaphores")
    return kind.data if isinstance(kind, StringAttr) else None


def _improve(plan: Plan, kinds: Kinds) -> tuple[int, ...]:
    """Lay out every engine, drop what need not be waited for, share semaphores; what tells whether that was new."""
    plan.layouts = {engine: _layout(plan, engine) for engine in plan.structure.engines}
    plan.barriers.segments.clear()
    for layout in plan.layouts.values():
        plan.barriers.number(layout, plan.structure)
    waited: dict[Source, list[Need]] = {}
    for need in plan.needs.all:
        if not plan.barriers.satisfy(need):
            waited.setdefault(need.consumer, []).append(need)
    plan.waits = {consumer: _least(plan, needs) for consumer, needs in waited.items()}
    needs = [need for needs in plan.waits.values() for need in needs]
    plan.groups = share(needs, {need.producer: kinds.of_source(need.producer, plan.barriers) for need in needs})
    kept = (len(layout.kept.control) for layout in plan.layouts.values())
    return (len(plan.reads), len(plan.groups.of), *kept)


def _least(plan: Plan, needs: list[Need]) -> list[Need]:
    """The needs of one consumer that no other brings.

    Where producers stand in one loop on one engine, the last in program order retires last.
    """
    last: dict[tuple[object, ...], Need] = {}
    for need in without_dominated(needs):
        producer = need.producer
        alike = (producer.engine, producer.loop, need.form, need.loop, need.k, need.inner, need.d)
        other = last.setdefault(alike, need)
        places = plan.layouts[producer.engine].place
        if places.get(other.producer, -1) < places.get(producer, -1):
            last[alike] = need
    return list(last.values())


def _layout(plan: Plan, engine: str) -> Layout:
    """The slice and the order of an engine; adds the reads that it brings to those of the plan."""
    kept = Slice(engine, plan.structure)
    instructions = {op: source for op, source in plan.sources.items() if source.engine == engine}
    for op, source in instructions.items():
        kept.keep_loop(source.loop)
        kept.need(op.operands)
    for loop in plan.barriers.loops:
        kept.keep_loop(loop)
    for need in plan.waits_of(engine):
        kept.keep_loop(need.producer.loop)
        if (group := plan.groups.of[need.producer]).kind == "per-engine":
            for member in group.members:
                kept.keep_loop(member.loop)
    for op in kept.reads:
        if (engine, op) not in plan.reads:
            _add_read(plan, engine, op)
    reads = {op: read for (reader, op), read in plan.reads.items() if reader == engine}
    markers: dict[Operation, list[Marker]] = {}
    for marker in plan.needs.markers.values():
        if marker.engine == engine and (not plan.waits or marker in plan.groups.of):
            markers.setdefault(marker.op, []).append(marker)
    layout = Layout(kept, instructions, reads, markers)
    for loop in plan.structure.loops:
        if loop.parent is None or loop.op in kept.control:
            layout.of(loop.block)
    return layout


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
