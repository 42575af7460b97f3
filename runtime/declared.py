"""Values of run-time integers against what a program says of them: their names, their maxima."""

from collections.abc import Collection

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem import ProgramOp as SemProgram
from mpkc.dialects.sem_maxima import maxima_of
from mpkc.dialects.tile import ProgramOp as TileProgram
from mpkc.runtime.bindings import Bindings


def check_declared(program: SemProgram | TileProgram, bindings: Bindings) -> None:
    """Hold what is bound, for all engines or for one, to the `maxima` of `program`.

    Raises:
        OpError: a value that is below 0 or above the maximum of its name.
    """
    for name, maximum in maxima_of(program).items():
        for values in (bindings.values, *bindings.by_engine.values()):
            for value in values.get(name, ()):
                if not 0 <= value <= maximum:
                    raise OpError(program, f"{name} is {value} and was declared to lie in 0..{maximum}: see `maxima`")


def check_names(
    program: SemProgram | TileProgram, arguments: Collection[str], values: Collection[str], bindings: Bindings
) -> None:
    """Hold what is bound, for all engines at once, to the names of a program.

    Args:
        arguments: the names of its integer arguments.
        values: the labels of what reads integers while it runs.

    Raises:
        OpError: a value for one engine alone, a name that the program has not.
    """
    if bindings.by_engine:
        engines = ", ".join(bindings.by_engine)
        raise OpError(program, f"values for one engine alone ({engines}): in program order all engines must agree")
    for name in bindings.values:
        if name not in values and name not in arguments:
            known = ", ".join([*arguments, *sorted(values)]) or "none"
            raise OpError(program, f"'{name}' is neither an argument nor a sem.value; there are: {known}")
