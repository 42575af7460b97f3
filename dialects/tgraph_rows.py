"""The rows of a readable task graph: tasks of an operator, and groups of events, each an operation."""

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    OptPropertyDef,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from mpkc.dialects.tgraph_selection import SelectionAttr, parse_selection


@dataclass(frozen=True)
class Word:
    """How the value behind a keyword is read and written."""

    parse: Callable[[Parser], Attribute]
    print: Callable[[Printer, Any], None]


def _parse_int(parser: Parser) -> Attribute:
    return IntegerAttr(parser.parse_integer(allow_negative=False), i64)


def _print_int(printer: Printer, value: IntegerAttr) -> None:
    printer.print_string(str(value.value.data))


def _parse_string(parser: Parser) -> Attribute:
    return StringAttr(parser.parse_str_literal())


def _print_string(printer: Printer, value: StringAttr) -> None:
    printer.print_string_literal(value.data)


def _parse_numbers(parser: Parser) -> Attribute:
    numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return DenseArrayBase.from_list(i64, numbers)


def _print_numbers(printer: Printer, value: DenseArrayBase[IntegerType]) -> None:
    printer.print_string(str(list(value.get_values())))


def _parse_range(parser: Parser) -> Attribute:
    first = parser.parse_integer(allow_negative=False)
    parser.parse_keyword("to")
    return DenseArrayBase.from_list(i64, [first, parser.parse_integer(allow_negative=False)])


def _print_range(printer: Printer, value: DenseArrayBase[IntegerType]) -> None:
    printer.print_string(" to ".join(map(str, value.get_values())))


def _parse_symbols(parser: Parser) -> Attribute:
    names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_symbol_name)
    return ArrayAttr([SymbolRefAttr(name) for name in names])


def _print_symbols(printer: Printer, value: ArrayAttr[Attribute]) -> None:
    with printer.in_square_brackets():
        printer.print_list(value, printer.print_attribute)


def _parse_selections(parser: Parser) -> Attribute:
    return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_selection(parser)))


def _print_selections(printer: Printer, value: ArrayAttr[SelectionAttr]) -> None:
    printer.print_list(value, lambda selection: selection.print_text(printer))


INTEGER = Word(_parse_int, _print_int)
STRING = Word(_parse_string, _print_string)
NUMBERS = Word(_parse_numbers, _print_numbers)
RANGE = Word(_parse_range, _print_range)
SYMBOLS = Word(_parse_symbols, _print_symbols)
SELECTIONS = Word(_parse_selections, _print_selections)


class WordedOp(IRDLOperation, ABC):
    """An operation `tgraph.NAME @symbol word value word value {attributes}`, the words in a fixed order."""

    WORDS: ClassVar[Mapping[str, Word]]

    sym_name = prop_def(SymbolNameConstraint())

    traits = traits_def(SymbolOpInterface())

    @property
    def symbol(self) -> str:
        return self.sym_name.data

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        known = cls.get_irdl_definition().properties
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        for keyword, word in cls.WORDS.items():
            if not isinstance(known[keyword], OptPropertyDef):
                parser.parse_keyword(keyword)
            elif not parser.parse_optional_keyword(keyword):
                continue
            properties[keyword] = word.parse(parser)
        return cls.create(properties=properties, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        for keyword, word in self.WORDS.items():
            if keyword in self.properties:
                printer.print_string(f" {keyword} ")
                word.print(printer, self.properties[keyword])
        printer.print_op_attributes(self.attributes)


EMPTY_KIND = "empty"


class TaskRow(WordedOp, ABC):
    """Tasks of one operator, side by side.

    `operator` is the operator's number in the graph's function. A graph without a function numbers its operators in
    the order in which they first stand, unless it gives the numbers itself; `name` is the operator's name where that
    is not the symbol. Kind "empty" is that of tasks that belong to no operator and do nothing.
    """

    operator = opt_prop_def(IntegerAttr)
    label = opt_prop_def(StringAttr, prop_name="name")
    kind = prop_def(StringAttr)
    cost = opt_prop_def(IntegerAttr)
    device = opt_prop_def(IntegerAttr)

    @property
    def is_empty(self) -> bool:
        return self.kind.data == EMPTY_KIND


@irdl_op_definition
class TasksOp(TaskRow):
    """Tasks of one operator, with consecutive tiles: those of its whole grid, or `tiles A to B` (A up to B - 1).

    `workers` gives the worker that each task is assigned to ahead of time, -1 for just in time; absent, all are.

    tgraph.tasks @qkv operator 1 kind "linear" grid [1, 12]
    """

    name = "tgraph.tasks"

    WORDS: ClassVar[Mapping[str, Word]] = {
        "operator": INTEGER,
        "name": STRING,
        "kind": STRING,
        "grid": NUMBERS,
        "tiles": RANGE,
        "cost": INTEGER,
        "device": INTEGER,
        "workers": NUMBERS,
    }

    workers = opt_prop_def(DenseArrayBase[IntegerType])
    grid = prop_def(DenseArrayBase[IntegerType])
    tiles = opt_prop_def(DenseArrayBase[IntegerType])


@irdl_op_definition
class TaskOp(TaskRow):
    """One task, and the events of one task each that it waits on and triggers.

    `worker` is the one that it is assigned to ahead of time; absent, it is handed out just in time.

    tgraph.task @A1 kind "attention" cost 900 waits [@e1] triggers [@e2]
    """

    name = "tgraph.task"

    WORDS: ClassVar[Mapping[str, Word]] = {
        "operator": INTEGER,
        "name": STRING,
        "tile": INTEGER,
        "kind": STRING,
        "cost": INTEGER,
        "device": INTEGER,
        "worker": INTEGER,
        "waits": SYMBOLS,
        "triggers": SYMBOLS,
    }

    tile = opt_prop_def(IntegerAttr)
    worker = opt_prop_def(IntegerAttr)
    waits = opt_prop_def(ArrayAttr[SymbolRefAttr])
    triggers = opt_prop_def(ArrayAttr[SymbolRefAttr])


class EventRow(WordedOp, ABC):
    """Events side by side."""

    device = opt_prop_def(IntegerAttr)


@irdl_op_definition
class EventOp(EventRow):
    """One event; tasks say that they trigger it or wait on it: `tgraph.event @e1`."""

    name = "tgraph.event"

    WORDS: ClassVar[Mapping[str, Word]] = {"device": INTEGER}


@irdl_op_definition
class EventsOp(EventRow):
    """A group of events, and which tasks trigger each and wait on each.

    tgraph.events @e count 3 from @qkv each 4 to @attention each 1
    """

    name = "tgraph.events"

    WORDS: ClassVar[Mapping[str, Word]] = {"count": INTEGER, "device": INTEGER, "from": SELECTIONS, "to": SELECTIONS}

    count = opt_prop_def(IntegerAttr)
    sources = prop_def(ArrayAttr[SelectionAttr], prop_name="from")
    targets = prop_def(ArrayAttr[SelectionAttr], prop_name="to")
