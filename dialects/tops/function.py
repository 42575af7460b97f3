"""The function that holds a program of tensor operators, the names of its arguments, and which indices they take."""

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import Array, Operator

NAME = "tops.name"


def only_function(module: ModuleOp) -> FuncOp:
    """The function of a module that has one.

    Raises:
        OpError: where it has none, or more, or it has no body.
    """
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1:
        where = functions[1] if functions else module
        raise OpError(where, f"a program is one func.func, but the module has {len(functions)}")
    if functions[0].is_declaration:
        raise OpError(functions[0], f"@{functions[0].sym_name.data} has no body, so there is nothing to run")
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


def check_indices(func: FuncOp, inputs: Mapping[str, Array]) -> None:
    """Check that the integers in `inputs`, by `argument_names`, are indices that their readers can take.

    Raises:
        OpError: at the operator that would read beyond what there is; the input and the place in it are named.
    """
    for name, argument in zip(argument_names(func), func.args, strict=True):
        if (array := inputs.get(name)) is None or array.dtype.kind != "i" or not array.size:
            continue
        if (least := array.min()) < 0:
            raise OpError(func, f"input {name!r} has {least}, but integers are indices: 0 or more")
        for use in argument.uses:
            if not isinstance(use.operation, Operator):
                continue
            limit, what = use.operation.index_limits().get(use.index, (None, ""))
            if limit is not None and (greatest := array.max()) >= limit:
                at = [int(i) for i in np.unravel_index(array.argmax(), array.shape)]
                raise OpError(
                    use.operation,
                    f"input {name!r} has {greatest} at {at}, but there are {limit} {what}: 0 to {limit - 1}",
                )
