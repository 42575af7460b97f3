"""What runs for certain between an execution of one instruction and an execution of another, in program order.

Loops without constant bounds may run no iteration, conditionals none of their branches; an scf.while runs its first
region once at least, and an if with an else one of the two. How often a loop runs, and which branch is taken, is not
related to anything else in the program. So there are executions of the program in which nothing else runs in between.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Operation

from mpkc.dialects.sem_order import program_order
from mpkc.dialects.sem_structure import Instruction, Loop, LoopKind, Structure

FAR_ON = 1 << 32  # an iteration behind every other one
MOST_ITERATIONS = 2  # of a loop with constant bounds, that are looked at
MOST_WAYS = 32  # to choose branches

Iteration: TypeAlias = tuple[int, ...]
Place: TypeAlias = tuple[Instruction, Mapping[Loop, int]]
"""An instruction, and the number of the iteration of each loop around it."""


@dataclass(frozen=True)
class Branches:
    """An operation of which exactly one region runs."""

    regions: tuple[Loop, ...]


Item: TypeAlias = Instruction | Loop | Branches
"""What a block runs for certain; a Loop runs `Blocks.least` times."""


class Blocks:
    """The blocks of a program as rows of items, in program order.

    Args:
        trips: how often a loop with constant bounds runs; None for the others.
    """

    def __init__(self, structure: Structure, trips: Callable[[Loop], int | None]):
        self.rank: dict[Instruction, int] = {}
        """The number of each instruction in program order."""
        self.row: dict[Loop, list[Item]] = {}
        self.place: dict[Instruction | Loop, int] = {}
        """How many items of its block stand before an instruction or a loop."""
        self.position: dict[Instruction | Loop, int] = {}
        """How many instructions and loops of its block stand before it, those that may not run among them."""
        self._structure = structure
        self._trips = trips
        self._children: dict[Operation, list[Loop]] = {}
        self._inside: dict[Loop, list[Instruction | Loop]] = {}
        for loop in structure.loops:
            if loop.parent is not None:
                self._children.setdefault(loop.op, []).append(loop)
        for loop in reversed(structure.loops):
            self._read(loop)
        self._number(structure.loops[0])

    def least(self, loop: Loop) -> int:
        """How many iterations `loop` runs at least, of those that are looked at."""
        if loop.kind is LoopKind.WHILE:
            return 1
        return min(self._trips(loop) or 0, MOST_ITERATIONS)

    def _read(self, loop: Loop) -> None:
        row = self.row[loop] = []
        inside = self._inside[loop] = []
        for op in program_order(self._structure, loop.block):
            if (instruction := self._structure.by_op.get(op)) is not None:
                self.place[instruction] = len(row)
                row.append(instruction)
                inside.append(instruction)
            elif op in self._structure.separators:
                children = [child for child in self._children[op] if child.kind is not LoopKind.AFTER]
                self.place.update(dict.fromkeys(children, len(row)))
                inside += children
                if isinstance(op, scf.ForOp | scf.WhileOp):
                    row += [child for child in children if self.least(child)]
                elif len(children) > 1 or isinstance(op, scf.IndexSwitchOp):
                    row.append(Branches(tuple(children)))
        if (second := self.after_region(loop)) is not None:
            self.place[second] = len(row)
            inside.append(second)
        self.position.update((item, at) for at, item in enumerate(inside))

    def _number(self, program: Loop) -> None:
        """Number the instructions, without recursion into what nests deeply."""
        work: list[Instruction | Loop] = [program]
        while work:
            match work.pop():
                case Instruction() as instruction:
                    self.rank[instruction] = len(self.rank)
                case loop:
                    work += reversed(self._inside[loop])

    def behind(self, item: Instruction | Loop) -> int:
        """The place behind an item of a block."""
        parent = item.loop if isinstance(item, Instruction) else item.parent
        assert parent is not None, "stands in a block"
        at, row = self.place[item], self.row[parent]
        there = row[at] if at < len(row) else None
        return at + (there is item or (isinstance(there, Branches) and item in there.regions))

    def after_region(self, loop: Loop) -> Loop | None:
        """The second region of an scf.while, of which `loop` is the first."""
        if loop.kind is not LoopKind.WHILE:
            return None
        return next(child for child in self._children[loop.op] if child.kind is LoopKind.AFTER)


class Between:
    """What runs for certain from `producer` to `consumer`, `apart` iterations of their common loop `frame` apart.

    Args:
        producing, consuming: the number of the iteration of loops inside `frame`, on either side. Where nothing is
            said, the last one there is for the producer, and 1 for the consumer.
        all_of: loops inside `frame` that the consumer waits for all iterations of, whichever it depends on.
    """

    def __init__(
        self,
        blocks: Blocks,
        producer: Instruction,
        consumer: Instruction,
        frame: Loop,
        apart: int,
        producing: Mapping[Loop, int],
        consuming: Mapping[Loop, int],
        all_of: Iterable[Loop] = (),
    ):
        depth = len(frame.path)
        self._blocks, self.producer, self.consumer = blocks, producer, consumer
        self.frame, self.apart = frame, apart
        self._produced, self._consumed = producer.loop.path[depth:], consumer.loop.path[depth:]
        self._producing = {loop: producing.get(loop, FAR_ON) for loop in self._produced}
        self._waited_for = self._producing | dict.fromkeys(all_of, FAR_ON)
        self._consuming = {loop: consuming.get(loop, 1) for loop in self._consumed}

    @property
    def span(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """A key that is larger than that of a wait which can be of use on this way."""
        first = self._route(self.producer, self._produced, self._waited_for, ends=True)
        last = self._route(self.consumer, self._consumed, self._consuming, ends=False)
        return self.apart, last, tuple(-at for at in first)

    @property
    def span_if_first(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """At most the keys of the ways to the first execution of the consumer in the frame."""
        numbers = dict.fromkeys(self._consumed, 1)
        return self.apart, self._route(self.consumer, self._consumed, numbers, ends=False), ()

    @property
    def waits_for_more(self) -> bool:
        """Whether the consumer waits for later executions of the producer than it depends on."""
        return self._waited_for != self._producing

    def _route(
        self, instruction: Instruction, path: tuple[Loop, ...], numbers: Mapping[Loop, int], ends: bool
    ) -> tuple[int, ...]:
        """Where an instruction stands in the frame: positions in blocks and numbers of iterations in turn.

        The last execution of the first region of an scf.while comes behind that of the second.
        """
        route = list[int]()
        for loop, inner in zip(path, (*path[1:], instruction), strict=False):
            ended = ends and loop.kind is LoopKind.WHILE and numbers[loop] == FAR_ON
            second = isinstance(inner, Loop) and inner.kind is LoopKind.AFTER
            route += [self._blocks.position[loop], numbers[loop] + (ended and not second)]
        return (*route, self._blocks.position[instruction])

    @property
    def start(self) -> Iteration:
        """The iteration of the producer."""
        return tuple(self._producing.get(loop, 1) for loop in self.producer.counted)

    @property
    def end(self) -> Iteration:
        """The iteration of the consumer."""
        numbers = {**self._consuming, self.frame: 1 + self.apart}
        return tuple(numbers.get(loop, 1) for loop in self.consumer.counted)

    def ways(self) -> Iterator[Iterator[Place]]:
        """The executions in between, in program order, once for each way to choose branches.

        Where there are too many ways, the last one takes no branch at all.
        """
        choices: _Choices | None = _Choices([])
        for _ in range(MOST_WAYS):
            yield self._run(choices)
            if (choices := choices.following()) is None:
                return
        yield self._run(None)

    def _run(self, choices: "_Choices | None") -> Iterator[Place]:
        numbers = {loop: 1 for loop in self.frame.path} | self._producing
        behind = self._blocks.behind(self.producer)
        for loop in reversed(self._produced):
            yield from self._part(loop, behind, None, numbers, choices)
            if loop.kind is LoopKind.AFTER and loop.parent is not self.frame:
                assert loop.parent is not None, "stands in the scf.while"
                numbers[loop.parent] += 1
                yield from self._part(loop.parent, 0, None, numbers, choices)
            behind = self._blocks.behind(loop)
        yield from self._within_frame(behind, numbers, choices)
        for at, loop in enumerate(self._consumed):
            for number in range(1, self._consuming[loop]):
                numbers[loop] = number
                yield from self._whole(loop, True, numbers, choices)
            numbers[loop] = self._consuming[loop]
            inner = self._consumed[at + 1] if at + 1 < len(self._consumed) else self.consumer
            yield from self._part(loop, 0, self._blocks.place[inner], numbers, choices)

    def _within_frame(self, behind: int, numbers: dict[Loop, int], choices: "_Choices | None") -> Iterator[Place]:
        frame = self.frame
        target = self._blocks.place[self._consumed[0] if self._consumed else self.consumer]
        if not self.apart:
            yield from self._part(frame, behind, target, numbers, choices)
            return
        yield from self._part(frame, behind, None, numbers, choices)
        second = self._blocks.after_region(frame)
        if second is not None and second not in self._produced:
            yield from self._whole(second, True, numbers, choices)
        for number in range(2, self.apart + 1):
            numbers[frame] = number
            yield from self._whole(frame, True, numbers, choices)
        numbers[frame] = self.apart + 1
        yield from self._part(frame, 0, target, numbers, choices)

    def _whole(
        self, loop: Loop, goes_on: bool, numbers: dict[Loop, int], choices: "_Choices | None"
    ) -> Iterator[Place]:
        """One iteration; `goes_on`: another follows, so an scf.while runs its second region as well."""
        yield from self._part(loop, 0, None, numbers, choices)
        if goes_on and (second := self._blocks.after_region(loop)) is not None:
            yield from self._whole(second, True, numbers, choices)

    def _part(
        self, loop: Loop, begin: int, end: int | None, numbers: dict[Loop, int], choices: "_Choices | None"
    ) -> Iterator[Place]:
        """The items of a block from place `begin` up to place `end`."""
        for item in islice(self._blocks.row[loop], begin, end):
            match item:
                case Instruction():
                    yield item, numbers
                case Loop():
                    least = self._blocks.least(item)
                    for number in range(1, least + 1):
                        numbers[item] = number
                        yield from self._whole(item, number < least, numbers, choices)
                case Branches(regions):
                    if choices is not None:
                        yield from self._whole(regions[choices.choose(len(regions))], True, numbers, choices)


class _Choices:
    """One way through the branches: `taken` first, then each first branch."""

    def __init__(self, taken: list[int]):
        self._taken = taken
        self._counts: list[int] = []

    def choose(self, count: int) -> int:
        """The next branch to take, of `count`."""
        if len(self._counts) == len(self._taken):
            self._taken.append(0)
        self._counts.append(count)
        return self._taken[len(self._counts) - 1]

    def following(self) -> "_Choices | None":
        """The next way that differs where this one chose, None behind the last."""
        taken = self._taken[: len(self._counts)]
        while taken and taken[-1] + 1 == self._counts[len(taken) - 1]:
            taken.pop()
        return _Choices([*taken[:-1], taken[-1] + 1]) if taken else None
