"""`tile-extract-dependencies`: find what each instruction of a tile program has to wait for (docs/dependencies.md).

Barrier-free, section 4.2, takes dependencies as given. Here they follow from what instructions read and write. Each
instruction gets a label, and the list of its dependencies where it has any; what waits for others enforce is left out.

    tile.copy %x -> %t engine "load"                tile.copy %x -> %t engine "load" {label = "copy0"}
    tile.map exp %t -> %t engine "scalar"           tile.map exp %t -> %t engine "scalar"
                                                        {label = "map0", after = [#sem.after<@copy0 offset 0>]}
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, label_of
from mpkc.dialects.sem import LabelledInstruction
from mpkc.dialects.sem import ProgramOp as SemProgram
from mpkc.dialects.sem_distance import AfterAttr, DistanceAttr, OffsetAttr
from mpkc.dialects.sem_rules import check_rules
from mpkc.dialects.sem_structure import structure_of
from mpkc.dialects.tile import KernelOp, WorkerOp
from mpkc.dialects.tile_transfer import TileInstruction
from mpkc.dialects.tile_worker import RingOp
from mpkc.passes.tile_dependencies import extract
from mpkc.passes.tile_waits import Wait


@dataclass(frozen=True)
class ExtractDependenciesPass(ModulePass):
    """Give every instruction of tile a label, and its dependencies."""

    name = "tile-extract-dependencies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.walk():
            match program:
                case KernelOp() | SemProgram():
                    extract_dependencies(program)
                case WorkerOp():
                    raise OpError(
                        program,
                        "the dependencies of a tile.worker follow from its rings: only a tile.kernel has its own",
                    )
                case _:
                    pass


def extract_dependencies(program: KernelOp | SemProgram) -> None:
    """Label the instructions of a verified program and write down what each is after, in place.

    Those of `sem.inst` and `sem.value` stay as they are written; those of the instructions of tile are made anew.

    Raises:
        OpError: a program with rings; one in which the dependencies that are written stand against program order.
    """
    for op in program.walk():
        if isinstance(op, RingOp):
            raise OpError(op, "the dependencies of rings are not extracted: allocate a buffer and use tile.rotate")
        if isinstance(op, TileInstruction):
            op.attributes.pop("after", None)
    _label(program)
    for instruction, waits in extract(structure_of(program)).items():
        if waits and not isinstance(instruction.op, LabelledInstruction):
            instruction.op.attributes["after"] = ArrayAttr([_after(wait) for wait in waits])
    check_rules(program, program.argument_names)


def _label(program: KernelOp | SemProgram) -> None:
    """Give a label to each instruction that has none: its name and a number."""
    instructions = [op for op in program.walk() if is_instruction(op)]
    taken = {label for op in instructions if (label := label_of(op)) is not None} | set(program.argument_names)
    numbers: dict[str, Iterator[int]] = {}
    for op in instructions:
        if label_of(op) is None:
            stem = op.name.rpartition(".")[2]
            label = next(label for n in numbers.setdefault(stem, count()) if (label := f"{stem}{n}") not in taken)
            op.attributes["label"] = StringAttr(label)


def _after(wait: Wait) -> AfterAttr:
    """A wait as an attribute: an offset where it is one."""
    assert wait.producer.label is not None, "labelled"
    label = StringAttr(wait.producer.label)
    *outer, last = wait.vector or (0,)
    if any(outer) or not isinstance(last, int):
        return AfterAttr(label, DistanceAttr(wait.vector))
    return AfterAttr(label, OffsetAttr(last))
