"""sem: multi-engine programs in structured control flow, and who waits for whom (barrier-free, section 4).

docs/sem.md is the contract of the text form.
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    i1,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Dialect, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.engine import EngineInstruction, EngineValue
from mpkc.dialects.sem_distance import (
    AfterAttr,
    DistanceAttr,
    OffsetAttr,
    parse_after_list,
    print_after_list,
)
from mpkc.dialects.sem_rules import check_rules
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, ReadOp, StreamOp, StreamsOp, WaitOp


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """A multi-engine program, in program order.

    Every engine runs its control flow and its scalar arithmetic; an instruction is run by its engine alone.
    The arguments are run-time integers that every engine can read.
    """

    name = "sem.program"

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    def __init__(self, name: str, body: Region, attributes: dict[str, Attribute] | None = None):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body], attributes=attributes)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, which bind their values."""
        return tuple(arg.name_hint or "" for arg in self.body.block.args)

    def verify_(self) -> None:
        names = self.argument_names
        for index, (arg, name) in enumerate(zip(self.body.block.args, names, strict=True)):
            if arg.type not in (IndexType(), i1):
                raise VerifyException(f"argument {index} is of type {arg.type}: use index or i1")
            if not name or name in names[:index]:
                raise VerifyException(f"argument {index} needs a name of its own, by which it gets its value")
        check_rules(self, names)

    @classmethod
    def parse(cls, parser: Parser) -> "ProgramOp":
        name = parser.parse_symbol_name()

        def argument() -> Parser.Argument:
            found = parser.parse_argument()
            spelled = found.name.text[1:]
            if not spelled[0].isalpha() or spelled.rpartition("_")[2].isdigit():
                parser.raise_error(
                    "the name of an argument starts with a letter and does not end in _ and digits", found.name
                )
            return found

        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(args)
        return cls(name.data, body, dict(attributes.data) if attributes else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)

        def argument(arg: BlockArgument) -> None:
            printer.print_ssa_value(arg)
            printer.print_string(" : ")
            printer.print_attribute(arg.type)

        with printer.in_parens():
            printer.print_list(self.body.block.args, argument)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


class LabelledInstruction(IRDLOperation):
    """What sem.inst and sem.value share: `@LABEL engine "NAME" cost NS [latency NS] [after [...]]`."""

    label = prop_def(StringAttr)
    engine = prop_def(StringAttr)
    cost = prop_def(IntegerAttr)
    latency = opt_prop_def(IntegerAttr)
    after = opt_prop_def(ArrayAttr[AfterAttr])

    HEAD: ClassVar = ("label", "engine", "cost", "latency", "after")

    def __init__(
        self,
        label: str,
        engine: str,
        cost: int,
        after: Sequence[AfterAttr] | None = None,
        latency: int | None = None,
        result_types: Sequence[Attribute] = (),
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={
                "label": StringAttr(label),
                "engine": StringAttr(engine),
                "cost": IntegerAttr(cost, i64),
                "latency": None if latency is None else IntegerAttr(latency, i64),
                "after": None if after is None else ArrayAttr(after),
            },
            result_types=result_types,
            attributes=attributes,
        )

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        """The properties, by name; the attribute dictionary that may follow is left."""
        label = parser.parse_symbol_name()
        parser.parse_keyword("engine")
        engine = StringAttr(parser.parse_str_literal())
        parser.parse_keyword("cost")
        head: dict[str, Attribute] = {"label": label, "engine": engine, "cost": parse_nanoseconds(parser)}
        if parser.parse_optional_keyword("latency"):
            head["latency"] = parse_nanoseconds(parser)
        if (after := parse_after_list(parser)) is not None:
            head["after"] = after
        return head

    def print_head(self, printer: Printer) -> None:
        """Print what `parse_head` parses, and the attribute dictionary."""
        printer.print_string(" ")
        printer.print_symbol_name(self.label)
        printer.print_string(" engine ")
        printer.print_string_literal(self.engine.data)
        printer.print_string(f" cost {self.cost.value.data}")
        if self.latency is not None:
            printer.print_string(f" latency {self.latency.value.data}")
        print_after_list(printer, self.after)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class InstOp(LabelledInstruction):
    """An opaque instruction of one engine."""

    name = "sem.inst"

    traits = traits_def(EngineInstruction())

    @classmethod
    def parse(cls, parser: Parser) -> "InstOp":
        head = cls.parse_head(parser)
        return cls.create(properties=head, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        self.print_head(printer)


@irdl_op_definition
class ValueOp(LabelledInstruction):
    """An instruction whose result is a run-time integer that every engine can read."""

    name = "sem.value"

    result = result_def()

    traits = traits_def(EngineValue())

    def verify_(self) -> None:
        if self.result.type not in (IndexType(), i1):
            raise VerifyException(f"a value of type {self.result.type}: use index or i1")

    @classmethod
    def parse(cls, parser: Parser) -> "ValueOp":
        head = cls.parse_head(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(properties=head, attributes=attributes, result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


def parse_nanoseconds(parser: Parser) -> IntegerAttr:
    """A time in ns, an integer that is 0 or more."""
    return IntegerAttr(parser.parse_integer(allow_boolean=False, allow_negative=False), i64)


Sem = Dialect(
    "sem",
    [ProgramOp, InstOp, ValueOp, StreamsOp, StreamOp, WaitOp, IterationOp, BarrierOp, MarkerOp, ReadOp],
    [AfterAttr, DistanceAttr, OffsetAttr],
)
