"""Runs of a sem.program and of the streams that stand for it, many executions at once (mpkc.runtime.verify.execution).

A run binds the arguments of the program and the values of its sem.value, or is given assigned trip counts; then every
integer of the program is some number, and none decides anything.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_declaration, is_instruction, is_value, label_of
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, ReadOp, StreamOp, StreamsOp, WaitOp, threshold_type
from mpkc.dialects.sem_structure import Structure, regions_of
from mpkc.dialects.wording import counted, ordinal
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.verify.execution import Iteration, Site, Slot, Step, Trips, Walk, known
from mpkc.runtime.verify.lanes import Array, Mask, Value, merge, without

LIMIT = 1_000_000
Boundary = tuple[str, str, Iteration]  # what begins or ends: "inst", "enter" or "end", its name, the iteration around


def name_of(op: Operation) -> str:
    """What tells one instruction of a program from the others: its label, if it has one."""
    return label_of(op) or op.name


@dataclass
class Integers:
    """The run-time integers of a program, a lane for each of `bindings`; without them, numbers that decide nothing."""

    bindings: Sequence[Bindings] = ()
    tables: dict[str, Array] = field(default_factory=dict[str, Array])

    def argument(self, program: Operation, arg: BlockArgument, number: int) -> Value:
        """The value of an argument of the program. Without bindings above 1, so that a step that is left out shows."""
        name = arg.name_hint or ""
        if not self.bindings:
            return 1 if arg.type == i1 else 2 + number
        given = [bindings.values.get(name, ()) for bindings in self.bindings]
        if any(len(values) != 1 for values in given):
            raise OpError(program, f"the argument %{name} needs one value: bind it, {name}=VALUE")
        return _lanes([int(values[0]) for values in given], arg.type)

    def value(self, op: Operation, name: str, earlier: Value, type: Attribute) -> Value:
        """What the instruction `name` writes after `earlier` executions."""
        if not self.bindings:
            return 1 if type == i1 else 3
        given = [bindings.values.get(name, ()) for bindings in self.bindings]
        most = int(np.max(earlier))
        if len(self.bindings) == 1:
            if most >= len(given[0]):
                has = counted(len(given[0]), "value")
                raise OpError(op, f"@{name} runs for the {ordinal(most + 1)} time and has {has}: bind more")
            return int(given[0][most])
        table = self.tables.get(name)
        if table is None:
            longest = max(map(len, given))
            rows = [[int(v) for v in values] + [0] * (longest - len(values)) for values in given]
            self.tables[name] = table = np.array(rows, np.bool_ if type == i1 else np.int64).T
        return table[np.minimum(earlier, len(table) - 1), np.arange(len(given))]


def _lanes(values: Sequence[int], type: Attribute) -> Value:
    return values[0] if len(set(values)) == 1 else np.array(values, np.bool_ if type == i1 else np.int64)


class ProgramRun(Walk):
    """A sem.program as one engine sees it, the executions of all engines in textual order.

    Attributes:
        times: when what each boundary names began or ended; kept where the program has values.
    """

    def __init__(
        self,
        structure: Structure,
        sites: Mapping[str, Site],
        lanes: int,
        integers: Integers,
        trips: Trips | None = None,
        limit: int = LIMIT,
    ):
        super().__init__(lanes, sites, trips, limit)
        self.structure, self.integers = structure, integers
        self.time = 0
        self.times: dict[Boundary, int] = {}
        self.timed = any(is_value(instruction.op) for instruction in structure.instructions)
        self.written: dict[str, tuple[list[int], list[Value]]] = {}  # by value: when, and how often until then
        block = structure.loops[0].block
        if trips is None:
            for number, arg in enumerate(block.args):
                self.bind(arg, integers.argument(structure.program, arg, number))
        for step in self.lower(block):
            step(None)

    def first_name(self, op: Operation) -> str | None:
        return self.structure.loop_of[regions_of(op)[0][1].block].name

    def lower(self, block: Block) -> list[Step]:
        loop = self.structure.loop_of[block]
        steps, depth = super().lower(block), sum(above.counted for above in loop.path)
        if loop.counted:
            steps.insert(0, lambda mask: self.enter(loop.name, depth))
        if self.timed:
            steps.append(lambda mask: self._pass(("end", loop.name, tuple(self.iteration[:depth]))))
        return steps

    def _lower(self, op: Operation) -> Step | None:
        if self.trips is not None and not op.regions and not is_instruction(op):
            return None  # nothing that is computed decides anything
        step = super()._lower(op)
        if step is None or not self.timed or not isinstance(op, CONTROL_OPS):
            return step
        run, name = step, self.first_name(op) or ""
        depth = self.sites[name].depth

        def timed(mask: Mask) -> None:
            self._pass(("enter", name, tuple(self.iteration[:depth])))
            run(mask)

        return timed

    def _pass(self, boundary: Boundary) -> None:
        self.times[boundary] = self.time
        self.time += 1

    def leaf(self, op: Operation) -> Step | None:
        instruction = self.structure.by_op.get(op)
        if instruction is None:
            return None
        depth, slots, name = len(instruction.counted), self.slots, name_of(op)
        value = is_value(op)

        def step(mask: Mask) -> None:
            iteration = tuple(self.iteration[:depth])
            if self.timed:
                self._pass(("inst", name, iteration))
            if value:
                self._write_value(op, name, mask)
            slots.append(Slot(op, iteration, mask))

        return step

    def _write_value(self, op: Operation, name: str, mask: Mask) -> None:
        times, counts = self.written.setdefault(name, ([-1], [0]))
        for result in op.results if self.trips is None else ():
            self.bind(result, self.integers.value(op, name, counts[-1], result.type))
        times.append(self.time)
        counts.append(counts[-1] + (1 if mask is None else mask.astype(np.int64)))

    def executions_before(self, boundary: Boundary, name: str) -> Value:
        """How often the value `name` is written before what `boundary` names; 0 where that never comes."""
        times, counts = self.written.get(name, ([-1], [0]))
        return counts[bisect_right(times, self.times.get(boundary, -1)) - 1]


class StreamRun(Walk):
    """The stream of one engine.

    Attributes:
        versions: for each slot of a read, by its place, how many executions of its source came before it.
    """

    def __init__(self, streams: StreamsOp, stream: StreamOp, program: ProgramRun, limit: int = LIMIT):
        super().__init__(program.lanes, program.sites, program.trips, limit)
        self.program, self.integers = program, program.integers
        self.threshold_type = threshold_type(streams.counters)
        self.depths = {name_of(i.op): len(i.counted) for i in program.structure.instructions}
        self.waits: list[tuple[str, Value, Mask]] = []
        self.versions: dict[int, Value] = {}
        self.lowerings |= {
            WaitOp: self._wait,
            IterationOp: self._begin,
            BarrierOp: self._barrier,
            ReadOp: self._read_value,
        }
        for number, arg in enumerate(streams.body.block.args):
            self.bind(arg, self.integers.argument(streams, arg, number))
        shared = [op for op in streams.body.block.ops if not isinstance(op, StreamOp)]
        steps = [step for op in shared if (step := self._lower(op)) is not None] + self.lower(stream.body.block)
        for step in steps:
            step(None)

    def first_name(self, op: Operation) -> str | None:
        for region in op.regions:
            for block in region.blocks:
                if isinstance(first := block.first_op, IterationOp):
                    return first.loop.data
        return None

    def leaf(self, op: Operation) -> Step | None:
        if is_instruction(op):
            depth = self.depths.get(name_of(op))
            return lambda mask: self._issue(op, mask, len(self.iteration) if depth is None else depth)
        if not is_declaration(op):
            raise OpError(op, f"'{op.name}' is not allowed in a sem.stream")
        return None

    def _begin(self, op: IterationOp) -> Step | None:
        name, depth = op.loop.data, op.depth.data
        return (lambda mask: self.enter(name, depth)) if depth else None

    def _barrier(self, op: BarrierOp) -> Step:
        return lambda mask: self._issue(op, mask, len(self.iteration))

    def _issue(self, op: Operation, mask: Mask, depth: int) -> None:
        """An instruction issues behind the waits since the last one, in each lane: some may not come to a loop."""
        waits, self.waits = self.waits, []
        own: list[tuple[str, Value]] = []
        for semaphore, threshold, waiting in waits:
            left = without(waiting, mask)
            if left is not False:
                self.waits.append((semaphore, threshold, left))
            own.append((semaphore, threshold if waiting is mask else merge(waiting, threshold, 0, self.threshold_type)))
        self.slots.append(Slot(op, tuple(self.iteration[:depth]), mask, own))

    def _wait(self, op: WaitOp) -> Step:
        semaphore, threshold = op.semaphore.data, self.place(op.threshold)
        return lambda mask: self.waits.append((semaphore, known(self.values[threshold]), mask))

    def _read_value(self, op: ReadOp) -> Step:
        kind, name, depth = self._boundary(op)
        source, target = op.source.data, self.place(op.result)

        def step(mask: Mask) -> None:
            iteration = tuple(self.iteration[:depth])
            count = self.program.executions_before((kind, name, iteration), source)
            self.versions[len(self.slots)] = count
            self._issue(op, mask, len(self.iteration))
            earlier = max(0, count - 1) if isinstance(count, int) else np.maximum(0, count - 1)
            self.values[target] = self.integers.value(op, source, earlier, op.result.type)

        return step

    def _boundary(self, read: ReadOp) -> tuple[str, str, int]:
        """What the program has next behind the place of `read`: an instruction, a loop, the end of the block."""
        op = read.next_op
        while op is not None:
            if is_instruction(op) and name_of(op) in self.depths:
                return "inst", name_of(op), self.depths[name_of(op)]
            # Clean-up puts the one iteration of a loop in its place.
            name = op.loop.data if isinstance(op, IterationOp) else None
            name = self.first_name(op) if isinstance(op, CONTROL_OPS) else name
            if name is not None and (site := self.sites.get(name)):
                return "enter", site.name, site.depth
            op = op.next_op
        block = read.parent
        first = block.first_op if block else None
        if isinstance(first, IterationOp):
            name = first.loop.data
            return "end", name, self.sites[name].inside
        return "end", "program", 0
