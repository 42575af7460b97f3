"""The `tile` dialect: kernels for several engines, written as if one engine ran them in program order.

A program is scf and arith around engine instructions on tiles; nothing in it says who waits for whom. Dependencies,
semaphores and one stream an engine follow from what each instruction reads and writes (`accesses`). Costs are the
machine's, so one body serves every target.
"""

import abc
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Self

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface

from mpkc.dialects.diagnostics import VerifiesAll
from mpkc.dialects.sem_maxima import check_maxima
from mpkc.dialects.tile_buffers import RotateOp
from mpkc.dialects.tile_compute import FillOp, IotaOp, MapOp, MatmulOp, ReduceOp, SelectOp, TransposeOp
from mpkc.dialects.tile_program import verify_program
from mpkc.dialects.tile_rings import verify_rings
from mpkc.dialects.tile_transfer import CopyOp, GatherOp, ScatterOp, ValueOp
from mpkc.dialects.tile_types import FunctionAttr, ReductionAttr, RingType, SpaceAttr, TokenType
from mpkc.dialects.tile_worker import (
    AcquireOp,
    EventSignalOp,
    EventWaitOp,
    FetchOp,
    HeldOp,
    ReleaseOp,
    RingOp,
    ScalarsOp,
)


class ProgramOp(IRDLOperation, abc.ABC):
    """A tile program: arguments are far buffers and numbers that every engine can read."""

    sym_name = prop_def(StringAttr)
    engines = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator(), VerifiesAll())

    IS_WORKER: ClassVar[bool]

    def __init__(
        self,
        name: str,
        engines: Sequence[str],
        body: Region,
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "engines": ArrayAttr([StringAttr(engine) for engine in engines]),
            },
            regions=[body],
            attributes=attributes,
        )

    @property
    def engine_names(self) -> tuple[str, ...]:
        """The engines that the program may name, in the order of their streams."""
        return tuple(engine.data for engine in self.engines)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, as written; `argN` for one without."""
        return tuple(arg.name_hint or f"arg{arg.index}" for arg in self.body.block.args)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("engines")
        engines = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(args)
        return cls(name.data, engines, body, dict(attributes.data) if attributes else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, partial(_print_argument, printer))
        printer.print_string(" engines ")
        printer.print_attribute(self.engines)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        verify_program(self, self.engine_names, self.IS_WORKER)
        check_maxima(self, self.argument_names)
        verify_rings(self, self.engine_names)


def _print_argument(printer: Printer, arg: SSAValue) -> None:
    printer.print_ssa_value(arg)
    printer.print_string(" : ")
    printer.print_attribute(arg.type)


@irdl_op_definition
class KernelOp(ProgramOp):
    """A kernel that runs once."""

    name = "tile.kernel"
    IS_WORKER: ClassVar[bool] = False


@irdl_op_definition
class WorkerOp(ProgramOp):
    """A worker of the mega-kernel: takes tasks off a queue, and waits for and signals events."""

    name = "tile.worker"
    IS_WORKER: ClassVar[bool] = True


Tile = Dialect(
    "tile",
    [
        KernelOp,
        WorkerOp,
        RotateOp,
        CopyOp,
        GatherOp,
        ScatterOp,
        ValueOp,
        MatmulOp,
        MapOp,
        SelectOp,
        ReduceOp,
        TransposeOp,
        FillOp,
        IotaOp,
        RingOp,
        AcquireOp,
        HeldOp,
        ReleaseOp,
        FetchOp,
        ScalarsOp,
        EventWaitOp,
        EventSignalOp,
    ],
    [SpaceAttr, FunctionAttr, ReductionAttr, RingType, TokenType],
)
