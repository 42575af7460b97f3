"""What a program promises of its run-time integers: `maxima = {n = 1000 : index}` on it, `most = 16` on a loop.

They bound how often loops run, where nothing else does. An interpreter holds the program to them.
"""

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_value, label_of
from mpkc.dialects.scalars import wrap


def maxima_of(program: Operation) -> dict[str, int]:
    """The declared maximum of each argument, by its name, and of each value, by its label; they are 0 or more.

    Raises:
        OpError: `maxima` is no dictionary of integers that are 0 or more.
    """
    given = program.attributes.get("maxima")
    if given is None:
        return {}
    if not isinstance(given, DictionaryAttr):
        raise OpError(program, f"maxima is a dictionary such as {{n = 1000 : index}}, not {given}")
    return {name: _bound(program, f"the maximum of {name}", maximum) for name, maximum in given.data.items()}


def most_of(op: Operation) -> int | None:
    """The most iterations of one run of the loop `op`, where it declares that; an scf.while runs its first region.

    Raises:
        OpError: `most` is no integer that is 0 or more.
    """
    given = op.attributes.get("most")
    return None if given is None else _bound(op, "most", given)


def check_maxima(program: Operation, argument_names: Sequence[str]) -> None:
    """Check all that `program` declares.

    Raises:
        OpError: a maximum of what is no integer argument and no labelled value, or of more than fits its type; `most`
            on what is no loop.
    """
    numbers: dict[str, SSAValue] = dict(zip(argument_names, program.regions[0].block.args, strict=True))
    for op in program.walk():
        if is_value(op) and (label := label_of(op)) is not None:
            numbers[label] = op.results[0]
        _check_most(op)
    for name, maximum in maxima_of(program).items():
        if name not in numbers:
            known = ", ".join(numbers) or "none"
            raise OpError(program, f"maxima: '{name}' is neither an argument nor a value; there are: {known}")
        type_ = numbers[name].type
        if type_ == i1 or not isinstance(type_, IndexType | IntegerType):
            raise OpError(program, f"maxima: '{name}' is of type {type_}: only integers of several bits have a maximum")
        if maximum != wrap(maximum, numbers[name].type):
            raise OpError(program, f"maxima: {maximum} is more than the largest {type_}, which '{name}' is")


def _check_most(op: Operation) -> None:
    most = most_of(op)
    if most is None:
        return
    if not isinstance(op, scf.ForOp | scf.WhileOp):
        raise OpError(op, "most belongs on scf.for and scf.while: it is the most iterations of one run")
    if isinstance(op, scf.WhileOp) and most == 0:
        raise OpError(op, "most = 0, but an scf.while runs its first region once at least")


def _bound(op: Operation, what: str, given: object) -> int:
    if not isinstance(given, IntegerAttr) or given.value.data < 0:
        raise OpError(op, f"{what} is an integer that is 0 or more, not {given}")
    return given.value.data
