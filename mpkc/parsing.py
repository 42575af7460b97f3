"""Reading MLIR text so that every operation knows where it was written."""

import bisect

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.universe import Universe


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

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line = bisect.bisect_right(self._starts, start)
            column = start - self._starts[line - 1] + 1
            op.location = FileLineColLoc(self._file, IntAttr(line + self._line_offset), IntAttr(column))
        return op


def new_context() -> Context:
    """A context that knows every dialect of xDSL and of mpkc."""
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


def parse_module(text: str, name: str = "<unknown>", ctx: Context | None = None) -> ModuleOp:
    """The module written in `text`, not yet verified; raises ParseError."""
    return LocatedParser(ctx or new_context(), text, name).parse_module()
