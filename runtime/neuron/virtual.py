"""Code of one engine before registers are allocated: items of the ISA over virtual registers.

A virtual register is an `isa.Register` with a number that no machine limits. Values that loops carry and conditionals
result in are passed by `Copies`, which become moves once it is known which of them share a register.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from mpkc.runtime.neuron.isa import (
    Alu,
    Branch,
    Issued,
    Item,
    Move,
    Number,
    Operand,
    Read,
    Register,
    Tile,
    View,
    Wait,
)

Mapping: TypeAlias = dict[int, int]


@dataclass(frozen=True, slots=True)
class Copies:
    """Every destination takes the value that its source has now: a parallel copy."""

    pairs: tuple[tuple[Register, Operand], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A loop in the code.

    Attributes:
        start: the index of the label that it goes back to.
        end: the index of the branch that does.
        carried: the virtual registers that an iteration passes on to the next.
    """

    start: int
    end: int
    carried: tuple[int, ...]


@dataclass
class Code:
    """The code of one engine.

    Attributes:
        spans: its loops, those inside before those around.
        synchronization: the virtual registers that are there only for waits.
    """

    engine: str
    items: list[Item | Copies] = field(default_factory=list[Item | Copies])
    spans: list[Span] = field(default_factory=list[Span])
    synchronization: set[int] = field(default_factory=set[int])
    count: int = 0


def operands_of(item: Item | Copies) -> Iterator[Operand]:
    """What an item takes: registers and immediates."""
    match item:
        case Copies(pairs):
            yield from (source for _, source in pairs)
        case Alu() | Branch():
            yield from item.operands
        case Move(_, source):
            if isinstance(source, Register | int):
                yield source
        case Issued():
            if item.wait:
                yield item.wait.threshold
            if isinstance(item, Tile):
                for operand in item.operands.values():
                    yield from _parts(operand)
        case _:
            pass


def _parts(operand: View | Number) -> Iterator[Operand]:
    match operand:
        case View():
            yield operand.offset
            yield from operand.sizes
            yield from operand.strides
        case Number(Register() as register):
            yield register
        case _:
            pass


def used(item: Item | Copies) -> Iterator[int]:
    """The registers that an item reads."""
    return (operand.number for operand in operands_of(item) if isinstance(operand, Register))


def defined(item: Item | Copies) -> tuple[int, ...]:
    """The registers that an item writes."""
    match item:
        case Move(dest) | Alu(dest):
            return (dest.number,)
        case Read():
            return (item.dest.number,)
        case Copies(pairs):
            return tuple(dest.number for dest, _ in pairs)
        case _:
            return ()


class Renaming:
    """Items with other registers in the place of theirs."""

    def __init__(self, registers: list[Register]):
        """Args: registers: the register in the place of each number."""
        self.registers = registers

    def item(self, item: Item) -> Item:
        match item:
            case Move(dest, source):
                return Move(self.register(dest), self.operand(source) if isinstance(source, Register) else source)
            case Alu(dest, op, operands, bits):
                return Alu(self.register(dest), op, self.operands(operands), bits)
            case Branch(condition, operands, target, bits):
                return Branch(condition, self.operands(operands), target, bits) if operands else item
            case Issued():
                return self.issued(item)
            case _:
                return item

    def issued(self, item: Issued) -> Issued:
        if item.wait and isinstance(item.wait.threshold, Register):
            item = replace(item, wait=Wait(item.wait.semaphore, self.register(item.wait.threshold)))
        if isinstance(item, Read):
            return replace(item, dest=self.register(item.dest))
        if isinstance(item, Tile) and any(isinstance(operand, Register) for operand in operands_of(item)):
            return replace(item, operands={key: self.part(part) for key, part in item.operands.items()})
        return item

    def part(self, part: View | Number) -> View | Number:
        match part:
            case View(buffer, offset, sizes, strides, element):
                return View(buffer, self.operand(offset), self.operands(sizes), self.operands(strides), element)
            case Number(Register() as register, type_):
                return Number(self.register(register), type_)
            case _:
                return part

    def register(self, register: Register) -> Register:
        return self.registers[register.number]

    def operand(self, operand: Operand) -> Operand:
        return self.registers[operand.number] if isinstance(operand, Register) else operand

    def operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(self.operand(operand) for operand in operands)
