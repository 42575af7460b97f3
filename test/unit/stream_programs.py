"""Random streams, and an executor of streams that says what each engine does: helpers of tests."""

import random
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from mpkc.dialects.engine import is_instruction, label_of, signal_of
from mpkc.dialects.scalars import SCALAR_OPS, evaluate
from mpkc.dialects.sem import InstOp, ValueOp
from mpkc.dialects.sem_streams import (
    BarrierOp,
    IterationOp,
    MarkerOp,
    ReadOp,
    StreamOp,
    StreamsOp,
    WaitOp,
)

INDEX = IndexType()


@dataclass
class Executor:
    """Runs one stream; semaphores never block, reads give small numbers.

    Attributes:
        events: what the engine did, in order: waits with their thresholds, instructions, directives, barriers.
    """

    values: dict[SSAValue, int]
    events: list[tuple[object, ...]] = field(default_factory=list)
    reads: int = 0
    alu: int = 0

    def block(self, block: Block, args: list[int] | None = None) -> list[int]:
        """The operands of the terminator."""
        self.values.update(zip(block.args, args or [], strict=False))
        for op in block.ops:
            if isinstance(op, scf.YieldOp | scf.ConditionOp):
                return self.get(op.operands)
            self.operation(op)
        return []

    def get(self, values) -> list[int]:
        return [self.values[value] for value in values]

    def set(self, op: Operation, results: list[int]) -> None:
        self.values.update(zip(op.results, results, strict=True))

    def operation(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                lower, upper, step, *carried = self.get(op.operands)
                while lower < upper:
                    carried = self.block(op.body.block, [lower, *carried])
                    lower += step
                self.set(op, carried)
            case scf.WhileOp():
                carried = self.get(op.operands)
                while True:
                    again, *passed = self.block(op.before_region.block, carried)
                    if not again:
                        break
                    carried = self.block(op.after_region.block, passed)
                self.set(op, passed)
            case scf.IfOp():
                region = op.true_region if self.values[op.cond] else op.false_region
                self.set(op, self.block(region.block) if region.blocks else [])
            case scf.IndexSwitchOp():
                cases = dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
                region = cases.get(self.values[op.arg], op.default_region)
                self.set(op, self.block(region.block))
            case WaitOp():
                self.events.append(("wait", op.semaphore.data, *self.get(op.operands)))
            case ReadOp():
                self.reads += 1
                value = self.reads * 7 % 3
                value = value % 2 if op.result.type == i1 else value
                self.values[op.result] = value
                self.events.append(("read", op.source.data, value))
            case IterationOp():
                self.events.append(("iteration", op.loop.data, op.depth.data))
            case BarrierOp():
                self.events.append(("barrier", *(name.data for name in op.semaphores)))
            case _ if type(op) in SCALAR_OPS:
                self.alu += not isinstance(op, arith.ConstantOp)
                self.values[op.results[0]] = evaluate(op, self.get(op.operands))
            case _:
                assert is_instruction(op), op
                self.events.append((op.name, label_of(op), signal_of(op), *self.get(op.operands)))


def execute(streams: StreamsOp, arguments: list[int], alu: list[int] | None = None) -> dict[str, list]:
    """The events of each engine; `alu` gets the number of arithmetic operations of each."""
    shared = dict(zip(streams.body.block.args, arguments, strict=True))
    found = {}
    for op in streams.body.block.ops:
        if not isinstance(op, StreamOp):
            shared[op.results[0]] = evaluate(op, [shared[operand] for operand in op.operands])
            continue
        executor = Executor(dict(shared))
        executor.block(op.body.block)
        found[op.engine.data] = executor.events
        if alu is not None:
            alu.append(executor.alu)
    return found


def effects(events: list) -> list:
    """Events without the directives of iterations, which go with loops that hold nothing else."""
    return [event for event in events if event[0] != "iteration"]


@dataclass
class Scope:
    """Values by type that the next operation may use."""

    values: dict[Attribute, list[SSAValue]]

    def inner(self) -> "Scope":
        return Scope({type_: list(values) for type_, values in self.values.items()})


class Generator:
    """Draws streams of one engine each; loops end after a few trips."""

    def __init__(self, seed: int, size: int = 12, depth: int = 3):
        self.random = random.Random(seed)
        self.names = 0
        self.left = size
        self.depth = depth
        self.counted = 0
        self.engine = ""

    def streams(self, engines: int = 2) -> StreamsOp:
        top = Block(arg_types=[INDEX, INDEX, i1])
        for arg, name in zip(top.args, ("n", "m", "k"), strict=True):
            arg.name_hint = name
        size = self.left
        semaphores = [f"s{at}" for at in range(3)]
        for at in range(engines):
            self.engine, self.left = f"e{at}", size
            body = Block()
            b = Builder(InsertPoint.at_end(body))
            if at == 0:
                b.insert(ValueOp("V", self.engine, 30, result_types=[INDEX]))
                b.insert(ValueOp("W", self.engine, 30, result_types=[i1]))
            scope = Scope({INDEX: list(top.args[:2]), i1: [top.args[2]], i32: []})
            for value in (0, 1, 2):
                scope.values[i32].append(self.constant(b, value, i32))
                scope.values[INDEX].append(self.constant(b, value, INDEX))
            self.statements(b, scope, 0)
            top.add_op(StreamOp(self.engine, Region(body)))
        return StreamsOp("random", IntegerType(32, Signedness.UNSIGNED), semaphores, Region(top))

    def module(self, engines: int = 2) -> ModuleOp:
        return ModuleOp([self.streams(engines)])

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def constant(self, b: Builder, value: int, type_: Attribute) -> SSAValue:
        return b.insert(arith.ConstantOp(IntegerAttr(value, type_))).results[0]

    def pick(self, scope: Scope, type_: Attribute) -> SSAValue:
        return self.random.choice(scope.values[type_])

    def statements(self, b: Builder, scope: Scope, depth: int) -> None:
        for _ in range(self.random.randint(2, 6)):
            if self.left <= 0:
                break
            kinds = [self.arithmetic, self.arithmetic, self.arithmetic, self.instruction, self.instruction]
            if depth < self.depth:
                kinds += [self.loop, self.loop, self.conditional, self.switch, self.while_loop]
            self.random.choice(kinds)(b, scope, depth)
        self.instruction(b, scope, depth)

    def arithmetic(self, b: Builder, scope: Scope, depth: int) -> None:
        type_ = self.random.choice([INDEX, i32, i32])
        x, y = self.pick(scope, type_), self.pick(scope, type_)
        match self.random.randrange(8):
            case 0:
                op = arith.CmpiOp(x, y, self.random.choice(["eq", "slt", "ugt", "sge", "ult"]))
            case 1:
                op = arith.ExtUIOp(self.pick(scope, i1), i32)
            case 2:
                op = arith.SelectOp(self.pick(scope, i1), x, y)
            case 3:
                op = arith.IndexCastOp(x, i32 if type_ == INDEX else INDEX)
            case 4:
                op = arith.MuliOp(x, y)
            case 5:
                op = arith.SubiOp(x, y)
            case _:
                op = arith.AddiOp(x, y)
        result = b.insert(op).results[0]
        scope.values[result.type].append(result)

    def instruction(self, b: Builder, scope: Scope, depth: int) -> None:
        self.left -= 1
        for _ in range(self.random.choice([0, 1, 1, 2])):
            b.insert(WaitOp(self.random.choice(["s0", "s1", "s2"]), self.pick(scope, i32)))
        match self.random.randrange(8):
            case 0:
                source, type_ = self.random.choice([("V", INDEX), ("W", i1)])
                read = ReadOp(self.name("r"), self.engine, source, type_)
                b.insert(read)
                scope.values[read.result.type].append(read.result)
            case 1:
                b.insert(MarkerOp(self.name("m"), self.engine))
            case _:
                b.insert(InstOp(self.name("p"), self.engine, 64))
        if self.random.random() < 0.05:
            b.insert(BarrierOp(["s0"]))

    def bound(self, b: Builder, scope: Scope) -> SSAValue:
        """A small number."""
        x = self.pick(scope, INDEX)
        return b.insert(arith.RemUIOp(x, self.constant(b, 3, INDEX))).results[0]

    def carried(self, scope: Scope) -> list[SSAValue]:
        return [
            self.pick(scope, self.random.choice([i32, i32, INDEX])) for _ in range(self.random.choice([0, 1, 2, 3]))
        ]

    def enter(self, b: Builder, scope: Scope, args: list[SSAValue]) -> Scope:
        inner = scope.inner()
        for arg in args:
            inner.values[arg.type] += [arg, arg]
        return inner

    def passed(self, b: Builder, scope: Scope, types: list[Attribute], args: list[SSAValue]) -> list[SSAValue]:
        """What an iteration passes on: something that was computed, an increment, or what it was given."""
        out = []
        for at, type_ in enumerate(types):
            match self.random.randrange(3):
                case 0 if args:
                    value = b.insert(arith.AddiOp(args[at], self.constant(b, 1, type_))).results[0]
                case 1 if args:
                    value = self.random.choice([arg for arg in args if arg.type == type_])
                case _:
                    value = self.pick(scope, type_)
            out.append(value)
        return out

    def loop(self, b: Builder, scope: Scope, depth: int) -> None:
        inits = self.carried(scope)
        types = [init.type for init in inits]
        block = Block(arg_types=[INDEX, *types])
        name = self.name("l")
        inner = Builder(InsertPoint.at_end(block))
        self.counted += 1
        inner.insert(IterationOp(name, self.counted))
        nested = self.enter(inner, scope, list(block.args))
        self.statements(inner, nested, depth + 1)
        self.counted -= 1
        inner.insert(scf.YieldOp(*self.passed(inner, nested, types, list(block.args[1:]))))
        lower = self.constant(b, self.random.choice([0, 0, 1]), INDEX)
        upper = (
            self.bound(b, scope) if self.random.random() < 0.7 else self.constant(b, self.random.randrange(4), INDEX)
        )
        op = b.insert(scf.ForOp(lower, upper, self.constant(b, self.random.choice([1, 1, 2]), INDEX), inits, block))
        op.attributes["loop"] = StringAttr(name)
        self.define(scope, op)

    def while_loop(self, b: Builder, scope: Scope, depth: int) -> None:
        inits = [self.constant(b, 0, INDEX), *self.carried(scope)]
        types = [init.type for init in inits]
        limit = self.bound(b, scope)
        before, after = Block(arg_types=types), Block(arg_types=[INDEX, i32, *types[1:]])
        first, second = Builder(InsertPoint.at_end(before)), Builder(InsertPoint.at_end(after))
        self.counted += 1
        first.insert(IterationOp(self.name("w"), self.counted))
        nested = self.enter(first, scope, list(before.args))
        self.statements(first, nested, depth + 1)
        more = first.insert(arith.CmpiOp(before.args[0], limit, "ult")).results[0]
        passed = [before.args[0], self.pick(nested, i32), *(self.pick(nested, type_) for type_ in types[1:])]
        first.insert(scf.ConditionOp(more, *passed))
        second.insert(IterationOp(self.name("a"), 0))
        nested = self.enter(second, scope, list(after.args))
        self.statements(second, nested, depth + 1)
        self.counted -= 1
        step = second.insert(arith.AddiOp(after.args[0], self.constant(second, 1, INDEX))).results[0]
        second.insert(scf.YieldOp(step, *self.passed(second, nested, types[1:], list(after.args[2:]))))
        op = b.insert(scf.WhileOp(inits, [arg.type for arg in after.args], Region(before), Region(after)))
        self.define(scope, op)

    def branch(self, scope: Scope, types: list[Attribute], depth: int) -> Region:
        block = Block()
        inner = Builder(InsertPoint.at_end(block))
        inner.insert(IterationOp(self.name("b"), 0))
        nested = scope.inner()
        if self.random.random() < 0.8:
            self.statements(inner, nested, depth + 1)
        inner.insert(scf.YieldOp(*self.passed(inner, nested, types, [])))
        return Region(block)

    def conditional(self, b: Builder, scope: Scope, depth: int) -> None:
        types = [self.random.choice([i32, INDEX]) for _ in range(self.random.choice([0, 0, 1, 2]))]
        then = self.branch(scope, types, depth)
        other = self.branch(scope, types, depth) if types or self.random.random() < 0.5 else None
        self.define(scope, b.insert(scf.IfOp(self.pick(scope, i1), types, then, other)))

    def switch(self, b: Builder, scope: Scope, depth: int) -> None:
        types = [self.random.choice([i32, INDEX]) for _ in range(self.random.choice([0, 1]))]
        cases = self.random.sample(range(3), self.random.choice([1, 2]))
        regions = [self.branch(scope, types, depth) for _ in cases]
        default = self.branch(scope, types, depth)
        op = scf.IndexSwitchOp(self.bound(b, scope), DenseArrayBase.from_list(i64, cases), default, regions, types)
        self.define(scope, b.insert(op))

    def define(self, scope: Scope, op: Operation) -> None:
        for result in op.results:
            scope.values[result.type].append(result)
