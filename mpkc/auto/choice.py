"""What `auto` chooses between, and what it compares."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from mpkc.dialects import sem, tile
from mpkc.dialects.engine import is_instruction
from mpkc.dialects.wording import counted
from mpkc.passes.sem_order_transfers import order_transfers
from mpkc.passes.sem_order_waits import Latest

EngineProgram = sem.ProgramOp | tile.KernelOp

SAME = 1.002
"""Times that differ by less are the same."""


@dataclass(frozen=True)
class Budget:
    """What may be used; None where the limits of the machine are enough.

    Attributes:
        semaphores: in all.
        registers: that synchronization adds on an engine.
        unroll: copies of the body of an innermost loop.
    """

    semaphores: int | None = None
    registers: int | None = None
    unroll: int = 1

    def over(self, semaphores: int, registers: int) -> int:
        """How many semaphores and registers are too many."""
        return sum(
            max(0, used - most)
            for used, most in ((semaphores, self.semaphores), (registers, self.registers))
            if most is not None
        )

    @property
    def limits(self) -> str:
        """The semaphores and registers that may be used, where they are limited."""
        limits = (("semaphore", self.semaphores), ("register", self.registers))
        return " and ".join(counted(most, what) for what, most in limits if most is not None)


UNLIMITED = Budget()


@dataclass(frozen=True)
class Choice:
    """What semaphores a program gets.

    Attributes:
        kind: of what `of` says nothing of.
        lean: whether registers keep what masks and counters of their own would tell.
        carried: whether registers keep thresholds from one iteration to the next.
        of: kinds of control operations and instructions, by their number in the order of the program.
        turns: how many semaphores the transfers of a loop on a DMA queue take turns with, where they are fewer.
        latest: what an instruction waits for last, as far as that is known; None where waits stay where they are.
    """

    kind: str
    lean: bool
    of: Mapping[int, str] = field(default_factory=dict[int, str])
    turns: Mapping[str, int] = field(default_factory=dict[str, int])
    latest: Latest | None = None
    carried: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others."""
        mappings = (self.of, self.turns, self.latest)
        return (
            self.kind,
            self.lean,
            self.carried,
            *(None if each is None else frozenset(each.items()) for each in mappings),
        )

    def given_to(self, program: EngineProgram, queues: Collection[str] = ()) -> EngineProgram:
        """A copy of a program in which its operations ask for these semaphores.

        Args:
            queues: the DMA queues of the machine, whose transfers are ordered.
        """
        copy = program.clone()
        order_transfers(copy, queues, self.turns)
        copy.attributes["semaphores"] = StringAttr(self.kind)
        for number, op in enumerate(numbered(copy)):
            if (kind := self.of.get(number)) is not None:
                op.attributes["semaphores"] = StringAttr(kind)
        return copy


def numbered(program: EngineProgram) -> Iterator[Operation]:
    """The operations that may ask for semaphores of a kind; scalar arithmetic between them does not count."""
    return (op for op in program.walk() if op.regions or is_instruction(op))


@dataclass(frozen=True, order=True)
class Cost:
    """What is compared, in this order.

    Attributes:
        over: semaphores and registers beyond the budget.
    """

    over: int
    time_ns: float
    semaphores: int
    registers: int
    code: int

    def beats(self, other: "Cost", price: float) -> bool:
        """Whether it is faster by more than chance, or as fast and smaller.

        Args:
            price: by what part a time is longer for each semaphore and register beyond the budget.
        """
        time, before = self.time_ns * (1 + price * self.over), other.time_ns * (1 + price * other.over)
        if time * SAME < before:
            return True
        smaller = (self.semaphores, self.registers, self.code) < (other.semaphores, other.registers, other.code)
        return smaller and time < before * SAME


NOTHING = Cost(0, inf, 0, 0, 0)
"""Of what does not fit the machine, or comes to no end."""
