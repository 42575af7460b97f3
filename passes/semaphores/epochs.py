"""Where semaphores start again, so that none passes what its bits hold.

A semaphore, and the counters that its thresholds are made of, only grow. Where the most they may reach (`bounds`) is
beyond the limit, an epoch stands at the iteration boundary of a loop: after every so many iterations all engines retire
what they issued, meet, set these semaphores and counters to 0, and meet again.

    scf.for %a = ... {              unbounded             members of one semaphore, limit 255, in the loop b:
      scf.for %b = ... {            10 trips at most      an iteration of a adds 20,
        P, Q signal s                                     so an epoch stands in a, after every 12 iterations
      }
      <- once r_a has reached 12: barrier, s = r_b = r_a = 0
    }

The boundary is the end of the body of an scf.for. In an scf.while it is the end of the first region, which every entry
comes to: no iteration of the second has begun there.

Which loop. What shares counters is reset together, in a loop around all of its members: all that it counts happens in
iterations of that loop. It is the outermost in which what one iteration adds, at most, is within the limit: a; an epoch
comes after limit // a iterations.

    Never above the limit. From one reset to the next that loop begins at most limit // a iterations, and each adds a at
    most to each semaphore and each counter. Nothing else adds to them, whatever runs before, behind or around the
    loop, so no part of a trip is left out. The loop's own counter of iterations goes to limit // a.

Why it is exact. Let b be how often a producer P had retired when it was reset: as often as it had been issued, for the
barrier came behind all of it. At this boundary each loop with a member has ended its last iteration or begun none, so
all N members of an entry have signalled as often as the loop was entered: the semaphore is N times the counter, and
both being 0 says that again. From there on the counter of P's loop is r' = r - b. A consumer to whom r - k are owed
waits for r' - k, or for none where that is below 0: those have all retired. The same holds for what r was at an earlier
point, kept in a register that is reset as well: it is 0 where the point is before the reset. Trip counters, which tell
whether anything is owed at all, are no part of this and go on.

In the middle of an iteration of a loop with members that fails: those behind the place signal for an entry that is no
longer counted, and who waits for them finds 0 owed. So an epoch leaves alone what has a member in a loop around it.

No deadlock. What is before the boundary in program order depends on nothing behind it, so it all retires. Every engine
has to run the loop, also one without an instruction in it, and all engines must agree on its trips.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir import Block, Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.passes.semaphores.bounds import Most, product, trips


@dataclass(frozen=True)
class Tally:
    """What counts on one semaphore.

    Attributes:
        semaphore: its name.
        signals: how often one entry of a loop signals it, by loop; without what loops in that loop signal.
        counters: the loops whose entries its thresholds count.
    """

    semaphore: str
    signals: Mapping[Loop, int]
    counters: Collection[Loop] = ()

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops in which it counts."""
        return tuple(dict.fromkeys((*self.signals, *self.counters)))


@dataclass(frozen=True)
class Epoch:
    """A reset at the iteration boundary of a loop.

    Attributes:
        loop: an scf.for or scf.while.
        iterations: of `loop`, from one reset to the next; counted over all its runs.
        semaphores: what is reset, in the order in which it was given.
        counters: the loops whose counters of entries are reset, besides the count of `iterations`.
    """

    loop: Loop
    iterations: int
    semaphores: tuple[str, ...]
    counters: tuple[Loop, ...]

    @property
    def block(self) -> Block:
        """The block in front of whose terminator it stands."""
        return self.loop.block


class EpochError(OpError):
    """No iteration boundary can hold a reset of `semaphores`."""

    def __init__(self, op: Operation, message: str, semaphores: tuple[str, ...]):
        super().__init__(op, message)
        self.semaphores = semaphores


def plan_epochs(structure: Structure, tallies: Sequence[Tally], limit: int) -> list[Epoch]:
    """The epochs that keep every semaphore and counter at `limit` at most; none where nothing can pass it.

    Args:
        limit: the largest value of a semaphore: 2^W - 1 unsigned, 2^(W-1) - 1 signed.

    Raises:
        EpochError: one iteration of the innermost loop around all that is reset together adds more than `limit`, or
            nobody knows how much. Semaphores that are shared by less have fewer loops to be around.
    """
    most = trips(structure)
    iterations: dict[Loop, int] = {}
    reset: dict[Loop, list[Tally]] = {}
    for together in _sharing(tallies):
        *around, innermost = _around([loop for tally in together for loop in tally.loops])
        added = least = _most_added(together, innermost, most)
        chosen: tuple[Loop, int] | None = None
        for loop in (innermost, *reversed(around)):
            if added is not None and added <= limit and loop.counted:
                chosen = loop, limit // max(added, 1)
            added = product(added, most[loop])
        # By now it is what the whole program adds.
        if added is not None and added <= limit:
            continue
        if chosen is None:
            raise _refusal(together, innermost, least, limit)
        loop, count = chosen
        iterations[loop] = min(iterations.get(loop, count), count)
        reset.setdefault(loop, []).extend(together)
    return [
        Epoch(
            loop,
            iterations[loop],
            tuple(tally.semaphore for tally in tallies),
            tuple(dict.fromkeys(counter for tally in tallies for counter in tally.counters)),
        )
        for loop, tallies in reset.items()
    ]


def _sharing(tallies: Iterable[Tally]) -> list[list[Tally]]:
    """The tallies in sets, those together that share counters, directly or through others."""
    leader: dict[Loop, Loop] = {}

    def find(loop: Loop) -> Loop:
        while leader.setdefault(loop, loop) is not loop:
            leader[loop] = leader[leader[loop]]
            loop = leader[loop]
        return loop

    for tally in tallies:
        for first, second in pairwise(tally.counters):
            leader[find(second)] = find(first)
    sets: dict[Loop | str, list[Tally]] = {}
    for tally in tallies:
        key = next((find(loop) for loop in tally.counters), tally.semaphore)
        sets.setdefault(key, []).append(tally)
    return list(sets.values())


def _around(loops: Sequence[Loop]) -> Sequence[Loop]:
    """The loops that hold all of `loops`, the program first; a loop holds itself."""
    common = loops[0].path
    for loop in loops[1:]:
        common = common[: sum(a is b for a, b in zip(common, loop.path, strict=False))]
    return common


def _most_added(tallies: Iterable[Tally], within: Loop, most: Mapping[Loop, Most]) -> Most:
    """The most that one iteration of `within` adds to a semaphore, or to a counter, of `tallies`."""
    found: Most = 0
    for tally in tallies:
        entered = {loop: _entries(loop, within, most) for loop in tally.loops}
        signals: Most = 0
        for loop, count in tally.signals.items():
            signals = _apply(int.__add__, signals, product(entered[loop], count))
        for total in (signals, *(entered[loop] for loop in tally.counters)):
            found = _apply(max, found, total)
    return found


def _entries(loop: Loop, within: Loop, most: Mapping[Loop, Most]) -> Most:
    """The most entries of `loop` in one iteration of `within`."""
    found: Most = 1
    for inner in loop.path[len(within.path) :]:
        found = product(found, most[inner])
    return found


def _apply(operation: Callable[[int, int], int], a: Most, b: Most) -> Most:
    return None if a is None or b is None else operation(a, b)


def _refusal(tallies: Sequence[Tally], loop: Loop, added: Most, limit: int) -> EpochError:
    names = tuple(tally.semaphore for tally in tallies)
    what = f"'{', '.join(names)}'"
    place = f"an iteration of loop '{loop.name}'" if loop.parent else "the program"
    if added is None:
        adds = "an unknown number: declare `maxima` or `most`"
    elif added > limit:
        adds = f"{added}: use wider counters, or semaphores that fewer instructions share"
    else:
        adds = f"{added} a time, with no loop around"
    return EpochError(
        loop.op,
        f"semaphores go up to {limit}, and {place} adds to {what} {adds}; no iteration boundary can hold a reset",
        names,
    )
