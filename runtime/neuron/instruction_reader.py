"""Instructions of ISA text, one a line, checked against what the header declares."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input

from mpkc.dialects.wording import counted
from mpkc.runtime.neuron.isa import (
    ARITY,
    EVERY,
    INDEX_BITS,
    After,
    Alu,
    AluOp,
    Argument,
    ArgumentRef,
    Branch,
    Buffer,
    Component,
    Condition,
    Drain,
    Handshake,
    Instruction,
    Move,
    Nop,
    Number,
    Opaque,
    Operand,
    Read,
    Register,
    Reset,
    SizeRef,
    Tile,
    Update,
    Value,
    View,
    Wait,
)
from mpkc.runtime.neuron.lexer import Cursor, Token, count, error_at, one_of
from mpkc.runtime.neuron.tile_forms import FORMS
from mpkc.runtime.neuron.tile_operations import attribute_of, verify_tile

ISSUED = ("NOP", "READ", "INST", "VALUE", *FORMS)


@dataclass
class Declarations:
    """What instructions can refer to, by name; semaphores by number."""

    arguments: dict[str, Argument] = field(default_factory=dict[str, Argument])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    semaphores: list[str] = field(default_factory=list[str])


class InstructionReader:
    """Reads the instructions of one program.

    Attributes:
        engine, registers: of the stream that is being read.
        jumps: the labels of that stream that are jumped to, with their places.
    """

    def __init__(self, source: Input, declared: Declarations):
        self.source, self.declared = source, declared
        self.engine, self.registers = "", 0
        self.jumps: list[tuple[str, Token]] = []
        self.produced: set[str] = set()
        self.consumed: list[tuple[str, Token]] = []
        self.met: list[tuple[str, Token]] = []
        self.updaters: dict[int, str] = {}
        self.writers: dict[str, str] = {}
        self.plain: dict[str, Callable[[Cursor], Instruction]] = {
            "REGISTER_MOVE": self.move,
            "REGISTER_ALU": self.alu,
            "COMPARE_BRANCH": self.branch,
            "DRAIN": lambda line: Drain(line=line.number),
            "HANDSHAKE": self.handshake,
            "RESET": self.reset,
        }

    def enter(self, engine: str, registers: int, jumps: list[tuple[str, Token]]) -> None:
        """Go on with the stream of another engine."""
        self.engine, self.registers, self.jumps = engine, registers, jumps

    def read(self, line: Cursor) -> Instruction:
        """The instruction that a line is; ParseError."""
        token = line.next
        opcode = line.word("an opcode")
        if (plain := self.plain.get(opcode)) is not None:
            return plain(line)
        if opcode in ISSUED:
            return self.issued(line, token)
        raise line.error(f"unknown opcode {opcode}; there are: {', '.join([*self.plain, *ISSUED])}", token)

    def check_names(self, engines: Collection[str]) -> None:
        """Raise ParseError where a label is waited for that no opaque instruction has, an engine met that is none."""
        for name, token in self.consumed:
            if name not in self.produced:
                raise error_at(self.source, token, f"no INST or VALUE has the label @{name}")
        for name, token in self.met:
            if name not in engines:
                raise error_at(self.source, token, f"no engine {name}; there are: {', '.join(engines)}")

    # Registers and control.

    def register(self, line: Cursor) -> Register:
        token = line.next
        if not line.at_register():
            line.fail("a register")
        number = int(line.take().text[1:])
        if number >= self.registers:
            raise line.error(f"engine {self.engine} says that it uses {self.registers} registers, from r0 on", token)
        return Register(number)

    def operand(self, line: Cursor) -> Operand:
        return line.operand(self.register)

    def width(self, line: Cursor) -> int:
        """`: i32`, where it stands."""
        if not line.optional(":"):
            return INDEX_BITS
        token = line.next
        word = line.word("a width such as i32")
        if not (word[0] == "i" and word[1:].isdecimal() and 1 <= int(word[1:]) <= INDEX_BITS):
            raise line.error(
                f"a width of {word}: i1 to i{INDEX_BITS}; index, the default, is written by nothing", token
            )
        return int(word[1:])

    def move(self, line: Cursor) -> Instruction:
        dest = self.register(line)
        line.expect("=")
        match line.next.text, line.tokens[line.at + 1].text:
            case "argument", "(":
                source = self.argument(line)
            case "size", "(":
                source = self.size(line)
            case _:
                source = self.operand(line)
        return Move(dest, source, line=line.number)

    def argument(self, line: Cursor) -> ArgumentRef:
        line.expect("argument")
        line.expect("(")
        name = _known(line, "argument", self.declared.arguments)
        line.expect(")")
        return ArgumentRef(name)

    def size(self, line: Cursor) -> SizeRef:
        line.expect("size")
        line.expect("(")
        name = _known(line, "buffer", self.declared.buffers)
        line.expect(",")
        token = line.next
        axis = line.integer("an axis")
        if not 0 <= axis < len(self.declared.buffers[name].shape):
            raise line.error(f"{name} has {len(self.declared.buffers[name].shape)} dimensions, from 0 on", token)
        line.expect(")")
        return SizeRef(name, axis)

    def alu(self, line: Cursor) -> Instruction:
        dest = self.register(line)
        line.expect("=")
        first = self.operand(line)
        op = AluOp(one_of(line, "operation", list(AluOp)))
        operands = [first]
        while len(operands) < ARITY[op]:
            if len(operands) > 1:
                line.expect(",")
            operands.append(self.operand(line))
        return Alu(dest, op, tuple(operands), self.width(line), line=line.number)

    def branch(self, line: Cursor) -> Instruction:
        operands: tuple[Operand, ...] = ()
        bits = INDEX_BITS
        if line.optional(Condition.ALWAYS):
            condition = Condition.ALWAYS
        else:
            left = self.operand(line)
            condition = Condition(one_of(line, "condition", [each for each in Condition if each != Condition.ALWAYS]))
            operands, bits = (left, self.operand(line)), self.width(line)
        line.expect("->")
        token = line.next
        target = line.name("a label")
        self.jumps.append((target, token))
        return Branch(condition, operands, target, bits, line=line.number)

    def handshake(self, line: Cursor) -> Handshake:
        engines: list[str] = []
        while not line.at_end:
            token = line.next
            engines.append(line.name("the name of an engine"))
            self.met.append((engines[-1], token))
        if engines and self.engine not in engines:
            raise line.error(f"a handshake of other engines than {self.engine}, which comes to it")
        return Handshake(tuple(engines), line=line.number)

    def reset(self, line: Cursor) -> Instruction:
        semaphores = [self.semaphore(line)]
        while not line.at_end:
            semaphores.append(self.semaphore(line))
        return Reset(tuple(semaphores), line=line.number)

    # What is issued.

    def semaphore(self, line: Cursor) -> int:
        """`S[4]`."""
        line.expect("S")
        line.expect("[")
        token = line.next
        number = line.integer("the number of a semaphore")
        if not 0 <= number < len(self.declared.semaphores):
            raise line.error(f"the program declares {counted(len(self.declared.semaphores), 'semaphore')}", token)
        line.expect("]")
        return number

    def issued(self, line: Cursor, opcode: Token) -> Instruction:
        common = self.head(line) | {"line": line.number}
        match opcode.text:
            case "NOP":
                given = self.keys(line, opcode, {})
                return Nop(**common, **given)
            case "READ":
                given = self.keys(line, opcode, {"dst": self.register, "src": self.value}, ("dst", "src"))
                return Read(given.pop("dst"), given.pop("src"), **common, **given)
            case "INST" | "VALUE":
                return self.opaque(line, opcode, common)
            case _:
                return self.tile(line, opcode, common)

    def head(self, line: Cursor) -> dict[str, Any]:
        """The label, the wait and the update, as far as they are there."""
        head: dict[str, Any] = {}
        if line.optional("@"):
            head["label"] = line.name("a label")
        while (token := line.next).text == "S" and line.tokens[line.at + 1].text == "[":
            semaphore = self.semaphore(line)
            kind = "wait" if line.optional(">=") else "update"
            if kind in head:
                hint = ": put a NOP with the other one before it" if kind == "wait" else ""
                raise line.error(f"a second {kind}, but an instruction has at most one{hint}", token)
            found = Wait(semaphore, self.operand(line)) if kind == "wait" else self.update(line, semaphore, token)
            head[kind] = found
        return head

    def update(self, line: Cursor, semaphore: int, token: Token) -> Update:
        if line.optional("++"):
            amount = 1
        elif line.optional("+="):
            amount = line.integer("a number, 1 or more", 1)
        else:
            line.fail("'>=' and a threshold, or '++@complete'")
        line.expect("@")
        line.expect("complete")
        other = self.updaters.setdefault(semaphore, self.engine)
        if other != self.engine:
            raise line.error(f"S[{semaphore}] is updated by engine {other} too: a semaphore counts one engine", token)
        return Update(semaphore, amount)

    def keys(
        self,
        line: Cursor,
        opcode: Token,
        parsers: Mapping[str, Callable[[Cursor], Any]],
        needed: Sequence[str] = (),
        flags: Sequence[str] = (),
    ) -> dict[str, Any]:
        """`key=value` and flags up to the end of the line, in any order."""
        parsers = {**parsers, "depth": count}
        found: dict[str, Any] = {}
        while not line.at_end:
            token = line.next
            key = line.word("a key")
            if key in found:
                raise line.error(f"a second {key}", token)
            if key not in parsers and key not in flags:
                known = ", ".join([*parsers, *flags])
                raise line.error(f"{opcode.text} has no {key}; there are: {known}", token)
            if key in parsers:
                line.expect("=")
            found[key] = parsers[key](line) if key in parsers else True
        for key in needed:
            if key not in found:
                raise line.error(f"{opcode.text} needs {key}=", opcode)
        return found

    def value(self, line: Cursor) -> str:
        line.expect("@")
        return _known(line, "value", self.declared.values)

    def opaque(self, line: Cursor, opcode: Token, common: dict[str, Any]) -> Instruction:
        parsers = {"cost": count, "latency": count, "after": self.after}
        given = self.keys(line, opcode, parsers, ("cost",))
        is_value = opcode.text == "VALUE"
        label = common.get("label")
        if label is None:
            raise line.error(f"{opcode.text} needs a label, @NAME: it names the instruction in traces", opcode)
        if is_value:
            self.check_mailbox(line, opcode, label)
        self.produced.add(label)
        return Opaque(given.pop("cost"), **given, **common, is_value=is_value)

    def check_mailbox(self, line: Cursor, opcode: Token, label: str | None) -> None:
        if label not in self.declared.values:
            known = ", ".join(self.declared.values) or "none"
            raise line.error(f"{opcode.text} writes the value that its label names; there are: {known}", opcode)
        other = self.writers.setdefault(label, self.engine)
        if other != self.engine:
            raise line.error(f"engine {other} writes @{label} too: a value is one engine's", opcode)

    def after(self, line: Cursor) -> tuple[After, ...]:
        return line.listed(lambda: self.dependency(line))

    def dependency(self, line: Cursor) -> After:
        token = line.next
        producer = line.name("the label of a producer")
        self.consumed.append((producer, token))
        return After(producer, None if line.optional("never") else line.listed(lambda: _component(line)))

    def tile(self, line: Cursor, opcode: Token, common: dict[str, Any]) -> Instruction:
        form = FORMS[opcode.text]
        parsers: dict[str, Callable[[Cursor], Any]] = {
            **{key: partial(one_of, what=key, choices=choices) for key, choices in form.words.items()},
            **dict.fromkeys(form.operands, self.tile_operand),
            **dict.fromkeys(form.numbers, count),
        }
        needed = [key for key in parsers if key not in form.optional]
        given = self.keys(line, opcode, parsers, needed, form.flags)
        depth = given.pop("depth", 0)
        operands = {key: given[key] for key in form.operands if key in given}
        options = {key: given[key] for key in form.keys if key in given and key not in operands}
        tile = Tile(opcode.text, operands, options, **common, depth=depth)
        if opcode.text == "TENSOR_LOAD":
            self.check_mailbox(line, opcode, tile.label)
        try:
            verify_tile(tile, self.engine, self.declared.buffers)
        except (VerifyException, ValueError) as err:
            raise line.error(f"{opcode.text}: {err}", opcode) from err
        return tile

    def tile_operand(self, line: Cursor) -> View | Number:
        if line.tokens[line.at + 1].text == "@":
            return self.view(line)
        value: Register | int | float | ArgumentRef
        if line.at_register():
            value = self.register(line)
        elif line.next.text == "argument":
            value = self.argument(line)
        else:
            value = line.literal()
        line.expect(":")
        return Number(value, element_type(line))

    def view(self, line: Cursor) -> View:
        first = line.next
        name = _known(line, "buffer", self.declared.buffers)
        line.expect("@")
        offset = self.operand(line)
        sizes = line.listed(lambda: self.operand(line))
        line.expect(":")
        token = line.next
        strides = line.listed(lambda: self.operand(line))
        if len(strides) != len(sizes):
            raise line.error(f"{len(sizes)} sizes and {len(strides)} strides: as many of each", token)
        line.expect(":")
        token = line.next
        element = element_type(line)
        if element != (stored := self.declared.buffers[name].element):
            raise line.error(f"{name} holds {stored}, not {element}", token)
        if any(isinstance(n, int) and n < 0 for n in (offset, *sizes, *strides)):
            raise line.error("an offset, size or stride below 0", first)
        return View(name, offset, sizes, strides, element)


def element_type(line: Cursor) -> str:
    """The name of a type of numbers."""
    token = line.next
    word = line.word("a type such as f32")
    try:
        attribute_of(word)
    except ValueError as err:
        raise line.error(str(err), token) from err
    return word


def _known(line: Cursor, what: str, declared: Mapping[str, object]) -> str:
    token = line.next
    name = line.name(f"the name of {'an' if what == 'argument' else 'a'} {what}")
    if name not in declared:
        raise line.error(f"no {what} {name}; there are: {', '.join(declared) or 'none'}", token)
    return name


def _component(line: Cursor) -> Component:
    return EVERY if line.optional("*") else line.integer("an integer or *")
