"""The language of proofs/checker/Language.v: what a stream does that its waits depend on."""

from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation

from mpkc.certificate.forms import Form


@dataclass(frozen=True)
class Ghost:
    """A counter of condition (1): Entries (l), Iteration (l), Past (carrier, k, l), Sent (semaphore)."""

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
    """What variables are at the head of a loop, and what is 0 or more there."""

    known: dict[int, Form]
    facts: list[Form]


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


Statement: TypeAlias = Let | Wait | Issue | Enter | Choice | Loop
Block: TypeAlias = list[Statement]


@dataclass(frozen=True)
class Need:
    """A need as Coq's `need_of` finds it: BACK with `carrier` and k, NOW without."""

    producer: int
    loop: int
    carrier: int | None = None
    k: int = 0


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
        blocks: what issues together, as (label, signal).
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
    blocks: list[list[tuple[int, int | None]]]
    needs: dict[int, list[Need]]
    tree: str
    streams: list[Stream]
