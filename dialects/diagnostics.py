"""Errors and remarks that name the place in the source where an operation was written."""

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    NameLoc,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation
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


def verify(module: Operation) -> None:
    """Verify `module` operation by operation.

    Raises:
        OpError: at the first operation that is not well-formed.
    """
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as err:
            raise OpError(op, f"'{op.name}': {err}") from err


def inherit_location(new: Iterable[Operation], old: Operation) -> None:
    """Give each of `new` that has no place of its own, and what is nested in it, the place of `old`."""
    for root in new:
        for op in root.walk():
            if isinstance(op.location, UnknownLoc):
                op.location = old.location
