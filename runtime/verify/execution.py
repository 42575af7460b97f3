"""Structured control flow run in many executions at once, a lane for each: what each engine executes, in order.

A run is a row of slots, one for each execution of an instruction in any lane, with the lanes that take part in it. The
iteration of a slot is the same in all its lanes: lanes that leave a loop wait at its end for the others. So a program
of a few loops is run for hundreds of trip counts in the time of one.

Trip counts, and which branches are taken, come from the integers of the program, or are assigned (`Trips`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import SCALAR_OPS, evaluate, is_scalar
from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.runtime.verify.lanes import Mask, Value, function_of, merge

Step = Callable[[Mask], None]
Iteration = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Slot:
    """One execution of an instruction in the lanes of `mask`.

    Attributes:
        iteration: the 1-based iteration of each counted loop around it, outermost first.
        waits: the semaphore, and the threshold in each lane, of each wait before it.
    """

    op: Operation
    iteration: Iteration
    mask: Mask
    waits: Sequence[tuple[str, Value]] = ()


class Trips(Protocol):
    """Assigned trip counts."""

    def at(self, name: str, iteration: Iteration) -> Value | None:
        """The trips of a loop, the number of the region that a conditional takes; None to compute it.

        Args:
            name: that of its first region.
            iteration: that of the loops around it.
        """
        ...


@dataclass(frozen=True)
class Site:
    """A region of a loop or conditional.

    Attributes:
        name: that of the first region of its operation.
        depth, inside: the counted loops around its operation, and around what stands in it.
    """

    name: str
    depth: int
    inside: int


def sites_of(structure: Structure) -> Mapping[str, Site]:
    """The site of each region of a program by the name of the region."""
    first: dict[Operation, Loop] = {}
    for loop in structure.loops[1:]:
        first.setdefault(loop.op, loop)

    def counted(loops: Sequence[Loop]) -> int:
        return sum(loop.counted for loop in loops)

    return {
        loop.name: Site(first[loop.op].name, counted(first[loop.op].path[:-1]), counted(loop.path))
        for loop in structure.loops[1:]
    }


class Walk(ABC):
    """Runs blocks in `lanes` lanes at once, each operation lowered to a step once.

    Args:
        limit: the iterations of all loops together after which a program is said to run forever.
    """

    def __init__(self, lanes: int, sites: Mapping[str, Site], trips: Trips | None, limit: int):
        self.lanes, self.sites, self.trips = lanes, sites, trips
        self.left = self.limit = limit
        self.values: list[Value | None] = []
        self.index: dict[SSAValue, int] = {}
        self.names: list[str] = []
        self.iteration: list[int] = []
        self.slots: list[Slot] = []
        self.lowerings: dict[type[Operation], Callable[[Any], Step | None]] = {
            arith.ConstantOp: self._constant,
            scf.ForOp: self._for,
            scf.WhileOp: self._while,
            scf.IfOp: self._branch,
            scf.IndexSwitchOp: self._branch,
            scf.YieldOp: lambda op: None,
            scf.ConditionOp: lambda op: None,
        }

    @abstractmethod
    def leaf(self, op: Operation) -> Step | None:
        """What runs an operation that is neither control nor arithmetic; None where nothing does."""

    @abstractmethod
    def first_name(self, op: Operation) -> str | None:
        """The name of one of the regions of the loop or conditional `op`."""

    def place(self, value: SSAValue) -> int:
        """Where the value of `value` is kept."""
        index = self.index.get(value)
        if index is None:
            self.index[value] = index = len(self.values)
            self.values.append(None)
        return index

    def lower(self, block: Block) -> list[Step]:
        """The steps of `block`, its terminator left out."""
        return [step for op in block.ops if (step := self._lower(op)) is not None]

    def bind(self, value: SSAValue, to: Value) -> None:
        self.values[self.place(value)] = to

    def enter(self, name: str, depth: int) -> None:
        """An iteration of the loop `name` begins, number `depth` of the counted loops around what follows."""
        again = len(self.names) >= depth and self.names[depth - 1] == name
        count = self.iteration[depth - 1] + 1 if again else 1
        del self.names[depth - 1 :], self.iteration[depth - 1 :]
        self.names.append(name)
        self.iteration.append(count)

    def _lower(self, op: Operation) -> Step | None:
        # By type: isinstance takes long with the abstract classes of xDSL.
        if (lower := self.lowerings.get(type(op))) is not None:
            return lower(op)
        return self._scalar(op) if type(op) in SCALAR_OPS and is_scalar(op) else self.leaf(op)

    def _constant(self, op: Operation) -> Step | None:
        if is_scalar(op):
            self.bind(op.results[0], evaluate(op, ()))
        return None

    def _scalar(self, op: Operation) -> Step:
        values, compute = self.values, function_of(op)
        sources, target = self._places(op.operands), self.place(op.results[0])

        def step(mask: Mask) -> None:
            values[target] = compute(mask, [known(values[source]) for source in sources])

        return step

    def _chosen(self, op: Operation) -> Callable[[], Value | None]:
        """What gives the assigned trips of `op`, or its assigned region, at each of its executions."""
        name, trips = self.first_name(op), self.trips
        if trips is None or name is None or name not in self.sites:
            return lambda: None
        site = self.sites[name]
        return lambda: trips.at(site.name, tuple(self.iteration[: site.depth]))

    def _places(self, values: Sequence[SSAValue]) -> list[int]:
        return [self.place(value) for value in values]

    def _read(self, places: Sequence[int]) -> list[Value | None]:
        return [self.values[place] for place in places]

    def _write(self, places: Sequence[int], values: Sequence[Value | None]) -> None:
        for place, value in zip(places, values, strict=True):
            self.values[place] = value

    def _count(self, op: Operation) -> None:
        self.left -= 1
        if self.left < 0:
            raise OpError(op, f"the loops ran {self.limit} iterations: it seems to run forever")

    def _for(self, op: scf.ForOp) -> Step:
        lower, upper, stride, *inits = self._places(op.operands)
        block, chosen, values = op.body.block, self._chosen(op), self.values
        index, *arguments = self._places(block.args)
        types = [argument.type for argument in block.args[1:]]
        code = self.lower(block)
        yielded, results = self._terminator(block), self._places(op.results)

        def step(mask: Mask) -> None:
            low, up, by, depth = values[lower], values[upper], values[stride], len(self.iteration)
            trips = chosen()
            if trips is None:
                trips = _trip_count(op, mask, low, up, by)
            state, count = self._read(inits), 0
            while (active := _narrowed(mask, trips > count)) is not False:
                self._count(op)
                if low is not None and by is not None:
                    values[index] = low + count * by
                self._write(arguments, state)
                for run in code:
                    run(active)
                state = _merged(active, self._read(yielded), state, types)
                count += 1
            self._write(results, state)
            self._leave(depth)

        return step

    def _while(self, op: scf.WhileOp) -> Step:
        before, after, chosen, values = op.before_region.block, op.after_region.block, self._chosen(op), self.values
        inits, results = self._places(op.operands), self._places(op.results)
        types = [result.type for result in op.results]
        first, second = self._places(before.args), self._places(after.args)
        code, rest = self.lower(before), self.lower(after)
        decided, *passed = self._terminator(before)
        yielded = self._terminator(after)

        def step(mask: Mask) -> None:
            state, trips, count, depth = self._read(inits), chosen(), 0, len(self.iteration)
            out: list[Value | None] = [None] * len(results)
            while True:
                self._count(op)
                self._write(first, state)
                for run in code:
                    run(mask)
                new = self._read(passed)
                out = _merged(mask, new, out, types)
                goes = values[decided] if trips is None else trips > count
                active = _narrowed(mask, known(goes))
                if active is False:
                    break
                mask = active
                self._write(second, new)
                for run in rest:
                    run(mask)
                state = self._read(yielded)
                count += 1
            self._write(results, out)
            self._leave(depth)

        return step

    def _branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> Step:
        chosen, select, values = self._chosen(op), self.place(op.operands[0]), self.values
        results, types = self._places(op.results), [result.type for result in op.results]
        if isinstance(op, scf.IfOp):
            regions, labels = [op.true_region, op.false_region], [1]
        else:
            regions, labels = [*op.case_regions, op.default_region], [*op.cases.iter_values()]
        codes = [self._region(region) for region in regions]

        def step(mask: Mask) -> None:
            region = chosen()
            if region is None:
                region = _position(known(values[select]), labels)
            out: list[Value | None] = [None] * len(results)
            for number, (code, yielded) in enumerate(codes):
                active = _narrowed(mask, region == number)
                if active is False:
                    continue
                for run in code:
                    run(active)
                out = _merged(active, self._read(yielded), out, types)
            self._write(results, out)

        return step

    def _region(self, region: Region) -> tuple[list[Step], list[int]]:
        """The steps of a branch, which may be missing, and where the values are kept that it passes on."""
        return (self.lower(region.block), self._terminator(region.block)) if region.blocks else ([], [])

    def _terminator(self, block: Block) -> list[int]:
        """Where the values are kept that the last operation of `block` passes on."""
        return self._places(block.last_op.operands) if isinstance(block.last_op, scf.YieldOp | scf.ConditionOp) else []

    def _leave(self, depth: int) -> None:
        """Forget the iterations of loops deeper than `depth`."""
        del self.names[depth:], self.iteration[depth:]


def known(value: Value | None) -> Value:
    """`value`, which the run has computed."""
    if value is None:
        raise ValueError("a value that is used before it is computed")
    return value


def _narrowed(mask: Mask, condition: Value) -> Mask | Literal[False]:
    """The lanes of `mask` in which the condition holds; False where there is none."""
    if not isinstance(condition, np.ndarray):
        return mask if condition else False
    active = condition if mask is None else condition & mask
    return active if active.any() else False


def _merged(
    mask: Mask, new: Sequence[Value | None], old: Sequence[Value | None], types: Sequence[Attribute]
) -> list[Value | None]:
    return [n if n is None else merge(mask, n, o, t) for n, o, t in zip(new, old, types, strict=True)]


def _position(value: Value, labels: Sequence[int]) -> Value:
    """The place of `value` among `labels`, their number where it is none of them."""
    if not isinstance(value, np.ndarray):
        return labels.index(value) if value in labels else len(labels)
    position: Value = len(labels)
    for number in reversed(range(len(labels))):
        position = np.where(value == labels[number], number, position)
    return position


def _trip_count(op: Operation, mask: Mask, lower: Value | None, upper: Value | None, stride: Value | None) -> Value:
    low, up, by = known(lower), known(upper), known(stride)
    wrong = by < 1
    if wrong if isinstance(wrong, bool) else (wrong if mask is None else wrong & mask).any():
        raise OpError(op, "the step is below 1 here: a step is 1 or more")
    if isinstance(low, int) and isinstance(up, int) and isinstance(by, int):
        return max(0, -((low - up) // by))
    return np.maximum(0, -((low - up) // np.maximum(by, 1)))
