"""What a consumer waits for, as a formula over counters that its engine keeps itself.

A dependency is satisfied when the producer has retired as often as it runs up to the target iteration (barrier-free,
condition 1). Let r be the entries of the producer's loop so far, as the consumer's engine counts them. Then, carried by
a loop L at distance k, that number is one of

    NOW       r                                                  not carried
    BACK      r - k, once L is in iteration k + 1                the producer stands in L itself
    PASSED    r, once L is in iteration 2                        k = 1, and the consumer comes first in L
    ENDED     what r was when the iteration k back of L ended    the producer stands deeper
    CLAMPED   the part of the iteration k back of L up to an inner iteration
    SLIDING   r - k, and 0 where that is less                    all that ever ran is owed but the last k, see `slid`
    BEFORE    r - 1, always                                      a value is overwritten once every engine has read it

BACK, NOW and PASSED are the paper's cases (section 5.2); ENDED holds its history in registers. Where the loops around L
carry the dependency as well, so that all that ran before this run of L is owed too, these say less of the beginning of
L and need no mask: r - min(iteration, k), r, and a history that starts from r instead of 0. Where none of these fits, a
marker behind the producer's loop in L retires once an iteration, and stands for the producer: too late by the
rest of that iteration, which precedes the consumer in program order, so nothing can deadlock by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from xdsl.ir import Operation

from mpkc.dialects.sem_distance import EVERY
from mpkc.dialects.sem_structure import Edge, Instruction, Loop, LoopKind

MOST_HISTORY = 8  # registers that the history of one loop may take; beyond that a marker is cheaper


class Form(Enum):
    """How often the producer must have retired; see the head of this file."""

    NOW = auto()
    BACK = auto()
    PASSED = auto()
    ENDED = auto()
    CLAMPED = auto()
    SLIDING = auto()
    BEFORE = auto()


_HISTORIES = (Form.BACK, Form.PASSED, Form.ENDED)


@dataclass(eq=False, repr=False)
class Source:
    """What an engine retires, and may signal: an instruction, a read of a value, or a marker.

    Attributes:
        name: its label in the streams.
        op: the instruction; what is read; the operation of `loop` behind which the marker stands.
        loop: the loop whose every iteration runs it once.
    """

    name: str
    engine: str
    op: Operation
    loop: Loop


class Read(Source):
    """A read, by one engine, of the value that the instruction `op` wrote last."""


class Marker(Source):
    """An instruction that only retires, behind all of an operation of its loop."""


@dataclass(frozen=True)
class Need:
    """What `consumer` waits for.

    Attributes:
        loop: the loop that carries it, L; None for NOW and BEFORE.
        k: how many iterations of L back.
        inner: for CLAMPED, the loop of the producer, whose iteration counts as well.
        d: for CLAMPED, how many iterations of `inner` back; may be negative.
        earlier: for BACK, PASSED and ENDED, whether all that ran before this run of `loop` is owed, too.
        stands_for: where `producer` is a marker, the producer that it waits for, and longer than has to be.
    """

    consumer: Source
    producer: Source
    form: Form
    loop: Loop | None = None
    k: int = 0
    inner: Loop | None = None
    d: int = 0
    earlier: bool = False
    stands_for: Source | None = None

    def dominates(self, other: "Need") -> bool:
        """Whether `other`, of the same consumer, holds where this one does, on the same producer."""
        if self.producer is not other.producer:
            return False
        if self.form is Form.NOW:
            return True
        if self.loop is not other.loop:
            return False
        if (self.form, self.inner, self.d) == (other.form, other.inner, other.d):
            return self.k <= other.k
        return self.form in (Form.BACK, Form.ENDED, Form.PASSED) and other.form is Form.ENDED and self.k <= other.k


@dataclass
class Needs:
    """The needs of a program.

    Attributes:
        all: in textual order of their consumers.
        markers: in the order in which they were made.
        remarks: what is told of dependencies, with the operation that it is about.
    """

    all: list[Need] = field(default_factory=list[Need])
    markers: dict[tuple[str, Operation, Loop], Marker] = field(
        default_factory=dict[tuple[str, Operation, Loop], Marker]
    )
    remarks: list[tuple[Operation, str]] = field(default_factory=list[tuple[Operation, str]])


def need_of(
    edge: Edge,
    consumer: Source,
    producer: Source,
    needs: Needs,
    exact: bool = True,
    history: int = MOST_HISTORY,
    shifted: int = 0,
) -> Need | None:
    """The need of one dependency; None where it is never owed.

    Args:
        needs: takes the markers that it brings, and the remarks.
        exact: whether CLAMPED may be used; its formula does not survive resets of the counters.
        history: the registers that a history may take.
        shifted: how many iterations back a history may tell what a mask could.
    """
    if edge.never_owed:
        needs.remarks.append((edge.consumer.op, f"{edge.consumer.name} after {edge.producer.name} is never owed"))
        return None
    carrier = edge.carrier
    if carrier is None:
        return Need(consumer, producer, Form.NOW)
    at = edge.common.index(carrier)
    k = edge.distance[at]
    assert isinstance(k, int), "verified: `*` only follows a positive component"
    inner = [(loop, d) for loop, d in zip(edge.common[at + 1 :], edge.distance[at + 1 :], strict=True) if loop.counted]
    if not inner and producer.loop is carrier:
        return Need(consumer, producer, Form.ENDED if k <= shifted else Form.BACK, carrier, k)
    if not inner and carrier is edge.common[-1] and not edge.forward and k == 1:
        return Need(consumer, producer, Form.PASSED, carrier, k)
    if all(d == EVERY for _, d in inner) and k <= history:
        return Need(consumer, producer, Form.ENDED, carrier, k)
    if exact and len(inner) == 1 and k < history:
        loop, d = inner[0]
        if producer.loop is loop and isinstance(d, int):
            return Need(consumer, producer, Form.CLAMPED, carrier, k, loop, d)
    return _by_marker(edge, consumer, producer, carrier, k, needs)


def _by_marker(edge: Edge, consumer: Source, producer: Source, carrier: Loop, k: int, needs: Needs) -> Need:
    """The need of a marker that stands for the producer.

    The second region of an scf.while is a conditional in it, so a marker there does not run in every iteration.
    """
    path = producer.loop.path
    below = path[path.index(carrier) + 1]
    loop = below if below.kind is LoopKind.AFTER else carrier
    behind = _child_holding(loop, producer)
    key = (producer.engine, behind, loop)
    marker = needs.markers.get(key)
    if marker is None:
        marker = needs.markers[key] = Marker(f"{producer.name}.{loop.name}.ended", producer.engine, behind, loop)
    needs.remarks.append(
        (
            edge.consumer.op,
            f"{edge.consumer.name} waits for a marker behind {edge.producer.name}: for all of an iteration of loop "
            f"'{carrier.name}', since no register holds how far the producer had come in it",
        )
    )
    return Need(consumer, marker, Form.BACK if loop is carrier else Form.ENDED, carrier, k, stands_for=producer)


def _child_holding(loop: Loop, source: Source) -> Operation:
    """The operation in the block of `loop` that holds `source`."""
    child: Operation | None = source.op
    while child is not None and child.parent is not loop.block:
        child = child.parent_op()
    assert child is not None, "the producer is nested in the loop"
    return child


def source_of(instruction: Instruction) -> Source:
    """An instruction as a source."""
    return Source(instruction.label or instruction.name, instruction.engine, instruction.op, instruction.loop)


def without_dominated(needs: list[Need]) -> list[Need]:
    """The needs of one consumer without those that another of them, on the same producer, brings."""
    by_producer: dict[Source, list[Need]] = {}
    for need in needs:
        kept = by_producer.setdefault(need.producer, [])
        if not any(other.dominates(need) for other in kept):
            kept[:] = [other for other in kept if not need.dominates(other)] + [need]
    return [need for kept in by_producer.values() for need in kept]


def joined(needs: list[Need]) -> list[Need]:
    """The needs of one consumer, none dominated, where one on each loop around another is told by that other."""
    by_producer: dict[Source, list[Need]] = {}
    for need in needs:
        by_producer.setdefault(need.producer, []).append(need)
    return [need for alike in by_producer.values() for need in _joined(alike)]


def _joined(needs: list[Need]) -> list[Need]:
    """`joined`, of the needs on one producer."""
    carried = [(need.loop, need) for need in needs if need.loop is not None and need.form in _HISTORIES]
    if len(carried) < 2:
        return needs
    innermost, last = max(carried, key=lambda each: len(each[0].path))
    around = {loop for loop in innermost.path[1:-1] if loop.counted}
    brought = [need for loop, need in carried if loop in around and need.form is Form.ENDED and need.k == 1]
    if not around or {need.loop for need in brought} != around:
        return needs
    left = [need for need in needs if need is not last and need not in brought]
    return [*left, replace(last, earlier=True)]


def slid(needs: list[Need], trips: Mapping[Loop, int | None]) -> list[Need]:
    """The needs of one consumer, where all executions of a producer but the last k are owed: told by one without mask.

    In a loop that is entered once, k iterations back is k entries back. In one that runs n times in each iteration of
    such a loop, so is k iterations back together with its iteration n - k ahead, in the iteration before around it.

    Args:
        trips: how many iterations a loop always has; None where that is not known.
    """
    by_producer: dict[Source, list[Need]] = {}
    for need in needs:
        by_producer.setdefault(need.producer, []).append(need)
    return [need for alike in by_producer.values() for need in _slid(alike, trips)]


def _slid(needs: list[Need], trips: Mapping[Loop, int | None]) -> list[Need]:
    """`slid`, of the needs on one producer."""
    for need in needs:
        loop = need.loop
        if loop is None or need.producer.loop is not loop or need.earlier or need.form not in (Form.BACK, Form.ENDED):
            continue
        around = [each for each in loop.path[1:-1] if each.counted]
        brought = [each for each in needs if around and _is_before(each, need, trips[loop])]
        if not around or (around == [loop.parent] and brought):
            left = [each for each in needs if each is not need and each not in brought]
            return [*left, replace(need, form=Form.SLIDING)]
    return needs


def _is_before(other: Need, need: Need, trips: int | None) -> bool:
    """Whether `other` owes k entries back where `need`, k iterations back, ends with the run of its loop."""
    assert need.loop is not None
    if other.form is not Form.CLAMPED or other.inner is not need.loop or other.loop is not need.loop.parent:
        return False
    return trips is not None and trips >= need.k and other.k == 1 and other.d == need.k - trips
