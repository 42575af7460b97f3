"""All runs of a stream at once, step by step as proofs/checker goes through them (Values.v to Symbolic.v)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from mpkc.certificate.forms import Form, contradict, entails, number, variable
from mpkc.certificate.statements import (
    Annotation,
    Block,
    Choice,
    Enter,
    Expression,
    Ghost,
    Issue,
    Let,
    Loop,
    Model,
    Need,
    Statement,
    Stream,
    Wait,
)

ROOT, ROUNDS = 1, 1
"""The loop that is the program, and the variable that counts the rounds of a block."""

Alternative = tuple[list[Form], Form | None]


class Uncertain(Exception):
    """The checker would not accept what `op` stands for.

    Attributes:
        message: what it does not see.
    """

    def __init__(self, op: Operation | None, message: str):
        super().__init__(message)
        self.op, self.message = op, message


@dataclass(frozen=True)
class State:
    """What each variable is, what is 0 or more, and the waits in front of the next instruction."""

    known: dict[int, Form]
    facts: tuple[Form, ...] = ()
    pending: tuple[tuple[int, Form], ...] = ()

    def of(self, x: int) -> Form:
        return self.known.get(x) or variable(x)


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
                return [State(state.known, state.facts, ((semaphore, state.of(threshold)), *state.pending))]
            case Issue():
                return [self.issue(statement, state)]
            case Enter(loop):
                return [self.enter(loop, state)]
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
            told = [*state.facts, *news, *(f for y, f in state.known.items() if y != x), *(f for _, f in state.pending)]
            if any(each.mentions(x) for each in told):
                raise Uncertain(None, "a value that nothing is known of is used beyond the next one")
            form = variable(x)
            if bound is not None:
                news = [form, form.scaled(-1).shifted(bound - 1), *news]
        return State({**state.known, x: form}, (*news, *state.facts), state.pending)

    # Counters.

    def count(self, state: State, ghost: Ghost) -> Form:
        return state.of(self.variable_of[ghost])

    def enter(self, loop: int, state: State) -> State:
        known = {**state.known, **{x: self.entered(state, loop, x, g) for x, g in self.stream.ghosts.items()}}
        after = State(known, state.facts, state.pending)
        entries = Ghost("Entries", (loop,))
        if loop in self.model.maxima and entries in self.variable_of:
            bound = self.count(after, entries).scaled(-1).shifted(self.model.maxima[loop])
            after = State(known, (bound, *state.facts), state.pending)
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

    # Instructions.

    def issue(self, issue: Issue, state: State) -> State:
        known = dict(state.known)
        sent = Ghost("Sent", (issue.signal or 0,))
        if sent in self.variable_of:
            known[self.variable_of[sent]] = self.count(state, sent).shifted(1)
        after = State(known, state.facts)
        if self.judge:
            if issue.signal and not entails(state.facts, self.count(after, sent).scaled(-1).shifted(self.model.most)):
                raise Uncertain(issue.op, f"its semaphore holds {self.model.most} signals at most")
            for facts, owed in self.owings(state, self.model.needs[issue.label], state.facts):
                if not self.right(facts, state.pending, owed):
                    raise Uncertain(issue.op, "its waits are not seen to be as long as its dependencies ask")
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
        if not contradict(facts, [reached]):
            form = self.past(state, (reached, *facts), need)
            for told, owed in self.owings(state, left, (reached, *facts)):
                yield told, [(need.producer, form), *owed]
        if not contradict(facts, [reached.negation]):
            yield from self.owings(state, left, (reached.negation, *facts))

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

    def right(self, facts: Sequence[Form], waits: Sequence[tuple[int, Form]], owed: Sequence[tuple[int, Form]]) -> bool:
        """Whether the waits pass exactly when what is owed has retired, wherever the producers are."""
        signalled = {s for block in self.model.blocks for _, s in block}
        issued = {i for block in self.model.blocks for i, _ in block}
        if any(s not in signalled for s, _ in waits) or any(i not in issued for i, _ in owed):
            return False
        return all(
            self._right_at(facts, waits, owed, block, j) for block in self.model.blocks for j in range(len(block))
        )

    def _right_at(
        self,
        facts: Sequence[Form],
        waits: Sequence[tuple[int, Form]],
        owed: Sequence[tuple[int, Form]],
        block: Sequence[tuple[int, int | None]],
        j: int,
    ) -> bool:
        rounds = variable(ROUNDS)
        labels, signals = [i for i, _ in block], [s for _, s in block]

        def reached(of: Sequence[int | None], x: int, form: Form) -> Form:
            return rounds.scaled(of.count(x)).shifted(of[:j].count(x)) - form

        passed = [reached(signals, s, form) for s, form in waits if s in signals]
        enough = [reached(labels, i, form) for i, form in owed if i in labels]
        return all(contradict(facts, [rounds, form.negation, *passed]) for form in enough) and all(
            contradict(facts, [rounds, form.negation, *enough]) for form in passed
        )


def initial(ghost: Ghost) -> int:
    """A counter before the stream begins."""
    return int(ghost.kind in ("Entries", "Past") and ghost.of[-1] == ROOT)


def head(hint: Annotation) -> State:
    """What an annotation allows."""
    return State(dict(hint.known), tuple(hint.facts))


def same(facts: Sequence[Form], f: Form, g: Form) -> bool:
    """Whether two forms are seen to be the same number."""
    difference = f - g
    if not difference.terms:
        return difference.constant == 0
    return entails(facts, difference) and entails(facts, difference.scaled(-1))


def wrapped(m: int, f: Form) -> list[Alternative]:
    """`f` modulo `m`: as it is, or once too high or low."""
    minus = f.scaled(-1)
    return [
        ([f, minus.shifted(m - 1)], f),
        ([f.shifted(-m), minus.shifted(2 * m - 1)], f.shifted(-m)),
        ([minus.shifted(-1), f.shifted(m)], f.shifted(m)),
        ([f.shifted(-2 * m)], None),
        ([minus.shifted(-m - 1)], None),
    ]


def alternatives(state: State, e: Expression) -> tuple[list[Alternative], int | None]:
    """What an expression may be, by cases, and a bound of it where a case does not tell."""
    of = [state.of(x) for x in e.operands]
    unknown: list[Alternative] = [([], None)]
    match e.kind, of:
        case "Constant", []:
            return [([], number(e.number))], None
        case "Add", [a, b]:
            return wrapped(e.number, a + b), e.number
        case "Sub", [a, b]:
            return wrapped(e.number, a - b), e.number
        case "Mul", [a, b]:
            if not a.terms:
                return wrapped(e.number, b.scaled(a.constant)), e.number
            return (wrapped(e.number, a.scaled(b.constant)) if not b.terms else unknown), e.number
        case "Truncate", [a]:
            return wrapped(e.number, a), e.number
        case "Signed", [a]:
            half = e.number // 2
            return [([a.scaled(-1).shifted(half - 1)], a), ([a.shifted(-half)], a.shifted(-e.number))], None
        case "Divide", [a]:
            quotient = a.divided(e.number)
            return (unknown if quotient is None else [([], quotient)]), None
        case "Maximum", [a, b]:
            return [([a - b], a), ([(b - a).shifted(-1)], b)], None
        case "Minimum", [a, b]:
            return [([a - b], b), ([(b - a).shifted(-1)], a)], None
        case "Select", [c, a, b]:
            return [([c.shifted(-1)], a), ([c.scaled(-1).shifted(-1)], a), ([c, c.scaled(-1)], b)], None
        case "Move", [a]:
            return [([], a)], None
        case "Advance", [a]:
            return [([], a.shifted(e.number))], None
        case "Unknown", []:
            return unknown, e.number
        case _, [a, b]:
            return _compared(e.kind, a, b), 2
        case _:
            raise AssertionError(e)


def _compared(kind: str, a: Form, b: Form) -> list[Alternative]:
    above, below = a - b, b - a
    more, less = above.shifted(-1), below.shifted(-1)
    one, zero = number(1), number(0)
    match kind:
        case "GeU":
            return [([above], one), ([less], zero)]
        case "GtU":
            return [([more], one), ([below], zero)]
        case "Eq":
            return [([above, below], one), ([more], zero), ([less], zero)]
        case _:
            return [([above, below], zero), ([more], one), ([less], one)]
