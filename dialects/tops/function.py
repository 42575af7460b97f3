"""The function that holds a program of tensor operators, and the names of its arguments."""

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError

NAME = "tops.name"


def only_function(module: ModuleOp) -> FuncOp:
    """The function of a module that has one.

    Raises:
        OpError: where it has none, or more.
    """
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1:
        raise OpError(module, f"a program is one func.func, but the module has {len(functions)}")
    return functions[0]


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
