"""Intervals that hold the integers of a program, from constants, declared maxima and two's complement arithmetic."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_value, label_of
from mpkc.dialects.scalars import bits_of, evaluate, is_scalar
from mpkc.dialects.sem_maxima import maxima_of, most_of

Interval = tuple[int, int]
"""The least and the greatest value, both included; signed, except that an i1 is 0 or 1."""

FEW = 4  # combinations of operands that are simply all computed


def whole(type_: Attribute) -> Interval:
    """All values of an integer type."""
    bits = bits_of(type_)
    return (0, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def join(intervals: Iterable[Interval]) -> Interval:
    """The least interval that holds all of `intervals`, of which there is at least one."""
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)


class Intervals:
    """The interval of each integer of a program, computed where it is asked for; linear in all.

    What control flow passes on has the values of all that flows there, through any number of loops. Where
    arithmetic feeds on itself around a loop, its own value is taken for unknown.
    """

    def __init__(self, program: Operation):
        """For a verified sem.program or tile program."""
        assert isinstance(program, sem.ProgramOp | tile.ProgramOp)
        self._known: dict[SSAValue, Interval] = {}
        self._maxima = maxima_of(program)
        for name, arg in zip(program.argument_names, program.body.block.args, strict=True):
            if name in self._maxima:
                self._known[arg] = (0, self._maxima[name])

    def of(self, value: SSAValue) -> Interval:
        """The interval of an integer `value`."""
        open_: list[tuple[SSAValue, Sequence[SSAValue], Iterator[SSAValue]]] = []
        begun: set[SSAValue] = set()

        def begin(current: SSAValue) -> None:
            sources = self._sources(current)
            begun.add(current)
            open_.append((current, sources, iter(sources)))

        if value not in self._known:
            begin(value)
        while open_:
            current, sources, left = open_[-1]
            missing = next((source for source in left if source not in self._known and source not in begun), None)
            if missing is not None:
                begin(missing)
            else:
                open_.pop()
                self._known[current] = self._compute(current, [self._read(source) for source in sources])
        return self._known[value]

    def constant(self, value: SSAValue) -> int | None:
        """The one value that the integer `value` can have, if that is so."""
        low, high = self.of(value)
        return low if low == high else None

    def _read(self, value: SSAValue) -> Interval:
        """What is known of `value`, also while it is being computed."""
        return self._known.get(value, whole(value.type))

    def _sources(self, value: SSAValue) -> Sequence[SSAValue]:
        """The values from which the interval of `value` is computed."""
        if (loop := _induction(value)) is not None:
            return loop.lb, loop.ub, loop.step
        if _flowing(value):
            return self._leaves(value)
        return value.op.operands if isinstance(value, OpResult) and is_scalar(value.op) else ()

    def _leaves(self, value: SSAValue) -> list[SSAValue]:
        """All that flows into `value`, through control flow alone, up to what is computed or known."""
        found: list[SSAValue] = []
        seen, work = {value}, [value]
        while work:
            for source in _flowing(work.pop()):
                if source in seen:
                    continue
                seen.add(source)
                if source in self._known or not _flowing(source):
                    found.append(source)
                else:
                    work.append(source)
        return found

    def _compute(self, value: SSAValue, sources: list[Interval]) -> Interval:
        if (loop := _induction(value)) is not None:
            (low, _), (_, high), (_, step) = sources
            most = most_of(loop)
            if most is not None:
                high = min(high, sources[0][1] + max(most - 1, 0) * max(step, 1) + 1)
            return low, max(low, high - 1)
        if _flowing(value):
            return join(sources)
        if isinstance(value, OpResult):
            if is_scalar(value.op):
                return computed(value.op, sources)
            if is_value(value.op) and (maximum := self._maxima.get(label_of(value.op) or "")) is not None:
                return 0, maximum
        return whole(value.type)


def _induction(value: SSAValue) -> scf.ForOp | None:
    """The loop whose index `value` is."""
    if isinstance(value, BlockArgument) and value.index == 0:
        loop = value.block.parent_op()
        return loop if isinstance(loop, scf.ForOp) else None
    return None


def _flowing(value: SSAValue) -> list[SSAValue]:
    """The values that control flow passes on as `value`; none where it is no such value."""
    if isinstance(value, OpResult):
        match value.op:
            case scf.ForOp() as op:
                return [op.iter_args[value.index], *_passed(op.body.block, value.index)]
            case scf.IfOp() | scf.IndexSwitchOp() as op:
                return [v for region in op.regions for block in region.blocks for v in _passed(block, value.index)]
            case scf.WhileOp() as op:
                return _passed(op.before_region.block, value.index + 1)
            case _:
                return []
    assert isinstance(value, BlockArgument)
    match value.block.parent_op():
        case scf.ForOp() as op if value.index:
            return [op.iter_args[value.index - 1], *_passed(op.body.block, value.index - 1)]
        case scf.WhileOp() as op if value.block is op.before_region.block:
            return [op.arguments[value.index], *_passed(op.after_region.block, value.index)]
        case scf.WhileOp() as op:
            return _passed(op.before_region.block, value.index + 1)
        case _:
            return []


def _passed(block: Block, index: int) -> list[SSAValue]:
    """What the terminator of `block` passes on as its operand `index`."""
    end = block.last_op
    return [end.operands[index]] if isinstance(end, scf.YieldOp | scf.ConditionOp) else []


def computed(op: Operation, operands: Sequence[Interval]) -> Interval:
    """The interval of the result of a scalar operation on operands that lie in `operands`."""
    if prod(high - low + 1 for low, high in operands) <= FEW:
        results = list(_results(op, operands))
        return (min(results), max(results)) if results else whole(op.results[0].type)
    if isinstance(op, arith.SelectOp):
        (least, greatest), *chosen = operands
        return join(chosen[1 - condition] for condition in range(least, greatest + 1))
    result, bits = op.results[0].type, bits_of(op.operands[0].type)
    if isinstance(op, _UNSIGNED_CASTS) or type(op) in _ON_UNSIGNED:
        operands = [_unsigned(operand, bits) for operand in operands]
    if isinstance(op, _SIGNED_CASTS + _UNSIGNED_CASTS):
        return _fitted(operands[0], result)
    rule = _ON_SIGNED.get(type(op)) or _ON_UNSIGNED.get(type(op))
    return _fitted(rule(operands[0], operands[1]) if rule else None, result)


def _results(op: Operation, operands: Sequence[Interval]) -> Iterator[int]:
    for values in product(*(range(low, high + 1) for low, high in operands)):
        try:
            yield evaluate(op, values)
        except OpError:  # such operands end the program
            continue


def _unsigned(interval: Interval, bits: int) -> Interval:
    """A signed interval as an unsigned one."""
    low, high = interval
    if low >= 0:
        return interval
    return (low + (1 << bits), high + (1 << bits)) if high < 0 else (0, (1 << bits) - 1)


def _fitted(interval: Interval | None, type_: Attribute) -> Interval:
    """An interval of exact results as one of `type_`, in which results wrap."""
    low, high = whole(type_)
    if interval is None:
        return low, high
    turns = (interval[0] - low) >> bits_of(type_)
    shift = turns << bits_of(type_)
    shifted = (interval[0] - shift, interval[1] - shift)
    return shifted if shifted[1] <= high else (low, high)


def _corners(compute: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    """The interval of a function that is monotone in each operand."""

    def interval(a: Interval, b: Interval) -> Interval:
        results = [compute(x, y) for x in a for y in b]
        return min(results), max(results)

    return interval


def _quotient(compute: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval | None]:
    """The interval of a division, which is monotone on each side of 0."""
    corners = _corners(compute)

    def interval(a: Interval, b: Interval) -> Interval | None:
        parts = [part for part in ((b[0], min(b[1], -1)), (max(b[0], 1), b[1])) if part[0] <= part[1]]
        return join(corners(a, part) for part in parts) if parts else None

    return interval


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Interval, b: Interval) -> Interval:
    """It has the sign of `a`, and is smaller than `b` and no greater than `a`."""
    most = max(abs(b[0]), abs(b[1]), 1) - 1
    smallest = 0 if b[0] <= 0 <= b[1] else min(abs(b[0]), abs(b[1]))
    if max(abs(a[0]), abs(a[1])) < smallest:
        return a
    return max(min(a[0], 0), -most), min(max(a[1], 0), most)


def _shift(compute: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval | None]:
    """The interval of a shift; one by more than 64 is none."""
    corners = _corners(compute)

    def interval(a: Interval, b: Interval) -> Interval | None:
        return corners(a, (b[0], min(b[1], 64))) if 0 <= b[0] <= 64 else None

    return interval


def _and(a: Interval, b: Interval) -> Interval:
    return 0, min(a[1], b[1])


def _or(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), _xor(a, b)[1]


def _xor(a: Interval, b: Interval) -> Interval:
    """Up to the ones that are as long as the longer operand."""
    return 0, (1 << max(a[1], b[1]).bit_length()) - 1


_SIGNED_CASTS = (arith.IndexCastOp, arith.ExtSIOp)
_UNSIGNED_CASTS = (arith.ExtUIOp, arith.TruncIOp)

Rules = dict[type[Operation], Callable[[Interval, Interval], Interval | None]]

_ON_SIGNED: Rules = {
    arith.AddiOp: _corners(lambda a, b: a + b),
    arith.SubiOp: _corners(lambda a, b: a - b),
    arith.MuliOp: _corners(lambda a, b: a * b),
    arith.DivSIOp: _quotient(_truncated),
    arith.FloorDivSIOp: _quotient(lambda a, b: a // b),
    arith.CeilDivSIOp: _quotient(lambda a, b: -(-a // b)),
    arith.RemSIOp: _remainder,
    arith.MinSIOp: _corners(min),
    arith.MaxSIOp: _corners(max),
    arith.ShLIOp: _shift(lambda a, b: a << b),
    arith.ShRSIOp: _shift(lambda a, b: a >> b),
}
_ON_UNSIGNED: Rules = {
    arith.DivUIOp: _quotient(lambda a, b: a // b),
    arith.CeilDivUIOp: _quotient(lambda a, b: -(-a // b)),
    arith.RemUIOp: _remainder,
    arith.MinUIOp: _corners(min),
    arith.MaxUIOp: _corners(max),
    arith.AndIOp: _and,
    arith.OrIOp: _or,
    arith.XOrIOp: _xor,
    arith.ShRUIOp: _shift(lambda a, b: a >> b),
}
