"""The counters that an engine keeps: values that its loops carry (barrier-free, section 5.1).

    ENTRIES    r of a loop: how often it was entered; never set back
    SIGNALS    what an engine has signalled so far, as program order has it; for semaphores of a whole engine
    ENDED      r of a loop at the end of the iteration j back of a loop around it; 0 in the first j iterations
    STARTED    the same, but in the first j iterations what r was when the loop around began
    EPOCH      the iterations of a loop since counters last started again
    TRIP       the iterations of an scf.while in this trip; an scf.for has its index

The first two and EPOCH are updated deep in the loops that hold what they count, so every loop around carries them. The
others live in one loop.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from xdsl.ir import Operation

from mpkc.dialects.sem_structure import Loop, LoopKind
from mpkc.passes.semaphores.epochs import Epoch
from mpkc.passes.semaphores.groups import engine_semaphore
from mpkc.passes.semaphores.needs import Form, Need
from mpkc.passes.semaphores.plan import Plan


class Counts(Enum):
    ENTRIES = "r"
    SIGNALS = "g"
    ENDED = "ended"
    STARTED = "started"
    EPOCH = "epoch"
    TRIP = "trip"


@dataclass(frozen=True)
class Counter:
    """One counter of an engine.

    Attributes:
        loop: what it counts entries of; None for SIGNALS.
        engine: whose signals it counts; for SIGNALS.
        around, j: for ENDED and STARTED, the loop whose iterations it looks back, and how many.
    """

    counts: Counts
    loop: Loop | None = None
    engine: str = ""
    around: Loop | None = None
    j: int = 0

    @property
    def hint(self) -> str:
        """A name for its SSA values."""
        name = self.loop.name.replace(".", "_") if self.loop else self.engine
        back = f"_{self.around.name.replace('.', '_')}" + "b" * self.j if self.around else ""
        return f"{self.counts.value}_{name}{back}"


class Counters:
    """All counters of one engine.

    Attributes:
        carried: those that the whole stream carries.
        updated: by control operation, those that it carries and hands on.
        local: by loop, those that live in it.
        signalling: the engines whose signals are counted.
        iterations: by loop of an epoch, what counts the iterations up to it.
        restarting: by loop of an epoch, what it sets back to 0.
        of_loop: ENTRIES and ENDED by the loop that they count.
    """

    def __init__(self, plan: Plan, engine: str):
        self.carried: dict[Counter, None] = {}
        self.updated: dict[Operation, dict[Counter, None]] = {}
        self.local: dict[Loop, dict[Counter, None]] = {}
        self.signalling: dict[str, None] = {}
        self.of_loop: dict[Loop, dict[Counter, None]] = {}
        for need in plan.waits_of(engine):
            group = plan.groups.of[need.producer]
            if group.kind == "per-engine":
                self.signalling[group.engine] = None
                self._carry(Counter(Counts.SIGNALS, engine=group.engine), (member.loop for member in group.members))
                self._trips(need)
            elif group.kind != "barrier":
                self._entries(need)
        self.restarting: dict[Loop, dict[Counter, None]] = {}
        self.iterations: dict[Loop, Counter] = {}
        for epoch in (reset.epoch for reset in plan.resets if engine in reset.engines):
            self._restart(epoch)

    def _restart(self, epoch: Epoch) -> None:
        """Count the iterations up to an epoch, and carry to it what it sets back."""
        entries = Counter(Counts.ENTRIES, epoch.loop)
        same = entries in self.carried and epoch.loop in epoch.counters
        counter = self.iterations[epoch.loop] = entries if same else Counter(Counts.EPOCH, epoch.loop)
        self._carry(counter, [epoch.loop])
        again = self.restarting[epoch.loop] = {counter: None}
        again.update((each, None) for loop in epoch.counters for each in self.of_loop.get(loop, ()))
        for name in self.signalling:
            if engine_semaphore(name) in epoch.semaphores:
                again[Counter(Counts.SIGNALS, engine=name)] = None
        for loop in epoch.loop.path[1:]:
            self.updated.setdefault(loop.op, {}).update(again)

    def _entries(self, need: Need) -> None:
        loop = need.producer.loop
        if loop.parent is not None:
            self._entered(loop)
        self._trips(need)
        if need.form in (Form.ENDED, Form.CLAMPED):
            assert need.loop is not None
            counts = Counts.ENDED if need.form is Form.ENDED and not need.earlier else Counts.STARTED
            for j in range(1, need.k + 1 + (need.form is Form.CLAMPED)):
                counter = Counter(counts, loop, around=need.loop, j=j)
                self._live_in(need.loop, counter)
                self.of_loop.setdefault(loop, {})[counter] = None

    def _entered(self, loop: Loop) -> None:
        counter = Counter(Counts.ENTRIES, loop)
        self._carry(counter, [loop])
        self.of_loop.setdefault(loop, {})[counter] = None

    def _carry(self, counter: Counter, loops: Iterable[Loop]) -> None:
        if counter not in self.carried:
            self.carried[counter] = None
            for loop in loops:
                for each in loop.path[1:]:
                    self.updated.setdefault(each.op, {})[counter] = None

    def _trips(self, need: Need) -> None:
        if need.form in (Form.BACK, Form.PASSED, Form.CLAMPED):
            for loop in (need.loop, need.inner):
                if loop is not None and loop.kind is LoopKind.WHILE:
                    self._live_in(loop, Counter(Counts.TRIP, loop))

    def _live_in(self, loop: Loop, counter: Counter) -> None:
        self.local.setdefault(loop, {})[counter] = None
