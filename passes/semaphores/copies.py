"""Dependencies between the copies of instructions that unrolling makes (barrier-free, section 3.4).

A consumer waits for all that its producer does up to a target iteration (condition 1). Once loops around are unrolled,
part of that target is the number of a copy, and part is left for the distance:

    for i { for j { P; C after P distance [1, 0] } }      i unrolled: C.1 after P.0 for its iteration j: no common loop
                                                          j unrolled: C.k after P.k offset 1
                                                          both: C.i.j after P.(i-1).j offset 0

An engine retires in program order, so of the copies that are owed the one that runs last stands for those before it. It
does only if it runs for certain: a copy in a conditional that is still there, or in a loop that may have no trips, is
waited for along with the one that runs before it. What no distance can say is refused: loops that were one have become
several, and iterations of one are no iterations of another.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, distance, offset
from mpkc.dialects.sem_structure import Edge, Loop, LoopKind


@dataclass(frozen=True, eq=False)
class Frame:
    """What became of one loop, on the way to a copy.

    Attributes:
        loop: in the program before.
        index: the iteration, from 1, that this is; None where it is still a loop.
        trips: of what is still a loop, where they are the same in every run.
        taken: whether it is a branch that is known to be taken.
    """

    loop: Loop
    index: int | None = None
    trips: int | None = None
    taken: bool = False

    @property
    def remains(self) -> bool:
        """Whether it is still a loop or a branch."""
        return self.index is None and not self.taken


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of an instruction; `frames` has one for each loop on the way to it, the program left out."""

    op: Operation
    label: str | None
    frames: tuple[Frame, ...]

    @property
    def key(self) -> tuple[int, ...]:
        """Which copy it is: the iterations of the loops that were unrolled, outermost first."""
        return tuple(frame.index for frame in self.frames if frame.index is not None)


@dataclass(eq=False)
class Copies:
    """The copies of one instruction, in program order."""

    all: list[Copy] = field(default_factory=list[Copy])
    keys: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    def add(self, copy: Copy) -> None:
        self.all.append(copy)
        self.keys.append(copy.key)


Distance = tuple[Component, ...]


@dataclass(frozen=True)
class Wait:
    """What a copy is after.

    Attributes:
        distance: a component for each loop that both copies share.
        certain: whether the producer's copy runs in the iteration that this names.
    """

    producer: Copy
    distance: Distance
    certain: bool = False

    @property
    def after(self) -> AfterAttr:
        """How it is written; an offset where it is one."""
        assert self.producer.label is not None, "a producer has a label"
        label, components = self.producer.label, self.distance
        if any(components[:-1]) or components[-1:] == (EVERY,):
            return distance(label, *components)
        (last,) = components[-1:] or (0,)
        assert isinstance(last, int)
        return offset(label, last)


def without_older(waits: Sequence[Wait]) -> list[Wait]:
    """Waits for copies of one instruction, without those for what ran in iterations before one that is waited for."""
    here = max((len(wait.distance) for wait in waits if wait.certain and not any(wait.distance)), default=0)
    return [wait for wait in waits if not any(wait.distance[:here])]


@dataclass(frozen=True)
class _Relation:
    """How the iterations of a producer's copy relate to the target of a consumer's copy.

    Attributes:
        order: below 0 where all of them that `known` does not decide are before the target, 0 where `known` decides
            alone, above 0 where they are behind it.
        known: the components of the loops that both share, up to where `order` is decided.
        free: how many loops they share from there on.
        exact: whether no other loop decides that no wait is owed.
        certain: whether the copy runs in the target iteration.
    """

    order: int
    known: Distance
    free: int
    exact: bool
    certain: bool


class Dependence:
    """One dependency of the program before, between any two copies."""

    def __init__(self, edge: Edge, producers: Copies):
        self.edge = edge
        self.producers = producers
        self.loops = edge.common[1:]
        self.distance = list(edge.distance[1:])
        if EVERY in self.distance:  # whatever is behind a `*` does not matter
            at = self.distance.index(EVERY)
            self.distance[at:] = [EVERY if loop.counted else 0 for loop in self.loops[at:]]

    def of(self, consumer: Copy) -> Iterator["Wait"]:
        """What the copy `consumer` is after.

        Raises:
            OpError: no dependencies say exactly what the one before says.
        """
        target = self._target(consumer)
        if self.edge.never_owed or any(t < 1 for t in target):
            return
        end = bisect_right(self.producers.keys, (*target, math.inf))
        settled = -1
        for copy in reversed(self.producers.all[:end]):
            found = self._relation(consumer, copy)
            yield Wait(copy, self._exactly(consumer, found, found.known + _every(found.free)), found.certain)
            if found.certain:
                settled = len(found.known)
                break
        remaining = [
            frame.index is None for frame, loop in zip(consumer.frames, self.loops, strict=False) if loop.counted
        ]
        unrolled_last = max((at for at, remains in enumerate(remaining) if not remains), default=0)
        if sum(remaining[:unrolled_last]) <= max(settled, 0):
            return  # copies behind the target have not run before, or not after what is certain
        for copy in self.producers.all[end:]:
            found = self._relation(consumer, copy)
            for shared in range(len(found.known), max(settled, 0), -1):
                *before, last = found.known[:shared]
                assert isinstance(last, int)
                free = found.free + len(found.known) - shared
                dropped = any(isinstance(d, int) and d > 0 for d in found.known[shared:])
                earlier = (*before, last + 1, *_every(free))
                yield Wait(copy, self._exactly(consumer, found, earlier, not dropped))

    def _target(self, consumer: Copy) -> tuple[float, ...]:
        """The components of the target on the loops that were unrolled."""
        pairs = zip(consumer.frames, self.distance, strict=False)
        return tuple(_minus(frame.index, d) for frame, d in pairs if frame.index is not None)

    def _relation(self, consumer: Copy, producer: Copy) -> _Relation:
        known: dict[int, Component] = {}
        order, free, exact, parted = 0, 0, True, len(self.loops)
        for at, (loop, d) in enumerate(zip(self.loops, self.distance, strict=True)):
            ours, theirs = consumer.frames[at].index, producer.frames[at].index
            if ours is not None and theirs is not None:
                if order == 0:
                    target = _minus(ours, d)
                    order = (theirs > target) - (theirs < target)
                if ours != theirs:
                    parted = min(parted, at)
            elif loop.counted and order == 0 and (d == EVERY or parted == len(self.loops)):
                order = -1 if d == EVERY else 0
                if parted == len(self.loops):
                    known[at] = d
            elif loop.counted:
                if order == 0:
                    raise self._refusal(consumer, f"loop '{loop.name}' is not unrolled, and has become several loops")
                free += parted == len(self.loops)
                exact = exact and not (isinstance(d, int) and d > 0)
        carried = next((at + 1 for at, d in known.items() if d), parted)
        certain = all(_certain(frame, known.get(at)) for at, frame in enumerate(producer.frames) if at >= carried)
        return _Relation(order, tuple(known.values()), free, exact, certain)

    def _exactly(self, consumer: Copy, found: _Relation, distance: Distance, exact: bool = True) -> Distance:
        if found.exact and exact:
            return distance
        raise self._refusal(consumer, "some of what it waits for is known only by a loop that it no longer shares")

    def _refusal(self, consumer: Copy, why: str) -> OpError:
        edge = self.edge
        written = ", ".join(map(str, edge.counted))
        return OpError(
            edge.consumer.op,
            f"@{consumer.label} after {edge.producer.name}, distance [{written}], can't be said once loops around are "
            f"unrolled: {why}: unroll all of the loops or none",
        )


def _every(loops: int) -> Distance:
    return (EVERY,) * loops


def _minus(index: int, d: Component) -> float:
    return index - d if isinstance(d, int) else math.inf


def _certain(frame: Frame, d: Component | None) -> bool:
    """Whether what is left of a loop runs, in the iteration that is `d` back; in any where `d` is None or `*`."""
    if not frame.remains:
        return True
    if not frame.loop.counted:
        return False
    if isinstance(d, int):
        return frame.trips is not None and d >= 0
    return frame.loop.kind is LoopKind.WHILE or bool(frame.trips)
