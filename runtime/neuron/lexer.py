"""Lines of ISA text as tokens that know their place, and the small things that lines are made of."""

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

from mpkc.runtime.neuron.isa import Operand, Register

T = TypeVar("T")

_TOKEN = re.compile(
    r"""[ \t\r]*(?:
        (?P<comment>//.*|$)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:0x[0-9A-Fa-f]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf\b|nan\b))
      | (?P<name>\.?[A-Za-z_][A-Za-z0-9_.$]*)
      | (?P<mark>->|>=|\+\+|\+=|[][(),:=@*?])
      | (?P<odd>.))""",
    re.VERBOSE,
)
_REGISTER = re.compile(r"r[0-9]+")


class Token(NamedTuple):
    """A word of the text; `kind` is string, number, name, mark or end."""

    kind: str
    text: str
    start: int


def error_at(source: Input, token: Token, message: str) -> ParseError:
    """The error at a token of a text."""
    return ParseError(Span(token.start, token.start + max(1, len(token.text)), source), message)


class Cursor:
    """The tokens of one line, taken one after the other.

    Attributes:
        number: of the line, from 1.
    """

    def __init__(self, source: Input, number: int, start: int, line: str):
        self.source, self.number = source, number
        self.tokens = self._tokens(start, line)
        self.at = 0

    def _tokens(self, start: int, line: str) -> list[Token]:
        found: list[Token] = []
        for match in _TOKEN.finditer(line):
            kind = match.lastgroup
            assert kind is not None
            if kind == "comment":
                break
            token = Token(kind, match[kind], start + match.start(kind))
            if kind == "odd":
                raise self.error(f"{token.text!r} has no meaning here", token)
            found.append(token)
        found.append(Token("end", "", start + len(line)))
        return found

    def error(self, message: str, token: Token | None = None) -> ParseError:
        """The error at a token; at the next one where none is given."""
        return error_at(self.source, token or self.next, message)

    def fail(self, what: str) -> NoReturn:
        """Raise the error that something else was expected."""
        token = self.next
        raise self.error(f"expected {what}, found {repr(token.text) if token.text else 'the end of the line'}")

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    @property
    def at_end(self) -> bool:
        return self.tokens[self.at].kind == "end"

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def optional(self, text: str) -> Token | None:
        """The next token where it is this one."""
        return self.take() if self.tokens[self.at].text == text else None

    def expect(self, text: str) -> Token:
        token = self.tokens[self.at]
        if token.text != text:
            self.fail(repr(text))
        self.at += 1
        return token

    def expect_end(self) -> None:
        if not self.at_end:
            self.fail("the end of the line")

    def word(self, what: str) -> str:
        token = self.tokens[self.at]
        if token.kind != "name":
            self.fail(what)
        self.at += 1
        return token.text

    def name(self, what: str) -> str:
        """A name, bare or quoted."""
        if self.next.kind == "string":
            token = self.take()
            try:
                text = json.loads(token.text)
            except ValueError:
                raise self.error("a quoted name has the escapes of JSON", token) from None
            if text:
                return text
            raise self.error("a name is not empty", token)
        return self.word(what)

    def integer(self, what: str, least: int | None = None) -> int:
        token = self.tokens[self.at]
        value = self._integer_here()
        if value is None:
            self.fail(what)
        if least is not None and value < least:
            raise self.error(f"expected {what}, found {token.text}", token)
        return value

    def literal(self) -> int | float:
        """An integer, or a float where it is written as one."""
        token = self.next
        if token.kind != "number":
            self.fail("a number")
        value = self._integer_here()
        if value is None:
            self.take()
            return float(token.text)
        return value

    def _integer_here(self) -> int | None:
        token = self.tokens[self.at]
        if token.kind != "number":
            return None
        try:
            value = int(token.text, 0)
        except ValueError:  # a float, or 010
            return None
        self.at += 1
        return value

    def at_register(self) -> bool:
        token = self.tokens[self.at]
        return token.kind == "name" and _REGISTER.fullmatch(token.text) is not None

    def operand(self, register: Callable[["Cursor"], Register]) -> Operand:
        """A register, which `register` takes, or an integer."""
        return register(self) if self.at_register() else self.integer("a register or an integer")

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """`[item, item]`."""
        self.expect("[")
        found: list[T] = []
        while not self.optional("]"):
            if found and not self.optional(","):
                self.fail("',' or ']'")
            found.append(item())
        return tuple(found)


def count(line: Cursor) -> int:
    """A number of something."""
    return line.integer("an integer, 0 or more", 0)


def one_of(line: Cursor, what: str, choices: Sequence[str]) -> str:
    """One of some words."""
    token = line.next
    word = line.word(f"the name of {'an' if what[0] in 'aeiou' else 'a'} {what}")
    if word not in choices:
        raise line.error(f"no {what} {word}; there are: {', '.join(choices) or 'none'}", token)
    return word
