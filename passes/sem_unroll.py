"""`sem-unroll`: copy the bodies of loops whose trips are known (barrier-free, section 3.4).

Where an attribute `semaphores = "unrolled"` says so, of a loop, or of what it stands in, the loop is replaced by a copy
of its body for each iteration: thresholds of straight-line code are static. Bounds may be computed from constants, and
from the indices of loops around that are unrolled too; conditionals whose condition is known that way are decided.

    scf.for %i = %c0 to %c2 step %c1 {                         sem.inst @P.0 engine "e0" cost 64
      sem.inst @P engine "e0" cost 64                          sem.inst @C.0 engine "e1" cost 64
      sem.inst @C engine "e1" cost 64 after [@P offset 1]      sem.inst @P.1 engine "e0" cost 64
    } {semaphores = "unrolled"}                                sem.inst @C.1 engine "e1" cost 64 after [@P.0 offset 0]

A copy's label ends in the number of its iteration, from 0, of each unrolled loop around. Dependencies say exactly what
they said (`semaphores/copies`), or are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, is_value, label_of
from mpkc.dialects.scalars import bits_of, evaluate, is_scalar
from mpkc.dialects.sem_maxima import most_of
from mpkc.dialects.sem_structure import Instruction, Loop, Structure, structure_of
from mpkc.passes.semaphores.copies import Copies, Copy, Dependence, Frame, Wait, without_older

MOST_COPIES = 1_000_000  # of instructions and iterations in a program

Number = int | SSAValue
"""An integer that is known, or a value of the new program."""


@dataclass(frozen=True)
class UnrollPass(ModulePass):
    """Unroll what is to be unrolled.

    Attributes:
        all: every loop, whatever its attribute says.
    """

    name = "sem-unroll"

    all: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.walk():
            if isinstance(program, sem.ProgramOp | tile.KernelOp):
                unroll(program, self.all)


def unroll(program: sem.ProgramOp | tile.KernelOp, everything: bool = False) -> None:
    """Unroll loops of a verified program, in place.

    Args:
        everything: whether to unroll all loops, and not only those of kind `unrolled`.

    Raises:
        OpError: at a loop, that its trips are not known, and why; that it has more iterations than it was declared to
            have; that there are too many copies. At an instruction, that no dependencies on copies say what one of its
            own says.
    """
    structure = structure_of(program)
    chosen = set(structure.loops) if everything else _of_kind_unrolled(structure)
    if any(loop.counted for loop in chosen):
        _Unroller(program, structure, chosen).run()
    for op in program.walk():
        if op.attributes.get("semaphores") == StringAttr("unrolled"):
            del op.attributes["semaphores"]


def _of_kind_unrolled(structure: Structure) -> set[Loop]:
    """The loops of kind `unrolled`: by their own attribute, or by the nearest around them that has one."""
    chosen: set[Loop] = set()
    for loop in structure.loops:
        kind = loop.op.attributes.get("semaphores")
        if kind == StringAttr("unrolled") or (kind is None and loop.parent in chosen):
            chosen.add(loop)
    return chosen


class _Unroller:
    """Writes a program anew, with copies in place of loops.

    Attributes:
        values: what each value of the program before is here.
        known: the values here that are constants.
        frames: the loops around.
        block: what is written to.
    """

    def __init__(self, program: sem.ProgramOp | tile.KernelOp, structure: Structure, chosen: set[Loop]):
        self.program, self.structure, self.chosen = program, structure, chosen
        self.values: dict[SSAValue, Number] = {}
        self.known: dict[SSAValue, int] = {}
        self.constants: dict[tuple[int, Attribute], SSAValue] = {}
        self.frames: list[Frame] = []
        self.block = self.top = Block(arg_types=[arg.type for arg in program.body.block.args])
        self.copies = {instruction: Copies() for instruction in structure.instructions}
        self.labels = set(structure.by_label)
        self.left = MOST_COPIES

    def run(self) -> None:
        """Put the new body in the place of the old one."""
        old = self.program.body.block
        self.bind(old.args, self.top.args)
        self.items(old)
        for instruction in self.structure.instructions:
            self.depend(instruction)
        self.declare_maxima()
        self.program.body.detach_block(old)
        self.program.body.add_block(self.top)

    # Values.

    def bind(self, targets: Sequence[SSAValue], values: Sequence[Number]) -> None:
        for target, value in zip(targets, values, strict=True):
            self.values[target] = value
            if isinstance(value, SSAValue) and value.name_hint is None:
                value.name_hint = target.name_hint

    def number(self, value: SSAValue) -> int | None:
        """`value` of the program before, where it is known here."""
        found = self.values[value]
        return found if isinstance(found, int) else self.known.get(found)

    def value(self, value: SSAValue) -> SSAValue:
        """What `value` of the program before is here; a constant is written where there is none."""
        found = self.values[value]
        if isinstance(found, SSAValue):
            return found
        constant = self.constants.get((found, value.type))
        if constant is None:
            type_ = IndexType() if value.type == IndexType() else IntegerType(bits_of(value.type))
            op = arith.ConstantOp(IntegerAttr(found, type_))
            op.result.name_hint = f"c{found}" if found >= 0 else None
            self.top.insert_ops_before([op], self.top.first_op) if self.top.first_op else self.top.add_op(op)
            constant = self.constants[found, value.type] = op.result
            self.known[constant] = found
        return constant

    def passed(self, block: Block) -> list[Number]:
        """What the terminator of `block` passes on."""
        end = block.last_op
        return [self.values[operand] for operand in end.operands] if isinstance(end, scf.YieldOp) else []

    # Operations.

    def items(self, block: Block) -> None:
        """Everything in `block` but its terminator."""
        for op in block.ops:
            if op.has_trait(IsTerminator):
                continue
            if is_scalar(op):
                self.scalar(op)
            elif isinstance(op, scf.ForOp):
                self.for_loop(op)
            elif isinstance(op, scf.WhileOp):
                self.while_loop(op)
            elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
                self.conditional(op)
            else:
                self.other(op)

    def unrolling(self) -> bool:
        return any(frame.index is not None for frame in self.frames)

    def scalar(self, op: Operation) -> None:
        numbers = [self.number(operand) for operand in op.operands]
        known = [number for number in numbers if number is not None]
        result = evaluate(op, known) if len(known) == len(numbers) else None
        if result is not None and self.unrolling():
            self.values[op.results[0]] = result
            return
        copy = self.clone(op)
        if result is not None:
            self.known[copy.results[0]] = result
            if self.block is self.top:
                self.constants.setdefault((result, copy.results[0].type), copy.results[0])

    def clone(self, op: Operation) -> Operation:
        """A copy of an operation that is no control flow."""
        mapper = {
            operand: self.value(operand)
            for nested in op.walk()
            for operand in nested.operands
            if operand in self.values
        }
        copy = op.clone(mapper)
        self.block.add_op(copy)
        self.bind(op.results, copy.results)
        return copy

    def other(self, op: Operation) -> None:
        """An instruction, or a declaration of what instructions use."""
        copy = self.clone(op)
        if not is_instruction(op):
            return
        self.count(op)
        label, key = label_of(op), ".".join(str(frame.index - 1) for frame in self.frames if frame.index is not None)
        if label is not None and key:
            label = f"{label}.{key}"
            while label in self.labels:
                label += "_"
            self.labels.add(label)
            _set(copy, "label", StringAttr(label))
        self.copies[self.structure.by_op[op]].add(Copy(copy, label, tuple(self.frames)))

    def count(self, op: Operation) -> None:
        self.left -= 1
        if self.left < 0:
            raise OpError(op, f"unrolling makes more than {MOST_COPIES} copies: leave some loops as they are")

    # Control flow.

    def for_loop(self, op: scf.ForOp) -> None:
        loop = self.structure.loop_of[op.body.block]
        lower, upper, step = (self.number(value) for value in (op.lb, op.ub, op.step))
        index, *carried = op.body.block.args
        if loop in self.chosen:
            if lower is None or upper is None or step is None:
                raise self.unknown(op, {"lower bound": op.lb, "upper bound": op.ub, "step": op.step})
            if step < 1:
                raise OpError(op, f"the step is {step} here: a step is 1 or more")
            state = [self.values[value] for value in op.iter_args]
            for iteration, at in enumerate(range(lower, upper, step), start=1):
                self.begin(loop, iteration)
                self.values[index] = at
                self.bind(carried, state)
                self.items(op.body.block)
                state = self.passed(op.body.block)
                self.frames.pop()
            self.bind(op.results, state)
            return
        trips = None
        if lower is not None and upper is not None and step is not None and step > 0:
            trips = len(range(lower, upper, step))
        self.remains(op, {op.body.block: (Frame(loop, trips=trips),)})

    def while_loop(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        loop, second = self.structure.loop_of[before], self.structure.loop_of[after]
        end = before.last_op
        assert isinstance(end, scf.ConditionOp)
        if loop not in self.chosen:
            self.remains(op, {before: (Frame(loop),), after: (Frame(loop), Frame(second))})
            return
        state, iteration = [self.values[value] for value in op.arguments], 0
        while True:
            iteration += 1
            self.begin(loop, iteration)
            self.bind(before.args, state)
            self.items(before)
            goes_on = self.number(end.condition)
            if goes_on is None:
                raise self.unknown(op, {"condition": end.condition})
            state = [self.values[value] for value in end.args]
            if not goes_on:
                break
            self.frames.append(Frame(second, taken=True))
            self.bind(after.args, state)
            self.items(after)
            state = self.passed(after)
            del self.frames[-2:]
        self.frames.pop()
        self.bind(op.results, state)

    def conditional(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        region = self.branch(op) if self.unrolling() else None
        if region is None:
            blocks = [block for each in op.regions for block in each.blocks]
            self.remains(op, {block: (Frame(self.structure.loop_of[block]),) for block in blocks})
        elif region.blocks:
            self.frames.append(Frame(self.structure.loop_of[region.block], taken=True))
            self.items(region.block)
            self.bind(op.results, self.passed(region.block))
            self.frames.pop()

    def branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> Region | None:
        """The region that is known to be taken."""
        if isinstance(op, scf.IfOp):
            condition = self.number(op.cond)
            return None if condition is None else op.true_region if condition else op.false_region
        selector = self.number(op.arg)
        cases = dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
        return None if selector is None else cases.get(selector, op.default_region)

    def remains(self, op: Operation, frames: dict[Block, tuple[Frame, ...]]) -> None:
        """A loop or conditional that stays one, with `frames` around each of its blocks."""
        copy = op.clone_without_regions({operand: self.value(operand) for operand in op.operands})
        outer = self.block
        for region, new in zip(op.regions, copy.regions, strict=True):
            for block in region.blocks:
                self.block = Block(arg_types=[arg.type for arg in block.args])
                self.bind(block.args, self.block.args)
                self.frames += frames[block]
                self.items(block)
                del self.frames[-len(frames[block]) :]
                if block.last_op is not None:
                    self.clone(block.last_op)
                new.add_block(self.block)
        self.block = outer
        outer.add_op(copy)
        self.bind(op.results, copy.results)

    def begin(self, loop: Loop, iteration: int) -> None:
        """The iteration number `iteration`, from 1, of a loop that is unrolled."""
        self.count(loop.op)
        most = most_of(loop.op)
        if most is not None and iteration > most:
            raise OpError(loop.op, f"the loop has iteration {iteration}, and was declared to run {most} at most")
        self.frames.append(Frame(loop, iteration))

    def unknown(self, op: Operation, needed: dict[str, SSAValue]) -> OpError:
        """The error for a loop of whose bounds or condition some is not known."""
        what, value = next((what, value) for what, value in needed.items() if self.number(value) is None)
        return OpError(
            op, f"can't unroll this loop: its {what} comes from {self.origin(value)}, which is not known before it runs"
        )

    def origin(self, value: SSAValue) -> str:
        """What keeps `value` from being known."""
        while isinstance(value, OpResult) and is_scalar(value.op):
            value = next(operand for operand in value.op.operands if self.number(operand) is None)
        if isinstance(value, OpResult):
            if is_value(value.op):
                return f"the value @{label_of(value.op)}"
            return f"the result of '{value.op.name}'"
        assert isinstance(value, BlockArgument)
        parent = value.block.parent_op()
        if parent is self.program:
            return f"the argument %{self.program.argument_names[value.index]}"
        if isinstance(parent, scf.ForOp) and value.index == 0:
            return f"the index of loop '{self.structure.loop_of[value.block].name}'"
        return f"what loop '{self.structure.loop_of[value.block].name}' carries"

    # What refers to labels.

    def unrolled(self, instruction: Instruction) -> bool:
        """Whether a loop around `instruction` is."""
        return any(loop.counted and loop in self.chosen for loop in instruction.loop.path)

    def depend(self, consumer: Instruction) -> None:
        """Give the copies of `consumer` their dependencies on copies."""
        changed = {edge: self.unrolled(consumer) or self.unrolled(edge.producer) for edge in consumer.edges}
        if not any(changed.values()):
            return
        dependences = {edge: Dependence(edge, self.copies[edge.producer]) for edge in changed if changed[edge]}
        for copy in self.copies[consumer].all:
            waits: dict[Instruction, list[Wait]] = {}
            found = [edge.after for edge in consumer.edges if not changed[edge]]
            for edge, dependence in dependences.items():
                waits.setdefault(edge.producer, []).extend(dependence.of(copy))
            found += [wait.after for each in waits.values() for wait in without_older(each)]
            _set(copy.op, "after", ArrayAttr(dict.fromkeys(found)) if found else None)

    def declare_maxima(self) -> None:
        """Declare the maximum of a value for each copy."""
        maxima = self.program.attributes.get("maxima")
        if not isinstance(maxima, DictionaryAttr):
            return
        declared: dict[str, Attribute] = {}
        for name, maximum in maxima.data.items():
            instruction = self.structure.by_label.get(name)
            labels = [copy.label for copy in self.copies[instruction].all] if instruction else [name]
            declared.update({label: maximum for label in labels if label is not None})
        self.program.attributes["maxima"] = DictionaryAttr(declared)


def _set(op: Operation, name: str, value: Attribute | None) -> None:
    """Set what an instruction keeps under a fixed name, in the place where it keeps it; None to drop it."""
    kept = op.properties if name in op.properties else op.attributes
    if value is None:
        kept.pop(name, None)
    else:
        kept[name] = value
