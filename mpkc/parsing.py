"""Reading MLIR text so that every operation knows where it was written."""

import bisect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from mpkc.dialects import get_all_dialects
from mpkc.dialects.diagnostics import OpError
from mpkc.names import no_such

if TYPE_CHECKING:
    from xdsl.universe import Universe

STDIN = "<stdin>"
SHOWN = 160  # characters of a line in a message


class Lexer(MLIRLexer):
    """xDSL's, which takes exponential time for a string that does not end, in linear time."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class LocatedParser(Parser):
    """Gives each operation without `loc(...)` the place where it was written.

    Args:
        line_offset: lines that stand before `text` in the file it was cut from.
    """

    def __init__(self, ctx: Context, text: str, name: str = "<unknown>", line_offset: int = 0):
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        self._starts = [0]
        at = text.find("\n")
        while at != -1:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._file = StringAttr(name)
        self._line_offset = line_offset
        self._first_uses: dict[str, Span[str] | Span[bytes]] = {}

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = self._location(start)
        return op

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        operand = super().parse_optional_unresolved_operand()
        if operand is not None:
            self._first_uses.setdefault(operand.span.text, operand.span)
        return operand

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module; where the text has none of its own, it stands where its first operation does.

        Raises:
            ParseError: whatever is wrong with the text.
            OpError: where the parser of an operation refuses it.
        """
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError as err:
            raise self._explained(err) from err
        except DiagnosticException as err:
            if isinstance(err, OpError):
                raise
            raise ParseError(self._current_token.span, str(err)) from err
        except RecursionError as err:
            raise ParseError(self._current_token.span, "nested too deeply") from err
        except Exception as err:  # xDSL's parsers of attributes meet odd text with errors of any kind
            raise ParseError(self._current_token.span, f"can't be parsed: {type(err).__name__}: {err}") from err
        if isinstance(module.location, UnknownLoc) and (first := module.body.block.first_op):
            module.location = first.location
        return module

    def _explained(self, err: ParseError) -> ParseError:
        """The same error at the right place and in words that help."""
        undefined = next((name for name in self.forward_ssa_references), None)
        if undefined is not None and "used but not defined" in err.msg:
            name = f"%{undefined}"
            return ParseError(self._first_uses.get(name, err.span), f"{name} is used but never defined")
        if unknown := re.fullmatch(r"Operation (\S+) is not registered", err.msg):
            return self._unknown_operation(unknown[1], err.span)
        if err.msg == "Could not parse entire input!":
            found = self._current_token
            what = "the end of the file" if found.kind == MLIRTokenKind.EOF else repr(found.text)
            return ParseError(found.span, f"expected an operation, found {what}")
        return err

    def _unknown_operation(self, name: str, after: Span[str] | Span[bytes]) -> ParseError:
        dialect = name.partition(".")[0]
        start = max(self.lexer.input.content.rfind(name, 0, after.start), 0)
        if self.ctx.get_optional_dialect(dialect) is None:
            message = no_such("dialect", dialect, (), self.ctx.registered_dialect_names, "mpkc opt --help")
        else:
            known = sorted(op.name for op in self.ctx.loaded_ops if op.name.startswith(f"{dialect}."))
            message = no_such("operation", name, known)
        return ParseError(Span(start, start + len(name), self.lexer.input), message)

    def _location(self, at: int) -> FileLineColLoc:
        """The place of a character of the text."""
        line = bisect.bisect_right(self._starts, at)
        column = at - self._starts[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line + self._line_offset), IntAttr(column))


def error_text(err: ParseError) -> str:
    """`file:line:col: error: message`, the source line, and carets below the place."""
    place = err.span.get_location()
    start = err.span.input.get_start_of_line(err.span.start)
    content = err.span.input.content[start : err.span.input.get_end_of_line(err.span.start)]
    line = content.decode(errors="replace") if isinstance(content, bytes) else content
    message = " ".join(err.msg.split())
    return f"{place.file}:{place.line}:{place.col}: error: {message}\n{pointed_at(line, place.col, len(err.span))}"


def pointed_at(line: str, column: int, length: int = 1) -> str:
    """A line, or what is around the place in a long one, and carets below `length` characters from `column` on."""
    first = max(0, column - 1 - SHOWN // 2) if len(line) > SHOWN else 0
    shown = line[first : first + SHOWN]
    at = column - 1 - first
    indent = "".join(character if character == "\t" else " " for character in shown[:at].ljust(at))
    return f"{shown}\n{indent}{'^' * max(1, min(length, len(shown) - at))}"


def decoded(data: bytes, name: str) -> str:
    """The text of an MLIR file; a ValueError that names the file where it is no text."""
    try:
        return data.decode()
    except UnicodeDecodeError as err:
        raise ValueError(f"{name}: not UTF-8 text (byte {err.start}), so not an MLIR file") from err


@cache
def _universe() -> "Universe":
    """What all packages add to xDSL; asking takes longer than parsing a small program."""
    from xdsl.universe import Universe

    return Universe.get_multiverse()


def new_context() -> Context:
    """A context that knows every dialect of xDSL, of mpkc, and of other packages that add to xDSL."""
    return _context(_universe().all_dialects)


def own_context() -> Context:
    """A context that knows the dialects of mpkc: all that a program needs that was not written as text."""
    return _context(get_all_dialects())


def _context(dialects: Mapping[str, Callable[[], Dialect]]) -> Context:
    ctx = Context()
    for name, factory in dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


def parse_module(text: str, name: str = "<unknown>", ctx: Context | None = None) -> ModuleOp:
    """The module written in `text`, not yet verified; raises ParseError."""
    return LocatedParser(ctx or new_context(), text, name).parse_module()
