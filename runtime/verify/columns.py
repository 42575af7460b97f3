"""The integers at the head of a loop that its invariant relates."""

from collections.abc import Callable, Collection, Iterator, Sequence

from mpkc.dialects.sem_structure import Loop
from mpkc.runtime.verify.ghosts import Ghosts, Key, State
from mpkc.runtime.verify.integers import Value, as_integer, choose, greater
from mpkc.runtime.verify.observed import Head
from mpkc.runtime.verify.places import Place
from mpkc.runtime.verify.requirements import Cover, Form, Requirement


class Columns:
    """1, ghost counters, what follows from these and is not linear, and what the loop carries.

    Attributes:
        first_argument: the number of the first that the loop carries.
        place: the numbers of the others, by what they are; of counters, their keys.
        ordered: pairs of numbers, of a history and one of an outer loop, which is likely to be less.
    """

    def __init__(self, ghosts: Ghosts, head: Head):
        self.head = head
        self.around = ghosts.around(head.op)
        self._makers: dict[object, Callable[[State], Value]] = {"one": lambda state: 1}
        self._add_counters(ghosts)
        requirements = [*ghosts.requirements, *ghosts.implied]
        covers = [cover for requirement in requirements for cover in requirement.covers]
        covers = [cover for cover in covers if cover.target.loop is None or cover.target.loop in self.around]
        for cover in covers:
            self._add_histories(ghosts, cover)
        ordered: list[tuple[Key, Key]] = []
        for chain in _chains(requirements, self.around):
            ordered += self._add_latest(ghosts, chain)
        for cover in covers:
            self._add_owed(ghosts, cover)
        self.first_argument = len(self._makers)
        self.place = {key: number for number, key in enumerate(self._makers)}
        self.ordered = [(self.place[a], self.place[b]) for a, b in ordered if a in self.place and b in self.place]

    def __len__(self) -> int:
        return self.first_argument + len(self.head.arguments)

    def of(self, state: State, arguments: Sequence[Value]) -> list[Value]:
        """All of them in one state."""
        return [*(make(state) for make in self._makers.values()), *(as_integer(argument) for argument in arguments)]

    def _add_counters(self, ghosts: Ghosts) -> None:
        counted = ghosts.counted
        for key in ghosts.initial():
            match key:
                case ("entries", Loop() as loop) if loop in counted and loop.parent is not None:
                    self._add_counter(key)
                case ("met", _, loop) if loop in counted:
                    self._add_counter(key)
                case ("iteration", loop) if loop in self.around:
                    self._add_counter(key)
                case ("past" | "count" | "reset" | "retired", *_):
                    self._add_counter(key)
                case _:
                    pass

    def _add_counter(self, key: Key) -> None:
        self._makers[key] = lambda state: state[key]

    def _add_histories(self, ghosts: Ghosts, cover: Cover) -> None:
        """What history registers hold: a counter as it was j iterations back, 0 before there was one."""
        loop, quantity, semaphore = cover.target.loop, ghosts.quantity(cover.member), cover.member.signal
        if loop is None:
            return
        scale = ghosts.scale(cover.member)
        for j in range(cover.target.k + 1):

            def masked(state: State, j: int = j) -> Value:
                return choose(state["iteration", loop] > j, ghosts.past(state, loop, quantity, j), 0)

            def since_reset(state: State, masked: Callable[[State], Value] = masked) -> Value:
                return greater(scale * masked(state) - state["reset", semaphore], 0)

            self._makers["begun", loop, j] = lambda state, j=j: choose(state["iteration", loop] > j, 1, 0)
            if cover.target.form is Form.BACK:
                self._makers["masked", loop, quantity, j] = masked
                if ghosts.barriers:
                    self._makers["since", loop, quantity, j, semaphore] = since_reset
                if quantity[0] == "count":
                    self._makers["issued", loop, quantity, j] = lambda state, j=j: choose(
                        state["iteration", loop] > j, ghosts.issued_up_to(state, cover.member), 0
                    )
            elif j:
                self._makers["started", loop, quantity, j] = lambda state, j=j: _started(
                    ghosts, state, loop, quantity, j
                )

    def _add_latest(self, ghosts: Ghosts, chain: Sequence[Cover]) -> Iterator[tuple[Key, Key]]:
        """What one history register holds for loops one in the other: what the innermost that has one would hold.

        Yields its keys with those of the histories of outer loops.
        """
        innermost, *around = chain
        quantity, semaphore = ghosts.quantity(innermost.member), innermost.member.signal
        scale, loops = ghosts.scale(innermost.member), tuple((each.target.loop, each.target.k) for each in chain)
        for j in range(innermost.target.k + 1):

            def latest(state: State, j: int = j) -> Value:
                found: Value = 0
                for (loop, _), back in reversed([*zip(loops, (j, *(each.target.k for each in around)), strict=True)]):
                    assert loop is not None
                    found = choose(state["iteration", loop] > back, ghosts.past(state, loop, quantity, back), found)
                return found

            def since_reset(state: State, latest: Callable[[State], Value] = latest) -> Value:
                return greater(scale * latest(state) - state["reset", semaphore], 0)

            self._makers["latest", loops, quantity, j] = latest
            if ghosts.barriers:
                self._makers["latest since", loops, quantity, j, semaphore] = since_reset
            for loop, k in loops[1:]:
                yield ("latest", loops, quantity, j), ("masked", loop, quantity, k)

    def _add_owed(self, ghosts: Ghosts, cover: Cover) -> None:
        """Whether anything is owed, and how much where that is more than histories tell."""
        target, quantity = cover.target, ghosts.quantity(cover.member)
        self._makers["some", target, quantity] = lambda state: choose(ghosts.up_to(state, target, quantity) > 0, 1, 0)
        if target.form is Form.CLAMPED:
            self._makers["clamped", target, quantity] = lambda state: ghosts.up_to(state, target, quantity)


def _started(ghosts: Ghosts, state: State, loop: Loop, quantity: Key, most: int) -> Value:
    """What a counter was when the iteration `most` back ended, or when this run of the loop began."""
    found: Value = state[quantity]
    for j in range(1, most + 1):
        found = choose(state["iteration", loop] >= j, ghosts.past(state, loop, quantity, j), found)
    return found


def _chains(requirements: Sequence[Requirement], around: Collection[Loop]) -> Iterator[list[Cover]]:
    """What is owed to one consumer of one producer by several loops, one in the other; the innermost first."""
    found: dict[tuple[Place, Place], dict[Loop, Cover]] = {}
    for requirement in requirements:
        for cover in requirement.covers:
            loop = cover.target.loop
            if loop is not None and cover.target.form is Form.BACK and loop in around:
                found.setdefault((requirement.consumer, cover.member), {}).setdefault(loop, cover)
    for covers in found.values():
        chain = [covers[loop] for loop in sorted(covers, key=lambda loop: -len(loop.path))]
        for at in range(len(chain) - 1):
            yield chain[at:]
