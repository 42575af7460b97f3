"""What checks of a task graph found."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

SHOWN = 20  # failures that a check describes; it counts all


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong with a graph.

    Attributes:
        check: the name of the check that found it.
        message: for people; names tasks by operator and tile.
        tasks: numbers of the tasks it is about.
        events: numbers of the events it is about.
        region: the elements that the two tasks of a missing order both touch.
    """

    check: str
    message: str
    tasks: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    region: str | None = None

    def to_json(self) -> dict[str, object]:
        return asdict(self)


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
    """All checks of one graph."""

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
