"""What the code of an engine must hold in registers for each event of its stream, and what it must say besides."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.hints import isa as is_a

from mpkc.dialects.engine import label_of, signal_of
from mpkc.dialects.scalars import bits_of
from mpkc.dialects.sem import ValueOp
from mpkc.dialects.sem_needs import condition_of as condition_at_end
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, ReadOp, StreamsOp, WaitOp
from mpkc.dialects.tile_transfer import TileInstruction
from mpkc.dialects.tile_types import is_float
from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.arithmetic import NEGATED, condition_of
from mpkc.runtime.neuron.tile_operations import tile_operation
from mpkc.runtime.verify.isa_alignment import Alignment, Event, Mismatch, Next, Role
from mpkc.runtime.verify.isa_values import Values

NOT_COMPARED = frozenset({"label", "signal", "after", "async"})


@dataclass(frozen=True)
class Scaled:
    """A threshold that counts the parts of transfers."""

    value: SSAValue
    parts: int


Held: TypeAlias = SSAValue | Next | Scaled
"""What a register can hold."""


@dataclass(frozen=True)
class Equation:
    """That a register holds a value, of which only the lowest `bits` bits count (0: all)."""

    register: int
    value: Held
    bits: int


def name_of(value: object) -> str:
    """A value, for messages."""
    match value:
        case Next(loop):
            return f"{name_of(loop.body.block.args[0])} of the next iteration"
        case Scaled(threshold, parts):
            return f"{parts} times {name_of(threshold)}"
        case SSAValue():
            kind = value.op.name if isinstance(value, OpResult) else "an argument"
            return f"%{value.name_hint} ({kind})" if value.name_hint else kind
        case _:
            return str(value)


def demand(pairs: Iterable[tuple[isa.Operand, tuple[Held | int, int]]], values: Values) -> set[Equation] | None:
    """The equations of operands and what they must be; None where an immediate is something else."""
    found: set[Equation] = set()
    for operand, (wanted, bits) in pairs:
        if isinstance(operand, isa.Register):
            if isinstance(wanted, int):
                return None
            value = values.canonical(wanted, bits) if isinstance(wanted, SSAValue) else wanted
            found.add(Equation(operand.number, value, bits))
        elif not _is_integer(wanted, operand, bits, values):
            return None
    return found


def _is_integer(wanted: Held | int, given: int, bits: int, values: Values) -> bool:
    match wanted:
        case int():
            return wanted == given
        case SSAValue():
            known = values.integer(wanted)
            return known is not None and (known - given) % (1 << (bits or bits_of(wanted.type))) == 0
        case Scaled(threshold, parts):
            known = values.integer(threshold)
            return known is not None and known * parts == given
        case Next():
            return False


class Known:
    """What all engines of a program share: names, buffers, who updates which semaphore by how much."""

    def __init__(self, streams: StreamsOp, program: isa.Program):
        self.streams, self.program = streams, program
        self.names: dict[SSAValue, str] = dict(zip(streams.body.block.args, streams.argument_names, strict=True))
        allocated = [op.memref for op in streams.body.block.ops if isinstance(op, memref.AllocOp)]
        near = [buffer.name for buffer in program.buffers if buffer.space != "far"]
        self.names |= dict(zip(allocated, near, strict=False))
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.updates: dict[str, set[int]] = {}
        self.parts: dict[int, int] = {}
        for engine in program.engines:
            issued = [item for item in engine.body if isinstance(item, isa.Issued) and item.update]
            updates = [item.update for item in issued if item.update is not None]
            self.updates[engine.name] = {update.semaphore for update in updates}
            self.parts |= {update.semaphore: update.amount for update in updates}


class Demands:
    """The demands of the events of one engine."""

    def __init__(self, alignment: Alignment, known: Known, values: Values):
        self.alignment, self.known, self.values = alignment, known, values

    def of(self, event: Event) -> set[Equation]:
        """What must hold where an event begins.

        Raises:
            Mismatch: where its item says something else.
        """
        if event.role in (Role.START, Role.END):
            return set()
        item = self.alignment.engine.body[self.alignment.at[event]]
        op = event.op
        if isinstance(item, isa.Branch):
            return self.branch(event, item)
        match op:
            case IterationOp():
                self.expect(item == isa.Iteration(op.loop.data, op.depth.data), event, item)
                return set()
            case BarrierOp():
                self.barrier(event, op)
                return set()
            case WaitOp():
                assert isinstance(item, isa.Issued)
                return self.wait(event, op, item)
            case _:
                assert isinstance(item, isa.Issued)
                return self.instruction(event, op, item)

    def expect(self, fits: bool, event: Event, item: object) -> None:
        if not fits:
            raise Mismatch(f"{event.op.name} is not what the code has there: {item}")

    def equations(
        self, event: Event, item: object, pairs: Iterable[tuple[isa.Operand, tuple[Held | int, int]]]
    ) -> set[Equation]:
        found = demand(pairs, self.values)
        if found is None:
            raise Mismatch(f"{event.op.name} is given another number than the code has: {item}")
        return found

    def branch(self, event: Event, item: isa.Branch) -> set[Equation]:
        op, condition, operands = event.op, item.condition, item.operands
        match event.role, op:
            case Role.ENTRY, scf.ForOp():
                self.expect(condition is isa.Condition.GE and item.bits == bits_of(op.lb.type), event, item)
                return self.equations(event, item, zip(operands, ((op.lb, 0), (op.ub, 0)), strict=True))
            case Role.BACK, scf.ForOp():
                self.expect(condition is isa.Condition.LT and item.bits == bits_of(op.lb.type), event, item)
                return self.equations(event, item, zip(operands, ((Next(op), 0), (op.ub, 0)), strict=True))
            case Role.CASE, scf.IndexSwitchOp():
                self.expect(condition is isa.Condition.NE and item.bits == isa.INDEX_BITS, event, item)
                case = list(op.cases.iter_values())[event.case]
                return self.equations(event, item, zip(operands, ((op.arg, 0), (case, 0)), strict=True))
            case _:
                decides = condition_at_end(op).condition if isinstance(op, scf.WhileOp) else op.operands[0]
                return self.unless(event, item, decides)

    def unless(self, event: Event, item: isa.Branch, decides: SSAValue) -> set[Equation]:
        """A branch that is taken where an i1 is false, or a comparison does not hold."""
        owner = decides.owner
        if item.condition is isa.Condition.EQ and item.bits == 1 and item.operands[1] == 0:
            return self.equations(event, item, [(item.operands[0], (decides, 0))])
        self.expect(
            isinstance(owner, arith.CmpiOp)
            and NEGATED[condition_of(owner)] is item.condition
            and item.bits == bits_of(owner.lhs.type),
            event,
            item,
        )
        assert isinstance(owner, arith.CmpiOp)
        low = 0 if item.bits == isa.INDEX_BITS else item.bits
        return self.equations(event, item, zip(item.operands, ((v, low) for v in owner.operands), strict=True))

    def barrier(self, event: Event, op: BarrierOp) -> None:
        """DRAIN, HANDSHAKE, RESET of what this engine updates, HANDSHAKE."""
        engine, at = self.alignment.engine, self.alignment.at[event]
        names = self.known.streams.semaphore_names
        own = {names.index(name.data) for name in op.semaphores} & self.known.updates[engine.name]
        everyone = {each.name for each in self.known.program.engines}
        among = set(op.engine_names or everyone)
        items = engine.body[at + 1 : at + (4 if own else 3)]
        resets = [set(item.semaphores) for item in items if isinstance(item, isa.Reset)]
        met = [set(item.engines) or everyone for item in items if isinstance(item, isa.Handshake)]
        self.expect(resets == ([own] if own else []) and met == [among, among], event, items)

    def wait(self, event: Event, op: WaitOp, item: isa.Issued) -> set[Equation]:
        assert item.wait is not None
        semaphore = item.wait.semaphore
        self.expect(self.known.program.semaphores[semaphore] == op.semaphore.data, event, item)
        parts = self.known.parts.get(semaphore, 1)
        threshold = op.threshold if parts == 1 else Scaled(op.threshold, parts)
        return self.equations(event, item, [(item.wait.threshold, (threshold, bits_of(op.threshold.type)))])

    def instruction(self, event: Event, op: Operation, item: isa.Issued) -> set[Equation]:
        """An instruction is there with its label, its update and its operands."""
        signal = None if item.update is None else self.known.program.semaphores[item.update.semaphore]
        self.expect(item.label == label_of(op) and signal == signal_of(op), event, item)
        self.expect((item.wait is not None) == (op in self.alignment.fused), event, item)
        match op:
            case MarkerOp():
                self.expect(isinstance(item, isa.Nop), event, item)
            case ReadOp():
                self.expect(isinstance(item, isa.Read) and item.value == op.source.data, event, item)
            case TileInstruction():
                assert isinstance(item, isa.Tile)
                return self.tile(event, op, item)
            case _:
                is_value = isinstance(op, ValueOp)
                self.expect(isinstance(item, isa.Opaque) and item.is_value == is_value, event, item)
        return set()

    def tile(self, event: Event, op: TileInstruction, item: isa.Tile) -> set[Equation]:
        """The operation that the text is, against the one of the stream."""
        built = tile_operation(item, self.alignment.engine.name, self.known.buffers)
        keys = {value: key for key, value in built.operands.items()}
        said = {key: value for key, value in built.op.properties.items() if key not in NOT_COMPARED}
        meant = {key: value for key, value in op.properties.items() if key not in NOT_COMPARED}
        same = built.op.name == op.name and said == meant and len(built.op.operands) == len(op.operands)
        self.expect(same, event, item)
        pairs: list[tuple[isa.Operand, tuple[Held | int, int]]] = []
        for mine, theirs in zip(built.op.operands, op.operands, strict=True):
            if mine not in keys:  # the index of an element
                self.expect(self.values.integer(theirs) == 0, event, item)
                continue
            match item.operands[keys[mine]]:
                case isa.View() as view:
                    pairs += self.view(event, view, theirs)
                case isa.Number(value) if not is_float(theirs.type):
                    assert isinstance(value, isa.Register | int)
                    pairs.append((value, (theirs, 0)))
                case _:
                    pass
        return self.equations(event, item, pairs)

    def view(self, event: Event, view: isa.View, value: SSAValue) -> list[tuple[isa.Operand, tuple[Held | int, int]]]:
        """Offset, sizes and strides of a part of a buffer."""
        cast = value.op if isinstance(value, OpResult) else None
        if isinstance(cast, memref.ReinterpretCastOp):
            self.expect(self.known.names.get(cast.source) == view.buffer, event, view)
            wanted = [
                *_mixed(cast.static_offsets.iter_values(), cast.offsets),
                *_mixed(cast.static_sizes.iter_values(), cast.sizes),
                *_mixed(cast.static_strides.iter_values(), cast.strides),
            ]
        else:
            assert is_a(value.type, MemRefType)
            self.expect(self.known.names.get(value) == view.buffer, event, view)
            sizes = value.type.get_shape()
            strides = [1]
            for size in reversed(sizes[1:]):
                strides.append(strides[-1] * size)
            wanted = [0, *sizes, *(reversed(strides) if sizes else ())]
        given = [view.offset, *view.sizes, *view.strides]
        self.expect(len(given) == len(wanted), event, view)
        return [(operand, (want, 0)) for operand, want in zip(given, wanted, strict=True)]


def _mixed(static: Iterable[int], dynamic: Iterable[SSAValue]) -> list[SSAValue | int]:
    run_time = iter(dynamic)
    return [next(run_time) if number == DYNAMIC_INDEX else number for number in static]
