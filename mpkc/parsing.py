"""Reading MLIR text so that every operation knows where it was written."""

import bisect

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.universe import Universe
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span


class LocatedParser(Parser):
    """Gives each operation without `loc(...)` the place where it was written.

    Args:
        line_offset: lines that stand before `text` in the file it was cut from.
    """

    def __init__(self, ctx: Context, text: str, name: str = "<unknown>", line_offset: int = 0):
        super().__init__(ctx, text, name)
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
            line = bisect.bisect_right(self._starts, start)
            column = start - self._starts[line - 1] + 1
            op.location = FileLineColLoc(self._file, IntAttr(line + self._line_offset), IntAttr(column))
        return op

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        operand = super().parse_optional_unresolved_operand()
        if operand is not None:
            self._first_uses.setdefault(operand.span.text, operand.span)
        return operand

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as err:
            undefined = next((name for name in self.forward_ssa_references), None)
            if undefined is None or "used but not defined" not in err.msg:
                raise
            name = f"%{undefined}"
            raise ParseError(self._first_uses.get(name, err.span), f"{name} is used but never defined") from err


def error_text(err: ParseError) -> str:
    """`file:line:col: error: message`, the source line, and carets below the place."""
    place = err.span.get_location()
    start = err.span.input.get_start_of_line(err.span.start)
    content = err.span.input.content[start : err.span.input.get_end_of_line(err.span.start)]
    line = content.decode(errors="replace") if isinstance(content, bytes) else content
    carets = "^" * max(1, min(len(err.span), len(line) - place.col + 1))
    message = " ".join(err.msg.split())
    return f"{place.file}:{place.line}:{place.col}: error: {message}\n{line}\n{' ' * (place.col - 1)}{carets}"


def decoded(data: bytes, name: str) -> str:
    """The text of an MLIR file; a ValueError that names the file where it is no text."""
    try:
        return data.decode()
    except UnicodeDecodeError as err:
        raise ValueError(f"{name}: not UTF-8 text (byte {err.start}), so not an MLIR file") from err


def new_context() -> Context:
    """A context that knows every dialect of xDSL and of mpkc."""
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


def parse_module(text: str, name: str = "<unknown>", ctx: Context | None = None) -> ModuleOp:
    """The module written in `text`, not yet verified; raises ParseError."""
    return LocatedParser(ctx or new_context(), text, name).parse_module()
