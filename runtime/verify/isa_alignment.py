"""Which instruction of ISA text does what a stream asks for: the two walked together, from event to event.

Events are what both have in one order: instructions, waits, directives, barriers, and the branches that decide where
they go on. What stands between is arithmetic, which `registers` looks at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from mpkc.dialects.engine import is_instruction
from mpkc.dialects.sem_needs import condition_of, yield_of
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, StreamOp, WaitOp
from mpkc.runtime.neuron import isa
from mpkc.runtime.verify.isa_values import Values


class Role(Enum):
    """What an event of a stream is."""

    START = auto()
    OPERATION = auto()
    ENTRY = auto()
    """Whether a loop has a first iteration."""
    BACK = auto()
    """Whether it has another one."""
    CONDITION = auto()
    CASE = auto()
    END = auto()


@dataclass(frozen=True)
class Next:
    """The index of a loop in its next iteration."""

    loop: scf.ForOp


Term: TypeAlias = "SSAValue | Next"
Passed: TypeAlias = tuple[Mapping[SSAValue, Term], Operation | None]
"""What values are called before control passes on, and the loop of which an iteration begins there, if one does."""


@dataclass(frozen=True)
class Event:
    """An event of a stream.

    Attributes:
        case: the number of the case of an scf.index_switch that is compared.
    """

    role: Role
    op: Operation
    case: int = 0


@dataclass(frozen=True)
class Step:
    """From one event to the next, the code from `start` on included, that of the next event not.

    Attributes:
        code: the indices of the arithmetic on the way.
        passings: in order.
    """

    event: Event
    code: tuple[int, ...]
    passings: tuple[Passed, ...]


class Mismatch(Exception):
    """The code does not do what the stream asks for; says where."""


@dataclass
class Alignment:
    """The code of an engine beside its stream.

    Attributes:
        at: the index of the item of each event; of its first one, where it is several.
        steps: what follows each event: of a branch, first where it does not jump.
        fused: the instructions that have the wait before them as their own.
    """

    stream: StreamOp
    engine: isa.Engine
    at: dict[Event, int] = field(default_factory=dict[Event, int])
    steps: dict[Event, list[Step]] = field(default_factory=dict[Event, list[Step]])
    fused: set[Operation] = field(default_factory=set[Operation])


def align(stream: StreamOp, engine: isa.Engine, values: Values) -> Alignment:
    """Walk a stream and its code together.

    Raises:
        Mismatch: where one has an event that the other has not.
    """
    return _Walk(stream, engine, values).run()


class _Walk:
    def __init__(self, stream: StreamOp, engine: isa.Engine, values: Values):
        self.found = Alignment(stream, engine)
        self.values = values
        self.body = engine.body
        self.labels = {item.name: at for at, item in enumerate(engine.body) if isinstance(item, isa.Label)}

    def run(self) -> Alignment:
        start = Event(Role.START, self.found.stream)
        self.found.at[start] = -1
        work = [(start, self.go(self.found.stream.body.block, None, 0, []))]
        while work:
            event, step = work.pop()
            self.found.steps.setdefault(event, []).append(step)
            if step.event not in self.found.steps:
                self.found.steps[step.event] = []
                work.extend((step.event, each) for each in reversed(self.following(step.event)))
        return self.found

    # The stream.

    def go(
        self,
        block: Block,
        after: Operation | None,
        at: int,
        passings: list[Passed],
    ) -> Step:
        """The step to the next event behind `after` (at the start of the block where it is None)."""
        op = block.first_op if after is None else after.next_op
        while True:
            if op is None:
                parent = block.parent_op()
                assert parent is not None
                match parent:
                    case scf.ForOp() if self.values.trips(parent) == 1:
                        pass
                    case scf.ForOp():
                        return self.meet(Event(Role.BACK, parent), at, passings)
                    case scf.WhileOp() if block is parent.before_region.block:
                        return self.meet(Event(Role.CONDITION, parent), at, passings)
                    case scf.WhileOp():
                        first = parent.before_region.block
                        passings = [*passings, (_pairs(first.args, yield_of(block).operands), parent)]
                        block, op = first, first.first_op
                        continue
                    case scf.IfOp() | scf.IndexSwitchOp():
                        passings = [*passings, (_pairs(parent.results, yield_of(block).operands), None)]
                    case _:
                        return self.meet(Event(Role.END, parent), at, passings)
                assert parent.parent is not None
                block, op = parent.parent, parent.next_op
                continue
            if is_instruction(op) or isinstance(op, WaitOp | IterationOp | BarrierOp):
                return self.meet(Event(Role.OPERATION, op), at, passings)
            match op:
                case scf.ForOp():
                    trips = self.values.trips(op)
                    if not trips:
                        return self.meet(Event(Role.ENTRY, op), at, passings)
                    if trips > 1:
                        passings = [*passings, (entering(op), op)]
                    block, op = op.body.block, op.body.block.first_op
                case scf.WhileOp():
                    first = op.before_region.block
                    passings = [*passings, (_pairs(first.args, op.arguments), op)]
                    block, op = first, first.first_op
                case scf.IfOp():
                    return self.meet(Event(Role.CONDITION, op), at, passings)
                case scf.IndexSwitchOp() if len(op.cases):
                    return self.meet(Event(Role.CASE, op), at, passings)
                case scf.IndexSwitchOp():
                    block, op = op.default_region.block, op.default_region.block.first_op
                case _:
                    op = op.next_op

    def following(self, event: Event) -> list[Step]:
        """The steps behind an event: one, or two behind a branch, the one without a jump first."""
        at, op = self.found.at[event], event.op
        if event.role is Role.END:
            return []
        if event.role is Role.OPERATION:
            assert op.parent is not None
            return [self.go(op.parent, op, self.behind(op, at), [])]
        branch = self.body[at]
        assert isinstance(branch, isa.Branch)
        assert op.parent is not None
        goes_on, jumps = at + 1, self.labels[branch.target]
        match event.role, op:
            case Role.ENTRY, scf.ForOp():
                inside = self.go(op.body.block, None, goes_on, [(entering(op), op)])
                return [inside, self.go(op.parent, op, jumps, [(_pairs(op.results, op.iter_args), None)])]
            case Role.BACK, scf.ForOp():
                passed = yield_of(op.body.block).operands
                again: dict[SSAValue, Term] = dict(_pairs(op.body.block.args[1:], passed))
                again[op.body.block.args[0]] = Next(op)
                leave = self.go(op.parent, op, goes_on, [(_pairs(op.results, passed), None)])
                return [leave, self.go(op.body.block, None, jumps, [(again, op)])]
            case Role.CONDITION, scf.WhileOp():
                after, passed = op.after_region.block, condition_of(op).args
                inside = self.go(after, None, goes_on, [(_pairs(after.args, passed), None)])
                return [inside, self.go(op.parent, op, jumps, [(_pairs(op.results, passed), None)])]
            case Role.CONDITION, scf.IfOp():
                then = self.go(op.true_region.block, None, goes_on, [])
                if op.false_region.blocks:
                    return [then, self.go(op.false_region.block, None, jumps, [])]
                return [then, self.go(op.parent, op, jumps, [])]
            case Role.CASE, scf.IndexSwitchOp():
                inside = self.go(op.case_regions[event.case].block, None, goes_on, [])
                if event.case + 1 < len(op.case_regions):
                    return [inside, self.meet(Event(Role.CASE, op, event.case + 1), jumps, [])]
                return [inside, self.go(op.default_region.block, None, jumps, [])]
            case _:
                raise AssertionError(f"no event of {op.name}")

    def behind(self, op: Operation, at: int) -> int:
        """Where the code goes on behind that of an operation."""
        if isinstance(op, BarrierOp):
            return at + (4 if isinstance(self.body[at + 2], isa.Reset) else 3)
        if isinstance(op, WaitOp) and not _is_wait_alone(self.body[at]):
            return at
        return at + 1

    # The code.

    def meet(self, event: Event, at: int, passings: list[Passed]) -> Step:
        """The step to an event, whose item in the code is the next one that is no arithmetic."""
        code: list[int] = []
        while at < len(self.body):
            item = self.body[at]
            if isinstance(item, isa.Move | isa.Alu):
                code.append(at)
                at += 1
            elif isinstance(item, isa.Branch) and item.condition is isa.Condition.ALWAYS:
                at = self.labels[item.target]
            elif isinstance(item, isa.Label):
                at += 1
            else:
                break
        self.check_kind(event, at)
        if self.found.at.setdefault(event, at) != at:
            raise Mismatch(
                f"{_describe(event)} stands in two places of the code, lines {at} and {self.found.at[event]}"
            )
        return Step(event, tuple(code), tuple(passings))

    def check_kind(self, event: Event, at: int) -> None:
        """Whether an item can be that event; what it says in detail is checked with its registers."""
        item = self.body[at] if at < len(self.body) else None
        if event.role is Role.END:
            fits = item is None
        elif event.role is not Role.OPERATION:
            fits = isinstance(item, isa.Branch)
        elif isinstance(event.op, IterationOp):
            fits = isinstance(item, isa.Iteration)
        elif isinstance(event.op, BarrierOp):
            fits = isinstance(item, isa.Drain)
        elif isinstance(event.op, WaitOp):
            fits = isinstance(item, isa.Issued) and item.wait is not None
            if fits and not _is_wait_alone(item):
                consumer = _consumer(event.op)
                fits = consumer is not None
                self.found.fused.update([consumer] if consumer else [])
        else:
            fits = isinstance(item, isa.Issued) and not _is_wait_alone(item)
        if not fits:
            raise Mismatch(f"{_describe(event)} is not what the code has there: {item or 'its end'}")


def entering(op: scf.ForOp) -> dict[SSAValue, Term]:
    """What the first iteration is given."""
    return _pairs(op.body.block.args, [op.lb, *op.iter_args])


def _pairs(names: Iterable[SSAValue], values: Iterable[SSAValue]) -> dict[SSAValue, Term]:
    return dict(zip(names, values, strict=True))


def _is_wait_alone(item: object) -> bool:
    return isinstance(item, isa.Nop) and item.label is None and item.update is None


def _consumer(op: WaitOp) -> Operation | None:
    """The instruction that can have a wait as its own; None where the next one stands in a loop."""
    following = op.next_op
    while following is not None and not is_instruction(following) and not following.regions:
        following = following.next_op
    return following if following is not None and is_instruction(following) else None


def _describe(event: Event) -> str:
    return f"{event.role.name.lower()} of {event.op.name}"
