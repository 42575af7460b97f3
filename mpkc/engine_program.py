"""Which inputs are multi-engine programs. Imports what reads them only where there is one: models start without."""

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

if TYPE_CHECKING:
    from mpkc.semaphores import EngineProgram

OF_ENGINES = ("sem.program", "sem.streams", "tile.kernel", "tile.worker")


def engine_program(module: ModuleOp) -> "EngineProgram | None":
    """The multi-engine program of a module; None where it holds none.

    Raises:
        OpError: it holds several, or a worker, or streams without the program that they are of.
    """
    if not any(op.name in OF_ENGINES for op in module.ops):
        return None
    from mpkc.dialects import sem, tile
    from mpkc.dialects.diagnostics import OpError
    from mpkc.running.program import only_program

    program = only_program(module)
    if isinstance(program, sem.ProgramOp | tile.KernelOp):
        return program
    raise OpError(
        program, f"a {program.name} is part of a mega-kernel: a multi-engine program is a sem.program or a tile.kernel"
    )
