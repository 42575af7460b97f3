"""Which pairs of instructions that share a part of a buffer have to be looked at.

The instructions of a block that touch the same part form a row. Where one of them writes between two others, they
depend on it and it on them, so nothing has to be said of these two. That leaves pairs in proportion to the row.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from xdsl.ir import SSAValue

from mpkc.dialects.sem_structure import Instruction, Loop
from mpkc.passes.tile_accesses import Region, Touch


@dataclass(frozen=True, eq=False)
class Sharers:
    """The instructions of a block that touch a region, in program order.

    Attributes:
        writes: whether each one writes.
        ranks: the number of each one in program order.
    """

    loop: Loop
    region: Region
    instructions: list[Instruction]
    writes: list[bool]
    ranks: list[int]

    @property
    def written(self) -> bool:
        """Whether one of them writes."""
        return any(self.writes)

    def before(self, others: "Sharers") -> Iterator[tuple[Instruction, Instruction]]:
        """Pairs of one of these and a later one of `others`, one writing, none that writes certainly in between."""
        following = self._next_writer()
        for at, (instruction, rank) in enumerate(zip(self.instructions, self.ranks, strict=True)):
            for other in range(bisect_right(others.ranks, rank), len(others.ranks)):
                if others.ranks[other] > following[at]:
                    break
                if self.writes[at] or others.writes[other]:
                    yield instruction, others.instructions[other]
                if others.writes[other]:
                    break

    def in_iterations_before(self, others: "Sharers") -> Iterator[tuple[Instruction, Instruction]]:
        """Pairs of one of these and one of `others` in a later iteration of both, as `before`."""
        writers = [at for at, writes in enumerate(self.writes) if writes]
        last = self.instructions[writers[-1] if writers else 0 :]
        other_writers = [at for at, writes in enumerate(others.writes) if writes]
        first = others.instructions[: other_writers[0] + 1 if other_writers else None]
        for (at, one), (other_at, other) in product(enumerate(last), enumerate(first)):
            if (writers and not at) or (other_writers and other_at == len(first) - 1):
                yield one, other

    def _next_writer(self) -> list[int]:
        """For each one the rank of the next that writes; behind all for the last ones."""
        found, rank = list[int](), max(self.ranks) + (1 << 62)
        for at in reversed(range(len(self.ranks))):
            found.append(rank)
            if self.writes[at]:
                rank = self.ranks[at]
        return found[::-1]


def sharers(touches: Iterable[Touch], rank: Mapping[Instruction, int]) -> Iterator[list[Sharers]]:
    """The rows of instructions that touch a region of one buffer, buffer by buffer."""
    written: dict[SSAValue, dict[tuple[Loop, Region], dict[Instruction, bool]]] = {}
    for touch in touches:
        key = (touch.instruction.loop, touch.region)
        row = written.setdefault(touch.region.root, {}).setdefault(key, {})
        row[touch.instruction] = row.get(touch.instruction, False) or touch.writes
    for of_buffer in written.values():
        rows = list[Sharers]()
        for (loop, region), row in of_buffer.items():
            instructions = sorted(row, key=rank.__getitem__)
            writes, ranks = [row[i] for i in instructions], [rank[i] for i in instructions]
            rows.append(Sharers(loop, region, instructions, writes, ranks))
        yield rows
