"""Counters that the loops of a stream carry, and which of their multiples are worth being carried instead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from mpkc.dialects.sem_needs import yield_of
from mpkc.dialects.sem_streams import StreamOp
from mpkc.passes.scalar_folding import constant_of

ITERATIONS = 8  # that an inner loop is taken to have, for each of one around it
MOST_FACTORS = 6  # of one counter, beyond which none of its multiples is carried


@dataclass(frozen=True)
class Affine:
    """`value`, which is `factor * base + constant`, `base` being what a counter is somewhere.

    Attributes:
        user: what reads `base` itself, where it is that: `value` is `base` then.
        weight: how often it is computed, about.
    """

    base: SSAValue
    factor: int
    constant: int
    value: SSAValue
    user: Operation | None
    weight: int


@dataclass(frozen=True, eq=False)
class Carried:
    """What loops carry in place of a product: `factor` times a counter, and `constant` more."""

    factor: int
    constant: int
    uses: Sequence[Affine]


@dataclass(eq=False)
class Counter:
    """All that a counter is in the loops of a stream.

    Attributes:
        values: in loops, behind them, and where something was added.
        steps: what is added: what it was before, and how much more it is then.
        uses: all else that is computed from it.
        products: how often each product with a factor is computed, about.
    """

    values: list[SSAValue]
    steps: dict[SSAValue, tuple[SSAValue, int]]
    uses: list[Affine] = field(default_factory=list[Affine])
    products: dict[int, int] = field(default_factory=dict[int, int])

    def worth_carrying(self) -> list[Carried]:
        """The multiples whose being carried saves most operations; none where it saves none."""
        factors = sorted({use.factor for use in self.uses})
        if not 0 < len(factors) <= MOST_FACTORS:
            return []
        choices = [chosen for many in range(len(factors) + 1) for chosen in combinations(factors, many)]
        best = min(choices, key=lambda chosen: (self._cost(factors, chosen), len(chosen)))
        return [self._carried(factor) for factor in best]

    def _cost(self, factors: Sequence[int], chosen: Sequence[int]) -> int:
        """The operations that all its uses take."""
        left = [factor for factor in factors if factor not in chosen]
        cost = self._upkeep(left)
        for factor in left:
            cost += self.products.get(factor, 0) + self._additions(factor, 0)
        return cost + sum(self._upkeep([each]) + self._additions(each, self._carried(each).constant) for each in chosen)

    def _upkeep(self, factors: Sequence[int]) -> int:
        """The operations by which loops carry what the uses with some factors need of a counter."""
        cost, seen = 0, set[SSAValue]()
        work = [use.base for use in self.uses if use.factor in factors]
        while work:
            value = work.pop()
            if value in seen or constant_of(value) is not None:
                continue
            seen.add(value)
            if value in self.steps:
                work.append(self.steps[value][0])
                cost += _weight(value)
            elif isinstance(value, OpResult):
                assert isinstance(value.op, scf.ForOp)
                work.append(value.op.body.block.args[value.index + 1])
            else:
                loop, at = _carrying(value)
                end = yield_of(loop.body.block)
                work += [loop.iter_args[at], end.operands[at]]
                cost += 0 if self._goes_on(end.operands[at], value) else _weight_of(end)
        return cost

    def _goes_on(self, passed: SSAValue, arg: SSAValue) -> bool:
        """Whether what a loop carries becomes what is passed on, in the same register: by steps, or by loops in it."""
        while passed is not arg:
            if passed in self.steps:
                passed = self.steps[passed][0]
            elif isinstance(passed, OpResult) and isinstance(passed.op, scf.ForOp):
                passed = passed.op.iter_args[passed.index]
            else:
                return False
        return True

    def _additions(self, factor: int, constant: int) -> int:
        """The operations that it takes to get from a multiple and a constant to all that have other constants."""
        places = {(use.base, use.constant): use.weight for use in self.uses if use.factor == factor}
        return sum(weight for (_, other), weight in places.items() if other != constant)

    def _carried(self, factor: int) -> Carried:
        uses = [use for use in self.uses if use.factor == factor]
        constants = sorted({use.constant for use in uses})
        return Carried(factor, min(constants, key=lambda constant: self._additions(factor, constant)), uses)


class Counters:
    """Finds the counters of a stream: what scf.for carries from a constant on, adding constants.

    Attributes:
        found: those that are no more than that.
    """

    def __init__(self, stream: StreamOp):
        self.parents: dict[SSAValue, SSAValue] = {}
        self.steps: dict[SSAValue, tuple[SSAValue, int]] = {}
        self.others: set[SSAValue] = set()
        for op in stream.walk():
            if isinstance(op, scf.ForOp):
                self._carry(op)
        lost = {self._root(value) for value in self.others}
        together: dict[SSAValue, list[SSAValue]] = {}
        for value in self.parents:
            if (root := self._root(value)) not in lost:
                together.setdefault(root, []).append(value)
        self.found = [self._counter(values) for values in together.values()]

    def _carry(self, op: scf.ForOp) -> None:
        columns = zip(op.iter_args, op.body.block.args[1:], yield_of(op.body.block).operands, op.results, strict=True)
        for init, arg, passed, result in columns:
            if isinstance(arg.type, IntegerType):
                self._join(arg, result)
                for source in (init, passed):
                    if constant_of(source) is None:
                        self._join(arg, source)
                        self._follow(source)

    def _follow(self, value: SSAValue) -> None:
        """What is passed to a loop is carried by one, or a sum of such and a constant; else nothing is known of it."""
        if _is_carried(value):
            self._root(value)
        elif (found := _sum(value)) is not None:
            source, more = found
            if value not in self.steps:
                self.steps[value] = source, more
                self._join(value, source)
                self._follow(source)
        else:
            self.others.add(value)

    def _root(self, value: SSAValue) -> SSAValue:
        parent = self.parents.setdefault(value, value)
        while parent is not value:
            value, parent = parent, self.parents[parent]
        return value

    def _join(self, a: SSAValue, b: SSAValue) -> None:
        self.parents[self._root(a)] = self._root(b)

    def _counter(self, values: list[SSAValue]) -> Counter:
        steps = {value: self.steps[value] for value in values if value in self.steps}
        counter = Counter(values, steps)
        for value in values:
            for use in value.uses:
                self._use(counter, value, use.operation)
        return counter

    def _use(self, counter: Counter, base: SSAValue, user: Operation) -> None:
        if isinstance(user, scf.ForOp) or (isinstance(user, scf.YieldOp) and isinstance(user.parent_op(), scf.ForOp)):
            return
        result = user.results[0] if len(user.results) == 1 else None
        if result is not None and result in counter.steps:
            return
        if result is not None and (factor := _product(user, base)) is not None:
            counter.products[factor] = counter.products.get(factor, 0) + _weight(result)
            sums = [use.operation.results[0] for use in result.uses if _adds(use.operation)]
            for value in dict.fromkeys(sums):
                self._add(counter, base, factor, value)
            if any(not _adds(use.operation) for use in result.uses):
                counter.uses.append(Affine(base, factor, 0, result, None, _weight(result)))
        elif result is not None and _adds(user):
            self._add(counter, base, 1, result)
        else:
            counter.uses.append(Affine(base, 1, 0, base, user, _weight_of(user)))

    def _add(self, counter: Counter, base: SSAValue, factor: int, value: SSAValue) -> None:
        found = _sum(value)
        assert found is not None
        counter.uses.append(Affine(base, factor, found[1], value, None, _weight(value)))


def _is_carried(value: SSAValue) -> bool:
    """Whether a loop carries a value, or has it as a result."""
    match value:
        case BlockArgument(block=block, index=index):
            return isinstance(block.parent_op(), scf.ForOp) and index > 0
        case OpResult(op=scf.ForOp()):
            return True
        case _:
            return False


def _carrying(value: SSAValue) -> tuple[scf.ForOp, int]:
    """The loop that carries a value in its iterations, and its number there."""
    assert isinstance(value, BlockArgument)
    loop = value.block.parent_op()
    assert isinstance(loop, scf.ForOp)
    return loop, value.index - 1


def _sum(value: SSAValue) -> tuple[SSAValue, int] | None:
    """A value and the constant that is added to it."""
    match value:
        case OpResult(op=arith.AddiOp(lhs=lhs, rhs=rhs)):
            for source, other in ((lhs, rhs), (rhs, lhs)):
                if (number := constant_of(other)) is not None:
                    return source, number
        case _:
            pass
    return None


def _adds(op: Operation) -> bool:
    return isinstance(op, arith.AddiOp) and _sum(op.result) is not None


def _product(op: Operation, base: SSAValue) -> int | None:
    """The constant that a value is multiplied by."""
    if not isinstance(op, arith.MuliOp):
        return None
    return constant_of(op.rhs if op.lhs is base else op.lhs)


def _weight(value: SSAValue) -> int:
    assert isinstance(value, OpResult)
    return _weight_of(value.op)


def _weight_of(op: Operation) -> int:
    """How often an operation runs, about."""
    return ITERATIONS ** sum(isinstance(parent, scf.ForOp | scf.WhileOp) for parent in _around(op))


def _around(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()
