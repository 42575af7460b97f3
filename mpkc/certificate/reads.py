"""Integers that engines read of each other: reads as instructions of the program, with their dependencies.

A read comes behind the value that it reads; the next value comes behind all reads of the last one. In loops, what came
before is told by a distance for each loop around: the iteration before of the innermost, all of the iteration before of
the next one, and so on.
"""

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_streams import ReadOp
from mpkc.dialects.sem_structure import Instruction, Loop
from mpkc.runtime.verify.places import Place, Places

Carried: TypeAlias = Loop | None
"""The loop whose earlier iterations count; None where the current one does."""


@dataclass(frozen=True)
class Read:
    """One read in one stream.

    Attributes:
        name: its label.
        value: what it reads, in the same loop.
        value_first: whether a value comes before its read, in one iteration.
        in_front_of: what of the program comes next in its stream; None at the end of the loop's body.
    """

    name: str
    engine: str
    value: Instruction
    value_first: bool
    in_front_of: Operation | None

    def carriers(self, of_read: bool) -> list[Carried]:
        """What carries the dependency of the read on the value, or that of the value on the read; one of each."""
        if of_read == self.value_first:
            return [None]
        return [loop for loop in self.value.loop.path if loop.counted]


def reads_of(places: Places) -> list[Read]:
    """The reads of all streams.

    Raises:
        OpError: a read in another loop than its value.
    """
    found: list[Read] = []
    for value, readers in places.readers.items():
        source = places.structure.by_label[value]
        written: Place = places.by_label[value]
        for reader in readers:
            assert isinstance(reader.op, ReadOp)
            if reader.loop is not source.loop:
                raise OpError(reader.op, f"cannot certify: @{value} is read in another loop than it is written in")
            first = not places.ahead(written, reader)
            found.append(Read(reader.name, reader.engine, source, first, next_of_program(places, reader.op)))
    return found


def next_of_program(places: Places, op: Operation) -> Operation | None:
    """What of the program comes behind an operation in its block of a stream: an instruction, loop or conditional."""
    at = op.next_op
    while at is not None:
        if is_instruction(at) and (instruction := places.unlabelled.get(places.of[at].name)) is not None:
            return instruction.op
        if isinstance(at, CONTROL_OPS):
            heads = [head for region in at.regions for block in region.blocks for head in places.heads[block]]
            if heads:
                return heads[0].op
        at = at.next_op
    return None
