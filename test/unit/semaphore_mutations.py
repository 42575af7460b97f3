"""Faults put into streams, one at a time, that a verifier must find.

A mutation changes the streams where they stand and gives what takes it back.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, i1
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from mpkc.dialects.engine import is_instruction, signal_of
from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_streams import BarrierOp, StreamOp, StreamsOp, WaitOp, constant_attr

Undo = Callable[[], None]


@dataclass
class Mutation:
    """One fault.

    Attributes:
        kind: what is done.
        apply: does it.
    """

    kind: str
    apply: Callable[[], Undo]


def mutations(streams: StreamsOp) -> list[Mutation]:
    """Every mutation of `streams`."""
    found: list[Mutation] = []
    for stream in streams.streams.values():
        waits = [op for op in stream.walk() if isinstance(op, WaitOp)]
        found += [Mutation("threshold", _shift(wait, 0, by)) for wait in waits for by in (1, -1)]
        found += [Mutation("wait dropped", _drop(wait)) for wait in waits]
        used = _computed_from({wait.threshold for wait in waits})
        found += _constants(stream, used)
        found += _signals(stream)
        found += _counter_resets(stream)
    found += [Mutation("reset lost", _keep(streams, name)) for name in _reset(streams)]
    return found


def _computed_from(values: set[SSAValue]) -> set[SSAValue]:
    """All from which `values` are computed; not what decides control flow."""
    found, work = set(values), list(values)
    while work:
        for source in _sources(work.pop()):
            if source not in found:
                found.add(source)
                work.append(source)
    return found


def _sources(value: SSAValue) -> Iterator[SSAValue]:
    match value:
        case OpResult(op=scf.ForOp() as op, index=index):
            yield op.iter_args[index]
            yield op.body.block.last_op.operands[index]
        case OpResult(op=scf.WhileOp() as op, index=index):
            yield op.before_region.block.last_op.operands[index + 1]
        case OpResult(op=(scf.IfOp() | scf.IndexSwitchOp()) as op, index=index):
            yield from (region.block.last_op.operands[index] for region in op.regions if region.blocks)
        case OpResult(op=op) if type(op) in SCALAR_OPS:
            yield from op.operands
        case BlockArgument(block=block, index=index):
            match block.parent_op():
                case scf.ForOp() as op if index:
                    yield op.iter_args[index - 1]
                    yield block.last_op.operands[index - 1]
                case scf.WhileOp() as op if block is op.before_region.block:
                    yield op.arguments[index]
                    yield op.after_region.block.last_op.operands[index]
                case scf.WhileOp() as op:
                    yield op.before_region.block.last_op.operands[index + 1]
                case _:
                    pass
        case _:
            pass


def _constants(stream: StreamOp, used: set[SSAValue]) -> Iterator[Mutation]:
    """Each constant one more or one less, at each of its uses in the arithmetic of thresholds; each mask left out."""
    for op in stream.walk():
        if isinstance(op, arith.CmpiOp) and op.result in used:
            yield Mutation("mask dropped", _always(op))
        if type(op) in SCALAR_OPS and op.results[0] in used:
            places, kind = range(len(op.operands)), "constant"
        elif isinstance(op, scf.ForOp | scf.WhileOp):
            shift = 3 if isinstance(op, scf.ForOp) else 0
            places, kind = [i + shift for i, result in enumerate(op.results) if _counts(op, i, used)], "initial value"
        else:
            continue
        for place in places:
            if isinstance(op.operands[place].owner, arith.ConstantOp) and op.operands[place].type != i1:
                for by in (1, -1):
                    yield Mutation(kind, _shift(op, place, by))


def _counts(op: scf.ForOp | scf.WhileOp, index: int, used: set[SSAValue]) -> bool:
    """Whether the value number `index` that `op` carries is a counter that thresholds use."""
    arg = op.body.block.args[index + 1] if isinstance(op, scf.ForOp) else op.before_region.block.args[index]
    return arg in used


def _signals(stream: StreamOp) -> Iterator[Mutation]:
    for op in stream.walk():
        if is_instruction(op) and signal_of(op) is not None:
            yield Mutation("signal dropped", _move(op, None))
            for neighbour in (_next(op, True), _next(op, False)):
                if neighbour is not None:
                    yield Mutation("signal moved", _move(op, neighbour))


def _next(op: Operation, forward: bool) -> Operation | None:
    """The next instruction of the block that does not signal."""
    while (op := op.next_op if forward else op.prev_op) is not None:
        if is_instruction(op):
            return op if signal_of(op) is None else None
    return None


def _counter_resets(stream: StreamOp) -> Iterator[Mutation]:
    """Each counter that begins anew with the semaphores, not begun anew."""
    for op in stream.walk():
        if isinstance(op, scf.IfOp) and isinstance(op.true_region.block.first_op, BarrierOp):
            reset, kept = op.true_region.block.last_op, op.false_region.block.last_op
            for place, value in enumerate(reset.operands):
                if value is not kept.operands[place]:
                    yield Mutation("counter not reset", _replace(reset, place, kept.operands[place]))


def _reset(streams: StreamsOp) -> list[str]:
    names = [s.data for op in streams.walk() if isinstance(op, BarrierOp) for s in op.semaphores]
    return list(dict.fromkeys(names))


def _shift(op: Operation, place: int, by: int) -> Callable[[], Undo]:
    def apply() -> Undo:
        old = op.operands[place]
        if isinstance(old.owner, arith.ConstantOp):
            assert isinstance(old.owner.value, IntegerAttr)
            made: list[Operation] = [_constant(old.owner.value.value.data + by, old.type)]
        else:
            made = [_constant(by, old.type)]
            made.append(arith.AddiOp(old, made[0].results[0]))
        op.parent.insert_ops_before(made, op)
        op.operands[place] = made[-1].results[0]

        def undo() -> None:
            op.operands[place] = old
            for new in reversed(made):
                new.detach()
                new.erase()

        return undo

    return apply


def _constant(value: int, type_: Attribute) -> arith.ConstantOp:
    attr = constant_attr(value, type_) if isinstance(type_, IntegerType) else IntegerAttr(value, type_)
    return arith.ConstantOp(attr)


def _replace(op: Operation, place: int, by: SSAValue) -> Callable[[], Undo]:
    def apply() -> Undo:
        old = op.operands[place]
        op.operands[place] = by

        def undo() -> None:
            op.operands[place] = old

        return undo

    return apply


def _drop(wait: WaitOp) -> Callable[[], Undo]:
    def apply() -> Undo:
        following, block = wait.next_op, wait.parent
        wait.detach()
        return lambda: block.insert_op_before(wait, following)

    return apply


def _always(op: arith.CmpiOp) -> Callable[[], Undo]:
    def apply() -> Undo:
        true = arith.ConstantOp(IntegerAttr(1, i1))
        op.parent.insert_op_before(true, op)
        uses = [(use.operation, use.index) for use in op.result.uses]
        for user, index in uses:
            user.operands[index] = true.result

        def undo() -> None:
            for user, index in uses:
                user.operands[index] = op.result
            true.detach()
            true.erase()

        return undo

    return apply


def _move(op: Operation, to: Operation | None) -> Callable[[], Undo]:
    def apply() -> Undo:
        signal = op.attributes.pop("signal")
        if to is not None:
            to.attributes["signal"] = signal

        def undo() -> None:
            if to is not None:
                del to.attributes["signal"]
            op.attributes["signal"] = signal

        return undo

    return apply


def _keep(streams: StreamsOp, name: str) -> Callable[[], Undo]:
    def apply() -> Undo:
        barriers = [op for op in streams.walk() if isinstance(op, BarrierOp)]
        before = [op.semaphores for op in barriers]
        for op in barriers:
            op.semaphores = type(op.semaphores)([s for s in op.semaphores if s != StringAttr(name)])

        def undo() -> None:
            for op, semaphores in zip(barriers, before, strict=True):
                op.semaphores = semaphores

        return undo

    return apply
