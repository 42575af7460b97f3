"""Equations between registers and values of a stream, backward through arithmetic and moves."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from mpkc.dialects.scalars import SCALAR_OPS, bits_of
from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.arithmetic import BINARY, condition_of
from mpkc.runtime.neuron.text import instruction_text
from mpkc.runtime.verify.isa_alignment import Mismatch, Next, Step
from mpkc.runtime.verify.isa_demands import Equation, Held, Known, Scaled, demand, name_of
from mpkc.runtime.verify.isa_values import CASTS, Values

EXTENSIONS = (isa.AluOp.SEXT, isa.AluOp.ZEXT, isa.AluOp.TRUNC)  # leave the lowest bits as they are


@dataclass(frozen=True)
class _Pending:
    """An equation on the way back over a step, in the names that hold behind so many of its passings."""

    equation: Equation
    frame: int


@dataclass(frozen=True)
class Purpose:
    """What registers are for.

    Attributes:
        program: the values that more than waits need.
        own: how many registers, from r0 on, are for those.
    """

    program: set[SSAValue]
    own: int


def through(
    step: Step,
    after: Iterable[Equation],
    engine: isa.Engine,
    values: Values,
    known: Known,
    purpose: Purpose | None = None,
) -> set[Equation]:
    """The equations that must hold before a step, for those to hold behind it.

    Raises:
        Mismatch: where an instruction writes something else into the register of one.
    """
    back = _Back(step, values, known, purpose)
    pending = {_Pending(equation, len(step.passings)) for equation in after}
    for at in reversed(step.code):
        item = engine.body[at]
        assert isinstance(item, isa.Move | isa.Alu)
        hit = [each for each in pending if each.equation.register == item.dest.number]
        pending.difference_update(hit)
        for each in hit:
            pending.update(back.over(each, item, at))
    return {back.start(each) for each in pending}


class _Back:
    def __init__(self, step: Step, values: Values, known: Known, purpose: Purpose | None):
        self.step, self.values, self.known, self.purpose = step, values, known, purpose

    def start(self, pending: _Pending) -> Equation:
        """The equation in the names that hold where the step begins."""
        value, bits = pending.equation.value, pending.equation.bits
        for frame in range(pending.frame, 0, -1):
            value = self.renamed(value, frame)
        if isinstance(value, SSAValue):
            value = self.values.canonical(value, bits)
        return Equation(pending.equation.register, value, bits)

    def renamed(self, value: Held, frame: int) -> Held:
        """What a value was called before the last of so many passings."""
        passing, loop = self.step.passings[frame - 1]
        if isinstance(value, SSAValue) and value in passing:
            return passing[value]
        if loop is not None and _belongs_to(value, loop):
            raise Mismatch(f"{name_of(value)} is read before it is computed in this iteration")
        return value

    def over(self, pending: _Pending, item: isa.Move | isa.Alu, at: int) -> set[_Pending]:
        """What an equation asks for before the instruction that writes its register."""
        value, bits = pending.equation.value, pending.equation.bits
        if isinstance(item, isa.Move) and isinstance(item.source, isa.Register):
            return {_Pending(Equation(item.source.number, value, bits), pending.frame)}
        frame = pending.frame
        while True:
            if isinstance(value, SSAValue):
                value = self.values.canonical(value, bits)
            found = self.made_by(value, bits, item)
            if found is not None:
                self.check_purpose(value, item)
                return {_Pending(equation, frame) for equation in found}
            if frame == 0:
                break
            value = self.renamed(value, frame)
            frame -= 1
        wanted = name_of(pending.equation.value)
        raise Mismatch(f"item {at}, {instruction_text(item)}: r{item.dest.number} must hold {wanted} afterwards")

    def check_purpose(self, value: Held, item: isa.Move | isa.Alu) -> None:
        """What is computed only for waits is in a register for them."""
        purpose = self.purpose
        if purpose is None or not isinstance(item, isa.Alu) or item.dest.number >= purpose.own:
            return
        if isinstance(value, Scaled) or (isinstance(value, OpResult) and value not in purpose.program):
            raise Mismatch(f"{instruction_text(item)}: {name_of(value)} is for waits alone, and its register is not")

    def made_by(self, value: Held, bits: int, item: isa.Move | isa.Alu) -> set[Equation] | None:
        """What the operands of an instruction must be for it to make `value`; None where it makes something else."""
        if isinstance(item, isa.Move):
            return set() if self.moved(value, bits, item.source) else None
        if item.op in EXTENSIONS and 0 < bits <= item.bits:
            return demand([(item.operands[0], (value, bits))], self.values)
        wanted = self.operands(value, item)
        if wanted is None or len(wanted) != len(item.operands):
            return None
        return demand(zip(item.operands, wanted, strict=True), self.values)

    def moved(self, value: Held, bits: int, source: object) -> bool:
        if not isinstance(value, SSAValue):
            return False
        match source:
            case int():
                integer = self.values.integer(value)
                return integer is not None and _same(integer, source, bits or bits_of(value.type))
            case isa.ArgumentRef(name):
                return self.known.names.get(value) == name
            case isa.SizeRef(buffer, axis):
                op = value.owner
                if not isinstance(op, memref.DimOp) or self.known.names.get(op.source) != buffer:
                    return False
                return self.values.integer(op.index) == axis
            case _:
                return False

    def operands(self, value: Held, item: isa.Alu) -> list[tuple[Held | int, int]] | None:
        """The operands, each with the bits that count, of the operation that makes `value`, if `item` is it."""
        match value:
            case Next(loop):
                index = loop.body.block.args[0]
                fits = item.op is isa.AluOp.ADD and item.bits == bits_of(index.type)
                return [(index, 0), (loop.step, 0)] if fits else None
            case Scaled(threshold, parts):
                fits = item.op is isa.AluOp.MULT and item.bits == bits_of(threshold.type)
                return [(threshold, item.bits), (parts, 0)] if fits else None
            case OpResult(op=op) if type(op) in SCALAR_OPS and _operation(op) == (item.op, item.bits):
                low = 0 if isinstance(op, arith.SelectOp) or item.bits == bits_of(IndexType()) else item.bits
                return [(operand, low) for operand in op.operands]
            case _:
                return None


def _operation(op: Operation) -> tuple[isa.AluOp, int] | None:
    """The operation of registers that computes a scalar operation, and its width."""
    match op:
        case arith.CmpiOp():
            return isa.AluOp(f"is_{condition_of(op)}"), bits_of(op.operands[0].type)
        case arith.SelectOp():
            return isa.AluOp.SELECT, bits_of(op.result.type)
        case arith.ExtUIOp():
            return isa.AluOp.ZEXT, bits_of(op.operands[0].type)
        case _ if isinstance(op, CASTS):
            source, result = bits_of(op.operands[0].type), bits_of(op.results[0].type)
            return (isa.AluOp.TRUNC, result) if result < source else (isa.AluOp.SEXT, source)
        case _ if type(op) in BINARY:
            return BINARY[type(op)], bits_of(op.results[0].type)
        case _:
            return None


def _same(a: int, b: int, bits: int) -> bool:
    return (a - b) % (1 << bits) == 0


def _belongs_to(value: Held, loop: Operation) -> bool:
    """Whether a value is one of an iteration of the loop."""
    match value:
        case Next(op):
            return loop is op or loop.is_ancestor(op)
        case Scaled(threshold):
            return _belongs_to(threshold, loop)
        case SSAValue():
            block = value.owner if isinstance(value.owner, Block) else value.owner.parent
            return block is not None and loop.is_ancestor(block)
