"""Random sem programs, built as IR without text, for checks that run by the thousand.

They are the shapes of sem_programs with lower bounds and steps of every kind, empty bodies, bounds by outer indices and
by values, values carried over back edges; the rules that their dependencies keep are those of sem_programs.
"""

from dataclasses import dataclass, field
from random import Random

from sem_programs import (
    ENGINES,
    MOST_EXECUTIONS,
    Control,
    Inst,
    Program,
    carried_around,
    edge_is_allowed,
    has_cycle,
    located,
    random_edge,
    shared_loops,
)
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IndexType, IntegerAttr, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from mpkc.dialects.sem import InstOp, ProgramOp, ValueOp
from mpkc.dialects.sem_distance import AfterAttr, distance, offset
from mpkc.runtime.bindings import Bindings, bindings_of

INDEX = IndexType()
LESS_UNSIGNED = 6  # the predicate ult of arith.cmpi
REUSED = 0.3  # how often the loops around the one that carries a dependency carry it, too
MOST = 12  # iterations that no loop exceeds, by its bounds


@dataclass
class Made:
    """A random program: its operation, what sem_programs knows of it, values for its run-time integers."""

    op: ProgramOp
    shape: Program

    @property
    def bindings(self) -> dict[str, object]:
        return self.shape.bindings


@dataclass
class Scope:
    """The integers that a block can use: index values of 0 to about 4, conditions, steps."""

    numbers: list[SSAValue]
    flags: list[SSAValue]


def make_program(
    rng: Random, depth: int = 3, instructions: tuple[int, int] = (3, 10), edges: tuple[int, int] = (1, 6)
) -> Made:
    """A valid program of loops and conditionals nested at most `depth` deep."""
    builder = _Builder(rng, depth, rng.randint(*instructions))
    made = builder.build()
    wanted = rng.randint(*edges)
    for _ in range(3 * wanted):
        producer, consumer, components = random_edge(rng, made.shape)
        if not edge_is_allowed(made.shape, producer, consumer, components):
            continue
        after = made.shape.instructions[consumer].after
        after.append((producer, components))
        if has_cycle(made.shape):
            after.pop()
            continue
        if rng.random() < REUSED:
            shared = shared_loops(made.shape.ways[producer], made.shape.ways[consumer])
            around = [(producer, each) for each in carried_around(components, shared)]
            after += [each for each in around if edge_is_allowed(made.shape, producer, consumer, each[1])]
        wanted -= 1
        if not wanted:
            break
    for label, inst in made.shape.instructions.items():
        if inst.after:
            builder.ops[label].properties["after"] = ArrayAttr([after_attr(*after) for after in inst.after])
    return made


def after_attr(label: str, components: object) -> AfterAttr:
    return distance(label, *components) if isinstance(components, tuple) else offset(label, components)


def bindings_of_runs(rng: Random, made: Made, count: int = 8) -> list[Bindings]:
    """Values for the run-time integers of a program, for some runs."""

    def values(of: bool | int) -> list[int | bool]:
        pattern = [rng.random() < 0.5 if isinstance(of, bool) else rng.randint(0, 3) for _ in range(7)]
        return (pattern * MOST_EXECUTIONS)[: 8 * MOST_EXECUTIONS]

    return [
        bindings_of(
            {"n": rng.randint(0, 4), "m": rng.randint(1, 3), "flag": rng.random() < 0.5}
            | {label: values(given[0]) for label, given in made.shape.values.items()}
        )
        for _ in range(count)
    ]


def out_of_scope(op: Operation, visible: set[SSAValue] | None = None) -> SSAValue | None:
    """An operand in `op` that is not defined before it in its block or in one around it, if there is one."""
    visible = visible if visible is not None else set()
    for region in op.regions:
        for block in region.blocks:
            local = list(block.args)
            visible.update(local)
            for inner in block.ops:
                wrong = next((operand for operand in inner.operands if operand not in visible), None)
                if wrong is None and inner.regions:
                    wrong = out_of_scope(inner, visible)
                if wrong is not None:
                    return wrong
                local += inner.results
                visible.update(inner.results)
            visible.difference_update(local)
    return None


@dataclass
class _Builder:
    """Writes blocks, and the tree of them beside."""

    rng: Random
    depth: int
    left: int  # instructions to come
    count: int = 0
    loops: int = 0
    ops: dict[str, InstOp | ValueOp] = field(default_factory=dict)
    values: dict[str, list[int | bool]] = field(default_factory=dict)
    block: Block = field(default_factory=Block)

    def build(self) -> Made:
        rng = self.rng
        self.promises = rng.random() < 0.5
        arguments = {"n": rng.randint(0, 4), "m": rng.randint(1, 3), "flag": rng.random() < 0.5}
        block = self.block = Block(arg_types=[INDEX, INDEX, i1])
        for arg, name in zip(block.args, arguments, strict=True):
            arg.name_hint = name
        self.constants = [self.add(arith.ConstantOp(IntegerAttr(i, INDEX))).result for i in range(5)]
        self.step = block.args[1]
        body = self.items(self.depth, Scope([*block.args[:2], *self.constants[1:3]], [block.args[2]]))
        while not any(True for _ in located(body)):
            body.append(self.inst())
        attributes = {}
        if self.promises:
            names = [
                "n",
                "m",
                *(label for label, op in self.ops.items() if isinstance(op, ValueOp) and op.result.type == INDEX),
            ]
            attributes["maxima"] = DictionaryAttr({name: IntegerAttr(4, INDEX) for name in names})
        return Made(ProgramOp("random", Region(block), attributes), Program(body, arguments, self.values))

    def add(self, op):
        self.block.add_op(op)
        return op

    def inside(self, block: Block) -> Block:
        outer, self.block = self.block, block
        return outer

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def items(self, depth: int, scope: Scope) -> list:
        """Fills the current block, without its terminator."""
        rng, items = self.rng, []
        scope = Scope(list(scope.numbers), list(scope.flags))
        outermost = depth == self.depth
        if not outermost and rng.random() < 0.08:
            return items
        for _ in range(rng.randint(2, 4) if outermost else rng.randint(1, 3)):
            if self.left <= 0:
                break
            kind = rng.choice(("inst", "inst", "inst", "inst", "value", "for", "for", "for", "while", "if", "switch"))
            if kind == "value":
                items.append(self.value(scope))
            elif kind == "inst" or depth == 0 or self.loops > self.depth:
                items.append(self.inst())
            else:
                self.loops += 1
                items.append(getattr(self, f"make_{kind}")(depth - 1, scope))
        return items

    def inst(self) -> Inst:
        self.left -= 1
        inst = Inst(
            self.label("I"), self.rng.choice(ENGINES), self.rng.choice((1, 40, 64)), self.rng.choice((None, 150))
        )
        self.ops[inst.label] = self.add(InstOp(inst.label, inst.engine, inst.cost, latency=inst.latency))
        return inst

    def value(self, scope: Scope) -> Inst:
        self.left -= 1
        type_, values, highest = self.rng.choice(((INDEX, scope.numbers, 3), (i1, scope.flags, 1)))
        inst = Inst(self.label("V"), self.rng.choice(ENGINES), 40, None, "value")
        op = self.ops[inst.label] = self.add(ValueOp(inst.label, inst.engine, 40, result_types=[type_]))
        pattern = [self.rng.randint(0, highest) for _ in range(5)]
        self.values[inst.label] = [bool(v) if type_ is i1 else v for v in (pattern * MOST_EXECUTIONS)[:MOST_EXECUTIONS]]
        values += [op.result] * 2
        return inst

    def bounds(self, scope: Scope) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Lower and upper bound, from 0 to about 5, and step. What can be proved of them leaves room for 2 trips."""
        rng, (zero, one, two, *_) = self.rng, self.constants
        number = rng.choice(scope.numbers)
        shape = rng.random()
        if shape < 0.06:
            return zero, rng.choice(self.constants), one
        if shape < 0.3:
            return zero, self.add(arith.MinUIOp(number, self.constants[rng.choice((2, 3, 4))])).result, one
        lower = rng.choice((zero, zero, one, two, rng.choice(scope.numbers)))
        return lower, number, rng.choice((one, one, two, self.step))

    def promise(self, op) -> None:
        if self.promises:
            op.attributes["most"] = IntegerAttr(MOST, i64)

    def make_for(self, depth: int, scope: Scope) -> Control:
        rng = self.rng
        lower, upper, step = self.bounds(scope)
        carries = rng.random() < 0.25
        body = Block(arg_types=[INDEX, INDEX] if carries else [INDEX])
        outer = self.inside(body)
        inner = Scope([*scope.numbers, *body.args, *body.args], scope.flags)
        items = self.items(depth, inner)
        last = [op.result for op in body.ops if isinstance(op, ValueOp) and op.result.type == INDEX]
        passed = [rng.choice((*last, *scope.numbers, body.args[1]))] if carries else []
        self.add(scf.YieldOp(*passed))
        self.inside(outer)
        op = self.add(scf.ForOp(lower, upper, step, [self.constants[1]] if carries else [], body))
        self.promise(op)
        scope.numbers += op.results
        return Control("for", [items])

    def make_while(self, depth: int, scope: Scope) -> Control:
        _, bound, _ = self.bounds(scope)
        before, after = Block(arg_types=[INDEX]), Block(arg_types=[INDEX])
        outer = self.inside(before)
        first = self.items(depth, Scope([*scope.numbers, *before.args], scope.flags))
        goes = self.add(arith.CmpiOp(before.args[0], bound, LESS_UNSIGNED))
        self.add(scf.ConditionOp(goes, before.args[0]))
        self.inside(after)
        second = self.items(depth, Scope([*scope.numbers, *after.args], scope.flags))
        following = self.add(arith.AddiOp(after.args[0], self.constants[1]))
        self.add(scf.YieldOp(following))
        self.inside(outer)
        op = self.add(scf.WhileOp([self.constants[0]], [INDEX], Region(before), Region(after)))
        self.promise(op)
        scope.numbers += op.results
        return Control("while", [[*first, Control("after", [second])]])

    def make_if(self, depth: int, scope: Scope) -> Control:
        if self.rng.random() < 0.4:
            found = self.add(arith.CmpiOp(self.rng.choice(scope.numbers), self.constants[1], LESS_UNSIGNED))
            condition = found.result
        else:
            condition = self.rng.choice(scope.flags)
        regions = [self.branch(depth, scope) for _ in range(self.rng.choice((1, 2)))]
        self.add(scf.IfOp(condition, [], *(region for region, _ in regions)))
        return Control("if", [items for _, items in regions])

    def make_switch(self, depth: int, scope: Scope) -> Control:
        selector = self.rng.choice(scope.numbers)
        regions = [self.branch(depth, scope) for _ in range(self.rng.choice((1, 2, 3)))]
        *cases, default = [region for region, _ in regions]
        numbers = DenseArrayBase.from_list(i64, list(range(len(cases))))
        self.add(scf.IndexSwitchOp(selector, numbers, default, cases, []))
        return Control("switch", [items for _, items in regions])

    def branch(self, depth: int, scope: Scope) -> tuple[Region, list]:
        block = Block()
        outer = self.inside(block)
        items = self.items(depth, scope)
        self.add(scf.YieldOp())
        self.inside(outer)
        return Region(block), items
