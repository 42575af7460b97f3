"""The bounded exhaustive check of streams against their program (barrier-free, section 7.3).

The program and the streams run side by side, for every assignment of few trips to the loops, or for given bindings. For
each execution of each instruction, what its waits ask of each engine is compared with what condition (1) asks:

* EARLY: the waits are satisfied before the dependencies are: a race.
* LATE: they are not yet satisfied when the dependencies are: too much waiting, or a deadlock.

Whether an instruction may issue depends on its own engine's counters and on how much each other engine has retired,
nothing else. So this covers every interleaving; and whether all engines end is decided by one maximal run.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.dialects.sem_structure import Structure, structure_of
from mpkc.dialects.tile import KernelOp
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.verify.assignments import Assignment, Inputs, assignments, disagreeing
from mpkc.runtime.verify.comparison import CHECK, Comparison, Rescue
from mpkc.runtime.verify.execution import sites_of
from mpkc.runtime.verify.prefixes import Implementation, Observation, Specification, observations
from mpkc.runtime.verify.report import WaitFailure
from mpkc.runtime.verify.runs import Integers, ProgramRun, StreamRun

__all__ = ["Product", "Rescue", "assigned_product", "check_product", "disagreeing_product"]


def check_product(
    program: ProgramOp | KernelOp,
    streams: StreamsOp,
    bindings: Sequence[Bindings] = (),
    rescued: Collection[Rescue] = (),
    seed: int = 0,
    barriers: bool = False,
) -> list[WaitFailure]:
    """Compare the waits of `streams` with the dependencies of `program`.

    Args:
        bindings: runs to compare, all at once. Where there are none, assigned trips: all of 0 to 2 for each entry of a
            loop where that makes at most 200, else 64 drawn by `seed`; only for streams whose loops are those of the
            program, which clean-up may change.
        rescued: dependencies whose waits may be late.
        barriers: whether barriers are allowed; what waits at one may be late.

    Returns:
        What is wrong, the first of it in detail; nothing where all is exact.

    Raises:
        OpError: a binding that is missing, a division by zero, a loop that does not end.
    """
    product = Product(program, bindings=bindings) if bindings else assigned_product(program, seed)
    return product.check(streams, rescued, barriers)


def assigned_product(program: ProgramOp | KernelOp, seed: int = 0) -> "Product":
    """A program with assigned trips, as `check_product` says."""
    structure = structure_of(program)
    return Product(program, assignments(structure, np.random.default_rng(seed)), structure=structure)


def disagreeing_product(program: ProgramOp | KernelOp, seed: int) -> "Product":
    """A program whose engines disagree on trip counts, in drawn ways."""
    structure, rng = structure_of(program), np.random.default_rng(seed)
    by_engine = disagreeing(assignments(structure, rng), structure.engines, rng)
    return Product(program, by_engine, structure=structure)


class Product:
    """A program in many executions, to compare streams with.

    Args:
        assignment: trips, the same on all engines, or by engine: then engines that disagree block where the program
            says that they do.
        bindings: without an assignment, the integers of each execution.
    """

    def __init__(
        self,
        program: ProgramOp | KernelOp,
        assignment: Assignment | Mapping[str, Assignment] | None = None,
        bindings: Sequence[Bindings] = (),
        structure: Structure | None = None,
    ):
        self.structure = structure or structure_of(program)
        self.inputs = Inputs(assignment, bindings)
        integers = Integers(bindings)
        engines, sites = self.structure.engines, sites_of(self.structure)

        def view(trips: Assignment | None) -> ProgramRun:
            lanes = trips.lanes if trips else len(bindings)
            return ProgramRun(self.structure, sites, lanes, integers, trips)

        if isinstance(assignment, Mapping):
            views = {engine: view(assignment[engine]) for engine in engines}
        else:
            views = dict.fromkeys(engines, view(assignment))
        self.specification = Specification(self.structure, views)

    @cached_property
    def executions(self) -> int:
        """The executions of instructions, in all runs."""
        return sum(int(active.sum()) for active in self.specification.active.values())

    def check(
        self,
        streams: StreamsOp,
        rescued: Collection[Rescue] = (),
        barriers: bool = False,
        strict: bool = False,
        patient: bool = False,
    ) -> list[WaitFailure]:
        """What is wrong with `streams`.

        Args:
            rescued, barriers: see `check_product`.
            strict: whether each wait must be exact by itself, also where an earlier one of its engine, or a barrier,
                already holds the instruction back.
            patient: whether any wait may be late, as long as all engines end.
        """
        views, parts = self.specification.views, streams.streams
        if sorted(parts) != sorted(views):
            return [WaitFailure(CHECK, f"there are streams of {list(parts)}, and the program has {list(views)}")]
        runs = self._runs(streams)
        return Comparison(
            self.specification, Implementation(streams, runs), runs, self.inputs, rescued, barriers, strict, patient
        ).failures()

    def observed(self, streams: StreamsOp) -> list[Observation]:
        """What each slot waits for and signals, in every lane: changes of `streams` that change none are not reached.

        Waits for nothing, and signals that nothing waits for, are left out.
        """
        return observations(Implementation(streams, self._runs(streams)))

    def _runs(self, streams: StreamsOp) -> dict[str, StreamRun]:
        parts = streams.streams
        return {engine: StreamRun(streams, parts[engine], view) for engine, view in self.specification.views.items()}
