"""`tgraph-plan-memory`: a place in one pool of memory for the results of operators, used again when they are done with.

MPK keeps activations in device memory between tasks. Runs behind tgraph-partition. A result needs its bytes from its
operator to its last reader in program order; results that are not needed at the same time can share bytes. Sharing
makes tasks wait (tgraph-build adds these dependencies), so with `reuse=ordered` only those share whose tasks are in
order anyway, and the task graph stays as it was. `reuse=any` takes less memory. What the function returns is not in
the pool.

    func.func @f(...) {                          func.func @f(...) attributes {tops.pool = 512 : i64} {
      %0 = tops.add %x, %x {grid = ...} : ...      %0 = tops.add %x, %x {..., tops.place = array<i64: 0>} : ...
      %1 = tops.add %0, %0 {grid = ...} : ...      %1 = tops.add %0, %0 {..., tops.place = array<i64: 256>} : ...
      %2 = tops.add %1, %1 {grid = ...} : ...      %2 = tops.add %1, %1 {..., tops.place = array<i64: 0>} : ...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects.tgraph_dependencies import Regions, dependencies
from mpkc.dialects.tgraph_memory import fully_after
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tops.base import Operator, bytes_of
from mpkc.dialects.tops.pool import OWN, POOL, aligned, pool_bytes, set_place

Reuse = Literal["ordered", "any"]


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Give each function of partitioned operators an activation pool, where it has none.

    Attributes:
        reuse: which results may share bytes: `ordered`, those whose tasks are in order without it; `any`, all that
            are not needed at the same time in program order.
    """

    name = "tgraph-plan-memory"

    reuse: Reuse = "ordered"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and pool_bytes(function) is None and (found := operators_in(function)):
                self.plan(function, found)

    def plan(self, function: FuncOp, operators: Sequence[Operator]) -> None:
        """Place the results of a function's operators."""
        results = lifetimes(operators)
        pending = _pending(operators, results) if self.reuse == "ordered" else map(_needed, results)
        offsets = packed([aligned(bytes_of(each.value.type)) for each in results], conflicts(results, pending))
        place = {each.value: offset for each, offset in zip(results, offsets, strict=True)}
        for op in operators:
            set_place(op, [place.get(result, OWN) for result in op.results])
        sizes = (place[each.value] + aligned(bytes_of(each.value.type)) for each in results)
        function.attributes[POOL] = IntegerAttr(max(sizes, default=0), i64)


@dataclass(frozen=True)
class Lifetime:
    """A result, the number of its operator, and those of the operators that read it."""

    value: SSAValue
    producer: int
    readers: tuple[int, ...]

    @property
    def last(self) -> int:
        """The last operator that needs the result, in program order."""
        return max(self.readers, default=self.producer)


def lifetimes(operators: Sequence[Operator]) -> list[Lifetime]:
    """The results that only operators read, in program order."""
    number: dict[Operation, int] = {op: at for at, op in enumerate(operators)}
    return [
        Lifetime(result, at, tuple(sorted({number[use.operation] for use in result.uses})))
        for at, op in enumerate(operators)
        for result in op.results
        if all(use.operation in number for use in result.uses)
    ]


def live_bytes(operators: Sequence[Operator]) -> int:
    """The most bytes of results that are needed at the same time in program order: no pool can be smaller."""
    change = [0] * (len(operators) + 1)
    for each in lifetimes(operators):
        change[each.producer] += aligned(bytes_of(each.value.type))
        change[each.last + 1] -= aligned(bytes_of(each.value.type))
    now = most = 0
    for step in change:
        now += step
        most = max(most, now)
    return most


def _needed(each: Lifetime) -> Iterator[int]:
    """The operators whose results may not take the place of `each`: those in program order up to its last reader."""
    yield from range(each.producer, each.last + 1)


def _pending(operators: Sequence[Operator], results: Sequence[Lifetime]) -> Iterator[Iterator[int]]:
    """Of each result, the operators from its own on that can start before all tasks that touch it have ended."""
    after = fully_after(operators, dependencies(operators, Regions()))
    for each in results:
        later = (1 << len(operators)) - (1 << each.producer)
        done = after[each.producer]
        for reader in each.readers:
            done &= after[reader]
        yield _bits(later & ~done)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def conflicts(results: Sequence[Lifetime], pending: Iterator[Iterator[int]]) -> list[list[int]]:
    """For each result the others, by their place in `results`, that it can't share bytes with."""
    of_operator: dict[int, list[int]] = {}
    for at, each in enumerate(results):
        of_operator.setdefault(each.producer, []).append(at)
    found: list[list[int]] = [[] for _ in results]
    for at, operators in enumerate(pending):
        for other in (other for number in operators for other in of_operator.get(number, ())):
            if other > at:
                found[at].append(other)
                found[other].append(at)
    return found


def packed(sizes: Sequence[int], conflicting: Sequence[Sequence[int]]) -> list[int]:
    """Offsets at which blocks of `sizes` do not overlap those that they conflict with, the highest end kept low.

    Largest first, each into the smallest gap that is large enough, at its lower end.
    """
    offsets = [0] * len(sizes)
    placed = [False] * len(sizes)
    for at in sorted(range(len(sizes)), key=lambda at: (-sizes[at], at)):
        taken = sorted((offsets[other], offsets[other] + sizes[other]) for other in conflicting[at] if placed[other])
        best, end = None, 0
        for lo, hi in taken:
            if sizes[at] <= lo - end and (best is None or lo - end < best[0]):
                best = lo - end, end
            end = max(end, hi)
        offsets[at], placed[at] = best[1] if best else end, True
    return offsets
