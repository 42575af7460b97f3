"""What checks of a task graph or of a multi-engine program found."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

SHOWN = 20  # failures that a check describes; it counts all


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong.

    Attributes:
        check: the name of the check that found it.
        message: for people; names what it is about.
    """

    check: str
    message: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class TaskFailure(Failure):
    """One thing that is wrong with a task graph.

    Attributes:
        tasks: numbers of the tasks it is about, which the message names by operator and tile.
        events: numbers of the events it is about.
        region: the elements that the two tasks of a missing order both touch.
    """

    tasks: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    region: str | None = None


@dataclass(frozen=True)
class WaitFailure(Failure):
    """One wait that does not hold an instruction back exactly as long as its dependencies ask.

    Attributes:
        instruction: the consumer, by label.
        engine: the one that issues it.
        iteration: 1-based, of each counted loop around it, outermost first.
        trips: for each loop around it and around its producer, how often the engine has entered it so far, in all.
        bindings: arguments of a run that shows it; none where a proof failed that no small run refutes.
        semaphore, threshold: the wait; none where there is none.
        owed: the value that the semaphore must have; none where nothing tells.
    """

    instruction: str | None = None
    engine: str | None = None
    iteration: tuple[int, ...] = ()
    trips: dict[str, int] = field(default_factory=dict[str, int])
    bindings: dict[str, int] | None = None
    semaphore: str | None = None
    threshold: int | None = None
    owed: int | None = None


@dataclass(frozen=True)
class Check:
    """What one check looked at and found.

    Attributes:
        name, count: how many of what, for example 161,708 "dependencies".
        failed: how many are wrong.
        failures: the first of them.
        seconds: CPU time.
    """

    name: str
    count: int
    failed: int
    failures: tuple[Failure, ...]
    seconds: float

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "count": self.count, "failed": self.failed, "seconds": self.seconds}


@dataclass(frozen=True)
class Report:
    """All checks of one graph or program."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return not any(check.failed for check in self.checks)

    @property
    def failures(self) -> list[Failure]:
        """What the checks describe, check by check."""
        return [failure for check in self.checks for failure in check.failures]

    def to_json(self) -> dict[str, object]:
        return {
            "ok": self.ok,
            "failures": [failure.to_json() for failure in self.failures],
            "checks": [check.to_json() for check in self.checks],
        }


def checked(name: str, look: Callable[[], tuple[int, int, list[Failure]]]) -> Check:
    """Run a check that returns how much it looked at, how much is wrong, and the first failures."""
    started = time.process_time()
    count, failed, failures = look()
    return Check(name, count, failed, tuple(failures[:SHOWN]), time.process_time() - started)
