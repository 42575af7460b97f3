"""From ISA text to programs; every error names its place in the text (docs/isa.md)."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.utils.lexer import Input

from mpkc.runtime.neuron.instruction_reader import Declarations, InstructionReader, element_type
from mpkc.runtime.neuron.isa import (
    Argument,
    Buffer,
    Counters,
    Engine,
    Item,
    Iteration,
    Label,
    Program,
    Value,
)
from mpkc.runtime.neuron.lexer import Cursor, Token, error_at

SPACES = ("far", "near", "accumulator")
VALUE_TYPES = ("index", "i1")
_COUNTERS = re.compile(r"([us])i([1-9][0-9]?)")


def read_isa(text: str, name: str = "<isa>") -> Program:
    """The program that a text is.

    Args:
        name: of the file, for errors.

    Raises:
        ParseError: at what is wrong: an unknown opcode, operand or directive; a second wait or update; a register,
            semaphore, label or name that there is not; operands that the instruction does not take.
    """
    return _Reader(Input(text, name)).read()


@dataclass
class _Stream:
    """An engine while its lines are read.

    Attributes:
        labels, jumps: where each label of its code stands, and what is jumped to where.
    """

    name: str
    registers: int
    items: list[Item] = field(default_factory=list[Item])
    labels: set[str] = field(default_factory=set[str])
    jumps: list[tuple[str, Token]] = field(default_factory=list[tuple[str, Token]])


class _Reader:
    def __init__(self, source: Input):
        self.source = source
        self.name: str | None = None
        self.counters: Counters | None = None
        self.declared = Declarations()
        self.streams: dict[str, _Stream] = {}
        self.stream: _Stream | None = None
        self.instructions = InstructionReader(source, self.declared)
        self.directives: dict[str, Callable[[Cursor], None]] = {
            ".program": self.read_program,
            ".counters": self.read_counters,
            ".argument": self.read_argument,
            ".buffer": self.read_buffer,
            ".value": self.read_value,
            ".semaphore": self.read_semaphore,
            ".engine": self.read_engine,
            ".iteration": self.read_iteration,
        }

    def read(self) -> Program:
        content = self.source.content
        text = content.decode() if isinstance(content, bytes) else content
        start = 0
        for number, line in enumerate(text.split("\n"), 1):
            cursor = Cursor(self.source, number, start, line)
            if not cursor.at_end:
                self.read_line(cursor)
                cursor.expect_end()
            start += len(line) + 1
        end = Cursor(self.source, 0, len(text), "")
        if self.name is None:
            raise end.error("no program: it begins with .program NAME")
        self.check_labels()
        self.instructions.check_names(self.streams)
        engines = (Engine(stream.name, stream.registers, tuple(stream.items)) for stream in self.streams.values())
        return Program(
            self.name,
            tuple(engines),
            self.counters or Counters(),
            tuple(self.declared.arguments.values()),
            tuple(self.declared.buffers.values()),
            tuple(self.declared.values.values()),
            tuple(self.declared.semaphores),
        )

    def check_labels(self) -> None:
        for stream in self.streams.values():
            for name, token in stream.jumps:
                if name not in stream.labels:
                    known = ", ".join(sorted(stream.labels)) or "none"
                    raise error_at(self.source, token, f"no label {name} in this engine; there are: {known}")

    def read_line(self, line: Cursor) -> None:
        first = line.next
        if first.text.startswith("."):
            self.read_directive(line)
        elif self.stream is None:
            raise line.error("an instruction outside of an engine: begin with .engine NAME registers N", first)
        elif line.tokens[1].text == ":" and first.kind in ("name", "string"):
            self.read_label(line, self.stream)
        else:
            self.stream.items.append(self.instructions.read(line))

    def read_label(self, line: Cursor, stream: _Stream) -> None:
        token = line.next
        name = line.name("a label")
        line.expect(":")
        if name in stream.labels:
            raise line.error(f"a second label {name}: each label of an engine has a name of its own", token)
        stream.labels.add(name)
        stream.items.append(Label(name))

    # The header.

    def read_directive(self, line: Cursor) -> None:
        token = line.take()
        if token.text not in self.directives:
            raise line.error(f"unknown directive {token.text}; there are: {', '.join(self.directives)}", token)
        if self.name is None and token.text != ".program":
            raise line.error("the first directive is .program NAME", token)
        if self.streams and token.text not in (".engine", ".iteration"):
            raise line.error(f"{token.text} stands before the first engine", token)
        self.directives[token.text](line)

    def read_program(self, line: Cursor) -> None:
        if self.name is not None:
            raise line.error("a second .program: a file has one", line.tokens[0])
        self.name = line.name("the name of the program")

    def read_counters(self, line: Cursor) -> None:
        token = line.next
        found = _COUNTERS.fullmatch(line.word("the type of the counters, such as ui32"))
        if found is None or not 1 < int(found[2]) <= 64:
            raise line.error(f"counters of type {token.text}: ui or si and 2 to 64 bits, such as ui32", token)
        if self.counters is not None:
            raise line.error("a second .counters: a program has one", line.tokens[0])
        self.counters = Counters(int(found[2]), found[1] == "s")

    def read_argument(self, line: Cursor) -> None:
        name = self.new_name(line, "an argument")
        line.expect(":")
        self.declared.arguments[name] = Argument(name, element_type(line))

    def read_buffer(self, line: Cursor) -> None:
        name = self.new_name(line, "a buffer")
        line.expect(":")
        token = line.next
        space = line.word("a space: " + ", ".join(SPACES))
        if space not in SPACES:
            raise line.error(f"unknown space {space}; there are: {', '.join(SPACES)}", token)
        element = element_type(line)
        token = line.next
        shape = line.listed(lambda: None if line.optional("?") else line.integer("a size, 0 or more, or ?", 0))
        if None in shape and space != "far":
            raise line.error("a size that is not known is for far memory alone", token)
        self.declared.buffers[name] = Buffer(name, space, shape, element)

    def read_value(self, line: Cursor) -> None:
        name = self.new_name(line, "a value")
        line.expect(":")
        token = line.next
        type_ = line.word("index or i1")
        if type_ not in VALUE_TYPES:
            raise line.error(f"a value of type {type_}: use index or i1", token)
        self.declared.values[name] = Value(name, type_)

    def new_name(self, line: Cursor, what: str) -> str:
        """A name that no argument, buffer or value has yet."""
        token = line.next
        name = line.name(f"the name of {what}")
        if name in self.declared.arguments or name in self.declared.buffers or name in self.declared.values:
            raise line.error(f"a second {name}: each argument, buffer and value has a name of its own", token)
        return name

    def read_semaphore(self, line: Cursor) -> None:
        token = line.next
        number = line.integer("the number of the semaphore")
        if number != len(self.declared.semaphores):
            raise line.error(
                f"semaphores are numbered in order: the next one is {len(self.declared.semaphores)}", token
            )
        token = line.next
        name = line.name("the name of the semaphore")
        if name in self.declared.semaphores:
            raise line.error(f"a second semaphore {name}: each has a name of its own", token)
        self.declared.semaphores.append(name)

    # Streams.

    def read_engine(self, line: Cursor) -> None:
        token = line.next
        name = line.name("the name of the engine")
        if name in self.streams:
            raise line.error(f"a second stream of engine {name}: an engine has one", token)
        line.expect("registers")
        registers = line.integer("the number of registers, 0 or more", 0)
        self.stream = self.streams[name] = _Stream(name, registers)
        self.instructions.enter(name, registers, self.stream.jumps)

    def read_iteration(self, line: Cursor) -> None:
        if self.stream is None:
            raise line.error(".iteration outside of an engine", line.tokens[0])
        loop = line.name("the name of a loop")
        self.stream.items.append(Iteration(loop, line.integer("a depth, 0 or more", 0)))
