"""Values of run-time integers against the maxima that a program declares of them."""

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
