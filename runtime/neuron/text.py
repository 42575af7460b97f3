"""Programs of the neuron target as text (docs/isa.md); `reader` reads what is printed here."""

import json
import re
from collections.abc import Iterable, Iterator

from mpkc.runtime.neuron.isa import (
    INDEX_BITS,
    After,
    Alu,
    AluOp,
    Argument,
    ArgumentRef,
    Branch,
    Buffer,
    Condition,
    Drain,
    Engine,
    Handshake,
    Instruction,
    Issued,
    Item,
    Iteration,
    Label,
    Move,
    Nop,
    Number,
    Opaque,
    Program,
    Read,
    Register,
    Reset,
    SizeRef,
    Tile,
    View,
)
from mpkc.runtime.neuron.tile_forms import FORMS

BARE = re.compile(r"(?!(?:inf|nan)$)[A-Za-z_][A-Za-z0-9_.$]*")


def print_isa(program: Program) -> str:
    """The text of a program; reading it gives an equal one."""
    lines = [*_header(program)]
    for engine in program.engines:
        lines += ["", f".engine {name_text(engine.name)} registers {engine.registers}", *_body(engine)]
    return "\n".join([*lines, ""])


def name_text(name: str) -> str:
    """A name as it is written: quoted where it has characters that others' have not."""
    return name if BARE.fullmatch(name) else json.dumps(name)


def instruction_text(instruction: Instruction) -> str:
    """One instruction on one line, as a program has it."""
    match instruction:
        case Move(dest, source):
            return f"REGISTER_MOVE {_operand(dest)} = {_source(source)}"
        case Alu(dest, op, operands, bits):
            return f"REGISTER_ALU {_operand(dest)} = {_expression(op, operands)}{_width(bits)}"
        case Branch(Condition.ALWAYS, _, target):
            return f"COMPARE_BRANCH always -> {name_text(target)}"
        case Branch(condition, (left, right), target, bits):
            compared = f"{_operand(left)} {condition} {_operand(right)}{_width(bits)}"
            return f"COMPARE_BRANCH {compared} -> {name_text(target)}"
        case Drain():
            return "DRAIN"
        case Handshake(engines):
            return " ".join(["HANDSHAKE", *map(name_text, engines)])
        case Reset(semaphores):
            return " ".join(["RESET", *(f"S[{number}]" for number in semaphores)])
        case Issued():
            return " ".join(_issued(instruction))
        case _:
            raise AssertionError(f"no instruction: {instruction}")


def _header(program: Program) -> Iterator[str]:
    yield f".program {name_text(program.name)}"
    yield f".counters {program.counters}"
    yield from (_argument(argument) for argument in program.arguments)
    yield from (_buffer(buffer) for buffer in program.buffers)
    yield from (f".value {name_text(value.name)} : {value.type}" for value in program.values)
    yield from (f".semaphore {number} {name_text(name)}" for number, name in enumerate(program.semaphores))


def _argument(argument: Argument) -> str:
    return f".argument {name_text(argument.name)} : {argument.type}"


def _buffer(buffer: Buffer) -> str:
    shape = ",".join("?" if size is None else str(size) for size in buffer.shape)
    return f".buffer {name_text(buffer.name)} : {buffer.space} {buffer.element}[{shape}]"


def _body(engine: Engine) -> Iterator[str]:
    return map(_item, engine.body)


def _item(item: Item) -> str:
    match item:
        case Label(name):
            return f"{name_text(name)}:"
        case Iteration(loop, depth):
            return f"  .iteration {name_text(loop)} {depth}"
        case _:
            return f"  {instruction_text(item)}"


def _source(source: Register | int | ArgumentRef | SizeRef) -> str:
    match source:
        case ArgumentRef(name):
            return f"argument({name_text(name)})"
        case SizeRef(buffer, axis):
            return f"size({name_text(buffer)}, {axis})"
        case _:
            return _operand(source)


def _operand(operand: Register | int) -> str:
    return f"r{operand.number}" if isinstance(operand, Register) else str(operand)


def _expression(op: AluOp, operands: tuple[Register | int, ...]) -> str:
    first, *rest = map(_operand, operands)
    return " ".join([first, op, *([", ".join(rest)] if rest else [])])


def _width(bits: int) -> str:
    return "" if bits == INDEX_BITS else f" : i{bits}"


def _issued(issued: Issued) -> Iterator[str]:
    """The words of an instruction with a wait and an update."""
    yield opcode_of(issued)
    if issued.label is not None:
        yield f"@{name_text(issued.label)}"
    if issued.wait:
        yield f"S[{issued.wait.semaphore}]>={_operand(issued.wait.threshold)}"
    if issued.update:
        added = "++" if issued.update.amount == 1 else f"+={issued.update.amount}"
        yield f"S[{issued.update.semaphore}]{added}@complete"
    match issued:
        case Read(dest, value):
            yield f"dst={_operand(dest)}"
            yield f"src=@{name_text(value)}"
        case Opaque(cost, latency, after):
            yield f"cost={cost}"
            if latency is not None:
                yield f"latency={latency}"
            if after:
                yield f"after=[{', '.join(map(_after, after))}]"
        case Tile():
            yield from _tile(issued)
        case _:
            pass
    if issued.depth:
        yield f"depth={issued.depth}"


def opcode_of(issued: Issued) -> str:
    """The word that an instruction begins with."""
    match issued:
        case Nop():
            return "NOP"
        case Read():
            return "READ"
        case Opaque():
            return "VALUE" if issued.is_value else "INST"
        case Tile():
            return issued.opcode
        case _:
            raise AssertionError(f"no instruction: {issued}")


def _after(after: After) -> str:
    return f"{name_text(after.producer)} {'never' if after.distance is None else _listed(after.distance)}"


def _tile(tile: Tile) -> Iterator[str]:
    for key in FORMS[tile.opcode].keys:
        if (operand := tile.operands.get(key)) is not None:
            yield f"{key}={_view(operand) if isinstance(operand, View) else _number(operand)}"
        elif (option := tile.options.get(key)) is not None:
            yield key if option is True else f"{key}={option}"


def _view(view: View) -> str:
    sizes, strides = _listed(map(_operand, view.sizes)), _listed(map(_operand, view.strides))
    return f"{name_text(view.buffer)}@{_operand(view.offset)}{sizes}:{strides}:{view.element}"


def _number(number: Number) -> str:
    match number.value:
        case ArgumentRef(name):
            value = f"argument({name_text(name)})"
        case float() as value:
            value = repr(value)
        case _:
            value = _operand(number.value)
    return f"{value}:{number.type}"


def _listed(items: Iterable[object]) -> str:
    return f"[{','.join(map(str, items))}]"
