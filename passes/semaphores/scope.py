"""The counters of a stream at the place where it is written, and the thresholds that follow from them."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr
from xdsl.ir import SSAValue

from mpkc.dialects.sem_structure import Loop, LoopKind
from mpkc.passes.semaphores.counters import Counter, Counts
from mpkc.passes.semaphores.needs import Form, Need
from mpkc.passes.semaphores.plan import Plan
from mpkc.passes.semaphores.signals import Signals
from mpkc.passes.semaphores.thresholds import Arithmetic, Predicate

State = dict[Counter, SSAValue]


class Scope:
    """What a stream knows at one place of it.

    Attributes:
        state: the value of each counter.
        indices: of each scf.for around, the index, its lower bound and its step.
        signals: what other engines signal, for semaphores of a whole engine.
    """

    def __init__(self, plan: Plan, math: Arithmetic, signals: list[Signals]):
        self.plan, self.math, self.signals = plan, math, signals
        self.state: State = {}
        self.indices: dict[Loop, tuple[SSAValue, SSAValue, SSAValue]] = {}

    def threshold(self, need: Need) -> SSAValue:
        """What the semaphore of the producer must have reached."""
        producer, math = need.producer, self.math
        group = self.plan.groups.of[producer]
        if group.kind == "barrier":
            return math.constant(self.plan.positions[producer][0])
        if group.kind == "per-engine":
            signals = next(each for each in self.signals if each.engine == group.engine)
            number = signals.number(producer, math)
            if need.form is Form.NOW:
                return number
            assert need.loop is not None
            number = math.less(number, need.k * signals.signals_in(producer.loop))
            return math.product(self.past(need.loop, need.k), number)
        mask: SSAValue | None = None
        positive = False
        match need.form:
            case Form.NOW:
                owed, positive = self.entries(producer.loop), producer.loop in need.consumer.loop.path
            case Form.BEFORE:
                owed = math.less(self.entries(producer.loop), 1)
            case Form.BACK if need.earlier:
                owed = self.recent(need)
            case Form.BACK:
                owed, positive = math.less(self.entries(producer.loop), need.k), True
                mask = self.past(need.loop, need.k)
            case Form.PASSED:
                owed = self.entries(producer.loop)
                mask = None if need.earlier else self.past(need.loop, need.k)
            case Form.ENDED:
                owed = self.ended(Counts.STARTED if need.earlier else Counts.ENDED, need, need.k)
            case Form.SLIDING:
                owed = math.less(self.entries(producer.loop), need.k, reached=False)
            case Form.CLAMPED:
                owed, mask = self.clamped(need)
        return math.threshold(owed, mask, self.plan.positions[producer], positive)

    def entries(self, loop: Loop) -> SSAValue:
        """How often `loop` was entered; the program is entered once."""
        return self.math.constant(1) if loop.parent is None else self.state[Counter(Counts.ENTRIES, loop)]

    def ended(self, counts: Counts, need: Need, j: int) -> SSAValue:
        return self.state[Counter(counts, need.producer.loop, around=need.loop, j=j)]

    def recent(self, need: Need) -> SSAValue:
        """All entries but those of the last k iterations, or of the fewer that this run of the loop had."""
        math, entries = self.math, self.entries(need.producer.loop)
        assert need.loop is not None
        if need.k == 1:
            return math.less(entries, 1)
        run = math.add(self.iteration(need.loop), math.constant(1, IndexType()))
        least = math.binary(arith.MinUIOp, run, math.constant(need.k, IndexType()))
        last = math.from_index(least)
        if math.wrapping:
            last = math.binary(arith.MinUIOp, last, entries)
        return math.sub(entries, last)

    def clamped(self, need: Need) -> tuple[SSAValue, SSAValue]:
        """What is owed up to an inner iteration of the iteration k back, and the mask.

        That iteration entered the inner loop from `before` to `after`; up to d iterations back of the inner one.
        """
        math, inner = self.math, need.inner
        assert inner is not None
        after, before = (self.ended(Counts.STARTED, need, j) for j in (need.k, need.k + 1))
        run = math.index(math.sub(after, before))
        upto = self.iteration(inner)
        shift = math.constant(1 - need.d, IndexType())
        part = math.binary(arith.MinUIOp, math.add(upto, shift), run)
        owed = math.add(before, math.from_index(part))
        mask = self.past(need.loop, need.k)
        return owed, math.product(mask, self.past(inner, need.d)) if need.d > 0 else mask

    def past(self, loop: Loop | None, k: int) -> SSAValue:
        """1 once `loop` is beyond its iteration k in this trip, 0 before."""
        assert loop is not None
        return self.math.truth(Predicate.AT_LEAST, self.iteration(loop), self.math.constant(k, IndexType()))

    def iteration(self, loop: Loop) -> SSAValue:
        """The iteration of `loop` in this trip, from 0, as an index."""
        if loop.kind is LoopKind.WHILE:
            return self.math.sub(self.state[Counter(Counts.TRIP, loop)], self.math.constant(1, IndexType()))
        index, lower, step = self.indices[loop]
        if _constant(lower) != 0:
            index = self.math.sub(index, lower)
        return index if _constant(step) == 1 else self.math.binary(arith.DivUIOp, index, step)


def _constant(value: SSAValue) -> int | None:
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr(value=IntAttr(data=number))):
            return number
        case _:
            return None
