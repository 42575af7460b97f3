"""Where the instructions of streams stand, and in which order those of one engine run.

All is read off the streams: which instructions signal a semaphore, in which loop and behind what. The tree of loops
is the program's; `sem.iteration` says where a stream runs which of them.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation

from mpkc.dialects.engine import is_instruction, label_of, signal_of
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, ReadOp, StreamsOp
from mpkc.dialects.sem_structure import Edge, Instruction, Loop, Structure, regions_of, structure_of

Position: TypeAlias = tuple[tuple[int, int], ...]
BarrierKey: TypeAlias = tuple[Loop, ArrayAttr[StringAttr], ArrayAttr[StringAttr] | None, int]
"""The loop, what is reset, which engines meet, and its number among those."""


@dataclass(eq=False)
class Place:
    """A place in one stream.

    Attributes:
        name: the label of the instruction; what else it is.
        order: its number among all operations of its stream.
        blocks: the blocks of the stream around it, outermost first.
        loop: of the program; every iteration of it comes here once.
        position: in the program: those of the loops around it, then its own; see `Instruction.position`.
    """

    op: Operation
    engine: str
    name: str
    order: int
    blocks: tuple[Block, ...]
    loop: Loop
    position: Position
    signal: str | None = None

    @property
    def block(self) -> Block:
        return self.blocks[-1]


@dataclass(eq=False)
class Places:
    """The places of all streams of a program.

    Attributes:
        of: of each instruction, barrier and directive.
        by_label: of each instruction, read and marker.
        readers: the reads of each value, by its label.
        members: what signals each semaphore, in the order of its stream.
        begins: the directive of each loop in each stream, by engine and loop.
        heads: the loops whose directives stand in each block itself, in order.
        barriers: by what is the same of a barrier in all streams that it stands in, its places by engine.
        strange: what is wrong with the streams, where it is so wrong that nothing can be said of their waits.
    """

    structure: Structure
    streams: StreamsOp
    loops: dict[str, Loop]
    of: dict[Operation, Place] = field(default_factory=dict[Operation, Place])
    by_label: dict[str, Place] = field(default_factory=dict[str, Place])
    readers: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    members: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    begins: dict[tuple[str, Loop], Place] = field(default_factory=dict[tuple[str, Loop], Place])
    heads: dict[Block, list[Loop]] = field(default_factory=dict[Block, list[Loop]])
    barriers: dict[BarrierKey, dict[str, Place]] = field(default_factory=dict[BarrierKey, dict[str, Place]])
    strange: list[tuple[Operation, str]] = field(default_factory=list[tuple[Operation, str]])

    @classmethod
    def read(cls, program: Operation, streams: StreamsOp) -> "Places":
        """Read the streams of a program; what is strange in them is listed, not raised."""
        structure = structure_of(program)
        places = cls(structure, streams, {loop.name: loop for loop in structure.loops})
        for engine, stream in streams.streams.items():
            reader = _Reader(places, engine)
            reader.read(stream.body.block, structure.loops[0], ())
        return places

    @cached_property
    def unlabelled(self) -> dict[str, Instruction]:
        """The instructions of the program by the names that places have."""
        return {i.label or i.name: i for i in self.structure.instructions}

    def edges(self, place: Place) -> list[Edge]:
        """The dependencies of the instruction at `place`, as the program has them."""
        instruction = self.unlabelled.get(place.name)
        return instruction.edges if instruction else []

    def position(self, op: Operation) -> Position | None:
        """Where in the program a control operation of a stream stands; None if no loop of the program is in it."""
        heads = [head for region in op.regions for block in region.blocks for head in self.heads[block]]
        return min((position_of(head) for head in heads), default=None)

    def run(self, member: Place, loop: Loop) -> Place | None:
        """What `member` does in all of a run of `loop`, which it is in, as a place of the iteration around that."""
        begun = self.begins.get((member.engine, loop))
        if begun is None or loop.parent is None:
            return None
        inside = begun.op is begun.block.first_op
        name = f"{member.name} in a run of {loop.name}"
        blocks = begun.blocks[:-1] if inside else begun.blocks
        return Place(begun.op, member.engine, name, member.order, blocks, loop.parent, begun.position)

    def pending(self, member: Place, at: Place) -> bool:
        """Whether `member` is still to run in the iteration of its loop that `at`, in the same stream, is in."""
        begun = self.begins.get((member.engine, member.loop))
        return (
            member.block in at.blocks
            and member.order > at.order
            and (member.loop.parent is None or (begun is not None and begun.order < at.order))
        )

    def ahead(self, member: Place, at: Place) -> bool:
        """The same for places in different streams: in program order, where one run counts as one place."""
        depth = len(member.loop.path) - 1
        return member.loop in at.loop.path and member.position[depth] > at.position[depth]


class _Reader:
    def __init__(self, places: Places, engine: str):
        self.places, self.engine = places, engine
        self.order = 0
        self.barriers: dict[tuple[Loop, ArrayAttr[StringAttr], ArrayAttr[StringAttr] | None], int] = {}
        self.unlabelled = iter([i for i in places.structure.instructions if i.label is None and i.engine == engine])

    def read(self, block: Block, loop: Loop, around: tuple[Block, ...]) -> None:
        """Read a block that is an iteration of `loop`, or what a directive at its head says."""
        places, blocks = self.places, (*around, block)
        places.heads[block] = []
        position: Position = (*position_of(loop), (0, 0))
        for op in block.ops:
            self.order += 1
            match op:
                case IterationOp():
                    begun = places.loops.get(op.loop.data)
                    if begun is None or (self.engine, begun) in places.begins:
                        what = "twice" if begun else "but the program has no such loop"
                        places.strange.append((op, f'the stream of "{self.engine}" runs "{op.loop.data}" {what}'))
                        continue
                    places.heads[block].append(begun)
                    if around and op is block.first_op:
                        loop = begun
                    position = max(position, (*position_of(begun), (0, 0)))
                    place = Place(op, self.engine, op.loop.data, self.order, blocks, begun, position)
                    places.begins[self.engine, begun] = places.of[op] = place
                case BarrierOp():
                    place = Place(op, self.engine, "a barrier", self.order, blocks, loop, position)
                    places.of[op] = place
                    key = (loop, op.semaphores, op.engines)
                    number = self.barriers[key] = self.barriers.get(key, -1) + 1
                    places.barriers.setdefault((*key, number), {})[self.engine] = place
                case scf.ForOp() | scf.IfOp() | scf.WhileOp() | scf.IndexSwitchOp():
                    for _, region in regions_of(op):
                        self.read(region.block, loop, blocks)
                    position = max(position, self._behind(op, loop))
                case _ if is_instruction(op):
                    position = self._instruction(op, loop, position, blocks)
                case _:
                    pass
        self._place_reads(block)

    def _place_reads(self, block: Block) -> None:
        """Put reads behind the values that they read, unless what follows in their own stream comes before these."""
        places = self.places
        following: Position | None = None
        for op in reversed(block.ops):
            place = places.of.get(op)
            if isinstance(op, ReadOp):
                value = places.structure.by_label.get(op.source.data)
                assert place is not None
                if value is not None and value.loop is place.loop and self._reads_behind(value, place, following):
                    behind = (*position_of(value.loop), value.position, (1, 0))
                    place.position = max(place.position, behind)
            elif isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp | scf.IndexSwitchOp):
                following = places.position(op) or following
            elif place is not None and not isinstance(op, BarrierOp | MarkerOp):
                following = place.position

    def _reads_behind(self, value: Instruction, read: Place, following: Position | None) -> bool:
        if value.engine == self.engine:
            written = self.places.by_label.get(value.label or value.name)
            return written is not None and written.order < read.order
        depth = len(value.loop.path) - 1
        return following is None or following[depth] >= value.position

    def _instruction(self, op: Operation, loop: Loop, position: Position, blocks: tuple[Block, ...]) -> Position:
        places = self.places
        name = label_of(op)
        found: Instruction | None = None
        if not isinstance(op, ReadOp | MarkerOp):
            found = places.structure.by_label.get(name) if name else next(self.unlabelled, None)
            if found is None:
                places.strange.append((op, f"{_named(op)} is no instruction of the program"))
            else:
                name, loop = found.label or found.name, found.loop
                position = max(position, (*position_of(loop), found.position))
        place = Place(op, self.engine, name or op.name, self.order, blocks, loop, position, signal_of(op))
        if found is not None:
            place.position = (*position_of(loop), found.position)
        if place.name in places.by_label:
            places.strange.append((op, f"a second @{place.name}: an instruction stands in one stream, once"))
        places.of[op] = places.by_label[place.name] = place
        if isinstance(op, ReadOp):
            places.readers.setdefault(op.source.data, []).append(place)
        if place.signal is not None:
            places.members.setdefault(place.signal, []).append(place)
        return position

    def _behind(self, op: Operation, loop: Loop) -> Position:
        """The place in `loop` behind a control operation of its block."""
        depth = len(loop.path)
        found = [
            head.path[depth].position
            for region in op.regions
            for nested in region.blocks
            for head in self.places.heads[nested]
            if loop in head.path and head is not loop and head.path[depth].op in self.places.structure.separators
        ]
        return (*position_of(loop), (max(found)[0] + 1, 0)) if found else ()


def position_of(loop: Loop) -> Position:
    """Those of the loops from the program, left out, down to `loop`."""
    return tuple(each.position for each in loop.path[1:])


def _named(op: Operation) -> str:
    label = label_of(op)
    return f"@{label}" if label else f"'{op.name}'"


def excludes(a: Loop, b: Loop) -> bool:
    """Whether a run of the program comes to `a` or to `b`, never to both: branches of a conditional that runs once."""
    common = [x for x, y in zip(a.path, b.path, strict=False) if x is y]
    depth = len(common)
    if any(loop.counted for loop in common) or depth in (len(a.path), len(b.path)):
        return False
    return a.path[depth].op is b.path[depth].op and not isinstance(a.path[depth].op, scf.WhileOp)
