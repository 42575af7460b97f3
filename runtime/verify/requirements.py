"""What each instruction of an engine has to wait for, as the program says it: condition (1) of barrier-free.

A requirement is a producer and how often it must have retired. How often is told in terms of counters that the engine
could keep itself, of entries and iterations of loops (`mpkc.runtime.verify.ghosts` keeps them); nothing here is taken
from what an allocator meant. A wait on an instruction that retires behind the producer, a marker for one, may stand for
it: such are its covers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from mpkc.dialects.sem_distance import EVERY
from mpkc.dialects.sem_streams import ReadOp, StreamsOp, WaitOp
from mpkc.dialects.sem_structure import Edge, Loop
from mpkc.runtime.verify.places import Place, Places, excludes


class Form(Enum):
    """Up to where executions count.

    NOW: all so far, the current iteration included. BACK: those up to the end of the iteration `k` back of `loop`, none
    before iteration k + 1 of a run of it. CLAMPED: of these only those up to the iteration `d` back of `inner`, as it
    is numbered now. EARLIER: all that come first in program order; `ahead` tells whether the current iteration's does.
    FIRST: the first one.
    """

    NOW = auto()
    BACK = auto()
    CLAMPED = auto()
    EARLIER = auto()
    FIRST = auto()


@dataclass(frozen=True)
class Target:
    """Up to where executions of a producer are needed; see `Form`."""

    form: Form
    loop: Loop | None = None
    k: int = 0
    inner: Loop | None = None
    d: int = 0
    ahead: bool = False


@dataclass(frozen=True)
class Cover:
    """`member` up to `target`: where it has retired that often, so has what it stands for."""

    member: Place
    target: Target


@dataclass(eq=False)
class Requirement:
    """What `consumer` waits for.

    Attributes:
        own: the producer itself, up to the target.
        covers: what may stand for it, itself first; each of them signals a semaphore.
        met: what a barrier may stand behind instead; None where nothing tells.
        exact: whether `own` is condition (1) as it is; otherwise it is more.
        text: as the program writes it.
    """

    consumer: Place
    own: Cover
    text: str
    exact: bool = True
    covers: list[Cover] = field(default_factory=list[Cover])
    met: Cover | None = None


def requirements_of(places: Places, consumer: Place, waited: set[str]) -> list[Requirement]:
    """What the instruction at `consumer` has to wait for.

    Args:
        waited: the semaphores that its engine ever waits on; others cover nothing.
    """
    found: list[Requirement] = []
    for edge in places.edges(consumer):
        producer = places.by_label.get(edge.producer.label or edge.producer.name)
        if producer is None or edge.never_owed or excludes(producer.loop, consumer.loop):
            continue
        target, exact = _target(edge)
        requirement = Requirement(consumer, Cover(producer, target), _written(edge), exact)
        requirement.covers = list(_covers(places, edge, producer, target, waited))
        found.append(requirement)
    for producer, ahead in _of_values(places, consumer):
        target = Target(Form.EARLIER, ahead=ahead)
        what = "a read of" if isinstance(consumer.op, ReadOp) else "overwrites what is read by"
        requirement = Requirement(consumer, Cover(producer, target), f"{what} @{producer.name}")
        if producer.signal in waited:
            requirement.covers.append(requirement.own)
        found.append(requirement)
    return found


def implied_by(places: Places, requirements: Sequence[Requirement]) -> Iterator[Requirement]:
    """What producers of this iteration have waited for in earlier ones, of what their consumers wait for as well."""
    own = {(requirement.consumer, requirement.own.member) for requirement in requirements}
    for requirement in requirements:
        consumer, member = requirement.consumer, requirement.own.member
        if requirement.own.target.form is not Form.NOW or member.loop not in consumer.loop.path:
            continue
        for edge in places.edges(member):
            producer = places.by_label.get(edge.producer.label or edge.producer.name)
            if producer is None or producer.signal is None or edge.never_owed or (consumer, producer) not in own:
                continue
            if (target := _target(edge)[0]).form is Form.BACK:
                cover = Cover(producer, target)
                yield Requirement(consumer, cover, requirement.text, covers=[cover])


def _of_values(places: Places, consumer: Place) -> Iterator[tuple[Place, bool]]:
    """What a read reads; whose reads a value must not overtake. In one run a value comes before its reads."""
    if isinstance(consumer.op, ReadOp):
        source = places.by_label.get(consumer.op.source.data)
        if source is not None:
            yield source, places.ahead(source, consumer)
    for reader in places.readers.get(consumer.name, ()):
        depth = len(reader.loop.path) - 1
        behind = reader.loop in consumer.loop.path and reader.position[depth] == consumer.position[depth]
        yield reader, behind or places.ahead(reader, consumer)


def _target(edge: Edge) -> tuple[Target, bool]:
    """Up to where the producer is needed, and whether that is exact; otherwise it is up to somewhat later."""
    carrier = edge.carrier
    if carrier is None:
        return Target(Form.NOW), True
    at = edge.common.index(carrier)
    k = edge.distance[at]
    assert isinstance(k, int), "verified: `*` only follows a positive component"
    inner = [(loop, d) for loop, d in zip(edge.common[at + 1 :], edge.distance[at + 1 :], strict=True) if loop.counted]
    if all(d == EVERY for _, d in inner):
        return Target(Form.BACK, carrier, k), True
    if len(inner) == 1:
        loop, d = inner[0]
        if loop is edge.producer.loop and isinstance(d, int):
            return Target(Form.CLAMPED, carrier, k, loop, d), True
    return Target(Form.BACK, carrier, k), False


def _covers(places: Places, edge: Edge, producer: Place, target: Target, waited: set[str]) -> Iterator[Cover]:
    """What retires behind each execution of the producer up to the target, in a loop where that can be told."""
    if producer.signal in waited:
        yield Cover(producer, target)
    for semaphore in sorted(waited):
        for member in places.members.get(semaphore, ()):
            if member.engine == producer.engine and member is not producer:
                reached = _reached(edge, producer, target, member)
                if reached is not None:
                    yield Cover(member, reached)


def _reached(edge: Edge, producer: Place, target: Target, member: Place) -> Target | None:
    """Up to where `member` must have retired to stand for `producer` up to `target`."""
    behind = member.order > producer.order
    if member.loop is producer.loop:
        if behind:
            return target
        if target.form is Form.BACK and target.loop is member.loop:
            return Target(Form.BACK, target.loop, target.k - 1) if target.k > 1 else Target(Form.NOW)
        return None
    if behind and producer.loop.parent is None:
        return Target(Form.FIRST)
    if not behind or member.loop not in edge.common or member.block not in producer.blocks:
        return None
    if target.form is Form.NOW:
        return target
    assert target.loop is not None
    return Target(Form.BACK, target.loop, target.k) if target.loop in member.loop.path else None


def _written(edge: Edge) -> str:
    after = edge.after
    return f"@{after.producer.data} {after.distance.name.removeprefix('sem.')} {_numbers(edge)}"


def _numbers(edge: Edge) -> str:
    data = edge.after.distance.data
    return str(data) if isinstance(data, int) else f"[{', '.join(map(str, data))}]"


def waited_by(streams: StreamsOp, engine: str) -> set[str]:
    """The semaphores that an engine waits on."""
    return {op.semaphore.data for op in streams.streams[engine].walk() if isinstance(op, WaitOp)}
