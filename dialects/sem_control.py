"""What a sem.program asks of the control flow of scf, where the verifiers of scf ask less."""

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError

CONTROL_OPS = (scf.ForOp, scf.IfOp, scf.WhileOp, scf.IndexSwitchOp)


def verify_control(op: Operation) -> None:
    """Verify one of CONTROL_OPS; the verifier of a program needs that before those of its operations run.

    Raises:
        OpError: at `op`, or at the terminator of one of its regions.
    """
    for region in op.regions:
        ends_in = scf.ConditionOp if isinstance(op, scf.WhileOp) and region is op.regions[0] else scf.YieldOp
        for block in region.blocks:
            if not isinstance(block.last_op, ends_in):
                raise OpError(op, f"a region of '{op.name}' does not end in {ends_in.name}")
    match op:
        case scf.WhileOp():
            _verify_while(op)
        case scf.IfOp():
            _verify_if(op)
        case scf.ForOp(step=OpResult(op=arith.ConstantOp(value=IntegerAttr() as step))):
            if step.value.data < 1:
                raise OpError(op, f"a loop with step {step.value.data}: a step is 1 or more")
        case _:
            pass
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as err:
        raise OpError(op, f"'{op.name}': {err}") from err


def _verify_while(op: scf.WhileOp) -> None:
    for region in op.regions:
        if len(region.blocks) != 1:
            raise OpError(op, "a region of 'scf.while' is not one block")
    before, after = op.before_region.block, op.after_region.block
    condition, back = before.last_op, after.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert isinstance(back, scf.YieldOp)
    _expect_same_types(op, op.arguments, before.args, "arguments of the first region")
    _expect_same_types(condition, condition.args, op.results, "results of the loop")
    _expect_same_types(condition, condition.args, after.args, "arguments of the second region")
    _expect_same_types(back, back.arguments, before.args, "arguments of the first region")


def _verify_if(op: scf.IfOp) -> None:
    if op.results and not op.false_region.blocks:
        raise OpError(op, "a conditional with results needs an else branch")
    for block in (block for region in op.regions for block in region.blocks):
        end = block.last_op
        assert isinstance(end, scf.YieldOp)
        _expect_same_types(end, end.arguments, op.results, "results of the conditional")


def _expect_same_types(op: Operation, given: Sequence[SSAValue], taken: Sequence[SSAValue], what: str) -> None:
    if [value.type for value in given] != [value.type for value in taken]:
        raise OpError(op, f"the values passed here and the {what} differ in number or type")
