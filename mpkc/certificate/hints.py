"""What holds at the heads of a stream's loops: candidates from runs, of which those are kept that the checker sees.

A variable may be a number, or a counter times a number and more; counters may be ordered. Where a value is another one
in the first iterations of a loop, each of these has a hint of its own (`Regimes`).
"""

from collections.abc import Iterator, Sequence

from mpkc.certificate.forms import Form, entails, number, variable
from mpkc.certificate.samples import Sample, Sampler
from mpkc.certificate.statements import (
    Annotation,
    Block,
    Choice,
    Enter,
    Ghost,
    Issue,
    Let,
    Loop,
    Model,
    Stream,
    Wait,
)
from mpkc.certificate.symbolic import ROOT, Execution, State, Uncertain, same

RUNS, ROUNDS = 40, 400
Key = tuple[tuple[int, int, bool], ...]
"""Of carriers' variables: the iteration, and whether it is that or any later one."""


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
            case Enter() | Issue():
                pass
    return live


class _Candidates:
    """For one loop in one regime.

    Attributes:
        known: what each variable or counter may be, the likeliest first.
        facts: what may be 0 or more.
    """

    def __init__(self, known: dict[int, list[Form]], facts: list[Form]):
        self.known, self.facts = known, facts
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
            dropped = len(left) < len(self.facts)
            self.facts = left
        if dropped:
            self.annotation = self._annotated()
        return dropped

    @staticmethod
    def _shown(state: State, fact: Form) -> bool:
        return entails(state.facts, fact.substituted(state.of))

    def _told(self) -> list[Form]:
        return [fact.substituted(self._of) for fact in self.facts]

    def _of(self, x: int) -> Form:
        forms = self.known.get(x)
        return forms[0].substituted(self._of) if forms else variable(x)

    def _annotated(self) -> Annotation:
        facts = [fact for fact in dict.fromkeys(self._told()) if not fact.trivial]
        return Annotation({x: self._of(x) for x, forms in self.known.items() if forms}, facts)


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
        self.changed = False
        self.depth: dict[int, int] = {}
        for need in (need for needs in model.needs.values() for need in needs if need.carrier is not None):
            past = Ghost("Past", (need.carrier, need.k, need.loop)) in self.variable_of
            counted = Ghost("Iteration", (need.carrier,)) in self.variable_of
            if outermost and counted or past and model.parents.get(need.carrier, ROOT) != ROOT:
                self.depth[need.carrier] = max(self.depth.get(need.carrier, 0), need.k)

    def arrive(self, loop: Loop, state: State) -> Annotation:
        """The annotation of the regime that a state is in, weakened to what it shows."""
        if state.pending:
            raise Uncertain(loop.op, "a wait stands in front of a loop")
        key = self._regime(loop, state)
        found = self.candidates.get((loop, key))
        if found is None:
            samples = [each for each in self.sampler.seen.get(loop, []) if self._in(each, key)]
            found = self.candidates[loop, key] = self._proposed(loop, key, samples)
            loop.hints.append(found.annotation)
            self.changed = True
        before = found.annotation
        while found.weaken(state):
            self.changed = True
        if found.annotation is not before:
            loop.hints = [found.annotation if hint is before else hint for hint in loop.hints]
        return found.annotation

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

    def _regime(self, loop: Loop, state: State) -> Key:
        key: list[tuple[int, int, bool]] = []
        for x, least, most in self._cuts(loop):
            form = state.of(x)
            exact = next((v for v in range(least, most) if same(state.facts, form, number(v))), None)
            if exact is None and not entails(state.facts, form.shifted(-most)):
                raise Uncertain(loop.op, "the iteration of a loop around is not known well enough")
            key.append((x, most, False) if exact is None else (x, exact, True))
        return tuple(key)

    @staticmethod
    def _in(sample: Sample, key: Key) -> bool:
        return all(sample[x] == v if exact else sample[x] >= v for x, v, exact in key)

    # Candidates.

    def _proposed(self, loop: Loop, key: Key, samples: Sequence[Sample]) -> _Candidates:
        ghosts = self.stream.ghosts
        facts = [variable(x).shifted(-v) for x, v, _ in key]
        facts += [number(v) - variable(x) for x, v, exact in key if exact]
        if not samples:
            return _Candidates({}, facts)
        known: dict[int, list[Form]] = {}
        for number_of, x in enumerate(ghosts):
            known[x] = list(_fits(x, list(ghosts)[:number_of], samples, pairs=ghosts[x].kind == "Past"))
        for x in loop.live:
            known[x] = list(_fits(x, list(ghosts), samples, pairs=True))
        likely = [*self._ordered(), *self._bounds(), *self._of_unknown(loop, known, samples)]
        facts += [each for each in likely if all(each.value(sample) >= 0 for sample in samples)]
        return _Candidates(known, facts)

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
                case _:
                    pass

    def _bounds(self) -> Iterator[Form]:
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


def _fits(x: int, ghosts: Sequence[int], samples: Sequence[Sample], pairs: bool) -> Iterator[Form]:
    """The forms over counters that tell a variable in all samples."""
    values = [sample[x] for sample in samples]
    if len(set(values)) == 1:
        yield number(values[0])
    columns = {y: [sample[y] for sample in samples] for y in ghosts}
    for y in ghosts:
        if (form := _line(values, columns[y], y)) is not None:
            yield form
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
