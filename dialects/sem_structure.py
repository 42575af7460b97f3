"""The structure of a sem.program: its tree of loops, its instructions, its dependencies.

Everything is a loop (barrier-free, section 4.1): the program is one that runs once, a branch of a conditional
one that runs 0 or 1 times. Loops that a distance counts are scf.for and scf.while. An scf.while is a loop
over its before region; its after region is a conditional in it, and its last part.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import EngineInstruction, engine_of, is_declaration, is_instruction, label_of
from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_control import CONTROL_OPS, verify_control
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, DistanceAttr, OffsetAttr


class LoopKind(StrEnum):
    """What a loop is in the text."""

    PROGRAM = "program"
    FOR = "for"
    WHILE = "while"
    AFTER = "after"
    THEN = "then"
    ELSE = "else"
    CASE = "case"


@dataclass(eq=False, repr=False)
class Loop:
    """A loop in the sense of the paper.

    Attributes:
        op: the scf operation that it stands for; the program for the root.
        position: its place in the block of its parent; see `Instruction.position`.
        name: of its own in the program: the name of its index, or what it is and its number.
        path: the loops from the root down to this one.
    """

    kind: LoopKind
    op: Operation
    block: Block
    parent: "Loop | None"
    position: tuple[int, int] = (0, 0)
    name: str = "program"
    path: tuple["Loop", ...] = field(init=False)

    def __post_init__(self) -> None:
        self.path = (*self.parent.path, self) if self.parent else (self,)

    @property
    def counted(self) -> bool:
        """Whether a distance has a component for it."""
        return self.kind in (LoopKind.FOR, LoopKind.WHILE)

    @property
    def depth(self) -> int:
        """How many counted loops there are from the root to this one, 0 where it is not counted."""
        return sum(loop.counted for loop in self.path) if self.counted else 0


@dataclass(eq=False, repr=False)
class Instruction:
    """An instruction of one engine.

    Attributes:
        order: its place among all instructions of the program, in textual order.
        loop: the loop that it stands in.
        position: its place in the block of `loop`. A block is a row of straight-line runs with loops and
            conditionals between them; those without an instruction separate nothing. (i, 0) is run i,
            and (i, r) is region r of the operation that stands there. Equal positions: the same run.
        edges: its dependencies, as written.
    """

    op: Operation
    order: int
    engine: str
    label: str | None
    loop: Loop
    position: tuple[int, int]
    edges: list["Edge"] = field(default_factory=list["Edge"])

    @property
    def name(self) -> str:
        """`@label`, or what else tells it from the others."""
        return f"@{self.label}" if self.label else f"{self.op.name} #{self.order}"

    @cached_property
    def counted(self) -> tuple[Loop, ...]:
        """The loops that its iteration vector counts, outermost first."""
        return tuple(loop for loop in self.loop.path if loop.counted)


@dataclass(eq=False, repr=False)
class Edge:
    """A dependency: `consumer` waits for `producer`.

    Attributes:
        common: the loops that they share, root first; the last is the paper's S.
        distance: one component for each of `common`, 0 for conditionals.
    """

    after: AfterAttr
    producer: Instruction
    consumer: Instruction
    common: tuple[Loop, ...]
    distance: tuple[Component, ...]

    @cached_property
    def counted(self) -> tuple[Component, ...]:
        """The components of the loops that are counted, as `distance [...]` writes them."""
        return tuple(d for loop, d in zip(self.common, self.distance, strict=True) if loop.counted)

    @property
    def carrier(self) -> Loop | None:
        """The outermost loop with a component that is not 0: the loop that carries the dependency."""
        return next((loop for loop, d in zip(self.common, self.distance, strict=True) if d), None)

    @property
    def never_owed(self) -> bool:
        """Whether it is carried by the program as a whole, which runs once."""
        return self.distance[0] != 0

    @cached_property
    def same_run(self) -> bool:
        """Whether both stand in one straight-line run."""
        return self._positions[0] == self._positions[1]

    @cached_property
    def forward(self) -> bool:
        """Whether the consumer follows the producer in an iteration of the last common loop.

        In one run, instructions of two engines are forward both ways (barrier-free, section 5.2).
        """
        producer, consumer = self._positions
        if producer == consumer and self.producer.engine == self.consumer.engine:
            return self.producer.order < self.consumer.order
        return producer <= consumer

    @property
    def _positions(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return _position_in(self.producer, len(self.common)), _position_in(self.consumer, len(self.common))

    def target(self, iteration: tuple[int, ...]) -> tuple[Component, ...] | None:
        """The producer iteration that the consumer needs in its `iteration`, both 1-based.

        One component for each counted common loop, `*` for every iteration of it; None where a component
        is below 1, or the dependency is never owed: then no wait is owed (barrier-free, section 4.2).
        """
        if self.never_owed:
            return None
        target: list[Component] = []
        for i, d in zip(iteration, self.counted, strict=False):
            if isinstance(d, int) and i <= d:
                return None
            target.append(i - d if isinstance(d, int) else d)
        return tuple(target)


def up_to(target: tuple[Component, ...]) -> tuple[float, ...]:
    """A bound that is above exactly the iteration vectors that lie in or before `target`."""
    return (*(math.inf if t == EVERY else t for t in target), math.inf)


@dataclass(eq=False, repr=False)
class Structure:
    """The tree of a program.

    Attributes:
        loops: every loop, parents first; the first is the program.
        instructions: in textual order.
        loop_of: the loop of each block.
        loops_of: the loops of each control operation, one a region.
        separators: the loops and conditionals that hold an instruction.
        names: those of the loops.
    """

    program: Operation
    loops: list[Loop] = field(default_factory=list[Loop])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    by_label: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    by_op: dict[Operation, Instruction] = field(default_factory=dict[Operation, Instruction])
    loop_of: dict[Block, Loop] = field(default_factory=dict[Block, Loop])
    loops_of: dict[Operation, list[Loop]] = field(default_factory=dict[Operation, list[Loop]])
    separators: set[Operation] = field(default_factory=set[Operation])
    names: set[str] = field(default_factory=set[str])

    @property
    def edges(self) -> Iterator[Edge]:
        """The dependencies, by consumer in textual order."""
        return (edge for instruction in self.instructions for edge in instruction.edges)

    @property
    def engines(self) -> list[str]:
        """The engines that have an instruction, in textual order."""
        return list(dict.fromkeys(instruction.engine for instruction in self.instructions))


def structure_of(program: Operation) -> Structure:
    """Read the structure of the sem.program `program`.

    Raises:
        OpError: an operation that no program may hold, a duplicate or undefined label, a distance with a
            wrong number of components.
    """
    structure = Structure(program)
    _read_loop(structure, Loop(LoopKind.PROGRAM, program, program.regions[0].block, None))
    for consumer in structure.instructions:
        consumer.edges.extend(_edge(structure, consumer, after) for after in dependencies(consumer.op))
    return structure


def dependencies(op: Operation) -> tuple[AfterAttr, ...]:
    """What the instruction `op` is after, as written; OpError if it is no list of dependencies."""
    after = op.properties.get("after", op.attributes.get("after"))
    if after is None:
        return ()
    if isinstance(after, ArrayAttr):
        given = cast(ArrayAttr[Attribute], after).data
        found = tuple(each for each in given if isinstance(each, AfterAttr))
        if len(found) == len(given):
            return found
    raise OpError(op, f"after is no list of dependencies: {after}")


def regions_of(op: Operation) -> list[tuple[LoopKind, Region]]:
    """The regions of a control operation that are not empty, in program order."""
    match op:
        case scf.ForOp():
            found = [(LoopKind.FOR, op.body)]
        case scf.IfOp():
            found = [(LoopKind.THEN, op.true_region), (LoopKind.ELSE, op.false_region)]
        case scf.WhileOp():
            found = [(LoopKind.WHILE, op.before_region), (LoopKind.AFTER, op.after_region)]
        case scf.IndexSwitchOp():
            found = [(LoopKind.CASE, region) for region in (*op.case_regions, op.default_region)]
        case _:
            found = []
    return [(kind, region) for kind, region in found if region.blocks]


def _read_loop(structure: Structure, loop: Loop) -> int:
    """Read the block of `loop`, the next loop of the program; the number of the last run in it."""
    if loop.parent:
        loop.name = _loop_name(structure, loop)
    structure.names.add(loop.name)
    structure.loops.append(loop)
    structure.loop_of[loop.block] = loop
    structure.loops_of.setdefault(loop.op, []).append(loop)
    place = 0
    for op in loop.block.ops:
        if is_instruction(op):
            _read_instruction(structure, op, loop, place)
        elif isinstance(op, CONTROL_OPS):
            place = _read_control(structure, op, loop, place)
        elif type(op) not in SCALAR_OPS and not is_declaration(op):
            if op is loop.block.last_op and isinstance(op, scf.YieldOp | scf.ConditionOp):
                continue
            raise OpError(
                op,
                f"'{op.name}' is not allowed in a sem.program: it holds scf.for, scf.if, scf.while, "
                "scf.index_switch, integer operations of arith, buffers, and instructions of engines",
            )
    return place


def _loop_name(structure: Structure, loop: Loop) -> str:
    hint = loop.block.args[0].name_hint if loop.kind is LoopKind.FOR else None
    name = hint or f"{loop.kind}{len(structure.loops)}"
    return f"{name}.{len(structure.loops)}" if name in structure.names else name


def _read_instruction(structure: Structure, op: Operation, loop: Loop, place: int) -> None:
    try:
        EngineInstruction().verify(op)
    except VerifyException as err:
        raise OpError(op, f"'{op.name}': {err}") from err
    label = label_of(op)
    instruction = Instruction(op, len(structure.instructions), engine_of(op), label, loop, (place, 0))
    structure.instructions.append(instruction)
    structure.by_op[op] = instruction
    if label is not None and structure.by_label.setdefault(label, instruction) is not instruction:
        raise OpError(op, f"duplicate label @{label}: give each instruction of a program a label of its own")


def _read_control(structure: Structure, op: Operation, parent: Loop, place: int) -> int:
    """Read a loop or conditional that follows run `place`; the number of the run that follows it."""
    verify_control(op)
    first, last = len(structure.instructions), 0
    for index, (kind, region) in enumerate(regions_of(op)):
        if kind is LoopKind.AFTER:
            loop = Loop(kind, op, region.block, structure.loop_of[op.regions[0].block])
            loop.position = (last + 1, 0)
        else:
            loop = Loop(kind, op, region.block, parent)
            loop.position = (place + 1, index)
        last = _read_loop(structure, loop)
    if len(structure.instructions) == first:
        return place
    structure.separators.add(op)
    return place + 2


def _edge(structure: Structure, consumer: Instruction, after: AfterAttr) -> Edge:
    producer = structure.by_label.get(after.producer.data)
    if producer is None:
        raise OpError(consumer.op, f"undefined label @{after.producer.data}: no instruction has it")
    common = tuple(p for p, c in zip(producer.loop.path, consumer.loop.path, strict=False) if p is c)
    return Edge(after, producer, consumer, common, _expand(after, producer, consumer, common))


def _expand(
    after: AfterAttr, producer: Instruction, consumer: Instruction, common: tuple[Loop, ...]
) -> tuple[Component, ...]:
    counted = [index for index, loop in enumerate(common) if loop.counted]
    distance: list[Component] = [0] * len(common)
    match after.distance:
        case OffsetAttr(data=k):
            distance[counted[-1] if counted else 0] = k
        case DistanceAttr(data=components):
            if len(components) != len(counted):
                raise OpError(
                    consumer.op,
                    f"the wrong number of components, {len(components)}, after {producer.name}, with which "
                    f"{consumer.name} shares {len(counted)}: write one for each scf.for and scf.while "
                    "around both, outermost first",
                )
            for index, component in zip(counted, components, strict=True):
                distance[index] = component
    return tuple(distance)


def _position_in(instruction: Instruction, depth: int) -> tuple[int, int]:
    """The place in the loop that is number `depth` on its path, from 1, of what holds `instruction`."""
    path = instruction.loop.path
    return path[depth].position if depth < len(path) else instruction.position
