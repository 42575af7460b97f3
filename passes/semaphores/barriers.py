"""Where barriers stand, and which needs they satisfy (barrier-free, section 3.4).

A loop of kind `barrier` has one at its entry and one at the end of each iteration, where every engine retires what it
issued and the semaphores of the barrier start at 0 again. Between two barriers, in a segment of a block, thresholds are
static. Loops between two of kind `barrier`, one in the other, are of that kind too: a static threshold holds only as
long as no barrier resets its semaphore.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Operation

from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.passes.semaphores.layout import Layout
from mpkc.passes.semaphores.needs import Form, Need, Source


@dataclass
class Barriers:
    """The loops of kind `barrier`.

    Attributes:
        loops: those with an instruction in them; the program itself where it is of that kind.
        ops: the operations of these loops.
        segments: which segment of its block a source or an operation stands in.
    """

    loops: set[Loop] = field(default_factory=set[Loop])
    ops: set[Operation] = field(default_factory=set[Operation])
    segments: dict[Operation | Source, int] = field(default_factory=dict[Operation | Source, int])

    def number(self, layout: Layout, structure: Structure) -> None:
        """Number the segments of all blocks on one engine."""
        for loop in structure.loops:
            segment = 0
            if loop.parent is not None and loop.op not in layout.kept.control:
                continue
            for item in layout.of(loop.block):
                self.segments[item] = segment
                segment += item in self.ops

    def satisfy(self, need: Need) -> bool:
        """Whether a barrier stands between every execution of the producer that is owed and the consumer."""
        producer, consumer = need.producer.loop.path, need.consumer.loop.path
        shared = sum(p is c for p, c in zip(producer, consumer, strict=False))
        between = {*producer[shared:], *consumer[shared:]}
        if need.form is Form.BEFORE:
            between.add(need.producer.loop)
        elif need.loop is not None:
            between.update(producer[producer.index(need.loop) : shared])
        if between & self.loops:
            return True
        return need.loop is None and self._segment(need.producer, shared) != self._segment(need.consumer, shared)

    def _segment(self, source: Source, shared: int) -> int:
        path = source.loop.path
        return self.segments[path[shared].op if shared < len(path) else source]


def find_barriers(structure: Structure, kind_of: Callable[[Loop], str]) -> Barriers:
    """The loops of kind `barrier`, by the kind of each loop; those without an instruction need none."""
    found = Barriers()
    holding = {id(loop) for instruction in structure.instructions for loop in instruction.loop.path}
    for loop in structure.loops:
        if kind_of(loop) == "barrier" and id(loop) in holding:
            found.loops.add(loop)
    for loop in list(found.loops):
        above = [each for each in loop.path if each in found.loops]
        found.loops.update(loop.path[loop.path.index(above[0]) :])
    found.ops = {loop.op for loop in found.loops if loop.parent is not None}
    return found
