"""The program of a module, whatever its level."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError

Program = FuncOp | sem.ProgramOp | tile.ProgramOp
KINDS = "a func.func of tensor operators, a sem.program, a tile.kernel or a tile.worker"


def only_program(module: ModuleOp) -> Program:
    """The program of a module that holds one.

    Raises:
        OpError: where it holds none, or more; what was found is named.
    """
    programs = [op for op in module.ops if isinstance(op, Program)]
    if not programs:
        found = ", ".join(dict.fromkeys(op.name for op in module.ops)) or "nothing"
        raise OpError(module, f"the module has no program, but {found}: a program is {KINDS}")
    if len(programs) > 1:
        found = ", ".join(f"{op.name} @{op.sym_name.data}" for op in programs)
        raise OpError(programs[1], f"the module has {len(programs)} programs, {found}: leave one")
    return programs[0]
