"""The language of proofs/checker/Language.v: what a stream does that its waits depend on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation

from mpkc.certificate.forms import Form


@dataclass(frozen=True)
class Ghost:
    """A counter that no stream has: Entries (l), Iteration (l), Past (carrier, k, l), Sent (semaphore), Issues (label),
    Base (l, and barriers, each with what is added there).
    """

    kind: str
    of: tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """A constructor of Coq's `expression` and its arguments: numbers (`z`), then variables, as listed in SHAPES."""

    kind: str
    operands: tuple[int, ...] = ()
    number: int = 0


@dataclass
class Annotation:
    """What variables are at the head of a loop, what is 0 or more there, which waits stand in front of the next
    instruction, and which have passed; of a wait its semaphore and what it waits for.
    """

    known: dict[int, Form]
    facts: list[Form]
    pending: list[tuple[int, Form]] = field(default_factory=list[tuple[int, Form]])
    passed: list[tuple[int, Form]] = field(default_factory=list[tuple[int, Form]])


@dataclass(frozen=True)
class Let:
    variable: int
    expression: Expression


@dataclass(frozen=True)
class Wait:
    semaphore: int
    threshold: int


@dataclass(frozen=True)
class Issue:
    label: int
    signal: int | None
    op: Operation


@dataclass(frozen=True)
class Enter:
    loop: int


@dataclass(frozen=True)
class Assume:
    """This way is taken only where a variable is not 0, or is."""

    variable: int
    taken: bool


@dataclass(frozen=True)
class Meet:
    """A barrier, at which semaphores of the engine become 0."""

    barrier: int
    zeroes: tuple[int, ...]
    op: Operation


@dataclass(frozen=True)
class Choice:
    then: "Block"
    otherwise: "Block"


@dataclass(eq=False)
class Loop:
    """A loop of a stream.

    Attributes:
        live: the variables that matter at its head.
        hints: one of them holds at its head; filled in by `hints`.
    """

    body: "Block"
    op: Operation
    live: list[int] = field(default_factory=list[int])
    hints: list[Annotation] = field(default_factory=list[Annotation])


Statement: TypeAlias = Let | Wait | Issue | Enter | Assume | Meet | Choice | Loop
Block: TypeAlias = list[Statement]


@dataclass(frozen=True)
class Need:
    """A need as Coq's `need_of` finds it: Now without `carrier`, Within with `inner` and d, else Back."""

    producer: int
    loop: int
    carrier: int | None = None
    k: int = 0
    inner: int | None = None
    d: int = 0


@dataclass(frozen=True)
class Gathering:
    """A barrier in the program.

    Attributes:
        engines: who meets there.
        loop: the one around.
        every: after so many entries of it.
        in_front_of: what of the program comes next; None at the end of the loop's body.
    """

    barrier: int
    engines: tuple[str, ...]
    loop: int
    every: int
    in_front_of: Operation | None


@dataclass(frozen=True)
class Group:
    """What issues together, in one block of a stream.

    Attributes:
        members: as (label, signal).
        loop: whose entries are its rounds.
        cuts: the barriers at which its semaphores become 0; of the entries by then, so many more rounds are done.
    """

    members: Sequence[tuple[int, int | None]]
    loop: int
    cuts: tuple[tuple[int, int], ...] = ()


@dataclass
class Stream:
    """One engine's stream, lowered.

    Attributes:
        ghosts: the counters that its proof speaks of, by variable.
    """

    engine: str
    body: Block
    ghosts: dict[int, Ghost]


@dataclass
class Model:
    """A program and its streams, as a certificate has them.

    Attributes:
        loops, labels, semaphores, engines: names, by number.
        parents: of each loop, the loop around.
        maxima: how often each loop is entered at most.
        most: what a semaphore holds at most.
        groups: what issues together.
        gatherings: the barriers, by number.
        needs: of each instruction.
        tree: the program, as Coq writes it.
    """

    loops: dict[str, int]
    labels: dict[str, int]
    semaphores: dict[str, int]
    engines: dict[str, int]
    parents: dict[int, int]
    maxima: dict[int, int]
    most: int
    groups: list[Group]
    gatherings: dict[int, Gathering]
    needs: dict[int, list[Need]]
    tree: str
    streams: list[Stream]
