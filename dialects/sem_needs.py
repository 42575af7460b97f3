"""Which values of a stream something needs, also through what loops carry and conditionals result in.

A value that only goes round a loop, from its argument to its yield, is needed by nothing; the use lists of SSA
can't tell that.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from mpkc.dialects.sem_control import CONTROL_OPS


@dataclass(frozen=True)
class Needs:
    """What is needed.

    Attributes:
        control: loops and conditionals that hold something which is kept, or whose results are needed.
    """

    values: set[SSAValue] = field(default_factory=set[SSAValue])
    control: set[Operation] = field(default_factory=set[Operation])


def needs_of(block: Block, keeps: Callable[[Operation], bool]) -> Needs:
    """What the operations nested in `block` need that are kept for their own sake.

    Args:
        keeps: asked of every operation that is no terminator: whether it stands for itself.
    """
    needs = Needs()
    work: list[SSAValue] = []
    _roots(block, keeps, needs, work)
    while work:
        value = work.pop()
        if value not in needs.values:
            needs.values.add(value)
            work.extend(_sources(value, needs))
    return needs


def _roots(block: Block, keeps: Callable[[Operation], bool], needs: Needs, work: list[SSAValue]) -> bool:
    """Collect what is kept in `block`; whether there is any."""
    found = False
    for op in block.ops:
        kept = False
        if op.regions:
            for region in op.regions:
                for nested in region.blocks:
                    kept |= _roots(nested, keeps, needs, work)
        if isinstance(op, CONTROL_OPS):
            if kept or keeps(op):
                work.extend(_enter(op, needs))
                kept = True
        elif not isinstance(op, scf.YieldOp | scf.ConditionOp) and keeps(op):
            work.extend(op.operands)
            kept = True
        found |= kept
    return found


def _enter(op: Operation, needs: Needs) -> Iterable[SSAValue]:
    """What decides how often the regions of `op` run, the first time that it is asked."""
    if op in needs.control:
        return ()
    needs.control.add(op)
    match op:
        case scf.ForOp():
            return op.lb, op.ub, op.step
        case scf.WhileOp():
            return (condition_of(op).condition,)
        case _:
            return (op.operands[0],)


def _sources(value: SSAValue, needs: Needs) -> Iterator[SSAValue]:
    """The values that `value` is made of."""
    if isinstance(value, BlockArgument):
        op = value.block.parent_op()
        if isinstance(op, CONTROL_OPS):
            yield from _enter(op, needs)
            yield from _carried(op, value)
    elif isinstance(value, OpResult):
        op, index = value.op, value.index
        if isinstance(op, CONTROL_OPS):
            yield from _enter(op, needs)
        match op:
            case scf.ForOp():
                yield op.body.block.args[index + 1]
            case scf.WhileOp():
                yield condition_of(op).args[index]
            case scf.IfOp() | scf.IndexSwitchOp():
                yield from (terminator.operands[index] for terminator in terminators(op))
            case _ if not op.regions:
                yield from op.operands
            case _:
                pass


def _carried(op: Operation, arg: BlockArgument) -> Iterator[SSAValue]:
    """What a block argument of a loop takes: the initial value, and what the iteration before passes on."""
    match op:
        case scf.ForOp() if arg.index:
            yield op.iter_args[arg.index - 1]
            yield from (terminator.operands[arg.index - 1] for terminator in terminators(op))
        case scf.WhileOp() if arg.block is op.before_region.block:
            yield op.arguments[arg.index]
            yield yield_of(op.after_region.block).operands[arg.index]
        case scf.WhileOp():
            yield condition_of(op).args[arg.index]
        case _:
            pass


def condition_of(op: scf.WhileOp) -> scf.ConditionOp:
    """The terminator of the first region."""
    end = op.before_region.block.last_op
    assert isinstance(end, scf.ConditionOp), "verified"
    return end


def yield_of(block: Block) -> scf.YieldOp:
    """The terminator of a block of a loop or conditional."""
    end = block.last_op
    assert isinstance(end, scf.YieldOp), "verified"
    return end


def terminators(op: Operation) -> Iterator[scf.YieldOp]:
    """The yields of the regions of a for loop or a conditional."""
    return (yield_of(block) for region in op.regions for block in region.blocks)
