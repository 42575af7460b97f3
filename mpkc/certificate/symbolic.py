"""All runs of a stream at once, step by step as proofs/checker goes through them (Values.v to Symbolic.v)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.ir import Operation

from mpkc.certificate.forms import Form, contradict, entails, number, variable
from mpkc.certificate.statements import (
    Annotation,
    Assume,
    Block,
    Choice,
    Enter,
    Gathering,
    Ghost,
    Group,
    Issue,
    Let,
    Loop,
    Meet,
    Model,
    Need,
    Statement,
    Stream,
    Wait,
)
from mpkc.certificate.values import State, Waits, alternatives, assumed, same

ROOT, ROUNDS = 1, 1
"""The loop that is the program, and the variable that counts the rounds of a block."""


class Uncertain(Exception):
    """The checker would not accept what `op` stands for.

    Attributes:
        message: what it does not see.
    """

    def __init__(self, op: Operation | None, message: str):
        super().__init__(message)
        self.op, self.message = op, message


class Execution:
    """Goes through one stream.

    Args:
        arrive: what to do with a state at the head of a loop; the annotation that it meets.
        judge: whether instructions must be right.
    """

    def __init__(self, model: Model, stream: Stream, arrive: Callable[[Loop, State], Annotation], judge: bool = True):
        self.model, self.stream, self.arrive, self.judge = model, stream, arrive, judge
        self.variable_of = {ghost: x for x, ghost in stream.ghosts.items()}

    def run(self) -> None:
        """Go through all of the stream.

        Raises:
            Uncertain: what is not seen to be right.
        """
        known = {x: number(initial(ghost)) for x, ghost in self.stream.ghosts.items()}
        self.block(self.stream.body, [State(known)])

    def block(self, block: Block, states: list[State]) -> list[State]:
        for statement in block:
            states = [after for state in states for after in self.statement(statement, state)]
        return states

    def statement(self, statement: Statement, state: State) -> list[State]:
        match statement:
            case Let():
                return self.let(statement, state)
            case Wait(semaphore, threshold):
                return [replace(state, pending=((semaphore, state.of(threshold)), *state.pending))]
            case Issue():
                return [self.issue(statement, state)]
            case Enter(loop):
                return [self.enter(loop, state)]
            case Assume(x, taken):
                return [replace(state, facts=(*news, *state.facts)) for news in assumed(state, x, taken)]
            case Meet():
                return [self.meet(statement, state)]
            case Choice(then, otherwise):
                return self.block(then, [state]) + self.block(otherwise, [state])
            case Loop():
                return self.loop(statement, state)

    def loop(self, loop: Loop, state: State) -> list[State]:
        self.arrive(loop, state)
        gone: list[Annotation] = []
        while left := [hint for hint in loop.hints if not any(hint is other for other in gone)]:
            gone.append(left[0])
            for after in self.block(loop.body, [head(left[0])]):
                self.arrive(loop, after)
        return [head(hint) for hint in loop.hints]

    # Assignments.

    def let(self, let: Let, state: State) -> list[State]:
        cases, bound = alternatives(state, let.expression)
        left = [case for case in cases if not contradict(state.facts, case[0])]
        alone = len(left) == 1  # then the facts say already what the case says of them
        return [self.assigned(state, let.variable, bound, [] if alone else news, form) for news, form in left]

    def assigned(self, state: State, x: int, bound: int | None, news: list[Form], form: Form | None) -> State:
        if form is None:
            told = [
                *state.facts,
                *news,
                *(f for y, f in state.known.items() if y != x),
                *(f for _, f in (*state.pending, *state.passed)),
            ]
            if any(each.mentions(x) for each in told):
                raise Uncertain(None, "a value that nothing is known of is used beyond the next one")
            form = variable(x)
            if bound is not None:
                news = [form, form.scaled(-1).shifted(bound - 1), *news]
        return replace(state, known={**state.known, x: form}, facts=(*news, *state.facts))

    # Counters.

    def count(self, state: State, ghost: Ghost) -> Form:
        return state.of(self.variable_of[ghost])

    def enter(self, loop: int, state: State) -> State:
        known = {**state.known, **{x: self.entered(state, loop, x, g) for x, g in self.stream.ghosts.items()}}
        after = replace(state, known=known)
        entries = Ghost("Entries", (loop,))
        if loop in self.model.maxima and entries in self.variable_of:
            bound = self.count(after, entries).scaled(-1).shifted(self.model.maxima[loop])
            after = replace(after, facts=(bound, *state.facts))
        if self.judge:
            for each in self._met():
                if each.loop == loop and not entails(
                    after.facts, self.since(after, each).scaled(-1).shifted(each.every)
                ):
                    raise Uncertain(None, f"a barrier is not seen to come after each {each.every} iterations")
        return after

    def entered(self, state: State, loop: int, x: int, ghost: Ghost) -> Form:
        form = state.of(x)
        match ghost.kind, ghost.of:
            case ("Entries" | "Iteration", (of,)) if of == loop:
                return form.shifted(1)
            case ("Iteration", (of,)) if self.model.parents.get(of, ROOT) == loop:
                return number(0)
            case ("Past", (carrier, k, of)) if carrier == loop:
                return self.count(state, Ghost("Entries", (of,)) if k == 1 else Ghost("Past", (carrier, k - 1, of)))
            case _:
                return form

    # Barriers.

    def _met(self) -> list[Gathering]:
        return [each for each in self.model.gatherings.values() if self.stream.engine in each.engines]

    def since(self, state: State, each: Gathering) -> Form:
        """The entries of its loop since a barrier."""
        base = self.count(state, Ghost("Base", (each.loop, each.barrier, 0)))
        return self.count(state, Ghost("Entries", (each.loop,))) - base

    def meet(self, meet: Meet, state: State) -> State:
        if state.pending:
            raise Uncertain(meet.op, "a wait stands in front of a barrier")
        each = self.model.gatherings[meet.barrier]
        if self.judge and not same(state.facts, self.since(state, each), number(each.every)):
            raise Uncertain(
                meet.op, f"a barrier is not seen to come after each {each.every} iterations, and not before"
            )
        for group in self.model.groups if self.judge else ():
            issues, more = Ghost("Issues", (group.members[0][0],)), dict(group.cuts).get(meet.barrier)
            if more is not None and issues in self.variable_of:
                rounds = self.count(state, Ghost("Entries", (group.loop,))).shifted(more)
                if not same(state.facts, self.count(state, issues), rounds):
                    raise Uncertain(meet.op, "not all that a barrier is behind is seen to have been issued")
        known = {**state.known, **{x: self.met(state, meet, x, g) for x, g in self.stream.ghosts.items()}}
        return State(known, state.facts)

    def met(self, state: State, meet: Meet, x: int, ghost: Ghost) -> Form:
        match ghost.kind, ghost.of:
            case "Sent", (semaphore,) if semaphore in meet.zeroes:
                return number(0)
            case "Base", (loop, *cuts) if (more := dict(pairs(cuts)).get(meet.barrier)) is not None:
                return self.count(state, Ghost("Entries", (loop,))).shifted(more)
            case _:
                return state.of(x)

    # Instructions.

    def issue(self, issue: Issue, state: State) -> State:
        known = dict(state.known)
        sent = Ghost("Sent", (issue.signal or 0,))
        for ghost in (sent, Ghost("Issues", (issue.label,))):
            if ghost in self.variable_of:
                known[self.variable_of[ghost]] = self.count(state, ghost).shifted(1)
        after = State(known, state.facts, passed=remembered(state))
        if self.judge:
            if issue.signal and not entails(state.facts, self.count(after, sent).scaled(-1).shifted(self.model.most)):
                raise Uncertain(issue.op, f"its semaphore holds {self.model.most} signals at most")
            for facts, owed in self.owings(state, self.model.needs[issue.label], state.facts):
                if not self.right(facts, state, owed):
                    what = "its waits are not seen to be as long as its dependencies ask, no more and no less"
                    raise Uncertain(issue.op, f"{what}; what other engines wait for does not count")
        return after

    def owings(
        self, state: State, needs: Sequence[Need], facts: tuple[Form, ...]
    ) -> Iterator[tuple[tuple[Form, ...], list[tuple[int, Form]]]]:
        if not needs:
            yield facts, []
            return
        need, left = needs[0], needs[1:]
        if need.carrier is None:
            form = self.count(state, Ghost("Entries", (need.loop,)))
            for told, owed in self.owings(state, left, facts):
                yield told, [(need.producer, form), *owed]
            return
        reached = self.count(state, Ghost("Iteration", (need.carrier,))).shifted(-need.k - 1)
        late = not contradict(facts, [reached])
        for news, form in self._cases(state, need, reached, (reached, *facts)) if late else ():
            if not contradict(facts, news):
                for told, owed in self.owings(state, left, (*news, *facts)):
                    yield told, [(need.producer, form), *owed] if form is not None else owed
        if not contradict(facts, [reached.negation]):
            yield from self.owings(state, left, (reached.negation, *facts))

    def _cases(
        self, state: State, need: Need, reached: Form, facts: Sequence[Form]
    ) -> list[tuple[list[Form], Form | None]]:
        """What a need owes, or nothing, in an iteration of its carrier that is late enough; by cases."""
        if need.inner is None:
            return [([reached], self.past(state, facts, need))]
        assert need.carrier is not None
        most, least = (self.count(state, Ghost("Past", (need.carrier, k, need.loop))) for k in (need.k, need.k + 1))
        iteration = self.count(state, Ghost("Iteration", (need.inner,))).shifted(-need.d)
        form, inner = least + iteration, iteration.shifted(-1)
        return [
            ([reached, inner, most - form], form),
            ([reached, inner, (form - most).shifted(-1)], most),
            ([reached, inner.negation], None),
        ]

    def past(self, state: State, facts: Sequence[Form], need: Need) -> Form:
        if need.carrier == need.loop:
            form = self.count(state, Ghost("Entries", (need.loop,))).shifted(-need.k)
            if entails(facts, form):
                return form
        assert need.carrier is not None
        ghost = Ghost("Past", (need.carrier, need.k, need.loop))
        if ghost not in self.variable_of:
            raise Uncertain(None, "the loop of a producer is not seen to have been entered that often")
        return self.count(state, ghost)

    def right(self, facts: Sequence[Form], state: State, owed: Sequence[tuple[int, Form]]) -> bool:
        """Whether the waits pass exactly when what is owed has retired, wherever the producers are."""
        groups = [(group, before) for group in self.model.groups if (before := self.before(state, group)) is not None]
        signalled = {s for group, _ in groups for _, s in group.members}
        issued = {i for group, _ in groups for i, _ in group.members}
        if any(s not in signalled for s, _ in state.pending) or any(i not in issued for i, _ in owed):
            return False
        return all(
            self._right_at(facts, state.pending, (), owed, group, before, j)
            or self._right_at(facts, state.pending, state.passed, owed, group, before, j)
            for group, before in groups
            for j in range(len(group.members))
        )

    def before(self, state: State, group: Group) -> Form | None:
        """The rounds of a group before its semaphores were 0; None where the engine is not told."""
        if not group.cuts:
            return number(0)
        ghost = Ghost("Base", (group.loop, *(x for cut in group.cuts for x in cut)))
        return self.count(state, ghost) if ghost in self.variable_of else None

    @staticmethod
    def _right_at(
        facts: Sequence[Form],
        pending: Waits,
        passed: Waits,
        owed: Sequence[tuple[int, Form]],
        group: Group,
        before: Form,
        j: int,
    ) -> bool:
        rounds = variable(ROUNDS)
        labels, signals = [i for i, _ in group.members], [s for _, s in group.members]

        def reached(of: Sequence[int | None], all: Form, x: int, form: Form) -> Form:
            return all.scaled(of.count(x)).shifted(of[:j].count(x)) - form

        values = [reached(signals, rounds, s, form) for s, form in pending if s in signals]
        held = [reached(signals, rounds, s, form) for s, form in passed if s in signals]
        enough = [reached(labels, before + rounds, i, form) for i, form in owed if i in labels]
        return all(contradict(facts, [rounds, form.negation, *values, *held]) for form in enough) and all(
            contradict(facts, [rounds, form.negation, *enough, *held]) for form in values
        )


def pairs(flat: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Barriers, each with what is added there."""
    return zip(flat[::2], flat[1::2], strict=True)


def remembered(state: State) -> Waits:
    """The waits that have passed once an instruction issues: of those on one semaphore the latest."""
    kept = state.passed
    for wait in reversed(state.pending):
        kept = (wait, *(other for other in kept if other[0] != wait[0]))
    return kept


def initial(ghost: Ghost) -> int:
    """A counter before the stream begins."""
    return int(ghost.kind in ("Entries", "Past") and ghost.of[-1] == ROOT)


def head(hint: Annotation) -> State:
    """What an annotation allows."""
    return State(dict(hint.known), tuple(hint.facts), tuple(hint.pending), tuple(hint.passed))
