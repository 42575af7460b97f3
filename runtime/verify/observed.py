"""Runs of a stream: what its loops carry, and what is wrong on the way."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mpkc.dialects.scalars import bits_of
from mpkc.dialects.sem_streams import BarrierOp
from mpkc.dialects.sem_structure import Loop, LoopKind
from mpkc.runtime.verify.ghosts import Ghosts, Key, State
from mpkc.runtime.verify.integers import Value, reduced
from mpkc.runtime.verify.places import Place
from mpkc.runtime.verify.streams import constant_trips
from mpkc.runtime.verify.walks import Goal, Steps, Walk, is_integer


@dataclass(frozen=True)
class Head:
    """What a loop carries: the arguments of its first block that are integers, and counters that change in it."""

    op: Operation
    arguments: tuple[SSAValue, ...]
    counters: tuple[Key, ...]

    @classmethod
    def of(cls, op: Operation, ghosts: Ghosts) -> "Head":
        block = body_of(op)
        arguments = block.args[1:] if isinstance(op, scf.ForOp) else block.args
        carried = tuple(arg for arg in arguments if is_integer(arg.type))
        written: set[Key] = set()
        for region in op.regions:
            written |= ghosts.written(region.block)
        return cls(op, carried, tuple(key for key in ghosts.initial() if key in written))


def body_of(op: Operation) -> Block:
    """The block at whose head a loop begins its iterations."""
    return op.regions[0].block


TRIPS = (0, 1, 2, 3, 5)  # of loops in a wild run
FEW = 8  # iterations of a loop whose bounds are constants: a wild run goes through all of them


class Finished(Exception):
    """A run has taken its steps."""


class Run(Walk):
    """One way through a stream.

    Args:
        wild: whether loops, but for those that always have the same few iterations, run any number of times and
            conditionals go any way, so that few runs see much. What a run that is not wild finds wrong is wrong.
        trips: the most iterations of one run of each loop, by name.
        most: the iterations and instructions after which it ends.
    """

    def __init__(
        self, ghosts: Ghosts, steps: Steps, random: Random, wild: bool, trips: Mapping[str, int], most: int = 250
    ):
        super().__init__(ghosts, steps)
        self.random, self.wild, self.trips, self.left = random, wild, trips, most
        self.seen: dict[Operation, list[tuple[State, list[Value]]]] = {}
        self.wrong: list[tuple[Goal, State]] = []
        self.bindings: dict[str, int] = {}
        self.heads: dict[Operation, Head] = {}

    def unknown(self, type_: Attribute) -> Value:
        return self.random.random() < 0.6 if bits_of(type_) == 1 else self.random.randrange(4)

    def impossible(self, op: Operation) -> Value:
        raise Finished

    def run(self) -> None:
        args = self.places.streams.body.block.args
        with suppress(Finished):
            super().run()
        self.bindings = {arg.name_hint or "": int(self.values[arg]) for arg in args}

    def issue(self, place: Place, goals: Sequence[Goal]) -> None:
        self._step()
        if not self.wild:
            self.wrong += [(goal, dict(self.state)) for goal in goals if goal.holds is False]

    def entered(self, loop: Loop) -> None:
        most = self.trips.get(loop.name)
        if loop.counted and most is not None and self.state["iteration", loop] > most:
            self.wrong = []  # the program promises that no run comes here, so this one says nothing
            raise Finished

    def control(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                results = self._for(op)
            case scf.WhileOp():
                results = self._while(op)
            case _:
                results = self._branch(op)
        self.write(op.results, results)

    def _for(self, op: scf.ForOp) -> list[Value | None]:
        low, high, step = (reduced(self.values[v], bits_of(v.type), True) for v in (op.lb, op.ub, op.step))
        variable, *carried = op.body.block.args
        step = max(step, 1)
        if self.wild:
            high = low + step * self._trips(op.body.block)
        self._start(op.body.block)
        state = self.read(op.iter_args)
        for index in range(low, high, step):
            self._step()
            self.write(carried, state)
            self._observe(op)
            self.values[variable] = index
            state = self.block(op.body.block)
        self.write(carried, state)
        self._observe(op)
        return state

    def _while(self, op: scf.WhileOp) -> list[Value | None]:
        before, after = op.before_region.block, op.after_region.block
        left = self._trips(before) - 1
        self._start(before)
        state = self.read(op.arguments)
        while True:
            self._step()
            self.write(before.args, state)
            self._observe(op)
            goes_on, *state = self.block(before)
            if left <= 0 if self.wild else not goes_on:
                return state
            left -= 1
            self.write(after.args, state)
            state = self.block(after)

    def _branch(self, op: Operation) -> list[Value | None]:
        assert isinstance(op, scf.IfOp | scf.IndexSwitchOp)
        taken = int(self.values[op.operands[0]])
        regions = {1: op.true_region, 0: op.false_region} if isinstance(op, scf.IfOp) else cases_of(op)
        met = _holds_barrier(regions[taken] if taken in regions else op.regions[0])
        if self.wild and not met and self.random.random() < 0.5:
            taken = self.random.choice([*regions, -1] if isinstance(op, scf.IndexSwitchOp) else list(regions))
            self.values[op.operands[0]] = bool(taken) if isinstance(op, scf.IfOp) else taken
        region = regions[taken] if taken in regions else op.regions[0]
        return self.block(region.block) if region.blocks else []

    def _trips(self, block: Block) -> int:
        """How often a loop runs, if it may run any number of times."""
        heads = self.places.heads[block]
        most = self.trips.get(heads[0].name) if heads else None
        always = constant_trips(heads[0]) if heads and heads[0].kind is LoopKind.FOR else None
        if always is not None and always <= FEW:
            return always
        chosen = self.random.choice(TRIPS)
        return chosen if most is None else min(chosen, most)

    def _start(self, block: Block) -> None:
        if self.places.heads[block]:
            self.ghosts.start(self.state, self.places.heads[block][0])

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Finished

    def _observe(self, op: Operation) -> None:
        head = self.heads.get(op)
        if head is None:
            head = self.heads[op] = Head.of(op, self.ghosts)
        self.seen.setdefault(op, []).append((dict(self.state), self.read(head.arguments)))


def _holds_barrier(region: Region) -> bool:
    """Whether a way ends an epoch: it may come early, but where counters ask for it, it may not be left out."""
    return any(isinstance(op, BarrierOp) for block in region.blocks for op in block.ops)


def cases_of(op: scf.IndexSwitchOp) -> dict[int, Region]:
    """The regions of a switch by case; the default is none of them."""
    return dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
