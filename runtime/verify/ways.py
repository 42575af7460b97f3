"""All ways of one engine through its stream at once, as terms of z3, and what must hold at each instruction.

A loop is gone through once, from a head at which it carries anything that its invariants allow; it may be left there at
any time: what holds holds for all trip counts. A wait in front of a loop is judged in its first iteration besides.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mpkc.dialects.scalars import INDEX_BITS, bits_of
from mpkc.dialects.sem_structure import Loop
from mpkc.runtime.verify.ghosts import Ghosts, Key, State
from mpkc.runtime.verify.integers import Value, both, choose, is_truth, negated, reduced
from mpkc.runtime.verify.invariants import Invariant, Relation
from mpkc.runtime.verify.observed import Head, body_of, cases_of
from mpkc.runtime.verify.places import Place
from mpkc.runtime.verify.scopes import AGES, Bounds, Duty, Formula, Obligation, Scope
from mpkc.runtime.verify.smt import smt
from mpkc.runtime.verify.walks import Awaited, Goal, Steps, Walk, Wrong

z3 = smt()


class Way(Walk):
    """All ways through the stream of one engine.

    Args:
        invariants: of each loop, to be weakened; none where no run has seen a loop.
        effort: of z3 for one question, in its own units: the same on every machine, whatever its load.
    """

    def __init__(
        self,
        ghosts: Ghosts,
        steps: Steps,
        invariants: Mapping[Operation, Invariant],
        bounds: Bounds,
        effort: int,
    ):
        self.fresh = 0
        self.solver = z3.Solver()
        self.solver.set("rlimit", effort)
        self.scope: Scope = Scope()
        self.bounds = bounds
        self.invariants = invariants
        self.literals: dict[Operation, Formula] = {op: self._new("inv", z3.Bool) for op in invariants}
        self.parts: dict[tuple[Operation, Relation], Formula] = {}
        self.heads: dict[Operation, list[tuple[Scope, list[Value]]]] = {op: [] for op in invariants}
        self.obligations: list[Obligation] = []
        self.duties: list[Duty] = []
        self.again = False
        self.ahead: Ahead | None = None
        self.strides: list[Stride] = []
        super().__init__(ghosts, steps)

    # What is known.

    def unknown(self, type_: Attribute) -> Value:
        bits = bits_of(type_)
        if bits == 1:
            return self._new("b", z3.Bool)
        value = self._new("x", z3.Int)
        low = -(1 << (bits - 1))
        self._fact(z3.And(low <= value, value < -low))
        return value

    def _new(self, name: str, sort: Callable[[str], Value]) -> Value:
        self.fresh += 1
        return sort(f"{name}.{self.fresh}")

    def _like(self, name: str, value: Value) -> Value:
        return self._new(name, z3.Bool if is_truth(value) else z3.Int)

    def _named(self, value: Value) -> Value:
        """A name for a large term."""
        if isinstance(value, int) or z3.is_const(value):
            return value
        named = self._like("t", value)
        self._fact(named == value)
        return named

    def _fact(self, fact: Formula, scope: Scope | None = None) -> None:
        """What holds wherever the way comes here, or in another scope."""
        if fact is not True:
            scope = scope or self.scope
            premises = (*scope.literals[-1:], *scope.path)
            self.solver.add(z3.Implies(z3.And(*premises), fact) if premises else fact)

    @contextmanager
    def _iteration(self) -> Generator[None]:
        """In any one iteration of a loop."""
        outer = self.scope
        literal = self._new("in", z3.Bool)
        self._fact_of(literal, outer)
        self.scope = Scope((*outer.literals, literal))
        yield
        self.scope = outer

    def _fact_of(self, literal: Formula, outer: Scope) -> None:
        """Who is in the iteration is where the loop is."""
        if outer.path:
            self.solver.add(z3.Implies(literal, z3.And(*outer.path)))

    @contextmanager
    def _behind(self, condition: Formula) -> Generator[None]:
        """Where a condition holds."""
        outer = self.scope
        self.scope = Scope(outer.literals, (*outer.path, condition))
        yield
        self.scope = Scope(self.scope.literals, outer.path)

    def _past(self) -> None:
        """From here on a loop is past. Its invariants hold there because they hold where it is reached, so what shows
        these may not take for given what is known there."""
        self.scope = Scope((*self.scope.literals, self._new("past", z3.Bool)), self.scope.path)

    # The way.

    def issue(self, place: Place, goals: Sequence[Goal]) -> None:
        if self.ahead is not None:
            self._settle_ahead(self.ahead, place, goals)
            raise Reached
        if not self.again:
            self.duties += [Duty(goal, self.scope, dict(self.state)) for goal in goals]

    def control(self, op: Operation) -> None:
        if self.ahead is not None:
            self._first_iteration(self.ahead, op)
            return
        if self.waits:
            self._look_ahead(op)
        match op:
            case scf.ForOp():
                results = self._for(op)
            case scf.WhileOp():
                results = self._while(op)
            case _:
                results = self._branches(op)
        self.write(op.results, results)

    def _for(self, op: scf.ForOp) -> list[Value | None]:
        variable, *carried = op.body.block.args
        low, high, step = (reduced(self.values[v], bits_of(v.type), True) for v in (op.lb, op.ub, op.step))
        low, step = self._named(low), self._named(step)
        head, state = self._reach(op, self.read(op.iter_args), carried)
        with self._iteration():
            self._at_head(op, head, state, carried)
            self._index(op, variable, low, high, step)
            passed = self.block(op.body.block)
            self._back(op, head, passed, carried)
        self._past()
        self._at_head(op, head, state, carried)
        if not (isinstance(low, int) and isinstance(high, int) and isinstance(step, int)):
            return self.read(carried)
        loop, trips = self.places.heads[op.body.block][0], len(range(low, high, max(step, 1)))
        if not trips or all(key[0] != "count" for key in head.counters):
            self._fact(self.state["iteration", loop] == trips)
            return self.read(carried)
        # What is last counted in the loop is only known behind an iteration, and there is one.
        self._fact(self.state["iteration", loop] == trips - 1)
        outer, self.again = self.again, True
        self._index(op, variable, low, high, step)
        passed = self.block(op.body.block)
        self.again = outer
        return passed

    def _look_ahead(self, op: Operation) -> None:
        """Waits in front of a loop are those of the first instruction in it: judge them there, in its first iteration,
        and come back."""
        waits, state, scope = self.waits, self.state, self.scope
        self.ahead, self.state = Ahead(waits, state, scope), dict(state)
        with suppress(Reached):
            self._first_iteration(self.ahead, op)
        self.ahead, self.waits, self.state, self.scope = None, [], state, scope

    def _first_iteration(self, ahead: "Ahead", op: Operation) -> None:
        assert isinstance(op, scf.ForOp), "verified"
        variable, *carried = op.body.block.args
        low, high = (reduced(self.values[v], bits_of(v.type), True) for v in (op.lb, op.ub))
        runs = low < high
        ahead.runs = both(ahead.runs, runs)
        self.scope = Scope(self.scope.literals, (*self.scope.path, *(() if runs is True else (runs,))))
        self.ghosts.start(self.state, self.places.heads[op.body.block][0])
        self.write([variable, *carried], [low, *self.read(op.iter_args)])
        self.block(op.body.block)

    def _settle_ahead(self, ahead: "Ahead", place: Place, goals: Sequence[Goal]) -> None:
        """The waits are not too late for the instruction at `place`, and it surely comes, or they wait for nothing."""
        if self.again:
            return
        for wait, goal in zip(ahead.waits, goals, strict=False):
            holds = negated(both(negated(ahead.runs), negated(wait.reached <= wait.known)))
            skipped = Goal(Wrong.SKIPPED, holds, place, None, wait.semaphore, wait.threshold)
            self.duties += [Duty(skipped, ahead.scope, ahead.state), Duty(goal, self.scope, dict(self.state))]

    def _index(self, op: scf.ForOp, variable: SSAValue, low: Value, high: Value, step: Value) -> None:
        """The index of an iteration, from the number of iterations before it."""
        loop = self.places.heads[op.body.block][0]
        number = self.state["iteration", loop]
        if isinstance(step, int):
            offset = number * step
        else:
            offset = self._new("p", z3.Int)
            self._fact(z3.And(step >= 1, offset >= number))
            self.strides.append(Stride(offset, number, self.values[op.step], low - self.values[op.lb]))
        self.values[variable] = low + offset
        self._fact(low + offset < high)

    def _while(self, op: scf.WhileOp) -> list[Value | None]:
        before, after = op.before_region.block, op.after_region.block
        head, state = self._reach(op, self.read(op.arguments), before.args)
        with self._iteration():
            self._at_head(op, head, state, before.args)
            goes_on, *passed = self.block(before)
            with self._behind(goes_on):
                self.write(after.args, passed)
                passed = self.block(after)
                self._back(op, head, passed, before.args)
        self._past()
        outer, self.again = self.again, True
        self._at_head(op, head, state, before.args)
        goes_on, *passed = self.block(before)
        self._fact(negated(goes_on))
        self.again = outer
        return passed

    def _reach(self, op: Operation, passed: Sequence[Value | None], carried: Sequence[SSAValue]) -> tuple[Head, State]:
        """A loop is reached: its candidates must hold."""
        block = body_of(op)
        if self.places.heads[block]:
            self.ghosts.start(self.state, self.places.heads[block][0])
        head = Head.of(op, self.ghosts)
        self.write(carried, passed)
        self._oblige(op, head)
        return head, dict(self.state)

    def _back(self, op: Operation, head: Head, passed: Sequence[Value | None], carried: Sequence[SSAValue]) -> None:
        self.write(carried, passed)
        self._oblige(op, head)

    def _oblige(self, op: Operation, head: Head) -> None:
        if not self.again and op in self.invariants:
            columns = self.invariants[op].columns
            row = columns.of(self.state, self.read(head.arguments))
            self.obligations.append(Obligation(op, self.scope, row))

    def _at_head(self, op: Operation, head: Head, entry: State, carried: Sequence[SSAValue]) -> None:
        """At the head of a loop, with anything that its invariants allow."""
        self.state = dict(entry)
        for key in head.counters:
            self.state[key] = self._new("-".join(map(str, key[:1])), z3.Int)
            if key[0] != "iteration":
                self._fact(self.state[key] >= entry[key])
        for value in carried:
            if value in head.arguments:
                self.values[value] = self._new("c", z3.Bool if bits_of(value.type) == 1 else z3.Int)
        if op in self.invariants:
            row = self.invariants[op].columns.of(self.state, self.read(head.arguments))
            self.heads[op].append((self.scope, row))
        for key in head.counters:
            self._plain(key)

    def _plain(self, key: Key) -> None:
        """What the meaning of a counter says of it."""
        state = self.state
        value = state[key]
        self._fact(value >= 0)
        match key:
            case ("iteration", Loop() as loop):
                self._fact(value <= state["entries", loop])
                self._limit(loop)
            case ("met", _, Loop() as loop):
                self._fact(value <= state["entries", loop])
            case ("past", Loop() as loop, quantity, int() as j):
                self._fact(value <= self.ghosts.past(state, loop, cast(Key, quantity), j - 1))
            case ("retired", str() as name):
                self._fact(value <= state["entries", self.ghosts.awaited[name].loop])
            case ("reset", str() as semaphore):
                self._fact(value <= state["known", semaphore])
            case ("entries", Loop(parent=around) as loop):
                self._limit(loop)
                if ("entries", around) in state:
                    self._fact(z3.Implies(value > 0, state["entries", around] > 0))
            case _:
                pass

    def _limit(self, loop: Loop) -> None:
        """How often a loop runs at most."""
        self._fact(self.state["entries", loop] <= self.bounds.entries.get(loop.name, AGES))
        if loop.counted and (most := self.bounds.trips.get(loop.name)) is not None:
            self._fact(self.state["iteration", loop] <= most)

    def entered(self, loop: Loop) -> None:
        self._limit(loop)

    def compute(self, op: Operation) -> None:
        super().compute(op)
        if isinstance(op, arith.DivUIOp | arith.DivSIOp):
            dividend, divisor = self.read(op.operands)
            for stride in self.strides:
                if divisor is stride.step and dividend is not None and stride.covers(dividend):
                    exact = True if isinstance(op, arith.DivUIOp) else stride.offset < 1 << (INDEX_BITS - 1)
                    self.values[op.result] = choose(exact, stride.number, self.values[op.result])

    def _branches(self, op: Operation) -> list[Value | None]:
        """A conditional: each branch under its condition, then what they come to."""
        branches = list(self._conditions(op))
        entry = self.state
        ends: list[tuple[Formula, State, list[Value | None]]] = []
        for condition, region in branches:
            if condition is False:
                continue
            self.state = dict(entry)
            with self._behind(condition):
                passed = self.block(region.block) if region.blocks else []
                ends.append((condition, self.state, passed))
        *others, (_, state, passed) = ends
        for condition, other, values in reversed(others):
            state = {key: self._joined(condition, other[key], value) for key, value in state.items()}
            passed = [self._joined(condition, a, b) for a, b in zip(values, passed, strict=True)]
        self.state = state
        return passed

    def _joined(self, condition: Formula, a: Value | None, b: Value | None) -> Value | None:
        if a is b or a is None or b is None or (isinstance(a, int) and isinstance(b, int) and a == b):
            return a
        return self._named(choose(condition, a, b))

    def _conditions(self, op: Operation) -> Iterator[tuple[Formula, Region]]:
        taken = self.values[op.operands[0]]
        if isinstance(op, scf.IfOp):
            yield taken, op.true_region
            yield negated(taken), op.false_region
            return
        assert isinstance(op, scf.IndexSwitchOp)
        selected = reduced(taken, INDEX_BITS, True)
        others: Formula = True
        for case, region in cases_of(op).items():
            yield selected == case, region
            others = both(others, negated(selected == case))
        yield others, op.default_region


class Reached(Exception):
    """The first instruction behind waits has been found."""


@dataclass
class Ahead:
    """Waits in front of a loop, and where they stand.

    Attributes:
        runs: whether the loop has an iteration, and each in it that its first instruction is in.
    """

    waits: Sequence[Awaited]
    state: State
    scope: Scope
    runs: Formula = True


@dataclass(frozen=True)
class Stride:
    """The index of a loop whose step is known when it runs, for the division that makes a number of it again.

    Attributes:
        offset: from the lower bound.
        number: of the iterations before.
        step: what divides.
        wrap: the lower bound less what stands for it: a multiple of what an index holds.
    """

    offset: Value
    number: Value
    step: Value
    wrap: Value

    def covers(self, dividend: Value) -> bool:
        """Whether a dividend is the offset, as integers of its width."""
        return any(_same(dividend - wrap, self.offset) for wrap in (0, self.wrap))


def _same(a: Value, b: Value) -> bool:
    """Whether two terms are the same number."""
    difference = z3.simplify(a - b)
    return z3.is_int_value(difference) and difference.as_long() == 0
