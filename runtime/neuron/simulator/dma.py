"""What the count of a DMA queue's semaphore says about its transfers.

A transfer of P parts adds P, one for each part that arrives. Parts of one DMA engine arrive in order, those of
different ones in any order. So with m transfers that may have begun, P - 1 engines may be done with all m of them and
one with K - 1 only: the count says that transfer K is complete from (P - 1) m + K on, and not before.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from mpkc.runtime.neuron.simulator.races import Clock, Issue
from mpkc.runtime.neuron.simulator.semaphores import Release


@dataclass(eq=False)
class Transfers:
    """The transfers that update one semaphore, since its last reset.

    Attributes:
        parts: of each transfer.
        known: for each transfer how many of those before it were known to be complete when it issued.
        stale: how many transfers from before the reset may add to the count.
        relied: for each engine its last wait, with the transfers that it took to be complete.
    """

    parts: int
    releases: list[Release] = field(default_factory=list[Release])
    known: list[int] = field(default_factory=list[int])
    stale: int = 0
    relied: dict[int, tuple[Issue, int, int]] = field(default_factory=dict[int, tuple[Issue, int, int]])

    def issue(self, release: Release) -> list[Issue]:
        """A transfer issues; the waits whose meaning it changes, since nothing orders it after them."""
        retired = release.clock[release.engine]
        self.known.append(bisect_left(self.releases, retired, key=lambda each: each.index))
        self.releases.append(release)
        return [
            waiter
            for waiter, count, transfers in self.relied.values()
            if release.clock[waiter.engine] <= waiter.index and self.complete(count) < transfers
        ]

    def rely(self, waiter: Issue, count: int) -> tuple[Release | None, Release | None]:
        """A wait for a count has passed.

        Returns:
            The last transfer that is complete for sure, and the one that keeps the count from saying more: where the
            count is that of more transfers, but later ones may have added to it.
        """
        complete, meant = self.complete(count), min(count // self.parts, len(self.releases))
        self.relied[waiter.engine] = (waiter, count, complete)
        intruder = self.releases[bisect_left(self.known, meant) - 1] if complete < meant else None
        return self.releases[complete - 1] if complete else None, intruder

    def complete(self, count: int) -> int:
        """How many of the first transfers are complete for sure where the semaphore has reached a count."""
        return bisect_right(range(1, len(self.known) + 1), count, key=self._count_of)

    def reset(self, clock: Clock) -> None:
        """The semaphore becomes 0; transfers that the engine which resets it does not know of may still add to it."""
        self.stale = sum(1 for release in self.releases if clock[release.engine] <= release.index)
        self.releases.clear()
        self.known.clear()
        self.relied.clear()

    def _count_of(self, transfer: int) -> int:
        """The count from which on a transfer is complete for sure."""
        may_have_begun = bisect_left(self.known, transfer)
        return self.parts * self.stale + (self.parts - 1) * may_have_begun + transfer
