"""Each wait of a program's streams is proved equivalent to condition (1) of barrier-free, for all trip counts.

In the arithmetic of the target, on the streams as they are emitted, whatever clean-up made of counters and thresholds.
Where an instruction issues,

* no wait asks for more than the dependencies of the instruction owe, or than is known to have been anyway;
* what they owe, is known to have been: by these waits, by earlier ones of the engine, or by a barrier;
* the semaphore that it signals stays in range.

A wait that asks for less than is owed is right where an earlier one has seen the rest; one that asks for more, where
the engine knows that much anyway. What is taken for given: semaphores count signals, instructions of an engine retire
in order, all engines take the same way through loops (`mpkc.runtime.verify.streams` and `product` look at that), and
no engine lives to enter a loop 2^62 times. What z3 does not know is a failure.
"""

import time
from collections.abc import Collection, Mapping
from random import Random
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from mpkc.dialects.sem_streams import StreamsOp
from mpkc.runtime.verify.columns import Columns
from mpkc.runtime.verify.ghosts import Ghosts, State
from mpkc.runtime.verify.invariants import Invariant
from mpkc.runtime.verify.observed import Run
from mpkc.runtime.verify.places import Place, Places
from mpkc.runtime.verify.report import SHOWN, Check, Failure
from mpkc.runtime.verify.requirements import requirements_of, waited_by
from mpkc.runtime.verify.scopes import Bounds
from mpkc.runtime.verify.told import wait_failure
from mpkc.runtime.verify.walks import Goal, Steps, Wrong

if TYPE_CHECKING:
    from mpkc.runtime.verify.proofs import Proof

RUNS = 24  # from which invariants are read, of each engine
EFFORT = 30_000_000  # some 20 s
NAME = "waits"


def prove_waits(
    program: Operation,
    streams: StreamsOp,
    rescued: Collection[tuple[str, str]] | None = (),
    entries: Mapping[str, int] | None = None,
    trips: Mapping[str, int] | None = None,
    effort: int = EFFORT,
    alone: Collection[str] = (),
) -> Check:
    """Prove the waits of all engines.

    Args:
        rescued: (consumer, producer) by label, of the dependencies whose wait may be longer, up to what comes before
            the consumer in program order; None for all.
        entries: how often each loop is entered at most, in all, by its name; without, any number of times.
        trips: how many iterations each loop has at most in one run.
        effort: of z3 for one question, in its own units; beyond it the answer is unknown.
        alone: the semaphores that transfers add to in parts: one may issue where all before it are known to be
            complete. For others the dependencies of the program see to it.

    Raises:
        TargetError: z3 is not installed.
    """
    started = time.process_time()
    places = Places.read(program, streams)
    if places.strange:
        failures = [Failure(NAME, message) for _, message in places.strange]
        return Check(NAME, 0, len(failures), tuple(failures[:SHOWN]), time.process_time() - started)
    count = 0
    failures: list[Failure] = []
    for engine in streams.streams:
        prover = _Prover(places, engine, rescued, alone)
        count += prover.prove(dict(entries or {}), dict(trips or {}), effort)
        failures += prover.failures
    return Check(NAME, count, len(failures), tuple(failures[:SHOWN]), time.process_time() - started)


class _Prover:
    """The proof for one engine: by runs what is wrong, or candidates for invariants; then by z3."""

    def __init__(
        self, places: Places, engine: str, rescued: Collection[tuple[str, str]] | None, alone: Collection[str]
    ):
        self.places, self.engine = places, engine
        self.failures: list[Failure] = []
        waited = waited_by(places.streams, engine)
        consumers = [place for place in places.by_label.values() if place.engine == engine]
        requirements = [r for place in consumers for r in requirements_of(places, place, waited)]
        self.steps: Steps = {}
        self.ghosts = Ghosts(places, engine, requirements, rescued, alone)

    def prove(self, entries: dict[str, int], trips: dict[str, int], effort: int) -> int:
        """Prove all waits; the number of goals."""
        runs = [Run(self.ghosts, self.steps, Random(seed), bool(seed % 3), trips) for seed in range(RUNS)]
        for run in runs:
            run.run()
        if self._refuted_by(runs):
            return len(self.failures)
        proof = self._proof(runs, entries, trips, effort)
        proof.run()
        proof.settle()
        for duty in proof.duties:
            answer, model = proof.refute(duty)
            if str(answer) != "unsat":
                self._failed(duty.goal, duty.state, model, None)
        return len(proof.duties)

    def _proof(self, runs: list[Run], entries: dict[str, int], trips: dict[str, int], effort: int) -> "Proof":
        from mpkc.runtime.verify.proofs import Proof

        found: dict[Operation, Invariant] = {}
        for head in {op: head for run in runs for op, head in run.heads.items()}.values():
            samples = [sample for run in runs for sample in run.seen.get(head.op, ())]
            found[head.op] = Invariant(Columns(self.ghosts, head), samples, trips)
        return Proof(self.ghosts, self.steps, found, Bounds(entries, trips), effort)

    def _refuted_by(self, runs: list[Run]) -> bool:
        """Tell the first thing that a run found wrong with each instruction."""
        seen: set[tuple[Place, Wrong]] = set()
        for run in runs:
            for goal, state in run.wrong:
                if (goal.place, goal.wrong) not in seen:
                    seen.add((goal.place, goal.wrong))
                    self._failed(goal, state, None, run.bindings)
        return bool(seen)

    def _failed(self, goal: Goal, state: State, model: object, bindings: dict[str, int] | None) -> None:
        self.failures.append(wait_failure(NAME, self.ghosts, goal, state, model, bindings))
