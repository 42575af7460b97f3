"""What tile instructions do to memory: they read it at one time and write it at a later one, perhaps in shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.builtin import FixedBitwidthType, IndexType
from xdsl.ir import Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile_compute import MapOp
from mpkc.dialects.tile_transfer import GatherOp, ScatterOp, TileInstruction, ValueOp
from mpkc.dialects.tile_types import Access, Function, is_float
from mpkc.runtime.machine import Machine, Timing, Work
from mpkc.runtime.neuron.isa import ArgumentRef, Buffer, Number, Operand, Register, Tile, View
from mpkc.runtime.neuron.simulator.memory import Fault, Part, Touched, part_of
from mpkc.runtime.neuron.tile_operations import attribute_of, tile_operation
from mpkc.runtime.reference.elements import Array
from mpkc.runtime.reference.tile_instructions import INSTRUCTIONS

DEST = "dst"


@dataclass(frozen=True, slots=True)
class Captured:
    """The operands of one execution, by key, as they are when it issues."""

    parts: Mapping[str, Part]
    numbers: Mapping[str, int | float]


class TileEffect:
    """What one tile instruction does, each time it is executed.

    Args:
        memory: a flat array for each buffer.
        arguments: the numbers that the program was given.
        registers: of the engine.
    """

    def __init__(
        self,
        tile: Tile,
        engine: str,
        buffers: Mapping[str, Buffer],
        memory: Mapping[str, Array],
        arguments: Mapping[str, int | float],
        registers: list[int],
    ):
        built = tile_operation(tile, engine, buffers)
        assert isinstance(built.op, TileInstruction)
        self.op, self.operands, self.memory = built.op, built.operands, memory
        self.parts = {
            key: part_of(operand, buffers[operand.buffer], memory[operand.buffer].size, registers)
            for key, operand in tile.operands.items()
            if isinstance(operand, View)
        }
        self.numbers = {
            key: _number(operand, arguments, registers)
            for key, operand in tile.operands.items()
            if isinstance(operand, Number)
        }
        keys = {value: key for key, value in built.operands.items()}
        self.accesses = [(keys[self.op.operands[at]], access is Access.WRITE) for at, access in self.op.accesses()]

    def capture(self) -> Captured:
        """The operands as they are now; Fault where a part is not within its buffer."""
        parts = {key: find() for key, find in self.parts.items()}
        return Captured(parts, {key: read() for key, read in self.numbers.items()})

    def touched(self, captured: Captured) -> list[Touched]:
        """What an execution reads and writes; looks into the rows that a gather or scatter goes by."""
        by_rows = "src" if isinstance(self.op, GatherOp) else DEST if isinstance(self.op, ScatterOp) else None
        rows = None
        if by_rows is not None:
            part = captured.parts["rows"]
            count = captured.parts[by_rows].sizes[0]
            rows = [row for row in part.of(self.memory[part.buffer]).tolist() if 0 <= row < count]
        return [Touched(captured.parts[key], rows if key == by_rows else None, write) for key, write in self.accesses]

    def read(self, captured: Captured) -> Any:
        """What it will write: an array as its destination will be, or an integer; Fault where it cannot be computed.

        A scatter is computed when it is written: its result is its source and its rows.
        """
        arrays: dict[str, Any] = {key: part.of(self.memory[part.buffer]) for key, part in captured.parts.items()}
        if isinstance(self.op, ScatterOp):
            return arrays["src"].copy(), arrays["rows"].copy()
        if DEST in arrays:
            arrays[DEST] = arrays[DEST].copy()
        values = self._run(self.op, arrays, captured.numbers)
        return values[self.op.result] if isinstance(self.op, ValueOp) else arrays[DEST]

    def write(self, captured: Captured, result: Any, share: int = 0, shares: int = 1) -> None:
        """Write one of several shares of a result."""
        dest = captured.parts[DEST].of(self.memory[captured.parts[DEST].buffer])
        if isinstance(self.op, ScatterOp):
            source, rows = result
            taken = _share(len(rows), share, shares)
            self._run(self.op, {"src": source[taken], "rows": rows[taken], DEST: dest}, {})
        elif shares == 1:
            dest[...] = result
        else:
            taken = _share(dest.size, share, shares)
            dest.flat[taken] = result.flat[taken]

    def _run(self, op: TileInstruction, arrays: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[Any, Any]:
        given = {**arrays, **numbers}
        values: dict[Any, Any] = {self.operands[key]: value for key, value in given.items()}
        if isinstance(op, ValueOp):
            values |= dict.fromkeys(op.indices, 0)
        try:
            INSTRUCTIONS[type(op)](op, values)
        except OpError as err:
            raise Fault(err.message) from err
        return values


def timing(
    tile: Tile, engine: str, buffers: Mapping[str, Buffer], machine: Machine, registers: list[int]
) -> Callable[[], Timing]:
    """What computes how long a tile instruction takes, when it issues.

    Raises:
        MachineError: where the machine does not say it.
    """
    op = tile_operation(tile, engine, buffers).op
    whole = "src" if isinstance(op, GatherOp) else DEST if isinstance(op, ScatterOp) else None
    views = {key: each for key, each in tile.operands.items() if isinstance(each, View) and key != whole}
    clock, kind = machine.clock_of(engine), _kind(op, tile)

    def compute() -> Timing:
        sizes = {key: [_read(size, registers) for size in view.sizes] for key, view in views.items()}
        largest = max(sizes, key=lambda key: prod(sizes[key]))
        element = views[largest].element
        narrow = "map_tiles" if kind == "map" and _reads_two_tiles(views, buffers, sizes, largest) else kind
        formulas = machine.cost_of(narrow, engine, views.get("lhs", views[largest]).element)
        return formulas.timing(_work(sizes, largest, _bytes(element), machine.lanes), clock)

    if any(isinstance(size, Register) for view in views.values() for size in view.sizes):
        return compute
    known = compute()
    return lambda: known


def _kind(op: Operation, tile: Tile) -> str:
    """The name of an operation, as narrow as machines know it."""
    if tile.opcode == "DMA_COPY":
        return "transfer"
    if isinstance(op, MapOp) and op.function.data in (Function.DIV, Function.RECIPROCAL):
        return "divide"
    return op.name.removeprefix("tile.")


def _reads_two_tiles(
    views: Mapping[str, View], buffers: Mapping[str, Buffer], sizes: Mapping[str, list[int]], largest: str
) -> bool:
    """Whether a map reads two tiles of its own size in one memory, one after the other."""
    spaces = [buffers[views[key].buffer].space for key in ("src0", "src1") if sizes.get(key) == sizes[largest]]
    return len(spaces) == 2 and spaces[0] == spaces[1]


def _work(sizes: Mapping[str, list[int]], largest: str, element_bytes: int, lanes: int | None) -> Work:
    """What an instruction does.

    Args:
        lanes: of the machine; None where it has as many as there are rows.
    """
    shape = sizes[largest]
    elements, rows = prod(shape), shape[0] if shape else 1
    lane = prod(shape[1:]) * _times(rows, lanes)
    if "lhs" not in sizes:
        return Work(elements * element_bytes, elements, lane, elements, rows)
    (m, n), inner = sizes[DEST], prod(sizes["lhs"]) // max(1, sizes[DEST][0])
    columns = n * _times(m, lanes) * _times(inner, lanes)
    return Work(elements * element_bytes, elements, lane, 2 * m * n * inner, rows, columns)


def _times(count: int, lanes: int | None) -> int:
    return 1 if lanes is None else -(-count // lanes)


def _bytes(element: str) -> int:
    type_ = attribute_of(element)
    assert isinstance(type_, IndexType | FixedBitwidthType)
    return 8 if isinstance(type_, IndexType) else -(-type_.bitwidth // 8)


def _read(operand: Operand, registers: list[int]) -> int:
    return registers[operand.number] if isinstance(operand, Register) else operand


def _number(number: Number, arguments: Mapping[str, int | float], registers: list[int]) -> Callable[[], int | float]:
    convert = float if is_float(attribute_of(number.type)) else int
    match number.value:
        case Register(at):
            return lambda: convert(registers[at])
        case ArgumentRef(name):
            known = convert(arguments[name])
        case value:
            known = convert(value)
    return lambda: known


def _share(total: int, share: int, shares: int) -> slice:
    return slice(total * share // shares, total * (share + 1) // shares)
