"""What a simulation tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpkc.dialects.wording import counted
from mpkc.runtime.reference.elements import Array


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of one opaque instruction; as `mpkc.runtime.reference.sem` has them for program order.

    Attributes:
        name: its label.
        iteration: 1-based, the outermost counted loop first.
        value: the 64 bits that it wrote; None where it never came to read its producers.
    """

    name: str
    engine: str
    iteration: tuple[int, ...]
    value: int | None


@dataclass(frozen=True, slots=True)
class ExecutedWait:
    """One wait that was passed.

    Attributes:
        instruction: the label of the instruction, or its opcode where it has none.
        semaphore: its name.
        threshold: as the counters compare it; None where it is 0 or less, so that nothing is owed.
        line: in the ISA text.
    """

    engine: str
    instruction: str
    iteration: tuple[int, ...]
    semaphore: str
    threshold: int | None
    line: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How an engine spent its time, in ns.

    Attributes:
        busy: issuing instructions with a datapath.
        wait: blocked: at semaphores, drains and handshakes.
        control: registers, branches, satisfied waits, handshakes themselves.
    """

    busy: float = 0.0
    wait: float = 0.0
    control: float = 0.0


@dataclass(frozen=True, slots=True)
class BlockedWait:
    """An engine that waits for a semaphore which nobody will raise any more.

    Attributes:
        instruction, line: what would issue; see `ExecutedWait`.
        value, threshold: what the semaphore is, and what it would have to be.
        by: the engine that updates the semaphore; None where none does.
        producers: the instructions that update it.
        ended: whether that engine is at its end.
        passed: whether it has left all of them behind.
    """

    engine: str
    instruction: str
    line: int
    iteration: tuple[int, ...]
    semaphore: str
    value: int
    threshold: int
    by: str | None
    producers: tuple[str, ...]
    ended: bool
    passed: bool

    def __str__(self) -> str:
        where = f"{self.engine}: {self.instruction} {_at(self.iteration)}(ISA line {self.line})"
        waits = f"waits for {self.semaphore} >= {self.threshold}, which is {self.value}"
        if self.by is None:
            return f"{where} {waits}; no instruction updates it"
        state = "has ended" if self.ended else "has passed them" if self.passed else "is blocked too"
        verb = "updates" if len(self.producers) == 1 else "update"
        return f"{where} {waits}; {', '.join(self.producers)} on {self.by} {verb} it, and {self.by} {state}"


@dataclass(frozen=True, slots=True)
class BlockedHandshake:
    """An engine that is at a handshake to which others don't come.

    Attributes:
        number: of the handshakes of the engine, from 1.
        missing: the engines that are not there.
    """

    engine: str
    line: int
    number: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        where = f"{self.engine}: is at its handshake {self.number} (ISA line {self.line})"
        return f"{where}, without {', '.join(self.missing)}"


@dataclass(frozen=True, slots=True)
class TripCounts:
    """A loop that engines have run different numbers of times, where one waits for what another has behind it.

    Attributes:
        producer: what is waited for.
        counts: the iterations of the loop in all, by engine.
    """

    producer: str
    loop: str
    counts: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} on {engine}" for engine, count in self.counts.items())
        return f'{self.producer}: the loop "{self.loop}" has run {counts}'


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Why not every engine came to its end."""

    blocked: tuple[BlockedWait | BlockedHandshake, ...]
    loops: tuple[TripCounts, ...] = ()

    def __str__(self) -> str:
        return "\n".join(["deadlock", *map(str, self.blocked), *map(str, self.loops)])


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a race.

    Attributes:
        instruction, line: see `ExecutedWait`.
        write: whether it writes.
    """

    engine: str
    instruction: str
    iteration: tuple[int, ...]
    line: int
    write: bool

    def __str__(self) -> str:
        what = "write" if self.write else "read"
        return f"the {what} by {self.instruction} {_at(self.iteration)}on {self.engine} (ISA line {self.line})"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to one memory, one of them a write, that nothing orders.

    Attributes:
        buffer: its name; that of a value for its mailbox.
        first_element, last_element: of the buffer, between which all elements lie that both access.
        count: how many pairs of executions of the two instructions race there.
    """

    buffer: str
    first_element: int
    last_element: int
    earlier: Access
    later: Access
    count: int

    def __str__(self) -> str:
        where = f"{self.buffer}[{self.first_element}..{self.last_element}]"
        return f"race on {where}: nothing orders {self.earlier} and {self.later}; {counted(self.count, 'time')}"


@dataclass(frozen=True, slots=True)
class Span:
    """One instruction in time, in ns.

    Attributes:
        name: see `ExecutedWait.instruction`.
        arrival: when the engine came to it; it waited from then to `issue`.
        issue, free, retire: when it issued, when the engine could issue the next one, when it retired.
        semaphore: what it waited for; None where it did not have to wait.
        cause: the engine and the place among its spans of the instruction whose update ended the wait.
    """

    engine: str
    name: str
    iteration: tuple[int, ...]
    line: int
    arrival: float
    issue: float
    free: float
    retire: float
    semaphore: str | None = None
    cause: tuple[str, int] | None = None


@dataclass(frozen=True)
class Result:
    """What happened.

    Attributes:
        time_ns: until the last instruction retired, or nothing moved any more.
        deadlock: why it did not end; None where it did.
        fault: what stopped it: an access out of bounds, a division by zero, a value that nothing had written; None.
        engines: by name.
        instructions: executed, in all.
        waits: every wait that was passed, an engine's in order; where they were asked for.
        executions: of opaque instructions, in the order of their issue on each engine; where values were asked for.
        races: where they were asked for.
        buffers: what is in far memory at the end, by argument; where values were asked for.
        left: values that are bound and that no execution took, by VALUE.
        spans, handshakes: by engine, in the order of issue; where the timeline was asked for.
    """

    time_ns: float
    deadlock: Deadlock | None
    fault: str | None
    engines: Mapping[str, Usage]
    instructions: int
    waits: tuple[ExecutedWait, ...] = ()
    executions: tuple[Execution, ...] = ()
    races: tuple[Race, ...] = ()
    buffers: Mapping[str, Array] = field(default_factory=dict[str, Array])
    left: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    spans: Mapping[str, tuple[Span, ...]] = field(default_factory=dict[str, tuple[Span, ...]])
    handshakes: Mapping[str, tuple[Span, ...]] = field(default_factory=dict[str, tuple[Span, ...]])

    @property
    def ok(self) -> bool:
        """Whether it came to its end without a fault or a race."""
        return self.deadlock is None and self.fault is None and not self.races


def _at(iteration: tuple[int, ...]) -> str:
    return f"in iteration {list(iteration)} " if iteration else ""
