"""Semaphores of the simulator: counts that become visible at a time."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Any

from mpkc.runtime.neuron.alu import wrapped
from mpkc.runtime.neuron.isa import Counters


@dataclass(frozen=True, slots=True)
class Release:
    """What an update says to those who see it.

    Attributes:
        total: the count with it, since the last reset.
        engine: the place of the engine among those of the program.
        index: of the instruction among those that the engine has issued.
        clock: what the engine knew when the instruction issued; see `races`.
    """

    total: int
    engine: int
    index: int
    clock: Any


@dataclass(eq=False)
class Semaphore:
    """One semaphore.

    Attributes:
        count: what is visible, without wrapping; brought up to date by `advance`.
        pending: (time, amount) of the updates that are not visible yet, in order of time.
        total: the count with all updates so far.
        released, releases: the count with all of `releases`: the updates since the last reset, where they are kept.
        waiting: the engines that are blocked by it, with their thresholds.
    """

    name: str
    counters: Counters
    count: int = 0
    total: int = 0
    released: int = 0
    pending: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    releases: list[Release] = field(default_factory=list[Release])
    waiting: dict[Any, int] = field(default_factory=dict[Any, int])

    def __post_init__(self) -> None:
        self._seen = 0

    def add(self, time: float, amount: int) -> None:
        """An update that becomes visible at `time`."""
        self.total += amount
        update = (time, amount)
        if not self.pending or self.pending[-1] <= update:
            self.pending.append(update)
        else:
            insort(self.pending, update, self._seen)

    def advance(self, time: float) -> None:
        """Count what is visible at `time`; times never go back."""
        pending, seen = self.pending, self._seen
        while seen < len(pending) and pending[seen][0] <= time:
            self.count += pending[seen][1]
            seen += 1
        if seen > 4096:
            del pending[:seen]
            seen = 0
        self._seen = seen

    def compared(self, value: int) -> int:
        """A count or a threshold as waits compare it."""
        bits = self.counters.bits
        return wrapped(value, bits) if self.counters.signed else value & ((1 << bits) - 1)

    def reaches(self, threshold: int) -> bool:
        """Whether what is visible is at least a threshold, which is as `compared` makes it."""
        return self.compared(self.count) >= threshold

    def may_reach(self, threshold: int) -> bool:
        """Whether the updates so far can have reached a threshold: quick, and never wrongly no."""
        bits = self.counters.bits - self.counters.signed
        return self.total >= threshold or self.total >> bits > 0

    def next_time(self, threshold: int) -> float | None:
        """When an update that is on its way will reach the threshold; None where none does."""
        count = self.count
        for at in range(self._seen, len(self.pending)):
            time, amount = self.pending[at]
            count += amount
            if self.compared(count) >= threshold:
                return time
        return None

    def release(self, engine: int, index: int, amount: int, clock: Any) -> Release:
        """Keep what an update says."""
        self.released += amount
        self.releases.append(Release(self.released, engine, index, clock))
        return self.releases[-1]

    def reset(self, time: float, clock: Any) -> None:
        """Become 0; what is not visible yet still comes.

        Args:
            clock: what the engine knows that resets it. An update that it does not know of may be counted after the
                reset as well as before, so it stays ahead of those that follow.
        """
        self.advance(time)
        seen, before, last = self.count, self.releases, 0
        self.total -= seen
        self.count, self.released, self.releases = 0, 0, []
        for release in before:
            if release.total > seen if release.clock is None else clock[release.engine] <= release.index:
                self.release(release.engine, release.index, release.total - last, release.clock)
            last = release.total

    def release_of(self, count: int) -> Release | None:
        """The update that brought the total to at least `count`."""
        at = bisect_left(self.releases, count, key=lambda release: release.total)
        return self.releases[at] if at < len(self.releases) else None
