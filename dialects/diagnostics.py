"""Errors and remarks that name the place in the source where an operation was written."""

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    NameLoc,
)
from xdsl.ir import Attribute, Operation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import DiagnosticException, VerifyException


class OpError(DiagnosticException):
    """What is wrong with `op`, and what to do about it; told as `file:line:col: error: message`."""

    def __init__(self, op: Operation, message: str):
        super().__init__(message)
        self.op = op
        self.message = message

    def __str__(self) -> str:
        return f"{describe(self.op)}: error: {self.message}"


def place(location: Attribute | None) -> tuple[str, int, int] | None:
    """The (file, line, column) of a location attribute, through names, call sites and fusions."""
    match location:
        case FileLineColLoc():
            return location.filename.data, location.line.data, location.column.data
        case NameLoc():
            return place(location.location)
        case CallSiteLoc():
            return place(location.callee)
        case FusedLoc(locations=ArrayAttr(data=parts)):
            return next((found for part in parts if (found := place(part))), None)
        case _:
            return None


def describe(op: Operation) -> str:
    """`file:line:col` of an operation; its name where no place is known."""
    found = place(op.location)
    return "{}:{}:{}".format(*found) if found else f"'{op.name}'"


class VerifiesAll(OpTrait):
    """An operation whose verifier verifies every operation that it holds, too."""


def verify(module: Operation) -> None:
    """Verify `module` operation by operation, and that no value is used before its definition.

    Raises:
        OpError: at the first operation that is not well-formed.
    """
    seen: set[Operation] = set()
    inside: set[Operation | None] = set()  # what is verified by what holds it, and what does that
    for op in module.walk():
        for index, operand in enumerate(op.operands):
            if isinstance(operand.owner, Operation) and operand.owner not in seen and _in_order(operand.owner, op):
                raise OpError(op, f"'{op.name}' uses the value of its operand {index} before that is defined")
        seen.add(op)
        if op.parent_op() not in inside:
            verify_alone(op)
            if not op.has_trait(VerifiesAll, value_if_unregistered=False):
                continue
        inside.add(op)


def verify_alone(op: Operation) -> None:
    """Verify `op`, and not what it holds; OpError where it is not well-formed."""
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as err:
        raise OpError(op, f"'{op.name}': {err}") from err


def _in_order(definition: Operation, user: Operation) -> bool:
    """Whether the order of the text decides between them: not where a region of several blocks holds both."""
    region = definition.parent_region()
    return region is None or len(region.blocks) == 1 or definition.parent is user.parent
