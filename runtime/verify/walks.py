"""The way of one engine through its stream, on numbers or on terms, with ghost counters beside it.

What is the same for both: the operations of a block in order, and what must hold where an instruction issues. How
control flow is gone through is left to those that go: one way (`observed`), or all at once (`waits`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction
from mpkc.dialects.scalars import is_scalar
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, WaitOp
from mpkc.dialects.sem_structure import Loop
from mpkc.runtime.verify.ghosts import Ghosts, State
from mpkc.runtime.verify.integers import Value, both, computed, greater, negated, reduced
from mpkc.runtime.verify.places import Place, Position
from mpkc.runtime.verify.requirements import Requirement


class Step(Enum):
    """What an operation is to those that go through streams."""

    COMPUTE = auto()
    ENTER = auto()
    WAIT = auto()
    MEET = auto()
    ISSUE = auto()
    CONTROL = auto()


def step_of(op: Operation) -> Step | None:
    """What `op` is; None for terminators, and declarations of buffers."""
    if is_scalar(op):
        return Step.COMPUTE
    if is_instruction(op):
        return Step.ISSUE
    if isinstance(op, CONTROL_OPS):
        return Step.CONTROL
    return _STEPS.get(type(op))


_STEPS: dict[type[Operation], Step] = {IterationOp: Step.ENTER, WaitOp: Step.WAIT, BarrierOp: Step.MEET}


Steps: TypeAlias = dict[Block, list[tuple[Step, Operation]]]


class Wrong(StrEnum):
    """What can be wrong with an instruction; with waits in front of a loop that it is the first of, if it runs."""

    EARLY = "early"
    LATE = "late"
    RANGE = "range"
    FLIGHT = "flight"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Goal:
    """What must hold where an instruction issues.

    Attributes:
        holds: whether it does.
        place: the instruction.
        requirement: what is owed, where it is about that.
        semaphore, threshold, owed: the wait, as signals since the last reset; none where nothing tells.
    """

    wrong: Wrong
    holds: Value
    place: Place
    requirement: Requirement | None = None
    semaphore: str | None = None
    threshold: Value | None = None
    owed: Value | None = None


@dataclass(frozen=True)
class Awaited:
    """A wait that the engine has passed.

    Attributes:
        threshold: as it was compared.
        reached: the signals that it asks for, since the beginning.
        known: those that were surely known to have been before it.
    """

    semaphore: str
    threshold: Value
    reached: Value
    known: Value


class Walk(ABC):
    """One way through a stream.

    Args:
        steps: keeps the operations of each block that do anything, for walks through the same stream.

    Attributes:
        waits: those since the last instruction, which are the next one's.
    """

    def __init__(self, ghosts: Ghosts, steps: Steps):
        self.known_steps = steps
        self.ghosts, self.places = ghosts, ghosts.places
        self.state: State = ghosts.initial()
        self.values: dict[SSAValue, Value] = {}
        self.waits: list[Awaited] = []
        counters = self.places.streams.counters
        self.bits, self.signed = counters.width.data, self.places.streams.signed
        self.most = (1 << (self.bits - self.signed)) - 1
        self.of_consumer: dict[Place, list[Requirement]] = {}
        for requirement in ghosts.requirements:
            self.of_consumer.setdefault(requirement.consumer, []).append(requirement)
        self.implied: dict[Place, list[Requirement]] = {}
        for requirement in ghosts.implied:
            self.implied.setdefault(requirement.consumer, []).append(requirement)

    @abstractmethod
    def control(self, op: Operation) -> None:
        """Go through a control operation, and set its results."""

    @abstractmethod
    def issue(self, place: Place, goals: Sequence[Goal]) -> None:
        """The instruction at `place` issues; `goals` must hold."""

    @abstractmethod
    def unknown(self, type_: Attribute) -> Value:
        """Any value of an integer type."""

    @abstractmethod
    def entered(self, loop: Loop) -> None:
        """An iteration of a loop has begun."""

    def run(self) -> None:
        """Go through all of the stream."""
        streams = self.places.streams
        for arg in streams.body.block.args:
            self.values[arg] = self.unknown(arg.type)
        for op in streams.body.block.ops:
            if is_scalar(op):
                self.compute(op)
        self.block(streams.streams[self.ghosts.engine].body.block)

    def block(self, block: Block) -> list[Value | None]:
        """Go through a block; what its terminator passes on, None for what is no integer."""
        places = self.places
        left = self.ghosts.passed_in(block)
        for step, op in self._steps(block):
            match step:
                case Step.COMPUTE:
                    self.compute(op)
                case Step.ENTER:
                    place = places.of[op]
                    self._pass(left, place.position, before=True)
                    if op is not block.first_op:
                        self.ghosts.start(self.state, place.loop)
                    self.ghosts.enter(self.state, place.loop)
                    self.entered(place.loop)
                    self._pass(left, place.position)
                case Step.WAIT:
                    assert isinstance(op, WaitOp)
                    self._wait(op)
                case Step.MEET:
                    self.ghosts.meet(self.state, places.of[op])
                case Step.ISSUE:
                    place = places.of[op]
                    self._pass(left, place.position)
                    goals = self._goals(place)
                    self.issue(place, goals)
                    self.waits = []
                    for result in op.results:
                        if is_integer(result.type):
                            self.values[result] = self.unknown(result.type)
                case Step.CONTROL:
                    if left and (position := places.position(op)) is not None:
                        self._pass(left, position, before=True)
                    self.control(op)
        self._pass(left)
        end = block.last_op
        return self.read(end.operands) if isinstance(end, scf.YieldOp | scf.ConditionOp) else []

    def _steps(self, block: Block) -> list[tuple[Step, Operation]]:
        """The operations of a block that do anything here."""
        found = self.known_steps.get(block)
        if found is None:
            found = self.known_steps[block] = [(step, op) for op in block.ops if (step := step_of(op))]
        return found

    def _pass(self, left: list[Place], position: Position | None = None, before: bool = False) -> None:
        """Pass by the members that come up to a position, or `before` it; without one, all that are left."""
        while left and (position is None or left[0].position < position + (() if before else ((0, 0),))):
            self.ghosts.pass_by(self.state, left.pop(0))

    def read(self, values: Sequence[SSAValue]) -> list[Value | None]:
        """What is known of values; None for what is no integer."""
        return [self.values.get(value) for value in values]

    def write(self, targets: Sequence[SSAValue], values: Sequence[Value | None]) -> None:
        """The contrary of `read`."""
        for target, value in zip(targets, values, strict=True):
            if value is not None:
                self.values[target] = value

    def compute(self, op: Operation) -> None:
        """The result of integer arithmetic, where it is known."""
        operands = self.read(op.operands)
        if all(operand is not None for operand in operands):
            try:
                self.values[op.results[0]] = computed(op, operands, self.unknown)
            except OpError:  # a division by zero, or a shift that is too long
                self.values[op.results[0]] = self.impossible(op)

    def impossible(self, op: Operation) -> Value:
        """The result of `op` where it has none: any, as nothing right comes to it."""
        return self.unknown(op.results[0].type)

    def _wait(self, op: WaitOp) -> None:
        """The engine waits: from here on what it waits for is known to have been."""
        semaphore = op.semaphore.data
        threshold = reduced(self.values[op.threshold], self.bits, self.signed)
        known, reached = self.state["known", semaphore], self.ghosts.in_all(self.state, semaphore, threshold)
        self.waits.append(Awaited(semaphore, threshold, reached, known))
        self.state["known", semaphore] = greater(known, reached)

    def _goals(self, place: Place) -> list[Goal]:
        """What must hold where the instruction at `place` issues behind the waits that are its own, for each of these
        first."""
        requirements = self.of_consumer.get(place, [])
        goals = [self._not_late(place, wait, requirements) for wait in self.waits]
        thresholds = {wait.semaphore: wait.threshold for wait in self.waits}
        goals += [self._not_early(place, requirement, thresholds) for requirement in requirements]
        if place.signal is not None:
            issued = self.ghosts.issued(self.state, place)
            goals.append(Goal(Wrong.RANGE, issued <= self.most, place, None, place.signal, None, issued))
            if place.signal in self.ghosts.alone:
                before = self.ghosts.issued_up_to(self.state, place) - 1
                alone = self.state["known", place.signal] >= before
                goals.append(Goal(Wrong.FLIGHT, alone, place, None, place.signal, None, issued - 1))
        return goals

    def _not_late(self, place: Place, wait: Awaited, requirements: Sequence[Requirement]) -> Goal:
        """A wait asks for no more than is owed, or was known to have been, or what else is owed has waited for."""
        ghosts, state, semaphore = self.ghosts, self.state, wait.semaphore
        owed: Value = 0
        allowed = wait.known
        for requirement in requirements:
            covers = [cover for cover in requirement.covers if cover.member.signal == semaphore]
            if covers and covers[0].member is requirement.own.member and requirement.exact:
                owed = greater(owed, ghosts.signals(state, covers[0]))
        for requirement in self.implied.get(place, ()):
            if requirement.own.member.signal == semaphore:
                allowed = greater(allowed, ghosts.signals(state, requirement.own))
        if ghosts.may_be_late(semaphore, place) and (before := ghosts.before(state, semaphore, place)) is not None:
            allowed = greater(allowed, before)
        holds = semaphore not in ghosts.lost and wait.reached <= greater(allowed, owed)
        return Goal(Wrong.LATE, holds, place, None, semaphore, wait.threshold, self._since_reset(semaphore, owed))

    def _not_early(self, place: Place, requirement: Requirement, waits: dict[str, Value]) -> Goal:
        """What is known to have been is at least what is owed, for the producer or for something behind it."""
        ghosts, state = self.ghosts, self.state
        enough: list[Value] = [
            state["known", cover.member.signal] >= ghosts.signals(state, cover) for cover in requirement.covers
        ]
        met = requirement.met
        if ghosts.barriers and met is not None:
            enough.append(state["retired", met.member.name] >= ghosts.retirements(state, met))
        semaphore = requirement.covers[0].member.signal if requirement.covers else None
        threshold = waits.get(semaphore) if semaphore else None
        owed = self._since_reset(semaphore, ghosts.signals(state, requirement.covers[0])) if semaphore else None
        holds = negated(both(*(negated(each) for each in enough)))
        return Goal(Wrong.EARLY, holds, place, requirement, semaphore, threshold, owed)

    def _since_reset(self, semaphore: str, signals: Value) -> Value:
        return signals - self.state["reset", semaphore] if self.ghosts.barriers else signals


def is_integer(type_: Attribute) -> bool:
    """Whether it is a type of integers that engines compute with."""
    return isinstance(type_, IndexType | IntegerType)
