"""The dependencies of a program: what must wait for what, so that memory holds what program order says.

An instruction depends on an earlier one where both touch an element and one of them writes it, also on one engine.
Dependencies that the waits for others enforce are left out (tile_waits). Those with the shortest way from producer
to consumer come first: only they can be on the way of another.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import TypeAlias

from mpkc.dialects.sem_distance import EVERY
from mpkc.dialects.sem_structure import Instruction, Loop, LoopKind, Structure
from mpkc.passes.integer_system import Bound
from mpkc.passes.tile_accesses import Accesses
from mpkc.passes.tile_distances import Distances
from mpkc.passes.tile_integers import Integers
from mpkc.passes.tile_order import FAR_ON, Between, Blocks
from mpkc.passes.tile_sharers import Sharers, sharers
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

    A consumer waits in every iteration of its loops, also before the first one that depends on the producer: what
    lies between these two may rely on that. And what it waits for may be more than what it depends on.
    """
    spans = [between.span for between, _ in kept]
    found = set[int]()
    for at, (between, dependency) in enumerate(kept):
        if between.waits_for_more:
            found.add(at)
        if dependency.first:
            found.update(range(bisect_left(spans, between.span_if_first), at))
    yield from (kept[at] for at in sorted(found))


def _between(blocks: Blocks, dependency: Dependency) -> Between:
    """The way from the producer to the consumer on which least happens."""
    wait, frame = dependency.wait, dependency.frame
    consuming = {loop: first + 1 for loop, first in dependency.first.items()}
    producing: dict[Loop, int] = {}
    all_of = list[Loop]()
    apart = 0
    if any(wait.vector):
        shared = [loop for loop in dependency.common if loop.counted]
        at = shared.index(frame)
        apart = int(dependency.least[at])
        all_of = [loop for loop, component in zip(shared, wait.vector, strict=True) if component == EVERY]
        for loop, least in zip(shared[at + 1 :], dependency.least[at + 1 :], strict=True):
            consuming[loop] = max(consuming.get(loop, 1), 1 if least == -inf else 1 + int(least))
            producing[loop] = FAR_ON if least == -inf else consuming[loop] - int(least)
    return Between(blocks, wait.producer, wait.consumer, frame, apart, producing, consuming, all_of)


def _dependencies(structure: Structure, integers: Integers, blocks: Blocks) -> Iterator[Dependency]:
    """The dependencies of all pairs of instructions, one of a kind."""
    found: dict[Wait, Dependency] = {}
    distances = Distances(integers)
    for row in sharers(Accesses(structure, integers).touches(), blocks.rank):
        for producers, consumers in product(row, row):
            if producers.written or consumers.written:
                for dependency in _of_pair(distances, producers, consumers):
                    _note(found, dependency)
    yield from found.values()


def _of_pair(distances: Distances, producers: Sharers, consumers: Sharers) -> Iterator[Dependency]:
    common, exclusive = _common(producers.loop, consumers.loop)
    shared = tuple(loop for loop in common if loop.counted)
    within, carried = distances.between(producers.region, consumers.region, common, consumers.loop)
    if within is not None and not exclusive:
        for producer, consumer in producers.before(consumers):
            wait = Wait(producer, consumer, within.vector)
            yield Dependency(wait, common, common[-1], within.least, dict(within.first))
    for distance, (producer, consumer) in product(
        carried, producers.in_iterations_before(consumers) if carried else ()
    ):
        wait = Wait(producer, consumer, distance.vector)
        yield Dependency(wait, common, shared[distance.carrier], distance.least, dict(distance.first))


def _common(one: Loop, other: Loop) -> tuple[Common, bool]:
    """The loops around two loops, themselves among them; whether they are in two branches of one conditional."""
    shared = tuple(a for a, b in zip(one.path, other.path, strict=False) if a is b)
    depth = len(shared)
    if depth == min(len(one.path), len(other.path)):
        return shared, False
    a, b = one.path[depth], other.path[depth]
    return shared, a.op is b.op and a.kind in BRANCHES


def _note(found: dict[Wait, Dependency], dependency: Dependency) -> None:
    """Add a dependency to those with the same wait."""
    same = found.setdefault(dependency.wait, dependency)
    if same is not dependency:
        same.least = tuple(map(min, same.least, dependency.least))
        same.first = {
            loop: min(at, dependency.first[loop]) for loop, at in same.first.items() if loop in dependency.first
        }
