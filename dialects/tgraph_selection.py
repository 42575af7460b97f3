"""Which tasks of a row of tasks each event of a group takes: `@a all`, `@a each 4`, `@a [0, 3, 5 to 9]`."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerType, SymbolRefAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.lists import Index, ranges


@irdl_attr_definition
class SelectionAttr(ParametrizedAttribute):
    """Tasks of one `tgraph.tasks` or `tgraph.task`, for each event of a group; places count from 0 in that row.

    * `@a all`: every event takes every task.
    * `@a each k`: the tasks are cut in blocks of k; event i takes block i, and begins again behind the last block.
    * `@a each k of n`: the same in every line of n tasks, so for a grid [m, n] a block of columns.
    * `@a each k by r`: r events in a row take the same block.
    * `@a [0, 3, 5 to 9]`: every event takes these; `5 to 9` is 5, 6, 7, 8.
    """

    name = "tgraph.selection"

    row: SymbolRefAttr
    each: IntAttr  # 0: all, or the listed ones
    line: IntAttr  # 0: the row is one line
    by: IntAttr
    places: DenseArrayBase[IntegerType]  # first and past-the-end place of each listed range, in turn; none: all

    @staticmethod
    def all_of(row: str) -> "SelectionAttr":
        return _selection(row)

    @staticmethod
    def blocks_of(row: str, each: int, by: int = 1, line: int = 0) -> "SelectionAttr":
        return _selection(row, each, line, by)

    @staticmethod
    def ranges_of(row: str, bounds: Sequence[int]) -> "SelectionAttr":
        """The places from bounds[0] up to bounds[1], from bounds[2] up to bounds[3], ..."""
        return _selection(row, places=bounds)

    @property
    def symbol(self) -> str:
        return self.row.root_reference.data

    def select(self, events: int, tasks: int) -> tuple[Index, Index]:
        """(event, place) of each edge of `events` events to a row of `tasks` tasks: int64.

        Raises:
            VerifyException: where the row has no such tasks.
        """
        width = self.each.data
        if width:
            line = self.line.data or tasks
            if tasks % line or line % width:
                raise VerifyException(f"{self}: @{self.symbol} has {tasks} tasks, which make no such blocks")
            block = np.arange(events, dtype=np.int64) // self.by.data % (line // width)
            first = (block[:, None] * width + np.arange(0, tasks, line)).reshape(-1)
            return np.repeat(np.arange(events), width * (tasks // line)), ranges(first, np.full(len(first), width))
        places = self._listed(tasks) if len(self.places) else np.arange(tasks, dtype=np.int64)
        return np.repeat(np.arange(events), len(places)), np.tile(places, events)

    def _listed(self, tasks: int) -> Index:
        bounds = np.array(self.places.get_values(), dtype=np.int64)
        first, end = bounds[::2], bounds[1::2]
        if np.any(bounds[1:] < bounds[:-1]) or np.any(first == end) or bounds[-1] > tasks:
            raise VerifyException(f"{self}: places must ascend, and @{self.symbol} has those from 0 to {tasks - 1}")
        return ranges(first, end - first)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_selection(parser).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            self.print_text(printer)

    def print_text(self, printer: Printer) -> None:
        """Print the selection as operations write it."""
        printer.print_string(str(self))

    def __str__(self) -> str:
        if self.each.data:
            line = f" of {self.line.data}" if self.line.data else ""
            by = f" by {self.by.data}" if self.by.data != 1 else ""
            return f"@{self.symbol} each {self.each.data}{line}{by}"
        if not len(self.places):
            return f"@{self.symbol} all"
        bounds = self.places.get_values()
        pairs = zip(bounds[::2], bounds[1::2], strict=True)
        listed = ", ".join(str(first) if end == first + 1 else f"{first} to {end}" for first, end in pairs)
        return f"@{self.symbol} [{listed}]"


def parse_selection(parser: AttrParser) -> SelectionAttr:
    """Read a selection; no word behind the symbol means all tasks."""
    row = parser.parse_symbol_name().data
    if parser.parse_optional_keyword("each"):
        each = _parse_positive(parser)
        line = _parse_positive(parser) if parser.parse_optional_keyword("of") else 0
        by = _parse_positive(parser) if parser.parse_optional_keyword("by") else 1
        return SelectionAttr.blocks_of(row, each, by, line)
    listed = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_range(parser))
    if listed is not None:
        return SelectionAttr.ranges_of(row, [bound for pair in listed for bound in pair])
    parser.parse_optional_keyword("all")
    return SelectionAttr.all_of(row)


def _parse_positive(parser: AttrParser) -> int:
    at = parser.pos
    number = parser.parse_integer(allow_negative=False)
    return number if number else parser.raise_error("expected a number above 0", at, parser.pos)


def _parse_range(parser: AttrParser) -> tuple[int, int]:
    first = parser.parse_integer(allow_negative=False)
    end = parser.parse_integer(allow_negative=False) if parser.parse_optional_keyword("to") else first + 1
    return first, end


def _selection(row: str, each: int = 0, line: int = 0, by: int = 1, places: Sequence[int] = ()) -> SelectionAttr:
    return SelectionAttr(
        SymbolRefAttr(row), IntAttr(each), IntAttr(line), IntAttr(by), DenseArrayBase.from_list(i64, list(places))
    )
