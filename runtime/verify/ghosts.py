"""Counters that no program has, by which the waits of one engine are judged.

They count, on the engine's own way through its stream, what condition (1) of barrier-free speaks of: how often each
loop has been entered, in all and in its current run, and what these numbers were when earlier iterations ended. From
them follows how often a producer must have retired, and which value its semaphore has then. A semaphore that several
loops signal counts along the program order of its engine, which the way through the loops repeats.

Each counter is a number, or a term where the way is any way at all.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, StreamOp, WaitOp
from mpkc.dialects.sem_structure import Loop, LoopKind
from mpkc.runtime.verify.integers import Value, both, choose, greater, lesser
from mpkc.runtime.verify.places import Place, Places, excludes, position_of
from mpkc.runtime.verify.requirements import Cover, Form, Requirement, Target, implied_by
from mpkc.runtime.verify.streams import constant_trips

Key: TypeAlias = tuple[object, ...]
State: TypeAlias = dict[Key, Value]

# ("entries", loop)         how often the engine has entered the loop
# ("iteration", loop)       the number of the current iteration in the current run of the loop, from 1
# ("past", loop, key, j)    what the counter `key` was when the iteration j back of the loop ended
# ("count", label)          the signals of its semaphore up to the last execution of an instruction
# ("known", semaphore)      as many signals have surely been: a wait or a barrier has seen them
# ("reset", semaphore)      the signals up to its last reset
# ("met", around, loop)     how often the engine had entered the loop at the last barrier in the loop around
# ("retired", label)        the executions of an instruction that a barrier has seen retire


class Ghosts:
    """The counters of one engine, and what they say.

    Args:
        rescued: (consumer, producer) by label, of the dependencies whose wait may be longer; None for all.
        alone: the semaphores that transfers add to in parts, of which no two may be in flight.

    Attributes:
        requirements: of its instructions.
        implied: what is known to have been where an instruction issues: what it waited for has waited for that.
        runs: the loops that its stream runs, and those that have constant trips, which it may leave out.
        skipped: of these, those that it leaves out, by the loop around that it runs: where they would stand.
        times: how many iterations of each of them there are in one of that loop.
        lost: semaphores that nothing can be said of.
    """

    def __init__(
        self,
        places: Places,
        engine: str,
        requirements: Iterable[Requirement],
        rescued: Collection[tuple[str, str]] | None = (),
        alone: Collection[str] = (),
    ):
        self.alone = alone
        self.rescued = None if rescued is None else set(rescued)
        self.places, self.engine = places, engine
        self.requirements = list(requirements)
        self.root = places.structure.loops[0]
        self.runs = dict.fromkeys([self.root, *(loop for runner, loop in places.begins if runner == engine)])
        self.skipped: dict[Loop, list[Place]] = {}
        self.times: dict[Loop, int] = {}
        self._skip()
        self.barriers = [met for met in places.barriers.values() if engine in met]
        self.depth: dict[tuple[Loop, Key], int] = {}
        self.tracked: dict[Loop, list[Place]] = {}
        self.semaphores = list(places.streams.semaphore_names)
        self.awaited: dict[str, Place] = {}
        for requirement in self.requirements:
            requirement.covers = [cover for cover in requirement.covers if self._countable(cover)]
            for cover in requirement.covers:
                self._watch(cover, self.quantity(cover.member))
                if not self.single(cover.member):
                    self._track(cover.member)
            requirement.met = met = self._met(requirement)
            if met is not None:
                self._watch(met, ("entries", met.member.loop))
                self.awaited[met.member.name] = met.member
        self.implied = [each for each in implied_by(places, self.requirements) if self._countable(each.own)]
        for cover in (requirement.own for requirement in self.implied):
            self._watch(cover, self.quantity(cover.member))
            if not self.single(cover.member):
                self._track(cover.member)
        self.lost = set(self._lost())

    def _skip(self) -> None:
        """Find the loops that the stream leaves out, and that have constant trips."""
        outermost: dict[Loop, Loop] = {loop: loop for loop in self.runs}
        for loop in self.places.structure.loops:
            if loop in self.runs or loop.parent not in outermost or loop.kind is not LoopKind.FOR:
                continue
            if (trips := constant_trips(loop)) is not None:
                around = outermost[loop] = outermost[loop.parent]
                place = Place(loop.op, self.engine, loop.name, 0, (), loop, position_of(loop))
                self.skipped.setdefault(around, []).append(place)
                self.times[loop] = trips * self.times.get(loop.parent, 1)
                self.runs[loop] = None

    def _met(self, requirement: Requirement) -> Cover | None:
        """What a barrier has to be behind, for all that is required: the producer, or a loop around it as a whole,
        where the engine does not run that loop."""
        member, target = requirement.own.member, requirement.own.target
        unknown = next((loop for loop in member.loop.path if not self._runs(loop)), None)
        if unknown is None:
            return requirement.own
        if target.form is Form.EARLIER or unknown.parent is None:
            return None
        run = self.places.run(member, unknown)
        if run is None or target.form is not Form.CLAMPED:
            return run and Cover(run, target)
        return Cover(run, Target(Form.BACK, target.loop, target.k))

    def missing(self, requirement: Requirement) -> Loop | None:
        """A loop that the engine would have to run in order to know what `requirement` needs."""
        member = requirement.own.member
        needed = [member.loop]
        if member.signal is not None and not self.single(member):
            needed += [each.loop for each in self.preceding(member.signal, member)]
        return next((loop for loop in needed if not self._runs(loop)), None)

    def _runs(self, loop: Loop) -> bool:
        return loop in self.runs

    def _countable(self, cover: Cover) -> bool:
        member = cover.member
        if self.single(member):
            return self._runs(member.loop)
        assert member.signal is not None
        fits = cover.target.form not in (Form.CLAMPED, Form.FIRST)
        return fits and all(self._runs(each.loop) for each in self.preceding(member.signal, member))

    def preceding(self, semaphore: str, at: Place) -> list[Place]:
        """What signals a semaphore and may ever come before a place in its stream, or stands there."""
        return [
            each
            for each in self.places.members.get(semaphore, ())
            if (each.order <= at.order and not excludes(each.loop, at.loop))
            or any(loop.counted for loop in each.loop.path if loop in at.loop.path)
        ]

    def single(self, member: Place) -> bool:
        """Whether all that signals its semaphore stands in one loop: then the count follows from entries."""
        return all(each.loop is member.loop for each in self.places.members.get(member.signal or "", ()))

    def quantity(self, member: Place) -> Key:
        """The counter that tells how far `member` is."""
        return ("entries", member.loop) if self.single(member) else ("count", member.name)

    def scale(self, member: Place) -> int:
        """How many signals a unit of its quantity stands for."""
        return len(self.places.members[member.signal or ""]) if self.single(member) else 1

    def around(self, op: Operation) -> set[Loop]:
        """The loops that an operation of the stream stands in; those that it begins itself count too."""
        found = {head for region in op.regions[:1] for head in self.places.heads[region.block]}
        block = op.parent
        while block is not None and block in self.places.heads:
            found.update(self.places.heads[block])
            outer = block.parent_op()
            if isinstance(outer, scf.WhileOp):
                found.update(self.places.heads[outer.before_region.block])
            block = outer.parent if outer else None
        return found

    @cached_property
    def counted(self) -> set[Loop]:
        """The loops whose entries matter."""
        found = {member.loop for r in self.requirements for member in (r.own.member, *(c.member for c in r.covers))}
        found |= {loop for loop, _ in self.depth}
        if self.barriers:
            found |= {each.loop for signals in self.places.members.values() for each in signals}
            found |= {loop for each in list(found) for loop in each.path}
        for signals in self.places.members.values():
            if len({each.loop for each in signals}) > 1:
                found |= {each.loop for each in signals}
        return found & set(self.runs)

    def _track(self, member: Place) -> None:
        members = self.tracked.setdefault(member.loop, [])
        if member not in members:
            members.append(member)

    def _watch(self, cover: Cover, quantity: Key) -> None:
        """Keep the history that a target needs."""
        target = cover.target
        if target.loop is not None and quantity != ("entries", target.loop):
            depth = target.k + (target.form is Form.CLAMPED)
            key = (target.loop, quantity)
            self.depth[key] = max(self.depth.get(key, 0), depth)

    def _counted_at(self, semaphore: str, met: dict[str, Place]) -> Place | None:
        """Where a barrier stands in the stream that signals a semaphore, if the engine counts what comes before."""
        members = self.places.members.get(semaphore, ())
        at = met.get(members[0].engine) if members else None
        fits = at is not None and all(self._runs(each.loop) for each in self.preceding(semaphore, at))
        return at if fits else None

    def _lost(self) -> Iterator[str]:
        """The semaphores that are reset where the engine does not know how far they were."""
        for met in self.barriers:
            op = met[self.engine].op
            assert isinstance(op, BarrierOp)
            for semaphore in op.semaphores:
                if self.places.members.get(semaphore.data) and self._counted_at(semaphore.data, met) is None:
                    yield semaphore.data

    def passed_in(self, block: Block) -> list[Place]:
        """What is to be passed by on the way through a block, in order."""
        if not self.tracked and not self.skipped:
            return []
        loops = list(self.places.heads[block])
        if isinstance(block.parent_op(), StreamOp):
            loops.append(self.root)
        skipped = [place for loop in loops for place in self.skipped.get(loop, ())]
        inside = (m for loop in (*loops, *(place.loop for place in skipped)) for m in self.tracked.get(loop, ()))
        return sorted((*skipped, *inside), key=lambda place: place.position)

    # The way through a stream.

    def initial(self) -> State:
        """Before the stream begins; the program has been entered."""
        state: State = {("entries", loop): 0 for loop in self.runs}
        state |= {("iteration", loop): 0 for loop in self.runs if loop.counted}
        state |= {("past", loop, key, j): 0 for (loop, key), depth in self.depth.items() for j in range(1, depth + 1)}
        state |= {("count", member.name): 0 for members in self.tracked.values() for member in members}
        state |= {("known", semaphore): 0 for semaphore in self.semaphores}
        if self.barriers:
            state |= {("reset", semaphore): 0 for semaphore in self.semaphores}
            state |= {("retired", name): 0 for name in self.awaited}
            for met in self.barriers:
                around = met[self.engine]
                state |= {("met", around.loop, loop): 0 for loop in self.inside(around)}
        state["entries", self.root] = 1
        return state

    def start(self, state: State, loop: Loop) -> None:
        """A run of a loop begins."""
        if loop.counted:
            state["iteration", loop] = 0

    def enter(self, state: State, loop: Loop) -> None:
        """An iteration of a loop begins."""
        for (carrier, key), depth in self.depth.items():
            if carrier is loop:
                for j in range(depth, 1, -1):
                    state["past", loop, key, j] = state["past", loop, key, j - 1]
                state["past", loop, key, 1] = state[key]
        state["entries", loop] = state["entries", loop] + 1
        if loop.counted:
            state["iteration", loop] = state["iteration", loop] + 1

    def pass_by(self, state: State, place: Place) -> None:
        """The engine comes to what holds a member of a semaphore that other loops signal too, or to a loop that its
        stream leaves out."""
        if place.op is place.loop.op:
            state["entries", place.loop] = state["entries", place.loop] + self.times[place.loop]
        else:
            state["count", place.name] = self.issued_up_to(state, place)

    def issued_up_to(self, state: State, member: Place) -> Value:
        """The signals of its semaphore up to `member`, in its own stream, when the engine is as far."""
        assert member.signal is not None
        return self._issued(state, member.signal, member)

    def _issued(self, state: State, semaphore: str, at: Place) -> Value:
        """The signals of `semaphore` up to `at`, in its own stream, when the engine is as far."""
        return self._sum(
            state["entries", each.loop] - int(self.places.pending(each, at)) for each in self.preceding(semaphore, at)
        )

    def meet(self, state: State, barrier: Place) -> None:
        """A barrier: all that comes before it on any engine has retired, and some semaphores are 0."""
        op = barrier.op
        assert isinstance(op, BarrierOp)
        there = next(met for met in self.barriers if met[self.engine] is barrier)
        for semaphore in self.semaphores:
            if (at := self._counted_at(semaphore, there)) is not None:
                state["known", semaphore] = self._issued(state, semaphore, at)
        for semaphore in op.semaphores:
            state["reset", semaphore.data] = state["known", semaphore.data]
        for loop in self.inside(barrier):
            state["met", barrier.loop, loop] = state["entries", loop]
        for name, member in self.awaited.items():
            if member.engine in there:
                late = int(self.places.pending(member, there[member.engine]))
                state["retired", name] = state["entries", member.loop] - late

    def inside(self, barrier: Place) -> list[Loop]:
        """The loop of a barrier, and those in it."""
        return [loop for loop in self.runs if barrier.loop in loop.path]

    # What the counters say.

    def in_all(self, state: State, semaphore: str, value: Value) -> Value:
        """A value of `semaphore` as signals since the beginning."""
        return value + state["reset", semaphore] if self.barriers else value

    def retirements(self, state: State, cover: Cover) -> Value:
        """How often its member must have retired: condition (1)."""
        return self.up_to(state, cover.target, ("entries", cover.member.loop))

    def signals(self, state: State, cover: Cover) -> Value:
        """How many signals its semaphore must have had, since the beginning, for that."""
        member = cover.member
        found = self.up_to(state, cover.target, self.quantity(member))
        if not self.single(member):
            return found
        assert member.signal is not None
        members = self.places.members[member.signal]
        n, k = len(members), members.index(member) + 1
        return found if n == 1 else choose(found > 0, n * found - (n - k), 0)

    def issued(self, state: State, place: Place) -> Value:
        """The signals, since the last reset, of the semaphore of an instruction of this engine, its own included."""
        assert place.signal is not None
        found = self._issued(state, place.signal, place)
        return found - state["reset", place.signal] if self.barriers else found

    def may_be_late(self, semaphore: str, at: Place) -> bool:
        """Whether a wait on `semaphore` stands for a dependency that has no exact one, by a marker on its engine, or
        any wait may."""
        if self.rescued is None:
            return True
        marked = {each.engine for each in self.places.members.get(semaphore, ()) if isinstance(each.op, MarkerOp)}
        return any(
            edge.producer.engine in marked and (at.name, edge.producer.label or edge.producer.name) in self.rescued
            for edge in self.places.edges(at)
        )

    def before(self, state: State, semaphore: str, at: Place) -> Value | None:
        """The signals of a semaphore that come before the engine's place in program order; None where none tells."""
        members = self.places.members.get(semaphore, ())
        if not all(self._runs(each.loop) for each in members):
            return None
        return self._sum(state["entries", each.loop] - int(self.places.ahead(each, at)) for each in members)

    def up_to(self, state: State, target: Target, quantity: Key) -> Value:
        """What a counter is at a target."""
        if target.form is Form.NOW:
            return state[quantity]
        if target.form is Form.FIRST:
            return 1
        if target.form is Form.EARLIER:
            return state[quantity] - int(target.ahead and quantity[0] == "entries")
        loop, k = target.loop, target.k
        assert loop is not None
        reached = state["iteration", loop] > k
        if target.form is Form.BACK:
            return choose(reached, self.past(state, loop, quantity, k), 0)
        assert target.inner is not None
        iteration = state["iteration", target.inner] - target.d
        started, ended = self.past(state, loop, quantity, k + 1), self.past(state, loop, quantity, k)
        return choose(both(reached, iteration > 0), lesser(started + iteration, ended), 0)

    def past(self, state: State, loop: Loop, quantity: Key, j: int) -> Value:
        """What a counter was when the iteration `j` back of `loop` ended."""
        if j == 0:
            return state[quantity]
        if quantity == ("entries", loop):
            return greater(state[quantity] - j, 0)
        return state["past", loop, quantity, j]

    def _sum(self, values: Iterable[Value]) -> Value:
        total: Value = 0
        for value in values:
            total = total + value
        return total

    def written(self, block: Block) -> set[Key]:
        """The counters that change on the way through a block."""
        found: set[Key] = set()
        for op in block.walk():
            if isinstance(op, IterationOp):
                found |= self._written_by(self.places.of[op].loop)
            elif isinstance(op, WaitOp):
                found.add(("known", op.semaphore.data))
            elif isinstance(op, BarrierOp):
                found |= {("known", name) for name in self.semaphores}
                found |= {("reset", semaphore.data) for semaphore in op.semaphores}
                at = self.places.of[op]
                found |= {("met", at.loop, loop) for loop in self.inside(at)}
                found |= {("retired", name) for name in self.awaited}
        return found

    def _written_by(self, loop: Loop) -> set[Key]:
        found: set[Key] = {("entries", loop)}
        if loop.counted:
            found.add(("iteration", loop))
        found |= {
            ("past", loop, key, j) for (c, key), depth in self.depth.items() if c is loop for j in range(1, depth + 1)
        }
        skipped = [place.loop for place in self.skipped.get(loop, ())]
        found |= {("entries", each) for each in skipped}
        found |= {("count", member.name) for each in (loop, *skipped) for member in self.tracked.get(each, ())}
        return found
