"""What holds for a tile program as a whole: what it is made of, its engines, where buffers and tokens may go."""

from collections.abc import Iterable
from typing import NoReturn, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError, verify_alone
from mpkc.dialects.engine import engine_of, is_instruction, label_of
from mpkc.dialects.scalars import is_scalar
from mpkc.dialects.tile_buffers import RotateOp, kept_dimensions, root_of
from mpkc.dialects.tile_transfer import TileInstruction, Transfer
from mpkc.dialects.tile_types import (
    ON_CHIP,
    Access,
    Buffer,
    Space,
    TokenType,
    is_float,
    is_integer,
    is_static,
    space_of,
)
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

CONTROL = (scf.ForOp, scf.IfOp, scf.IndexSwitchOp, scf.WhileOp, scf.YieldOp, scf.ConditionOp)
BUFFERS = (memref.AllocOp, memref.SubviewOp, memref.ReinterpretCastOp, memref.DimOp, RotateOp)
PAGES = (RingOp, AcquireOp, HeldOp, ReleaseOp, ScalarsOp)
WORKER_ONLY = (FetchOp, ScalarsOp, EventWaitOp, EventSignalOp)


def fault(op: Operation, message: str) -> NoReturn:
    """Raises the OpError that says what is wrong with `op`."""
    raise OpError(op, f"'{op.name}': {message}")


def verify_program(program: Operation, engines: tuple[str, ...], is_worker: bool) -> None:
    """Verify the body of a `tile.kernel` or `tile.worker`.

    Raises:
        OpError: at the operation that is wrong.
    """
    if len(set(engines)) != len(engines) or not all(engines):
        fault(program, "names its engines once each")
    body = program.regions[0].block
    for arg in body.args:
        if not (space_of(arg.type) is Space.FAR or is_float(arg.type) or is_integer(arg.type)):
            fault(program, f"takes an argument of type {arg.type}: arguments are far buffers and numbers")
    _ProgramCheck(program, frozenset(engines), is_worker).run()


class _ProgramCheck:
    """One walk in program order. Each operation is verified before anything is made of it."""

    def __init__(self, program: Operation, engines: frozenset[str], is_worker: bool):
        self.program = program
        self.engines = engines
        self.is_worker = is_worker
        self.labels: set[str] = set()
        self.written: set[SSAValue] = set()
        self.reads: list[tuple[TileInstruction, SSAValue]] = []

    def run(self) -> None:
        for op in self.program.walk():
            if op is not self.program:
                self.operation(op)
        if self.is_worker:
            self.events_order_reads()

    def operation(self, op: Operation) -> None:
        verify_alone(op)
        self.belongs(op)
        if isinstance(op, memref.SubviewOp):
            _verify_subview(op)
        if isinstance(op, memref.ReinterpretCastOp):
            _verify_reinterpret_cast(op)
        if is_instruction(op) and engine_of(op) not in self.engines:
            fault(op, f"engine \"{engine_of(op)}\" is none of the engines of '{self.program.name}'")
        if (label := label_of(op)) is not None:
            if label in self.labels:
                fault(op, f"duplicate label @{label}")
            self.labels.add(label)
        if isinstance(op, TileInstruction):
            self.far_accesses(op)

    def belongs(self, op: Operation) -> None:
        if not (isinstance(op, CONTROL + BUFFERS + PAGES) or is_instruction(op) or _is_number(op)):
            fault(op, "does not belong in a tile program: it is made of scf, integer arith, tile and views of memref")
        if isinstance(op, WORKER_ONLY) and not self.is_worker:
            fault(op, "stands in a tile.kernel: tasks and events are there only in a tile.worker")
        if isinstance(op, memref.AllocOp):
            self.allocation(op)
        elif isinstance(op, RingOp):
            if op.parent_op() is not self.program:
                fault(op, "a ring is there as long as its program: it stands at the top level")
        elif isinstance(op, CONTROL):
            carried = (arg.type for region in op.regions for block in region.blocks for arg in block.args)
            self.stays_put(op, (*op.result_types, *carried))

    def allocation(self, op: memref.AllocOp) -> None:
        type_ = op.memref.type
        if op.parent_op() is not self.program:
            fault(op, "a buffer is there as long as its program: allocate at the top level, use tile.rotate in loops")
        if space_of(type_) not in ON_CHIP or not is_static(type_):
            fault(op, f"allocates {type_}: buffers are near or accumulator memory of a static shape")

    def stays_put(self, op: Operation, types: Iterable[Attribute]) -> None:
        """Buffers and tokens are not carried by control flow, so every use of one leads back to its root."""
        for type_ in types:
            if isa(type_, MemRefType) or isinstance(type_, TokenType):
                fault(op, f"carries a {type_}: buffers and tokens are named directly, use tile.rotate for one by index")

    def far_accesses(self, op: TileInstruction) -> None:
        for index, access in op.accesses():
            root = root_of(op.operands[index])
            if space_of(root.type) is not Space.FAR:
                continue
            if access is Access.WRITE:
                self.written.add(root)
            elif not isinstance(op, EventSignalOp):
                self.reads.append((op, root))
        if isinstance(op, EventSignalOp) and (idle := [v for v in op.written if root_of(v) not in self.written]):
            name = idle[0].name_hint or "a buffer"
            fault(op, f"%{name} is written by nothing before this: the event would stand for no data")

    def events_order_reads(self) -> None:
        """A task may read what tasks write only after the event that says it is there."""
        for op, root in self.reads:
            if root in self.written and not (isinstance(op, Transfer) and op.tokens):
                name = root.name_hint or "a buffer"
                fault(op, f"reads %{name}, which tasks write, ahead of its event: take a token by `after`")


def _verify_reinterpret_cast(op: memref.ReinterpretCastOp) -> None:
    """The result has the strides asked for, and its elements are those of the source."""
    source, result = cast(Buffer, op.source.type), cast(Buffer, op.result.type)
    if not _same_memory(source, result):
        fault(op, f"{result} does not have the elements or the space of {source}")
    strides = [None if stride < 0 else stride for stride in op.static_strides.iter_values()]
    if list(result.get_strides() or ()) != strides:
        asked = ", ".join("?" if stride is None else str(stride) for stride in strides)
        fault(op, f"{result} does not have the strides [{asked}]")


def _same_memory(a: Buffer, b: Buffer) -> bool:
    return (a.element_type, a.memory_space) == (b.element_type, b.memory_space)


def _is_number(op: Operation) -> bool:
    """Integer arithmetic that every engine does for itself, or a constant of floats for an instruction to use."""
    return is_scalar(op) or (isinstance(op, arith.ConstantOp) and is_float(op.result.type))


def _verify_subview(op: memref.SubviewOp) -> None:
    """The result shows the sizes asked for, with or without dimensions of size 1, and the strides that follow."""
    source, result = cast(Buffer, op.source.type), cast(Buffer, op.result.type)
    lists = (op.static_offsets, op.static_sizes, op.static_strides)
    if any(len(numbers) != source.get_num_dims() for numbers in lists):
        fault(op, f"takes offsets, sizes and strides, one for each of the {source.get_num_dims()} dimensions")
    if not _same_memory(source, result) or kept_dimensions(op) is None:
        sizes = ["?" if size < 0 else str(size) for size in op.static_sizes.iter_values()]
        fault(op, f"{result} does not have the sizes [{', '.join(sizes)}], the strides or the space of {source}")
