"""The names by which a caller gives the arguments of a function."""

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError

NAME = "tops.name"


def argument_names(func: FuncOp) -> list[str]:
    """The name of each argument: its attribute `tops.name`, else its name in the text, else `arg` and its index.

    Raises:
        OpError: where two arguments have one name.
    """
    attributes = func.arg_attrs.data if func.arg_attrs else [None] * len(func.args)
    found: list[str] = []
    for argument, given in zip(func.args, attributes, strict=True):
        name = given.data.get(NAME) if given else None
        found.append(name.data if isinstance(name, StringAttr) else argument.name_hint or f"arg{argument.index}")
    for index, name in enumerate(found):
        if name in found[:index]:
            raise OpError(
                func,
                f"arguments {found.index(name)} and {index} are both named {name!r}: tell them apart by {{{NAME}}}",
            )
    return found
