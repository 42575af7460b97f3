"""What holds at the heads of a stream's loops: candidates from runs, of which those are kept that the checker sees.

A variable may be a number, or a counter times a number and more; counters may be ordered. Where a value is another one
in the first iterations of a loop, or is the greater or the lesser of two, each case has a hint of its own.
"""

from collections.abc import Iterator, Sequence

from mpkc.certificate.forms import Form, entails, number, variable
from mpkc.certificate.samples import Sample, Sampler
from mpkc.certificate.statements import (
    Annotation,
    Assume,
    Block,
    Choice,
    Enter,
    Ghost,
    Issue,
    Let,
    Loop,
    Meet,
    Model,
    Stream,
    Wait,
)
from mpkc.certificate.symbolic import ROOT, Execution, Uncertain
from mpkc.certificate.values import State, Waits, same

RUNS, ROUNDS, SHAPES = 40, 400, 4
Cut = tuple[int, int, bool]
"""Of a carrier's variable: the iteration, and whether it is that or any later one."""
Shape = tuple[int, Form]
"""A variable, and what it is over counters."""
Key = tuple[tuple[Cut, ...], tuple[int, ...], tuple[Shape, ...]]
"""The iterations of carriers, the semaphores that are waited for, and variables that are now this and now that."""


def annotate(model: Model, stream: Stream) -> None:
    """Fill in the hints of all loops of a stream.

    Raises:
        Uncertain: its waits are not seen to be right.
    """
    _live(stream.body, set())
    sampler = Sampler(stream, model.parents, model.maxima)
    for seed in range(RUNS):
        sampler.run(seed)
    try:
        _find(_Finder(model, stream, sampler, outermost=False))
    except Uncertain:
        _find(_Finder(model, stream, sampler, outermost=True))


def _find(finder: "_Finder") -> None:
    model, stream = finder.model, finder.stream
    for loop in finder.sampler.seen:
        loop.hints = []
    for _ in range(ROUNDS):
        finder.changed = False
        Execution(model, stream, finder.arrive, judge=False).run()
        if not finder.changed:
            break
    Execution(model, stream, finder.arrive).run()


def _live(block: Block, after: set[int]) -> set[int]:
    """The variables that matter in front of a block, where `after` do behind it; kept for each loop."""
    live = set(after)
    for statement in reversed(block):
        match statement:
            case Let(x, expression):
                live = (live - {x}) | set(expression.operands)
            case Wait(_, threshold):
                live.add(threshold)
            case Choice(then, otherwise):
                live = _live(then, live) | _live(otherwise, live)
            case Loop():
                while True:
                    before = live | _live(statement.body, live)
                    if before == live:
                        break
                    live = before
                statement.live = sorted(live)
            case Assume(x):
                live.add(x)
            case Enter() | Issue() | Meet():
                pass
    return live


class _Candidates:
    """For one loop in one regime.

    Attributes:
        known: what each variable or counter may be, the likeliest first.
        facts: what may be 0 or more.
        pending, passed: waits, by what tells their thresholds.
    """

    def __init__(self, known: dict[int, list[Form]], facts: list[Form], pending: Waits = (), passed: Waits = ()):
        self.known, self.facts = known, facts
        self.pending, self.passed = pending, list(passed)
        self.annotation = self._annotated()

    def weaken(self, state: State) -> bool:
        """Drop what a state does not show; whether there was any."""
        dropped = False
        for x, form in list(self.annotation.known.items()):
            if not same(state.facts, state.of(x), form.substituted(state.of)):
                self.known[x].pop(0)
                dropped = True
        if not dropped:
            left = [f for f, told in zip(self.facts, self._told(), strict=True) if self._shown(state, told)]
            passed = [wait for wait in self.passed if any(self._is(state, wait, other) for other in state.passed)]
            dropped = len(left) < len(self.facts) or len(passed) < len(self.passed)
            self.facts, self.passed = left, passed
        if dropped:
            self.annotation = self._annotated()
        return dropped

    @staticmethod
    def _shown(state: State, fact: Form) -> bool:
        return entails(state.facts, fact.substituted(state.of))

    def holds(self, state: State) -> bool:
        """Whether the waits that a state has in front of its next instruction are these."""
        return all(self._is(state, wait, other) for wait, other in zip(self.pending, state.pending, strict=True))

    def _is(self, state: State, wait: tuple[int, Form], other: tuple[int, Form]) -> bool:
        told = wait[1].substituted(self._of).substituted(state.of)
        return wait[0] == other[0] and same(state.facts, other[1], told)

    def _told(self) -> list[Form]:
        return [fact.substituted(self._of) for fact in self.facts]

    def _of(self, x: int) -> Form:
        forms = self.known.get(x)
        return forms[0].substituted(self._of) if forms else variable(x)

    def _annotated(self) -> Annotation:
        facts = [fact for fact in dict.fromkeys(self._told()) if not fact.trivial]
        pending, passed = ([(s, f.substituted(self._of)) for s, f in each] for each in (self.pending, self.passed))
        return Annotation({x: self._of(x) for x, forms in self.known.items() if forms}, facts, pending, passed)


class _Finder:
    """Keeps the candidates of all loops of a stream.

    Args:
        outermost: whether first iterations of all loops have hints of their own, also of outermost ones, and of those
            that carry what they hold themselves; these are seldom needed, since counters are 0 before.
    """

    def __init__(self, model: Model, stream: Stream, sampler: Sampler, outermost: bool):
        self.model, self.stream, self.sampler = model, stream, sampler
        self.variable_of = {ghost: x for x, ghost in stream.ghosts.items()}
        self.candidates: dict[tuple[Loop, Key], _Candidates] = {}
        self.unclear: dict[tuple[Loop, tuple[Cut, ...]], dict[int, dict[Form, None]]] = {}
        self.changed = False
        self.depth: dict[int, int] = {}
        for need in (need for needs in model.needs.values() for need in needs):
            if (carrier := need.carrier) is not None:
                past = Ghost("Past", (carrier, need.k, need.loop)) in self.variable_of
                counted = Ghost("Iteration", (carrier,)) in self.variable_of
                if outermost and counted or past and model.parents.get(carrier, ROOT) != ROOT:
                    self.depth[carrier] = max(self.depth.get(carrier, 0), need.k)

    def arrive(self, loop: Loop, state: State) -> Annotation:
        """The annotation of the regime that a state is in, weakened to what it shows."""
        cuts = self._regime(loop, state)
        shapes = self._shapes(loop, cuts, state)
        key = cuts, tuple(semaphore for semaphore, _ in state.pending), shapes
        found = self.candidates.get((loop, key))
        if found is None:
            samples = [each for each in self._samples(loop, cuts) if all(each[x] == f.value(each) for x, f in shapes)]
            known, facts = self._proposed(loop, cuts, samples)
            known |= {x: [form] for x, form in shapes}
            pending, passed = self._expressed(state, state.pending), self._expressed(state, state.passed)
            if len(pending) < len(state.pending):
                raise Uncertain(loop.op, "a wait in front of a loop, for what changes in it")
            found = self.candidates[loop, key] = _Candidates(known, facts, pending, passed)
            loop.hints.append(found.annotation)
            self.changed = True
        before = found.annotation
        while found.weaken(state):
            self.changed = True
        if not found.holds(state):
            raise Uncertain(loop.op, "a wait in front of a loop, for what changes in it")
        if found.annotation is not before:
            loop.hints = [found.annotation if hint is before else hint for hint in loop.hints]
        return found.annotation

    @staticmethod
    def _expressed(state: State, waits: Waits) -> Waits:
        """Waits whose thresholds are numbers, or what variables are."""
        held = {form: x for x, form in reversed(state.known.items())}
        told = ((s, f if not f.terms else variable(held[f]) if f in held else None) for s, f in waits)
        return tuple((s, f) for s, f in told if f is not None)

    # Regimes.

    def _cuts(self, loop: Loop) -> Iterator[tuple[int, int, int]]:
        """Of each carrier around the head of a loop: variable, least iteration, first of all later ones."""
        own = next((each.loop for each in loop.body if isinstance(each, Enter)), None)
        around = own
        while around is not None and around != ROOT:
            if around in self.depth:
                least = int(around != own)
                yield self.variable_of[Ghost("Iteration", (around,))], least, least + self.depth[around]
            around = self.model.parents.get(around)

    def _regime(self, loop: Loop, state: State) -> tuple[Cut, ...]:
        key: list[Cut] = []
        for x, least, most in self._cuts(loop):
            form = state.of(x)
            exact = next((v for v in range(least, most) if same(state.facts, form, number(v))), None)
            if exact is None and not entails(state.facts, form.shifted(-most)):
                raise Uncertain(loop.op, "the iteration of a loop around is not known well enough")
            key.append((x, most, False) if exact is None else (x, exact, True))
        return tuple(key)

    @staticmethod
    def _in(sample: Sample, cuts: Sequence[Cut]) -> bool:
        return all(sample[x] == v if exact else sample[x] >= v for x, v, exact in cuts)

    def _samples(self, loop: Loop, cuts: Sequence[Cut]) -> list[Sample]:
        return [each for each in self.sampler.seen.get(loop, []) if self._in(each, cuts)]

    def _shapes(self, loop: Loop, cuts: tuple[Cut, ...], state: State) -> tuple[Shape, ...]:
        """What a state says of variables that no one form tells in all runs; only of those that few forms tell."""
        if (loop, cuts) not in self.unclear:
            known, _ = self._proposed(loop, cuts, self._samples(loop, cuts))
            self.unclear[loop, cuts] = {x: {} for x in loop.live if not known.get(x)}
        found: list[Shape] = []
        for x, seen in self.unclear[loop, cuts].items():
            form = self._shape(state, state.of(x))
            if form is not None and (form in seen or len(seen) < SHAPES):
                seen[form] = None
                found.append((x, form))
        return tuple(found)

    def _shape(self, state: State, form: Form) -> Form | None:
        """The same over counters: a number, one and more, or two and more."""
        if not form.terms:
            return form
        ghosts = list(self.stream.ghosts)
        for y in ghosts:
            if not (rest := form - state.of(y)).terms:
                return variable(y).shifted(rest.constant)
        for y in ghosts:
            for z in ghosts:
                for sign in (1, -1):
                    if y != z and not (rest := form - state.of(y) - state.of(z).scaled(sign)).terms:
                        return (variable(y) + variable(z).scaled(sign)).shifted(rest.constant)
        return None

    # Candidates.

    def _proposed(
        self, loop: Loop, cuts: Sequence[Cut], samples: Sequence[Sample]
    ) -> tuple[dict[int, list[Form]], list[Form]]:
        """What variables may be, and what may be 0 or more."""
        ghosts = self.stream.ghosts
        facts = [variable(x).shifted(-v) for x, v, _ in cuts]
        facts += [number(v) - variable(x) for x, v, exact in cuts if exact]
        if not samples:
            return {}, facts
        known: dict[int, list[Form]] = {}
        for number_of, x in enumerate(ghosts):
            spans = self._spans() if ghosts[x].kind == "Sent" else []
            known[x] = list(_fits(x, list(ghosts)[:number_of], samples, ghosts[x].kind == "Past", spans))
        for x in loop.live:
            known[x] = list(_fits(x, list(ghosts), samples, True, self._spans()))
        likely = [*self._ordered(), *self._bounds(), *self._of_unknown(loop, known, samples)]
        facts += [each for each in likely if all(each.value(sample) >= 0 for sample in samples)]
        return known, facts

    def _spans(self) -> list[tuple[int, int]]:
        """Entries of loops, and those at barriers: what counts in between is a multiple of the difference."""
        of, ghosts = self.variable_of, self.stream.ghosts
        return [(of[Ghost("Entries", (g.of[0],))], x) for x, g in ghosts.items() if g.kind == "Base"]

    def _ordered(self) -> Iterator[Form]:
        """Counters that may be ordered."""
        of = self.variable_of
        for x, ghost in self.stream.ghosts.items():
            yield variable(x).shifted(-1)
            yield variable(x)
            match ghost.kind, ghost.of:
                case "Iteration", (l,):
                    yield variable(of[Ghost("Entries", (l,))]) - variable(x)
                case "Past", (c, k, l):
                    yield variable(of[Ghost("Entries", (l,))]) - variable(x)
                    if k > 1:
                        yield variable(of[Ghost("Past", (c, k - 1, l))]) - variable(x)
                case "Base", (l, *_):
                    yield variable(of[Ghost("Entries", (l,))]) - variable(x)
                    for past, other in of.items():
                        if past.kind == "Past" and past.of[2] == l:
                            yield variable(other) - variable(x)
                case _:
                    pass

        for need in (need for needs in self.model.needs.values() for need in needs if need.inner is not None):
            ghosts = [Ghost("Past", (need.carrier or 0, k, need.loop)) for k in (need.k, need.k + 1)]
            ghosts.append(Ghost("Iteration", (need.inner or 0,)))
            if all(ghost in of for ghost in ghosts):
                most, least, inner = (variable(of[ghost]) for ghost in ghosts)
                form = (least + inner).shifted(-need.d)
                yield from (most - least, most - form, form - most, form - least, least - form)

    def _bounds(self) -> Iterator[Form]:
        for each in self.model.gatherings.values():
            base = self.variable_of.get(Ghost("Base", (each.loop, each.barrier, 0)))
            if base is not None:
                since = variable(self.variable_of[Ghost("Entries", (each.loop,))]) - variable(base)
                yield number(each.every - 1) - since
                yield number(each.every) - since
        for x, ghost in self.stream.ghosts.items():
            if ghost.kind == "Entries" and ghost.of[0] in self.model.maxima:
                yield number(self.model.maxima[ghost.of[0]]) - variable(x)

    def _of_unknown(self, loop: Loop, known: dict[int, list[Form]], samples: Sequence[Sample]) -> Iterator[Form]:
        """Bounds of variables that no form tells."""
        for x in loop.live:
            if not known[x]:
                yield variable(x)
                for y in self.stream.ghosts:
                    yield variable(x) - variable(y)
                    yield variable(y) - variable(x)


def _fits(
    x: int, ghosts: Sequence[int], samples: Sequence[Sample], pairs: bool, spans: Sequence[tuple[int, int]]
) -> Iterator[Form]:
    """The forms over counters that tell a variable in all samples: of one, of two, or of the difference of two."""
    values = [sample[x] for sample in samples]
    if len(set(values)) == 1:
        yield number(values[0])
    columns = {y: [sample[y] for sample in samples] for y in ghosts}
    for y in ghosts:
        if (form := _line(values, columns[y], y)) is not None:
            yield form
    for y, z in spans:
        line = _line(values, [sample[y] - sample[z] for sample in samples], y)
        if line is not None:
            yield line - variable(z).scaled(line.coefficient(y))
    if pairs:
        for y in ghosts:
            for sign in (1, -1):
                rest = [value - sign * each for value, each in zip(values, columns[y], strict=True)]
                for z in ghosts:
                    if z != y and (form := _line(rest, columns[z], z)) is not None:
                        yield form + variable(y).scaled(sign)


def _line(values: Sequence[int], column: Sequence[int], y: int) -> Form | None:
    """`a * y + c`, where all values are that and not all are the same."""
    first = next((i for i, each in enumerate(column) if each != column[0]), None)
    if first is None:
        return None
    slope, left = divmod(values[first] - values[0], column[first] - column[0])
    if left or not slope:
        return None
    constant = values[0] - slope * column[0]
    fits = all(value == slope * each + constant for value, each in zip(values, column, strict=True))
    return variable(y).scaled(slope).shifted(constant) if fits else None
