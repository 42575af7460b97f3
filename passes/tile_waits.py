"""Which dependencies the waits of a program enforce, by the paths that lead from one instruction to another.

An engine issues its instructions in program order and retires them in that order, apart from those that `retire async`.
A wait of a consumer is for the retirement of a producer, up to the target iteration. So what has retired before an
instruction issues has retired before every later one of its engine issues and retires.

A path must be there in every execution: it uses only what runs for certain between the two instructions (tile_order).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mpkc.dialects.sem_distance import EVERY, Component
from mpkc.dialects.sem_structure import Instruction, Loop
from mpkc.passes.tile_order import Between, Blocks, Iteration, Place


@dataclass(frozen=True)
class Wait:
    """`consumer` waits for `producer`; a component for each counted loop that they share."""

    producer: Instruction
    consumer: Instruction
    vector: tuple[Component, ...]

    def reaches(self, iteration: Iteration, produced: Iteration) -> bool:
        """Whether the consumer's wait in `iteration` is owed, and is for the producer's `produced` too."""
        for component, consumed in zip(self.vector, iteration, strict=False):
            if component != EVERY and consumed <= component:
                return False
        for component, consumed, there in zip(self.vector, iteration, produced, strict=False):
            if component == EVERY or there < consumed - component:
                return True
            if there > consumed - component:
                return False
        return True


def retires_in_order(instruction: Instruction) -> bool:
    """Whether it retires after those before it on its engine, and before those behind it."""
    return "async" not in instruction.op.properties


class Waits:
    """The waits of a program, and what they enforce. Waits are added as `add` says, consumer by consumer."""

    def __init__(self, blocks: Blocks):
        self.of: dict[Instruction, list[Wait]] = {}
        self._blocks = blocks
        self._for: dict[Instruction, list[Wait]] = {}
        self._clocks: dict[Loop, _Clocks] = {}

    def on(self, producer: Instruction) -> list[Wait]:
        """The waits for an instruction."""
        return self._for.get(producer, [])

    def add(self, wait: Wait) -> None:
        """Add a wait. In a block, a wait within an iteration is not added for one before others that have them."""
        self.of.setdefault(wait.consumer, []).append(wait)
        self._for.setdefault(wait.producer, []).append(wait)

    def remove(self, wait: Wait) -> None:
        """Take a wait back."""
        self.of[wait.consumer].remove(wait)
        self._for[wait.producer].remove(wait)

    def enforce(self, between: Between) -> bool:
        """Whether the consumer waits for the producer, whatever way is taken between their two executions."""
        producer, consumer, frame = between.producer, between.consumer, between.frame
        if not between.apart and producer.loop is consumer.loop:
            if frame not in self._clocks:
                self._clocks[frame] = _Clocks(self, self._blocks, frame)
            clocks = self._clocks[frame]
            if clocks.enforce(producer, consumer):
                return True
            if clocks.straight(producer, consumer):
                return False
        return all(self._path(between, way) for way in between.ways())

    def _path(self, between: Between, way: Iterator[Place]) -> bool:
        producer, consumer = between.producer, between.consumer
        in_order = retires_in_order(producer)
        carriers = {producer: between.start}
        engines = set[str]()
        for instruction, numbers in way:
            if consumer.engine in engines:
                return True
            waits = self.of.get(instruction, ())
            if not waits and instruction not in self._for:
                continue
            iteration = tuple(numbers[loop] for loop in instruction.counted)
            engine = instruction.engine
            if engine not in engines and _any_reaches(waits, iteration, carriers):
                engines.add(engine)
            if engine in engines or (in_order and engine == producer.engine and retires_in_order(instruction)):
                carriers.setdefault(instruction, iteration)
        if consumer.engine in engines:
            return True
        return _any_reaches(self.of.get(consumer, ()), between.end, carriers)


def _any_reaches(waits: Iterable[Wait], iteration: Iteration, carriers: Mapping[Instruction, Iteration]) -> bool:
    """Whether one of the waits is for something that retires no earlier than what is looked for."""
    for wait in waits:
        produced = carriers.get(wait.producer)
        if produced is not None and wait.reaches(iteration, produced):
            return True
    return False


@dataclass(frozen=True)
class _Clock:
    """What an instruction can rely on: by engine, the last rank that has been issued, and that has retired."""

    issued: dict[str, int] = field(default_factory=dict[str, int])
    retired: dict[str, int] = field(default_factory=dict[str, int])

    def merge(self, other: "_Clock") -> None:
        for mine, theirs in ((self.issued, other.issued), (self.retired, other.retired)):
            for engine, rank in theirs.items():
                if mine.get(engine, -1) < rank:
                    mine[engine] = rank


class _Clocks:
    """Vector clocks of the instructions that stand directly in a block, for waits within an iteration."""

    def __init__(self, waits: Waits, blocks: Blocks, loop: Loop):
        self._waits, self._rank = waits, blocks.rank
        self._loop = loop
        self._row = [item for item in blocks.row[loop] if isinstance(item, Instruction)]
        self._place = {instruction: at for at, instruction in enumerate(self._row)}
        self._gaps = {i: blocks.place[i] - at for i, at in self._place.items()}
        self._known: dict[Instruction, _Clock] = {}
        self._latest: dict[str, Instruction] = {}
        self._done = 0
        self._at: tuple[Instruction, int, _Clock] | None = None

    def straight(self, producer: Instruction, consumer: Instruction) -> bool:
        """Whether nothing but instructions runs for certain between two of them."""
        return self._gaps[producer] == self._gaps[consumer]

    def enforce(self, producer: Instruction, consumer: Instruction) -> bool:
        """Whether a path over instructions of the block leads from one to another."""
        clock = self._clock(consumer)
        if retires_in_order(producer):
            return clock.retired.get(producer.engine, -1) >= self._rank[producer]
        return any(
            clock.issued.get(wait.consumer.engine, -1) >= self._rank[wait.consumer]
            for wait in self._waits.on(producer)
            if wait.consumer in self._place and not any(wait.vector)
        )

    def _clock(self, consumer: Instruction) -> _Clock:
        """The clock of a consumer by the waits it has so far; those before it have all of theirs."""
        while self._done < self._place[consumer]:
            instruction = self._row[self._done]
            self._known[instruction] = self._compute(instruction)
            self._latest[instruction.engine] = instruction
            self._done += 1
        waits = len(self._waits.of.get(consumer, ()))
        if self._at is None or self._at[:2] != (consumer, waits):
            self._at = (consumer, waits, self._compute(consumer))
        return self._at[2]

    def _compute(self, instruction: Instruction) -> _Clock:
        clock = _Clock()
        if (before := self._latest.get(instruction.engine)) is not None:
            clock.merge(self._known[before])
            clock.issued[before.engine] = self._rank[before]
        for wait in self._waits.of.get(instruction, ()):
            producer = wait.producer
            if producer not in self._known or any(wait.vector):
                continue
            clock.merge(self._known[producer])
            rank = self._rank[producer]
            clock.issued[producer.engine] = max(rank, clock.issued.get(producer.engine, -1))
            if retires_in_order(producer):
                clock.retired[producer.engine] = max(rank, clock.retired.get(producer.engine, -1))
        return clock
