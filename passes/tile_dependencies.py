"""The dependencies of a program: what must wait for what, so that memory holds what program order says.

An instruction depends on an earlier one where both touch an element and one of them writes it, also on one engine.
Dependencies that the waits for others enforce are left out (tile_waits). Those with the shortest way from producer
to consumer come first: only they can be on the way of another.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from xdsl.ir import SSAValue

from mpkc.dialects.sem_structure import Instruction, Loop, LoopKind, Structure
from mpkc.passes.integer_system import Bound
from mpkc.passes.tile_accesses import Accesses, Touch
from mpkc.passes.tile_distances import Distances
from mpkc.passes.tile_integers import Integers
from mpkc.passes.tile_order import FAR_ON, Between, Blocks
from mpkc.passes.tile_waits import Wait, Waits

Common: TypeAlias = tuple[Loop, ...]
Candidate: TypeAlias = "tuple[Between, Dependency]"
BRANCHES = (LoopKind.THEN, LoopKind.ELSE, LoopKind.CASE)


@dataclass
class Dependency:
    """The dependencies of one instruction on another that one wait enforces.

    Attributes:
        frame: the loop that carries them; the last common loop for those within an iteration.
        least, first: see `Distance`.
    """

    wait: Wait
    common: Common
    frame: Loop
    least: tuple[Bound, ...]
    first: dict[Loop, int]


def extract(structure: Structure) -> dict[Instruction, list[Wait]]:
    """The waits that each instruction needs, those that the program says already among them."""
    integers = Integers(structure)
    blocks = Blocks(structure, integers.trips)
    waits = Waits(blocks)
    for edge in structure.edges:
        waits.add(Wait(edge.producer, edge.consumer, edge.counted))
    by_frame: dict[Loop, list[Dependency]] = {}
    for dependency in _dependencies(structure, integers, blocks):
        by_frame.setdefault(dependency.frame, []).append(dependency)
    for loop in reversed(structure.loops):
        _choose(waits, [(_between(blocks, dependency), dependency) for dependency in by_frame.get(loop, ())])
    return waits.of


def _choose(waits: Waits, candidates: list[Candidate]) -> None:
    """Add the waits of dependencies that have one frame, without those that others enforce."""
    candidates.sort(key=lambda candidate: candidate[0].span)
    kept = list[Candidate]()
    for between, dependency in candidates:
        if not waits.enforce(between):
            waits.add(dependency.wait)
            kept.append((between, dependency))
    dropped = False
    for candidate in _waited_for_early(kept):
        between, dependency = candidate
        waits.remove(dependency.wait)
        if waits.enforce(between):
            dropped = True
        else:
            waits.add(dependency.wait)
    if dropped:
        for between, dependency in candidates:
            if not waits.enforce(between):
                waits.add(dependency.wait)


def _waited_for_early(kept: list[Candidate]) -> Iterator[Candidate]:
    """The candidates that a wait which was added later may enforce.

    A consumer waits in every iteration of its loops, also before the first one that depends on the producer. What
    lies between these two may rely on that.
    """
    spans = [between.span for between, _ in kept]
    found = set[int]()
    for at, (between, dependency) in enumerate(kept):
        if dependency.first:
            found.update(range(bisect_left(spans, between.span_if_first), at))
    yield from (kept[at] for at in sorted(found))


def _between(blocks: Blocks, dependency: Dependency) -> Between:
    """The way from the producer to the consumer on which least happens."""
    wait, frame = dependency.wait, dependency.frame
    consuming = {loop: first + 1 for loop, first in dependency.first.items()}
    producing: dict[Loop, int] = {}
    apart = 0
    if any(wait.vector):
        shared = [loop for loop in dependency.common if loop.counted]
        at = shared.index(frame)
        apart = int(dependency.least[at])
        for loop, least in zip(shared[at + 1 :], dependency.least[at + 1 :], strict=True):
            consuming[loop] = max(consuming.get(loop, 1), 1 if least == -inf else 1 + int(least))
            producing[loop] = FAR_ON if least == -inf else consuming[loop] - int(least)
    return Between(blocks, wait.producer, wait.consumer, frame, apart, producing, consuming)


def _dependencies(structure: Structure, integers: Integers, blocks: Blocks) -> Iterator[Dependency]:
    """The dependencies of all pairs of instructions, one of a kind."""
    touches: dict[SSAValue, list[Touch]] = {}
    for touch in Accesses(structure, integers).touches():
        touches.setdefault(touch.region.root, []).append(touch)
    distances = Distances(integers)
    found: dict[Wait, Dependency] = {}
    for of_root in touches.values():
        for earlier, later in _conflicts(sorted(of_root, key=lambda touch: blocks.rank[touch.instruction])):
            for dependency in _of_pair(distances, earlier, later):
                _note(found, dependency)
    yield from found.values()


def _conflicts(touches: list[Touch]) -> Iterator[tuple[Touch, Touch]]:
    """The pairs of which one writes, the earlier one first; a touch that writes conflicts with itself."""
    writes, both = list[Touch](), list[Touch]()
    for later in touches:
        both.append(later)
        if later.writes:
            writes.append(later)
        for earlier in both if later.writes else writes:
            yield earlier, later


def _of_pair(distances: Distances, earlier: Touch, later: Touch) -> Iterator[Dependency]:
    first, second = earlier.instruction, later.instruction
    common, exclusive = _common(first, second)
    shared = tuple(loop for loop in common if loop.counted)

    def of(producer: Touch, consumer: Touch, within: bool) -> Iterator[Dependency]:
        at_once, carried = distances.between(
            producer.instruction, producer.region, consumer.instruction, consumer.region, common
        )
        for distance in (at_once, *carried) if within and at_once else carried:
            wait = Wait(producer.instruction, consumer.instruction, distance.vector)
            frame = common[-1] if distance.carrier is None else shared[distance.carrier]
            yield Dependency(wait, common, frame, distance.least, dict(distance.first))

    yield from of(earlier, later, first is not second and not exclusive)
    if shared and earlier is not later:
        yield from of(later, earlier, False)


def _common(first: Instruction, second: Instruction) -> tuple[Common, bool]:
    """The loops that two instructions share, and whether they stand in two branches of one conditional."""
    one, other = first.loop.path, second.loop.path
    depth = 0
    while depth < min(len(one), len(other)) and one[depth] is other[depth]:
        depth += 1
    if depth == min(len(one), len(other)):
        return one[:depth], False
    return one[:depth], one[depth].op is other[depth].op and one[depth].kind in BRANCHES


def _note(found: dict[Wait, Dependency], dependency: Dependency) -> None:
    """Add a dependency to those with the same wait."""
    same = found.setdefault(dependency.wait, dependency)
    if same is not dependency:
        same.least = tuple(map(min, same.least, dependency.least))
        same.first = {
            loop: min(at, dependency.first[loop]) for loop, at in same.first.items() if loop in dependency.first
        }
