"""Fits what a register operation takes on trn2, and so an all-engine handshake, and prints what remains unexplained.

The fit sees two numbers of barrier-free, table 2: how long the unrolled AddManyLoop and the unrolled tiled matmul take,
relative to barrier. Both follow the cost of a barrier, in which a register operation and a handshake can't be told
apart; so a handshake is what it is made of: each engine signals one that waits for all, and that one signals to all.
All other figures of the table are predictions.

`python tools/fit_trn.py --check` only compares the fit with what runtime/machine/trn2.toml says.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log
from statistics import median

from mpkc.bench.kernels import KERNELS
from mpkc.bench.paper import paper_rows
from mpkc.bench.table2 import Built, Row, bench_table2, build, time_of
from mpkc.runtime.machine import Costs, Machine, machine

FITTED_ROWS = ("add_many_loop", "tiled_matmul")
FITTED_KIND = "unrolled"
FEWER = {"trips": 500}
"""Of a loop all of whose iterations take the same time, enough to find the ratio of two kinds."""
RANGE = (20.0, 200.0)  # ns
PRECISION = 1.0
TOLERANCE = 0.02
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Ratio:
    """The latency of a program relative to barrier, which the paper gives."""

    program: str
    paper: float
    barrier: Built
    other: Built

    def off(self, device: Machine) -> float:
        """By which factor it is more on a machine, as a logarithm."""
        return log(time_of(self.other, device) / time_of(self.barrier, device) / self.paper)


def with_register(device: Machine, register: float) -> Machine:
    """The machine with register operations of so many ns, and the handshake that follows."""
    costs = device.costs
    handshake = 2 * (register + costs.signal + costs.wait)
    return replace(device, costs=replace(costs, register=register, barrier=handshake))


def fit(device: Machine, ratios: list[Ratio]) -> Machine:
    """The machine whose ratios are nearest to the paper's, in the sum of squares."""

    def squares(register: float) -> float:
        return sum(ratio.off(with_register(device, register)) ** 2 for ratio in ratios)

    low, high = RANGE
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = squares(left), squares(right)
    while high - low > PRECISION:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = squares(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = squares(right)
    return with_register(device, (low + high) / 2)


def fitted_ratios(device: Machine) -> Iterator[Ratio]:
    """What the fit sees."""
    for row in paper_rows():
        if row.program in FITTED_ROWS:
            kernel = KERNELS[row.kernel]
            sizes = {key: FEWER.get(key, size) for key, size in kernel.full.items()}
            barrier, other = (build(kernel, sizes, kind, device) for kind in ("barrier", FITTED_KIND))
            yield Ratio(row.program, row.kinds[FITTED_KIND].latency, barrier, other)


def is_fitted(row: Row) -> bool:
    """Whether the fit has seen a figure."""
    return row.program in FITTED_ROWS and row.kind == FITTED_KIND


def main() -> int:
    device = machine("trn2")
    fitted = fit(device, list(fitted_ratios(device)))
    print(f"register {fitted.costs.register:.0f} ns, handshake {fitted.costs.barrier:.0f} ns")
    if "--check" in sys.argv[1:]:
        return 0 if _same(fitted.costs, device.costs) else 1
    print(f"\n{'program':24} {'kind':10} {'ours':>6} {'paper':>6} {'off by':>7}")
    off: list[float] = []
    for row in bench_table2(fitted).rows:
        if row.paper is not None and row.kind != "barrier":
            seen, by = is_fitted(row), row.latency - row.paper.latency
            told = "  fitted" if seen else ""
            print(f"{row.program:24} {row.kind:10} {row.latency:6.2f} {row.paper.latency:6.2f} {by:+7.2f}{told}")
            off += [] if seen else [abs(by)]
    print(f"\nnot fitted: {median(off):.3f} in the median, {max(off):.3f} at most")
    return 0


def _same(fitted: Costs, written: Costs) -> bool:
    pairs = ((fitted.register, written.register), (fitted.barrier, written.barrier))
    return all(abs(ours / theirs - 1) <= TOLERANCE for ours, theirs in pairs)


if __name__ == "__main__":
    raise SystemExit(main())
