"""What opaque instructions write: a hash of their name, their iteration and what they read (barrier-free, section 4).

An instruction that issues too early reads an older value of its producer, or none, and so writes another hash than in
program order (`mpkc.runtime.reference.sem`).
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from mpkc.dialects.sem_structure import up_to
from mpkc.runtime.neuron.isa import EVERY, After, Component
from mpkc.runtime.neuron.simulator.report import Execution
from mpkc.runtime.reference.sem import instruction_value


@dataclass(eq=False)
class History:
    """The executions of one instruction, in the order of their issue.

    Attributes:
        values: what each wrote; None before it has.
    """

    iterations: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    values: list[int | None] = field(default_factory=list[int | None])

    def last(self, target: tuple[Component, ...]) -> int | None:
        """The value that is there of the last execution in or before the target iteration."""
        at = bisect_right(self.iterations, up_to(target)) - 1
        while at >= 0 and self.values[at] is None:
            at -= 1
        return self.values[at] if at >= 0 else None


@dataclass(eq=False)
class OpaqueExecution:
    """One execution on its way through the pipeline."""

    name: str
    engine: str
    iteration: tuple[int, ...]
    after: tuple[After, ...]
    place: int
    value: int | None = None


class OpaqueInstructions:
    """All opaque instructions of a program."""

    def __init__(self) -> None:
        self.histories: dict[str, History] = {}
        self.executions: list[OpaqueExecution] = []

    def issue(self, name: str, engine: str, iteration: tuple[int, ...], after: tuple[After, ...]) -> OpaqueExecution:
        """An execution issues: nothing is read or written yet."""
        history = self.histories.setdefault(name, History())
        history.iterations.append(iteration)
        history.values.append(None)
        execution = OpaqueExecution(name, engine, iteration, after, len(history.values) - 1)
        self.executions.append(execution)
        return execution

    def read(self, execution: OpaqueExecution) -> None:
        """It reads its producers, and so knows what it will write."""
        producers = [self._read(after, execution.iteration) for after in execution.after]
        execution.value = instruction_value(execution.name, execution.iteration, producers)

    def write(self, execution: OpaqueExecution) -> None:
        """It writes its value."""
        self.histories[execution.name].values[execution.place] = execution.value

    def trace(self) -> tuple[Execution, ...]:
        """The executions so far."""
        return tuple(Execution(each.name, each.engine, each.iteration, each.value) for each in self.executions)

    def _read(self, after: After, iteration: tuple[int, ...]) -> int | None:
        target = target_of(after, iteration)
        history = self.histories.get(after.producer)
        return None if target is None or history is None else history.last(target)


def target_of(after: After, iteration: tuple[int, ...]) -> tuple[Component, ...] | None:
    """The iteration of the producer that is needed, `*` for all of a loop; None where none is owed."""
    if after.distance is None:
        return None
    target: list[Component] = []
    for i, d in zip(iteration, after.distance, strict=False):
        if d == EVERY:
            target.append(EVERY)
        elif i <= d:
            return None
        else:
            target.append(i - d)
    return tuple(target)
