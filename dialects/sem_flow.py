"""Where run-time integers flow in a sem.program, and which of them decide its control flow."""

from collections.abc import Iterable, Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue, Use

from mpkc.dialects.engine import is_value
from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_structure import Instruction, Loop, LoopKind, Structure


def decides(loop: Loop) -> Iterator[tuple[Operation, str, SSAValue]]:
    """What decides how often `loop` runs: the operation that reads it, its role there, the value."""
    match loop.kind, loop.op:
        case LoopKind.FOR, scf.ForOp() as op:
            yield from ((op, "the lower bound", op.lb), (op, "the upper bound", op.ub), (op, "the step", op.step))
        case ((LoopKind.WHILE | LoopKind.AFTER), scf.WhileOp() as op):
            condition = op.before_region.block.last_op
            if isinstance(condition, scf.ConditionOp):
                yield condition, "the condition", condition.condition
        case ((LoopKind.THEN | LoopKind.ELSE), scf.IfOp() as op):
            yield op, "the condition", op.cond
        case LoopKind.CASE, scf.IndexSwitchOp() as op:
            yield op, "the selector", op.arg
        case _:
            pass


def derived(values: Iterable[SSAValue]) -> set[SSAValue]:
    """`values` and all that is computed from them, also over back edges and by conditions."""
    found = set(values)
    work = list(found)
    while work:
        for use in work.pop().uses:
            for value in _reached(use):
                if value not in found:
                    found.add(value)
                    work.append(value)
    return found


def values_deciding(structure: Structure) -> dict[Loop, list[Instruction]]:
    """The sem.value instructions from which the bounds or the condition of each loop are computed.

    Every engine that runs such a loop consumes these values. Loops that no value decides are left out.
    """
    deciding: dict[Loop, list[Instruction]] = {}
    for instruction in structure.instructions:
        if is_value(instruction.op):
            reached = derived(instruction.op.results)
            for loop in structure.loops:
                if any(value in reached for _, _, value in decides(loop)):
                    deciding.setdefault(loop, []).append(instruction)
    return deciding


def _reached(use: Use) -> Iterator[SSAValue]:
    """The values that one use of a value decides or passes on."""
    op, index = use.operation, use.index
    match op:
        case scf.ForOp():
            yield from op.results if index < 3 else (op.results[index - 3],)
            yield from op.body.block.args[:1] if index < 3 else (op.body.block.args[index - 2],)
        case scf.WhileOp():
            yield op.before_region.block.args[index]
        case scf.IfOp() | scf.IndexSwitchOp():
            yield from op.results
        case scf.ConditionOp() if isinstance(parent := op.parent_op(), scf.WhileOp):
            yield from parent.results if index == 0 else (parent.results[index - 1],)
            if index:
                yield parent.after_region.block.args[index - 1]
        case scf.YieldOp():
            yield from _yielded(op.parent_op(), index)
        case _ if type(op) in SCALAR_OPS:
            yield from op.results
        case _:
            pass


def _yielded(parent: Operation | None, index: int) -> Iterator[SSAValue]:
    match parent:
        case scf.ForOp():
            yield parent.results[index]
            yield parent.body.block.args[index + 1]
        case scf.WhileOp():
            yield parent.before_region.block.args[index]
        case scf.IfOp() | scf.IndexSwitchOp():
            yield parent.results[index]
        case _:
            pass
