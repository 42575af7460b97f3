"""Which producers share a semaphore (barrier-free, sections 5.3, 5.5 and 6.1).

Only what is waited for signals. The kind says how far a semaphore is shared: by nothing (`per-instruction`), by the
producers of one loop on one engine (`per-loop`), by all of an engine (`per-engine`), or by those of an engine between
two barriers.

A semaphore of an engine counts on over everything the engine runs. The number that it has when a producer retires is
known in closed form where the producer runs in every iteration of the loop it shares with its consumer, and there

    not carried            what the engine had signalled up to this place of the program
    k iterations back      that, less k times what an iteration signals: where it signals the same in each

All other producers get the semaphore of their loop, with a remark.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr

from mpkc.dialects.sem_structure import Loop, LoopKind
from mpkc.passes.semaphores.needs import Form, Need, Source


@dataclass(eq=False)
class Group:
    """Producers of one engine that share a semaphore.

    Attributes:
        name: of the semaphore.
        kind: `barrier`, `per-instruction`, `per-loop` or `per-engine`.
        members: in no order.
    """

    name: str
    kind: str
    engine: str
    members: list[Source] = field(default_factory=list[Source])


@dataclass
class Groups:
    """The semaphores of a program, and where each producer signals.

    Attributes:
        all: by name, in the order in which producers are waited for.
        remarks: producers that could not share the semaphore of their engine.
    """

    all: dict[str, Group] = field(default_factory=dict[str, Group])
    of: dict[Source, Group] = field(default_factory=dict[Source, Group])
    remarks: list[tuple[Source, str]] = field(default_factory=list[tuple[Source, str]])


TURN = "turn"
"""The attribute of producers that share the semaphore of their loop only with those of the same number."""

FINER = {"barrier": "per-instruction", "per-engine": "per-loop", "per-loop": "per-instruction"}


def share(needs: Iterable[Need], kinds: dict[Source, str], finer: Collection[str] = ()) -> Groups:
    """Give every producer of `needs` its semaphore.

    Args:
        kinds: the kind of each producer, `barrier` where static thresholds count it.
        finer: semaphores that no producer may have; it shares less.
    """
    found = Groups()
    needs = list(needs)
    together = _countable(needs, kinds)
    for producer in dict.fromkeys(need.producer for need in needs):
        kind = kinds[producer]
        if kind == "per-engine" and producer not in together:
            kind = "per-loop"
            found.remarks.append(
                (
                    producer,
                    f"@{producer.name} signals the semaphore of its loop: how much engine "
                    f'"{producer.engine}" has signalled before it depends on trip counts that no counter holds',
                )
            )
        while (name := _name(kind, producer)) in finer:
            kind = FINER[kind]
        group = found.all.get(name)
        if group is None:
            group = found.all[name] = Group(name, kind, producer.engine)
        group.members.append(producer)
        found.of[producer] = group
    return found


def engine_semaphore(engine: str) -> str:
    """The name of the semaphore that all of an engine share."""
    return f"{engine}.all"


def _name(kind: str, producer: Source) -> str:
    match kind:
        case "per-instruction":
            return producer.name
        case "per-loop":
            turn = producer.op.attributes.get(TURN)
            suffix = f".{turn.value.data}" if isinstance(turn, IntegerAttr) else ""
            return f"{producer.engine}.{producer.loop.name}{suffix}"
        case "per-engine":
            return engine_semaphore(producer.engine)
        case _:
            return f"{producer.engine}.barrier"


def _countable(needs: list[Need], kinds: dict[Source, str]) -> set[Source]:
    """The producers of kind `per-engine` whose number in the count of their engine is known in closed form."""
    members = {need.producer for need in needs if kinds[need.producer] == "per-engine"}
    members -= {need.producer for need in needs if not _in_closed_form(need)}
    back = [need for need in needs if need.form is Form.BACK]
    while True:
        deeper = {(member.engine, loop) for member in members for loop in _around(member.loop)}
        lost = {
            need.producer
            for need in back
            if need.producer in members and (need.producer.engine, need.producer.loop) in deeper
        }
        if not lost:
            return members
        members -= lost


def _in_closed_form(need: Need) -> bool:
    path, loop = need.consumer.loop.path, need.producer.loop
    if need.form not in (Form.NOW, Form.BACK) or need.earlier or loop not in path:
        return False
    below = path[path.index(loop) + 1 :]
    # The second region of an scf.while sees no value of the first.
    return not below or below[0].kind is not LoopKind.AFTER


def _around(loop: Loop) -> tuple[Loop, ...]:
    """The loops around `loop`, without it."""
    return loop.path[:-1]
