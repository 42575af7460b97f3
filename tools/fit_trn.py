"""Fits what control costs on trn2, and prints what remains unexplained of barrier-free, table 2.

The fit sees two numbers of the table: how long the unrolled AddManyLoop and the unrolled tiled matmul take, relative to
barrier. Both follow what one iteration with a barrier costs, in which operations on registers, a branch and handshakes
can't be told apart. So one number is fitted: what an operation on registers or a branch takes; a handshake is what it
is made of, where each engine signals one that waits for all, and that one signals to all. All other figures of the
table are predictions.

Two other fits stand beside it, in which operations on registers and handshakes are the middle of what is public: one
looks for the branch, the other for the handshake, with the dearest branch that is public.

`python tools/fit_trn.py --check` only compares the fit with what runtime/machine/trn2.toml says; `--json` prints what
docs/table2-fit.json keeps.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import log
from statistics import median

from mpkc.bench.kernels import KERNELS
from mpkc.bench.paper import paper_rows
from mpkc.bench.table2 import Built, build, kinds_of, time_of
from mpkc.runtime.machine import Costs, Machine, machine

FITTED_ROWS = ("add_many_loop", "tiled_matmul")
FITTED_KIND = "unrolled"
FEWER = {"addmany": ("trips", 100), "matmul": ("m", 2)}
"""Outermost loops all of whose iterations take the same time: so many of them, and twice as many, tell the rest."""
REGISTER = (20.0, 60.0)  # ns, inferred from public figures; a branch too
HANDSHAKE = (150.0, 850.0)  # ns, inferred from public figures: half of 300 to 1,700 for two
LOOKED_FOR = (20.0, 500.0)  # ns, of a register operation or a branch
PRECISION = 0.5
TOLERANCE = 0.02
GOLDEN = (5**0.5 - 1) / 2
KINDS = ("per-loop", "manual")
"""What is predicted here; unrolled programs have next to no control, so these fits are the same to them."""

Times = Callable[[Machine], float]


@dataclass(frozen=True)
class Ratio:
    """The latency of a program relative to barrier, which the paper gives."""

    program: str
    kind: str
    paper: float
    barrier: Times
    other: Times

    def on(self, device: Machine) -> float:
        """What it is on a machine."""
        return self.other(device) / self.barrier(device)


@dataclass(frozen=True)
class Fit:
    """A way to fit: the costs that follow from the number that is looked for, and where it is."""

    name: str
    costs: Callable[[Costs, float], Costs]
    range: tuple[float, float]

    def of(self, device: Machine, ratios: Sequence[Ratio]) -> Machine:
        """The machine whose ratios are nearest to the paper's, in the sum of squares of their logarithms."""

        def given(number: float) -> Machine:
            return replace(device, costs=self.costs(device.costs, number))

        return given(least(lambda number: squares(given(number), ratios), *self.range))


def register_fitted(costs: Costs, register: float) -> Costs:
    handshake = 2 * (register + costs.signal + costs.wait)
    return replace(costs, register=register, branch=register, barrier=handshake)


def branch_fitted(costs: Costs, branch: float) -> Costs:
    return replace(costs, register=sum(REGISTER) / 2, branch=branch, barrier=sum(HANDSHAKE) / 2)


def handshake_fitted(costs: Costs, handshake: float) -> Costs:
    return replace(costs, register=sum(REGISTER) / 2, branch=REGISTER[1], barrier=handshake)


FITS = (
    Fit("register", register_fitted, LOOKED_FOR),
    Fit("branch", branch_fitted, LOOKED_FOR),
    Fit("handshake", handshake_fitted, HANDSHAKE),
)
"""The first is the one that trn2.toml has."""


def squares(device: Machine, ratios: Sequence[Ratio]) -> float:
    """How far ratios are from the paper's."""
    return sum(log(ratio.on(device) / ratio.paper) ** 2 for ratio in ratios)


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > PRECISION:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2


@dataclass(frozen=True)
class Programs:
    """The programs of the table, each compiled once: what a fit changes is when instructions happen, not which."""

    device: Machine

    @cached_property
    def _built(self) -> dict[tuple[str, str, int], Built]:
        """By kernel, kind, and iterations of the outermost loop; 0: all."""
        return {}

    def ratios(self, programs: Sequence[str], kinds: Sequence[str]) -> Iterator[Ratio]:
        for row in paper_rows():
            for kind in kinds if row.program in programs else ():
                if kind in row.kinds and kind in kinds_of(KERNELS[row.kernel]):
                    times = (self.times(row.kernel, each) for each in ("barrier", kind))
                    yield Ratio(row.program, kind, row.kinds[kind].latency, *times)

    def times(self, kernel: str, kind: str) -> Times:
        """The time at full size, by machine."""
        if kernel not in FEWER:
            built = self.built(kernel, kind)
            return lambda device: time_of(built, device)
        size, trips = FEWER[kernel]
        few, twice = (self.built(kernel, kind, each) for each in (trips, 2 * trips))
        more = KERNELS[kernel].full[size] / trips - 1

        def time(device: Machine) -> float:
            first = time_of(few, device)
            return first + more * (time_of(twice, device) - first)

        return time

    def built(self, kernel: str, kind: str, trips: int = 0) -> Built:
        key = (kernel, kind, trips)
        if key not in self._built:
            fewer = {FEWER[kernel][0]: trips} if trips else {}
            sizes = {**KERNELS[kernel].full, **fewer}
            self._built[key] = build(KERNELS[kernel], sizes, kind, self.device)
        return self._built[key]


def fitted(device: Machine, ratios: Sequence[Ratio]) -> Mapping[str, Machine]:
    """The machine of each fit, by its name."""
    return {fit.name: fit.of(device, ratios) for fit in FITS}


@dataclass(frozen=True)
class Latency:
    """One that the fits have not seen: the paper's, and that of each fit by its name."""

    program: str
    kind: str
    paper: float
    ours: Mapping[str, float]


def predicted(found: Mapping[str, Machine], programs: Programs) -> Iterator[Latency]:
    for ratio in programs.ratios([row.program for row in paper_rows()], KINDS):
        ours = {name: ratio.on(device) for name, device in found.items()}
        yield Latency(ratio.program, ratio.kind, ratio.paper, ours)


def report(found: Mapping[str, Machine], latencies: Sequence[Latency]) -> None:
    for name, each in found.items():
        costs = each.costs
        told = f"register {costs.register:.0f}, branch {costs.branch:.0f}, handshake {costs.barrier:.0f} ns"
        print(f"{name + ':':10} {told}")
    print(f"\n{'program':24} {'kind':9} {'paper':>6} " + " ".join(f"{name:>13}" for name in found))
    for each in latencies:
        cells = (f"{ours:6.2f} {ours - each.paper:+6.2f}" for ours in each.ours.values())
        print(f"{each.program:24} {each.kind:9} {each.paper:6.2f} {' '.join(cells)}")
    print()
    for name in found:
        off = [abs(each.ours[name] - each.paper) for each in latencies]
        print(f"{name + ':':10} {median(off):.3f} off in the median, {max(off):.3f} at most")


def is_same(ours: Costs, theirs: Costs) -> bool:
    pairs = ((ours.register, theirs.register), (ours.branch, theirs.branch), (ours.barrier, theirs.barrier))
    return all(abs(one / other - 1) <= TOLERANCE for one, other in pairs)


def main() -> int:
    device = machine("trn2")
    programs = Programs(device)
    seen = list(programs.ratios(FITTED_ROWS, (FITTED_KIND,)))
    if "--check" in sys.argv[1:]:
        ours = FITS[0].of(device, seen).costs
        print(f"register {ours.register:.0f} ns; trn2.toml has {device.costs.register:.0f} ns")
        return 0 if is_same(ours, device.costs) else 1
    found = fitted(device, seen)
    latencies = list(predicted(found, programs))
    if "--json" in sys.argv[1:]:
        costs = {name: asdict(each.costs) for name, each in found.items()}
        print(json.dumps({"costs": costs, "latencies": [asdict(each) for each in latencies]}))
    else:
        report(found, latencies)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
