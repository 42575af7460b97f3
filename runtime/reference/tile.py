"""The interpreter of tile programs in program order: what a kernel computes when every instruction waits for the last.

Near and accumulator memory begins as NaN (floats) or as the lowest integer, and so does every page that a ring hands
out: a read of what was never written shows. Views of buffers are NumPy views.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_value, label_of
from mpkc.dialects.scalars import evaluate, is_scalar
from mpkc.dialects.sem_maxima import maxima_of, most_of
from mpkc.dialects.tile import ProgramOp
from mpkc.dialects.tile_buffers import root_of
from mpkc.dialects.tile_types import is_float, shape_text, sizes_agree
from mpkc.dialects.tile_worker import (
    AcquireOp,
    EventSignalOp,
    EventWaitOp,
    FetchOp,
    HeldOp,
    ReleaseOp,
    RingOp,
    ScalarsOp,
)
from mpkc.dialects.wording import ordinal
from mpkc.runtime.reference.elements import Array, rounded, storage_type, unwritten
from mpkc.runtime.reference.tile_instructions import INSTRUCTIONS, write
from mpkc.runtime.reference.tile_views import VIEWS, Values, name_of, read

Number: TypeAlias = int | float | bool
Input: TypeAlias = Array | Number


def run_kernel(
    program: ProgramOp,
    inputs: Mapping[str, Input] | Sequence[Input],
    bindings: Mapping[str, Number] | None = None,
    limit: int = 10_000_000,
) -> dict[str, Array]:
    """Run a verified `tile.kernel` or `tile.worker` in program order.

    Args:
        inputs: an array for each far buffer and a number for each number, by the argument's name or in order.
            Arrays have the storage type of the elements (`elements.storage_type`); they are not changed.
        bindings: further arguments by name.
        limit: the iterations of all loops together after which a program is said to run forever.

    Returns:
        What is in every far buffer at the end, by the argument's name.

    Raises:
        OpError: an argument that is missing, unknown or of the wrong type or shape; a view or a row out of
            bounds; tiles whose run-time shapes disagree; a ring with no free page; an event that program order
            waits for in vain; a queue that ends; a number or a loop that breaks what the program declares of it;
            more iterations than `limit`.
    """
    values = _arguments(program, inputs, bindings or {})
    interpreter = _Interpreter(program, values, limit)
    with np.errstate(all="ignore"):
        interpreter.block(program.body.block)
    return {
        name: values[arg]
        for name, arg in zip(program.argument_names, program.body.block.args, strict=True)
        if isa(arg.type, MemRefType)
    }


def _arguments(
    program: ProgramOp, inputs: Mapping[str, Input] | Sequence[Input], bindings: Mapping[str, Number]
) -> Values:
    names = program.argument_names
    if not isinstance(inputs, Mapping):
        if len(inputs) > len(names):
            raise OpError(program, f"takes {len(names)} arguments, not {len(inputs)}: {', '.join(names)}")
        inputs = dict(zip(names, inputs, strict=False))
    given: dict[str, Input] = {**inputs, **bindings}
    if unknown := [name for name in given if name not in names]:
        raise OpError(program, f"%{unknown[0]} is no argument; there are: {', '.join(names)}")
    if missing := [name for name in names if name not in given]:
        raise OpError(program, f"the argument %{missing[0]} has no value")
    args = zip(names, program.body.block.args, strict=True)
    return {arg: _argument(program, name, given[name], arg.type) for name, arg in args}


def _argument(program: ProgramOp, name: str, value: Input, type_: Attribute) -> Any:
    if not isa(type_, MemRefType):
        if isinstance(value, np.ndarray) and value.ndim:
            raise OpError(program, f"the argument %{name} is a number, not an array")
        return float(value) if is_float(type_) else int(value)
    array, dtype = np.asarray(value), storage_type(type_.element_type)
    if array.dtype != dtype:
        raise OpError(
            program, f"the argument %{name} holds {type_.element_type}: its array is of {dtype}, not {array.dtype}"
        )
    if array.ndim != type_.get_num_dims() or not all(map(sizes_agree, array.shape, type_.get_shape())):
        raise OpError(program, f"the argument %{name} is {shape_text(type_)}, and its array is of shape {array.shape}")
    return rounded(array, type_.element_type).copy(order="C")


COMPUTE = VIEWS | INSTRUCTIONS


class _Interpreter:
    """Values by SSA value: Python numbers, and a NumPy array for each buffer."""

    def __init__(self, program: ProgramOp, values: Values, limit: int):
        self.values = values
        self.maxima = _declared(program)
        for arg in program.body.block.args:
            self.check(program, arg)
        self.left = self.limit = limit
        self.rings: dict[SSAValue, deque[Array]] = {}
        self.fetched: dict[SSAValue, int] = {}
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            scf.ForOp: self.run_for,
            scf.IfOp: self.run_if,
            scf.IndexSwitchOp: self.run_switch,
            scf.WhileOp: self.run_while,
            RingOp: self.ring,
            AcquireOp: self.acquire,
            HeldOp: self.held,
            ReleaseOp: self.release,
            FetchOp: self.fetch,
            ScalarsOp: self.scalars,
            EventWaitOp: self.event_wait,
            EventSignalOp: self.event_signal,
        }

    def block(self, block: Block) -> list[Any]:
        """Run a block; what its terminator passes on."""
        for op in block.ops:
            if isinstance(op, scf.YieldOp | scf.ConditionOp):
                return self.read(op.operands)
            if (compute := COMPUTE.get(type(op))) is not None:
                compute(op, self.values)
                if op.results:
                    self.check(op, op.results[0])
            elif (handler := self.handlers.get(type(op))) is not None:
                handler(op)
            elif is_scalar(op):
                self.values[op.results[0]] = evaluate(op, self.read(op.operands))
            else:
                raise OpError(op, f"'{op.name}' says no more than its name: there is nothing to compute")
        return []

    def read(self, values: Iterable[SSAValue]) -> list[Any]:
        return read(self.values, values)

    def set(self, targets: Sequence[SSAValue], values: Sequence[Any]) -> None:
        self.values.update(zip(targets, values, strict=True))

    def check(self, op: Operation, value: SSAValue) -> None:
        """Hold the number `value`, which `op` gives, to its declared maximum."""
        maximum = self.maxima.get(value)
        if maximum is not None and not 0 <= self.values[value] <= maximum:
            number = self.values[value]
            raise OpError(op, f"{name_of(value)} is {number} and was declared to lie in 0..{maximum}: see `maxima`")

    # Control.

    def count(self, op: Operation, iteration: int, most: int | None) -> None:
        if most is not None and iteration > most:
            raise OpError(op, f"the loop runs for the {ordinal(iteration)} time and was declared to run {most} at most")
        self.left -= 1
        if self.left < 0:
            raise OpError(op, f"the loops of the program ran {self.limit} iterations: it seems to run forever")

    def run_for(self, op: scf.ForOp) -> None:
        lower, upper, step = self.read((op.lb, op.ub, op.step))
        if step < 1:
            raise OpError(op, f"the step is {step} here: a step is 1 or more")
        variable, *carried = op.body.block.args
        state, most = self.read(op.iter_args), most_of(op)
        for iteration, index in enumerate(range(lower, upper, step), 1):
            self.count(op, iteration, most)
            self.values[variable] = index
            self.set(carried, state)
            state = self.block(op.body.block)
        self.set(op.results, state)

    def run_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        state, most = self.read(op.arguments), most_of(op)
        for iteration in count(1):
            self.count(op, iteration, most)
            self.set(before.args, state)
            goes_on, *state = self.block(before)
            if not goes_on:
                break
            self.set(after.args, state)
            state = self.block(after)
        self.set(op.results, state)

    def run_if(self, op: scf.IfOp) -> None:
        self.region(op, op.true_region if self.values[op.cond] else op.false_region)

    def run_switch(self, op: scf.IndexSwitchOp) -> None:
        cases = dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
        self.region(op, cases.get(self.values[op.arg], op.default_region))

    def region(self, op: Operation, region: Region) -> None:
        self.set(op.results, self.block(region.block) if region.blocks else [])

    # Rings, descriptors and events.

    def ring(self, op: RingOp) -> None:
        self.rings[op.result] = deque()

    def acquire(self, op: AcquireOp) -> None:
        live, type_ = self.rings[op.ring], op.page.type
        if len(live) == _pages(op.ring):
            raise OpError(op, f"all {len(live)} pages of the ring {name_of(op.ring)} are live: nothing can release one")
        live.append(unwritten(type_.get_shape(), type_.element_type))
        self.values[op.page] = live[-1]

    def held(self, op: HeldOp) -> None:
        live = self.rings[op.ring]
        if not live:
            raise OpError(op, f"no page of the ring {name_of(op.ring)} is live")
        self.values[op.page] = live[0]

    def release(self, op: ReleaseOp) -> None:
        for page in op.pages:
            assert isinstance(page.owner, AcquireOp | HeldOp), "verified"
            ring = page.owner.ring
            live, array = self.rings[ring], self.values[page]
            if not live or live[0] is not array:
                raise OpError(op, f"{name_of(page)} is not the oldest live page of the ring {name_of(ring)}")
            live.popleft()
            array[...] = unwritten(array.shape, page.owner.page.type.element_type)

    def fetch(self, op: FetchOp) -> None:
        queue, dest = self.read((op.queue, op.dest))
        root = root_of(op.queue)
        position = self.fetched.get(root, 0)
        if position == len(queue):
            raise OpError(op, f"the queue {name_of(root)} ends after {position} descriptors, and the worker goes on")
        self.fetched[root] = position + 1
        write(op, dest, queue[position], op.dest.type.element_type)

    def scalars(self, op: ScalarsOp) -> None:
        words: Array = self.values[op.source]
        self.set(op.words, words[: len(op.words)].tolist())

    def counter(self, op: EventWaitOp | EventSignalOp) -> tuple[Array, int]:
        events, event = self.read((op.events, op.event))
        if not 0 <= event < len(events):
            raise OpError(op, f"names event {event} of {len(events)}")
        return events, event

    def event_wait(self, op: EventWaitOp) -> None:
        events, event = self.counter(op)
        needed = self.values[op.needed]
        if events[event] < needed:
            raise OpError(
                op,
                f"waits for {needed} signals of event {event}, and earlier tasks have given {events[event]}: "
                "no task may stand before those it depends on",
            )

    def event_signal(self, op: EventSignalOp) -> None:
        events, event = self.counter(op)
        events[event] += 1


def _declared(program: ProgramOp) -> dict[SSAValue, int]:
    """The declared maximum of each argument and value that has one."""
    maxima = maxima_of(program)
    numbers: dict[str, SSAValue] = dict(zip(program.argument_names, program.body.block.args, strict=True))
    if maxima:
        numbers |= {label: op.results[0] for op in program.walk() if is_value(op) and (label := label_of(op))}
    return {numbers[name]: maximum for name, maximum in maxima.items()}


def _pages(ring: SSAValue) -> int:
    assert isinstance(ring.owner, RingOp), "verified"
    return ring.owner.pages.value.data
