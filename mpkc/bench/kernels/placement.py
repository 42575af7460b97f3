"""Semaphores placed by hand on the bare streams of a kernel, as an expert would (barrier-free, section 8.2, RQ3).

A kernel splits into streams, what each engine runs; a placement writes down who signals which semaphore, who waits for
it, and which registers hold thresholds. Each is a function `place(p, sizes)` in a module of
`mpkc.bench.kernels.manual`, which its kernel has as `place`. It names instructions by their labels, which the kernel
gives them, and loops by their indices:

    def place(p: Placement, sizes: Sizes) -> None:
        loaded = p.semaphore("load", "load_x")             # each retirement of @load_x adds 1
        used = p.semaphore("vector", "scale", "shift")     # these two add 2 an iteration

        load = p.engine("load")
        twice = load.register(-2, i=2)                     # -2 at first, 2 more at the end of each iteration of %i
        load.before("load_x", used >= twice)               # the slot is free

        vector = p.engine("vector")
        vector.before("scale", loaded >= vector.index("i") + 1)         # the native counter of the loop
        vector.before("shift", used >= vector.register(1, i=2))

        p.engine("store").before("store_all", used >= 2 * sizes["trips"])   # behind the loop, once

* A threshold is an integer, or a register or an index, times an integer, plus an integer. What is computed in front of
  the wait takes an operation for the product and one for the sum, once for all waits of an iteration that share it. A
  register or an index alone takes none; nor does an index plus the step of its loop, where nothing behind the wait uses
  the index, as the loop computes that anyway.
* Each register takes an operation an iteration of each loop that it changes in. It lives from the beginning of the
  stream to its end: one that changes in an inner loop goes on where it was when that loop comes again.
* A wait before a loop, `before("i", ...)`, holds its engine once, until the first instruction of the loop may issue.
* Counters are signed: thresholds that begin below 0 hold back nothing in the first iterations.
* Waits may ask for more than is owed, up to program order. Verification says what is missing, not what is too much.
* On a DMA queue, let a semaphore count the last of the transfers that come together. A queue's transfers retire in
  order, so it stands for the others. The next one on that semaphore may issue once it is known to be complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mpkc.dialects.engine import is_instruction, label_of
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_needs import yield_of
from mpkc.dialects.sem_streams import BarrierOp, MarkerOp, StreamOp, StreamsOp, WaitOp, threshold_type
from mpkc.passes.scalar_folding import constant_of


@dataclass(frozen=True, eq=False)
class Register:
    """A number that an engine keeps for its thresholds.

    Attributes:
        start: its value where the stream begins.
        steps: what is added to it at the end of each iteration, by loop.
    """

    start: int
    steps: dict[Operation, int]


@dataclass(frozen=True, eq=False)
class Index:
    """The index of a loop."""

    loop: scf.ForOp


@dataclass(frozen=True)
class Number:
    """A register or an index, times an integer, plus an integer."""

    source: Register | Index
    times: int = 1
    plus: int = 0

    def __add__(self, plus: int) -> "Number":
        return replace(self, plus=self.plus + plus)

    def __sub__(self, minus: int) -> "Number":
        return self + -minus

    def __mul__(self, times: int) -> "Number":
        return replace(self, times=self.times * times, plus=self.plus * times)


@dataclass(frozen=True)
class Condition:
    """The semaphore has reached the threshold."""

    semaphore: str
    threshold: Number | int


@dataclass(frozen=True)
class Semaphore:
    """`semaphore >= threshold` is a condition to wait for."""

    name: str

    def __ge__(self, threshold: Number | int) -> Condition:
        return Condition(self.name, threshold)


@dataclass
class Engine:
    """One engine: its waits and its registers.

    Attributes:
        named: its instructions by label, and its loops by the names of their indices.
        waits: by what they stand before, in order; the last one is the instruction's own.
    """

    name: str
    named: dict[str, Operation]
    waits: dict[Operation, list[Condition]] = field(default_factory=dict[Operation, list[Condition]])
    registers: list[Register] = field(default_factory=list[Register])

    def before(self, name: str, *conditions: Condition) -> None:
        """Wait before an instruction, or once before a loop."""
        self.waits.setdefault(self._find(name), []).extend(conditions)

    def register(self, start: int, **steps: int) -> Number:
        """A register that has `start` where the stream begins, and changes at the end of iterations.

        Args:
            steps: what is added, by loop.
        """
        register = Register(start, {self._loop(name): step for name, step in steps.items()})
        self.registers.append(register)
        return Number(register)

    def index(self, loop: str) -> Number:
        """The index of a loop, for thresholds in it."""
        return Number(Index(self._loop(loop)))

    def _loop(self, name: str) -> scf.ForOp:
        found = self._find(name)
        if not isinstance(found, scf.ForOp):
            raise KeyError(f"{name} is no scf.for of {self.name}")
        return found

    def _find(self, name: str) -> Operation:
        if name not in self.named:
            raise KeyError(f"{self.name} has no {name}; there are: {', '.join(self.named)}")
        return self.named[name]


class Placement:
    """Semaphores, waits and registers for bare streams.

    Args:
        streams: with no wait and no signal in them; see `bare`. They are changed.
    """

    def __init__(self, streams: StreamsOp):
        self.streams = streams
        self.engines = {name: Engine(name, dict(_named(stream))) for name, stream in streams.streams.items()}
        self.semaphores: dict[str, Semaphore] = {}

    def semaphore(self, name: str, *labels: str) -> Semaphore:
        """A semaphore that each retirement of some instructions adds 1 to.

        Raises:
            KeyError: there is no such instruction.
            ValueError: it signals another semaphore.
        """
        found = {label: op for engine in self.engines.values() for label, op in engine.named.items()}
        for label in labels:
            if label not in found or not is_instruction(found[label]):
                raise KeyError(f"there is no instruction {label} to signal {name}")
            if found[label].attributes.setdefault("signal", StringAttr(name)) != StringAttr(name):
                raise ValueError(f"{label} signals {found[label].attributes['signal']}, and can't signal {name} too")
        return self.semaphores.setdefault(name, Semaphore(name))

    def engine(self, name: str) -> Engine:
        return self.engines[name]

    def write(self) -> StreamsOp:
        """The streams with what was placed, not cleaned up."""
        self.streams.properties["semaphores"] = ArrayAttr([StringAttr(name) for name in self.semaphores])
        for name, stream in self.streams.streams.items():
            _Writer(self.engines[name], threshold_type(self.streams.counters)).stream(stream)
        return self.streams


def bare(streams: StreamsOp) -> StreamsOp:
    """Take everything that synchronizes out of streams; what then only counts is left to clean-up."""
    for op in tuple(streams.walk()):
        if isinstance(op, WaitOp | MarkerOp | BarrierOp):
            op.detach()
            op.erase()
        elif is_instruction(op):
            op.attributes.pop("signal", None)
    return streams


def _named(stream: StreamOp) -> Iterator[tuple[str, Operation]]:
    for op in stream.walk():
        if is_instruction(op) and (label := label_of(op)) is not None:
            yield label, op
        elif isinstance(op, scf.ForOp) and isinstance(name := op.attributes.get("loop"), StringAttr):
            yield name.data, op


Values = dict[Register, SSAValue]


class _Writer:
    """Writes what was placed on one engine into its stream."""

    def __init__(self, engine: Engine, type_: IntegerType):
        self.engine, self.type = engine, type_

    def stream(self, stream: StreamOp) -> None:
        block = stream.body.block
        if (first := block.first_op) is not None:
            self.block(block, {each: self._constant(each.start, first) for each in self.engine.registers})

    def block(self, block: Block, values: Values) -> Values:
        """Write the waits of a block, given the values of registers; their values behind it."""
        for op in list(block.ops):
            for condition in self.engine.waits.get(op, ()):
                threshold = self._threshold(condition.threshold, values, op)
                assert op.parent is not None
                op.parent.insert_op_before(WaitOp(condition.semaphore, threshold), op)
            if isinstance(op, scf.ForOp):
                values = self.loop(op, values)
            elif isinstance(op, CONTROL_OPS):
                for region in op.regions:
                    if region.blocks and self.block(region.block, values) != values:
                        raise ValueError(f"a register of {self.engine.name} changes in a loop in an {op.name}")
        return values

    def loop(self, op: scf.ForOp, values: Values) -> Values:
        """Let a loop carry the registers that change in it."""
        nested = set(op.walk())
        changing = [register for register in values if nested & register.steps.keys()]
        block, end = op.body.block, yield_of(op.body.block)
        inside = dict(values)
        for register in changing:
            inside[register] = block.insert_arg(self.type, len(block.args))
        inside = self.block(block, inside)
        passed = [self._stepped(register, op, inside[register], end) for register in changing]
        if not changing:
            return values
        Rewriter.replace_op(end, scf.YieldOp(*end.operands, *passed))
        made = scf.ForOp.create(
            operands=[*op.operands, *(values[register] for register in changing)],
            result_types=[*op.result_types, *(self.type for _ in changing)],
            attributes=dict(op.attributes),
            regions=[op.detach_region(op.body)],
        )
        made.location = op.location
        kept = len(op.results)
        Rewriter.replace_op(op, made, made.results[:kept])
        return {**values, **dict(zip(changing, made.results[kept:], strict=True))}

    def _stepped(self, register: Register, loop: scf.ForOp, value: SSAValue, end: Operation) -> SSAValue:
        """What a register is at the end of an iteration."""
        step = register.steps.get(loop, 0)
        return self._sum(value, self._constant(step, end), end) if step else value

    def _threshold(self, threshold: Number | int, values: Values, op: Operation) -> SSAValue:
        """The value of a threshold, computed before `op`."""
        if isinstance(threshold, int):
            return self._constant(threshold, op)
        source, plus = threshold.source, threshold.plus
        if isinstance(source, Register):
            value = values[source]
        else:
            index, step = source.loop.body.block.args[0], source.loop.step
            if threshold.times == 1 and plus == constant_of(step):
                index, plus = self._sum(index, step, op), 0
            value = _placed(arith.IndexCastOp(index, self.type), op)
        if threshold.times != 1:
            value = _placed(arith.MuliOp(value, self._constant(threshold.times, op)), op)
        return self._sum(value, self._constant(plus, op), op) if plus else value

    def _sum(self, a: SSAValue, b: SSAValue, op: Operation) -> SSAValue:
        return _placed(arith.AddiOp(a, b), op)

    def _constant(self, value: int, op: Operation) -> SSAValue:
        return _placed(arith.ConstantOp(IntegerAttr(value, self.type)), op)


def _placed(made: arith.ConstantOp | arith.AddiOp | arith.MuliOp | arith.IndexCastOp, op: Operation) -> SSAValue:
    """The result of what was made, put in before `op`."""
    assert op.parent is not None
    op.parent.insert_op_before(made, op)
    return made.result
