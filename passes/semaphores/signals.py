"""What an engine has signalled on a semaphore of its own, counted by another one (barrier-free, section 6.1).

Members of the semaphore stand in segments of a block, between loops and conditionals that hold further members. At the
start of a segment the number of signals so far is a value; the number that a member has is that and its place.
"""

from xdsl.ir import Block, Operation, SSAValue

from mpkc.dialects.sem_structure import Loop
from mpkc.passes.semaphores.counters import Counter, Counts
from mpkc.passes.semaphores.needs import Source
from mpkc.passes.semaphores.plan import Plan
from mpkc.passes.semaphores.thresholds import Arithmetic


class Signals:
    """The signals of `engine`, as one stream counts them while it is written."""

    def __init__(self, plan: Plan, engine: str):
        self.engine = engine
        self.counter = Counter(Counts.SIGNALS, engine=engine)
        (group,) = (each for each in plan.groups.all.values() if each.kind == "per-engine" and each.engine == engine)
        self.holding = {loop.op for member in group.members for loop in member.loop.path[1:]}
        self.segments: dict[Block, list[int]] = {}
        self.place: dict[Source, tuple[Block, int, int]] = {}
        members = set(group.members)
        for block, items in plan.layouts[engine].blocks.items():
            sizes = self.segments[block] = [0]
            for item in items:
                if isinstance(item, Operation):
                    if item in self.holding:
                        sizes.append(0)
                elif item in members:
                    sizes[-1] += 1
                    self.place[item] = block, len(sizes) - 1, sizes[-1]
        self.starts: dict[Block, list[SSAValue]] = {}

    def start(self, block: Block, state: dict[Counter, SSAValue]) -> None:
        """The stream begins to write `block`."""
        self.starts[block] = [state[self.counter]]

    def before(self, op: Operation, state: dict[Counter, SSAValue], math: Arithmetic) -> None:
        """It comes to the loop or conditional `op`: what was signalled in this segment counts from here on."""
        if op in self.holding:
            assert op.parent is not None
            self._advance(op.parent, state, math)

    def after(self, op: Operation, state: dict[Counter, SSAValue]) -> None:
        """It has written `op`: a new segment begins."""
        if op in self.holding:
            assert op.parent is not None
            self.starts[op.parent].append(state[self.counter])

    def end(self, block: Block, state: dict[Counter, SSAValue], math: Arithmetic) -> None:
        """It has written all of `block`."""
        self._advance(block, state, math)

    def number(self, member: Source, math: Arithmetic) -> SSAValue:
        """The number of signals when `member` retires, in the iteration that the stream is in."""
        block, segment, place = self.place[member]
        return math.add(self.starts[block][segment], math.constant(place))

    def signals_in(self, loop: Loop) -> int:
        """How often an iteration of `loop`, in which no other loop holds a member, signals."""
        (size,) = self.segments[loop.block]
        return size

    def _advance(self, block: Block, state: dict[Counter, SSAValue], math: Arithmetic) -> None:
        segments = self.segments.get(block)
        if segments and (size := segments[len(self.starts[block]) - 1]):
            state[self.counter] = math.add(state[self.counter], math.constant(size))
            state[self.counter].name_hint = self.counter.hint
