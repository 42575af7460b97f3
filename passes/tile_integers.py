"""The run-time integers of a program as affine functions of loop counters, as far as they are.

Arithmetic on `index` is taken not to wrap. What is no affine function becomes a symbol of its own, which is the same
number for as long as the loops that it varies in stand at the same iteration.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.dialects.tile_buffers import root_of
from mpkc.dialects.tile_types import Buffer

MOST_TERMS = 16


@dataclass(eq=False, repr=False)
class Symbol:
    """A number that is not known when the program is compiled.

    Attributes:
        varies: the counted loops that may change it from one iteration to the next.
        least: what it is never below, if that is known.
    """

    varies: frozenset[Loop]
    least: int | None = None


@dataclass(eq=False, repr=False)
class Trip(Symbol):
    """How many iterations of `loop` were before this one."""

    loop: Loop = field(kw_only=True)


@dataclass(eq=False, repr=False)
class Quotient(Symbol):
    """`dividend / divisor`, rounded down."""

    dividend: "Affine" = field(kw_only=True)
    divisor: int = field(kw_only=True)


Terms: TypeAlias = tuple[tuple[Symbol, int], ...]


@dataclass(frozen=True, repr=False)
class Affine:
    """`constant` + the sum of each symbol times its coefficient, which is not 0."""

    constant: int = 0
    terms: Terms = ()

    def __add__(self, other: "Affine") -> "Affine":
        terms = dict(self.terms)
        for symbol, coefficient in other.terms:
            terms[symbol] = terms.get(symbol, 0) + coefficient
        return Affine(self.constant + other.constant, tuple((s, c) for s, c in terms.items() if c))

    def __sub__(self, other: "Affine") -> "Affine":
        return self + other.times(-1)

    def times(self, factor: int) -> "Affine":
        """This, `factor` times."""
        terms = tuple((symbol, coefficient * factor) for symbol, coefficient in self.terms) if factor else ()
        return Affine(self.constant * factor, terms)

    @property
    def varies(self) -> frozenset[Loop]:
        """The loops that may change it."""
        return frozenset[Loop]().union(*(symbol.varies for symbol, _ in self.terms))

    @property
    def least(self) -> int | None:
        """What it is never below, if that is known."""
        least = self.constant
        for symbol, coefficient in self.terms:
            if symbol.least is None or coefficient < 0:
                return None
            least += coefficient * symbol.least
        return least


class Integers:
    """The affine function that each integer of a program is, found in one walk."""

    def __init__(self, structure: Structure):
        self._structure = structure
        self._known: dict[SSAValue, Affine] = {}
        self._most: dict[SSAValue, int] = {}
        self._symbols: dict[tuple[object, ...], Symbol] = {}
        self._trips: dict[Loop, int | None] = {}
        for loop in structure.loops:
            for argument in loop.block.args:
                self._known[argument] = self._symbol((argument,), self._around(loop))
        self._walk(structure.program)

    def of(self, value: SSAValue) -> Affine:
        """`value` as an affine function."""
        return self._known[value]

    def most(self, value: SSAValue) -> int | None:
        """What `value` is never above, if that is known."""
        affine = self._known[value]
        return self._most.get(value) if affine.terms else affine.constant

    def trips(self, loop: Loop) -> int | None:
        """How often a loop with constant bounds runs; None for the others."""
        return self._trips.get(loop)

    def modulo(self, value: Affine, divisor: int) -> Affine:
        """`value` mod `divisor`, which is never negative."""
        return value - self._quotient(value, divisor).times(divisor)

    def _walk(self, program: Operation) -> None:
        for op in program.walk():
            match op:
                case scf.ForOp():
                    self._for(op)
                case scf.WhileOp():
                    self._while(op)
                case memref.DimOp():
                    self._known[op.result] = self._dim(op)
                    continue
                case _ if type(op) in SCALAR_OPS:
                    self._known[op.results[0]] = self._scalar(op)
                    continue
                case _:
                    pass
            if op is not program:
                for result in op.results:
                    self._known[result] = self._symbol((result,), self._around(self._loop_at(op)))

    def _loop_at(self, op: Operation) -> Loop:
        block = op.parent
        assert block is not None, "stands in a program"
        return self._structure.loop_of[block]

    @staticmethod
    def _around(loop: Loop) -> frozenset[Loop]:
        return frozenset(one for one in loop.path if one.counted)

    def _symbol(self, key: tuple[object, ...], varies: frozenset[Loop], least: int | None = None) -> Affine:
        if key not in self._symbols:
            self._symbols[key] = Symbol(varies, least)
        return Affine(0, ((self._symbols[key], 1),))

    def _trip(self, loop: Loop) -> Affine:
        if (loop,) not in self._symbols:
            self._symbols[loop,] = Trip(frozenset([loop]), 0, loop=loop)
        return Affine(0, ((self._symbols[loop,], 1),))

    def _quotient(self, value: Affine, divisor: int) -> Affine:
        """`value / divisor`, rounded down; multiples of the divisor are taken out first."""
        whole, rest = divmod(value.constant, divisor)
        outside = tuple((symbol, c // divisor) for symbol, c in value.terms if c % divisor == 0)
        inside = Affine(rest, tuple((symbol, c) for symbol, c in value.terms if c % divisor))
        if not inside.terms:
            return Affine(whole, outside)
        key = ("quotient", inside, divisor)
        if key not in self._symbols:
            least = None if inside.least is None else inside.least // divisor
            self._symbols[key] = Quotient(inside.varies, least, dividend=inside, divisor=divisor)
        return Affine(whole, outside) + Affine(0, ((self._symbols[key], 1),))

    def _dim(self, op: memref.DimOp) -> Affine:
        index = self._known[op.index]
        if index.terms:
            return self._symbol((op.result,), self._around(self._loop_at(op)), 0)
        shape = cast(Buffer, op.source.type).get_shape()
        if 0 <= index.constant < len(shape) and shape[index.constant] >= 0:
            return Affine(shape[index.constant])
        varies = self._around(self._loop_at(op)) if root_of(op.source) is not op.source else frozenset[Loop]()
        return self._symbol(("dim", op.source, index), varies, 0)

    def _for(self, op: scf.ForOp) -> None:
        loop = self._structure.loop_of[op.body.block]
        lower, upper, step = (self._known[value] for value in (op.lb, op.ub, op.step))
        trip = self._trip(loop)
        variable, *carried = op.body.block.args
        if not step.terms and step.constant > 0 and isinstance(variable.type, IndexType):
            self._known[variable] = lower + trip.times(step.constant)
            if not (upper - lower).terms:
                self._trips[loop] = max(-((lower - upper).constant // step.constant), 0)
        last = op.body.block.last_op
        assert isinstance(last, scf.YieldOp), "verified"
        for argument, first, following in zip(carried, op.iter_args, last.operands, strict=True):
            if (increment := _increment(argument, following)) is not None:
                self._known[argument] = self._known[first] + trip.times(increment)

    def _while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        condition, back = before.last_op, after.last_op
        assert isinstance(condition, scf.ConditionOp), "verified"
        assert isinstance(back, scf.YieldOp), "verified"
        trip = self._trip(self._structure.loop_of[before])
        passed = {argument: arg for argument, arg in zip(after.args, condition.args, strict=True)}
        for argument, first, following in zip(before.args, op.arguments, back.operands, strict=True):
            for inside in (inside for inside, outside in passed.items() if outside is argument):
                if (increment := _increment(inside, following)) is not None:
                    counted = self._known[first] + trip.times(increment)
                    self._known[argument] = counted
                    self._known.update((i, counted) for i, outside in passed.items() if outside is argument)

    def _scalar(self, op: Operation) -> Affine:
        result = op.results[0]
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return Affine(op.value.value.data)
        operands = [self._known[operand] for operand in op.operands]
        if isinstance(result.type, IndexType):
            self._bound(op, operands)
            if (affine := self._linear(op, operands)) is not None and len(affine.terms) <= MOST_TERMS:
                return affine
        varies = frozenset[Loop]().union(*(operand.varies for operand in operands))
        attributes: tuple[Attribute, ...] = tuple(op.properties.values())
        return self._symbol((op.name, result.type, *attributes, *operands), varies)

    def _bound(self, op: Operation, operands: Sequence[Affine]) -> None:
        """Note what a minimum or a remainder is never above."""
        bounds = [self.most(operand) for operand in op.operands]
        if isinstance(op, arith.MinUIOp | arith.MinSIOp):
            known = [bound for bound in bounds if bound is not None]
            if known and min(known) >= 0:
                self._most[op.results[0]] = min(known)
        elif isinstance(op, arith.RemUIOp) and not operands[1].terms and operands[1].constant > 0:
            self._most[op.results[0]] = operands[1].constant - 1

    def _linear(self, op: Operation, operands: Sequence[Affine]) -> Affine | None:
        """The result of an operation on `index` where it is affine."""
        a, b = operands[0], operands[-1]
        match op:
            case arith.AddiOp():
                return a + b
            case arith.SubiOp():
                return a - b
            case arith.MuliOp() if not b.terms:
                return a.times(b.constant)
            case arith.MuliOp() if not a.terms:
                return b.times(a.constant)
            case arith.ShLIOp() if not b.terms and 0 <= b.constant < 63:
                return a.times(1 << b.constant)
            case arith.AndIOp() if not b.terms and b.constant > 0 and not b.constant & (b.constant + 1):
                return self.modulo(a, b.constant + 1)
            case arith.FloorDivSIOp() if not b.terms and b.constant > 0:
                return self._quotient(a, b.constant)
            case _ if b.terms or b.constant < 1 or a.least is None or a.least < 0:
                return None
            case arith.DivUIOp() | arith.DivSIOp():
                return self._quotient(a, b.constant)
            case arith.CeilDivUIOp() | arith.CeilDivSIOp():
                return self._quotient(a + Affine(b.constant - 1), b.constant)
            case arith.RemUIOp() | arith.RemSIOp():
                return self.modulo(a, b.constant)
            case _:
                return None


def _increment(argument: SSAValue, following: SSAValue) -> int | None:
    """What one iteration adds to a carried value, where that is a constant."""
    if following is argument:
        return 0
    op = following.owner
    if isinstance(op, arith.AddiOp) and op.lhs is argument:
        step = op.rhs.owner
        if isinstance(step, arith.ConstantOp) and isinstance(step.value, IntegerAttr):
            return step.value.value.data
    return None
