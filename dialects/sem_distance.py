"""Dependencies of the sem dialect: `@P offset 2`, `@P distance [1, *]`.

A distance has one component for each counted loop (scf.for or scf.while) that producer and consumer share,
outermost first (barrier-free, section 4.2). `offset k` is short for `distance [0, ..., k]`.
"""

from typing import Literal

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

EVERY: Literal["*"] = "*"
Component = int | Literal["*"]


@irdl_attr_definition
class OffsetAttr(Data[int]):
    """`#sem.offset<2>`: a distance on the innermost shared loop, 0 on the others."""

    name = "sem.offset"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        with parser.in_angle_brackets():
            return parser.parse_integer(allow_boolean=False)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_attr_definition
class DistanceAttr(Data[tuple[Component, ...]]):
    """`#sem.distance<[1, *]>`: one component for each shared counted loop, outermost first."""

    name = "sem.distance"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Component, ...]:
        with parser.in_angle_brackets():
            return parse_components(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(print_components(self.data))


@irdl_attr_definition
class AfterAttr(ParametrizedAttribute):
    """`#sem.after<@P offset 2>`: a dependency on the instruction that is labelled `producer`."""

    name = "sem.after"

    producer: StringAttr
    distance: OffsetAttr | DistanceAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[StringAttr, OffsetAttr | DistanceAttr]:
        with parser.in_angle_brackets():
            after = parse_after(parser)
            return after.producer, after.distance

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_after(printer, self)


def offset(producer: str, k: int) -> AfterAttr:
    """The dependency `@producer offset k`."""
    return AfterAttr(StringAttr(producer), OffsetAttr(k))


def distance(producer: str, *components: Component) -> AfterAttr:
    """The dependency `@producer distance [components]`."""
    return AfterAttr(StringAttr(producer), DistanceAttr(components))


def parse_after(parser: AttrParser) -> AfterAttr:
    """Parse `@P offset INTEGER` or `@P distance [COMPONENT, ...]`."""
    producer = parser.parse_symbol_name()
    if parser.parse_optional_keyword("offset"):
        return AfterAttr(producer, OffsetAttr(parser.parse_integer(allow_boolean=False)))
    parser.parse_keyword("distance", ": expected `offset` or `distance` after the label")
    return AfterAttr(producer, DistanceAttr(parse_components(parser)))


def print_after(printer: Printer, after: AfterAttr) -> None:
    """Print a dependency as it was parsed: an offset stays an offset."""
    printer.print_symbol_name(after.producer)
    if isinstance(after.distance, OffsetAttr):
        printer.print_string(f" offset {after.distance.data}")
    else:
        printer.print_string(f" distance {print_components(after.distance.data)}")


def parse_after_list(parser: AttrParser) -> ArrayAttr[AfterAttr] | None:
    """Parse `after [DEPENDENCY, ...]` where it stands."""
    if parser.parse_optional_keyword("after") is None:
        return None
    return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_after(parser)))


def print_after_list(printer: Printer, after: ArrayAttr[AfterAttr] | None) -> None:
    """Print ` after [DEPENDENCY, ...]`; nothing where there is none."""
    if after is not None:
        printer.print_string(" after ")
        with printer.in_square_brackets():
            printer.print_list(after.data, lambda one: print_after(printer, one))


def parse_components(parser: AttrParser) -> tuple[Component, ...]:
    """Parse `[1, *, -2]`."""

    def component() -> Component:
        if parser.parse_optional_punctuation("*"):
            return EVERY
        return parser.parse_integer(allow_boolean=False)

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, component))


def print_components(components: tuple[Component, ...]) -> str:
    """`[1, *, -2]`."""
    return f"[{', '.join(map(str, components))}]"
