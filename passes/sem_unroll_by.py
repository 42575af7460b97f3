"""`sem-unroll-by`: several iterations of an innermost loop become one (barrier-free, section 8.2, RQ2).

A loop with an attribute `unroll = N` holds N copies of its body and runs a Nth of its iterations. The branch, and what
counters cost, is then paid once for N iterations.

    scf.for %i = %c0 to %c8 step %c1 {                         scf.for %i = %c0 to %c8 step %step {
      sem.inst @P engine "e0" cost 64 after [@C offset 1]        sem.inst @P.0 engine "e0" cost 64 after [@C.1 offset 1]
      sem.inst @C engine "e1" cost 64 after [@P offset 0]        sem.inst @C.0 engine "e1" cost 64 after [@P.0 offset 0]
    } {unroll = 2}                                               sem.inst @P.1 engine "e0" cost 64 after [@C.0 offset 0]
                                                                 sem.inst @C.1 engine "e1" cost 64 after [@P.1 offset 0]
                                                               }

How often the loop runs has to be known, and a multiple of N. It holds instructions and arithmetic alone: then an
engine that has come to the copy which stands for the last iteration that is owed has been through all copies before it,
and one wait is enough. What runs outside of the loop is waited for by the first copy alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects import sem, tile
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, distance, offset
from mpkc.dialects.sem_maxima import most_of
from mpkc.dialects.sem_needs import yield_of
from mpkc.dialects.sem_structure import Edge, Structure, structure_of
from mpkc.passes.scalar_folding import constant_of

UNROLL = "unroll"


@dataclass(frozen=True)
class UnrollByPass(ModulePass):
    """Unroll loops by the factor that their attribute `unroll` names."""

    name = "sem-unroll-by"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.walk():
            if isinstance(program, sem.ProgramOp | tile.KernelOp):
                unroll_by(program)


def unroll_by(program: sem.ProgramOp | tile.KernelOp) -> None:
    """Unroll the loops of a verified program that have an attribute `unroll`, in place.

    Raises:
        OpError: at a loop, that it can't be unrolled by that factor, and why.
    """
    for op in tuple(program.walk()):
        if (given := op.attributes.get(UNROLL)) is not None:
            loop, factor = _asked(op, given)
            del op.attributes[UNROLL]
            if factor > 1:
                _Unroller(program, loop, factor).run()


def unrolled_by(program: sem.ProgramOp | tile.KernelOp, most: int) -> list[sem.ProgramOp | tile.KernelOp]:
    """Copies of a program in which loops are unrolled, each as far as it can be by at most 2, 3, ... `most`."""
    found: list[sem.ProgramOp | tile.KernelOp] = []
    before: list[int] = []
    for limit in range(2, most + 1):
        copy = program.clone()
        loops = {op: max(factors_of(op, limit), default=1) for op in copy.walk() if isinstance(op, scf.ForOp)}
        factors = list(loops.values())
        if factors != before and any(factor > 1 for factor in factors):
            for op, factor in loops.items():
                if factor > 1:
                    op.attributes[UNROLL] = IntegerAttr(factor, i64)
            unroll_by(copy)
            found.append(copy)
        before = factors
    return found


def factors_of(op: scf.ForOp, most: int) -> Iterator[int]:
    """The factors from 2 to `most` that a loop can be unrolled by."""
    trips = _trips(op)
    if trips and not any(isinstance(each, CONTROL_OPS) for each in op.body.block.ops):
        yield from (factor for factor in range(2, min(most, trips) + 1) if trips % factor == 0)


def _trips(op: scf.ForOp) -> int | None:
    lower, upper, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    return None if lower is None or upper is None or step is None or step < 1 else len(range(lower, upper, step))


def _asked(op: Operation, given: Attribute) -> tuple[scf.ForOp, int]:
    """The loop and the factor that an attribute asks for."""
    if not isinstance(op, scf.ForOp):
        raise OpError(op, f"'{op.name}' can't be unrolled by a factor: an scf.for can")
    if not isinstance(given, IntegerAttr) or given.value.data < 1:
        raise OpError(op, f"unroll is a number of iterations, 1 or more, such as unroll = 4, not {given}")
    inner = next((each for each in op.body.block.ops if isinstance(each, CONTROL_OPS)), None)
    if inner is not None:
        raise OpError(inner, f"'{inner.name}' stands in a loop that is unrolled by a factor: only innermost loops are")
    factor, trips = given.value.data, _trips(op)
    if trips is None:
        raise OpError(op, "can't unroll this loop by a factor: how often it runs is not known; use constant bounds")
    if trips % factor:
        possible = ", ".join(str(each) for each in range(2, trips + 1) if trips % each == 0)
        raise OpError(op, f"can't unroll {trips} iterations by {factor}: use one of {possible}")
    return op, factor


class _Unroller:
    """Unrolls one loop.

    Attributes:
        loop: the loop as the structure of the program before knows it.
        labels: those of the copies, by the label before and the number of the copy.
    """

    def __init__(self, program: sem.ProgramOp | tile.KernelOp, op: scf.ForOp, factor: int):
        self.program, self.op, self.factor = program, op, factor
        self.structure: Structure = structure_of(program)
        self.loop = self.structure.loop_of[op.body.block]
        taken = set(self.structure.by_label)
        self.labels: dict[tuple[str, int], str] = {}
        for label, instruction in self.structure.by_label.items():
            if instruction.loop is self.loop:
                for number in range(factor):
                    made = f"{label}.{number}"
                    while made in taken:
                        made += "_"
                    taken.add(made)
                    self.labels[label, number] = made

    def run(self) -> None:
        for instruction in self.structure.instructions:
            if instruction.loop is not self.loop:
                self.depend(instruction.op, [each for edge in instruction.edges for each in self.outside(edge)])
        self.replace_body()
        self.declare_maxima()

    # Dependencies.

    def depend(self, op: Operation, after: Iterable[AfterAttr]) -> None:
        found = ArrayAttr(dict.fromkeys(after))
        kept = op.properties if "after" in op.properties else op.attributes
        if found.data:
            kept["after"] = found
        else:
            kept.pop("after", None)

    def outside(self, edge: Edge) -> Iterator[AfterAttr]:
        """A dependency of what stands outside of the loop: on the last copy, which retires last."""
        if edge.producer.loop is not self.loop:
            yield edge.after
        elif not edge.never_owed:
            yield _after(self.of(edge, self.factor - 1), edge.counted)

    def inside(self, edge: Edge, number: int) -> Iterator[AfterAttr]:
        """A dependency of copy `number` in the loop."""
        if edge.producer.loop is not self.loop:
            if number == 0:  # which its engine comes to before the others
                yield edge.after
            return
        last = self.factor - 1
        *around, back = edge.counted
        if EVERY in around or back == EVERY:
            yield _after(self.of(edge, last), edge.counted)
            return
        assert isinstance(back, int)
        target = number - back
        # An iteration of a loop around may end before the target: then the last copy is the last that runs.
        copies = (target % self.factor, last) if back < 0 else (target % self.factor,)
        for copy in copies:
            yield _after(self.of(edge, copy), (*around, -((target - copy) // self.factor)))

    def of(self, edge: Edge, number: int) -> str:
        label = edge.producer.label
        assert label is not None, "a producer has a label"
        return self.labels[label, number]

    # The loop.

    def replace_body(self) -> None:
        """Put copies of the body, one behind the other, in the place of it."""
        step = constant_of(self.op.step)
        assert step is not None
        before = self.op.body.block
        block = Block(arg_types=[arg.type for arg in before.args])
        for arg, given in zip(block.args, before.args, strict=True):
            arg.name_hint = given.name_hint
        index, *state = block.args
        for number in range(self.factor):
            at = _ahead(block, index, step * number)
            state = self.copy(block, dict(zip(before.args, (at, *state), strict=True)), number)
        block.add_op(scf.YieldOp(*state))
        self.op.body.detach_block(before)
        self.op.body.add_block(block)
        before.erase()
        self.widen(step)

    def copy(self, block: Block, values: dict[SSAValue, SSAValue], number: int) -> list[SSAValue]:
        """Write copy `number` of the body to a block; what it passes on."""
        before = self.op.body.block
        end = yield_of(before)
        for op in before.ops:
            if op is end:
                continue
            made = op.clone(values)
            block.add_op(made)
            if is_instruction(op):
                instruction = self.structure.by_op[op]
                if instruction.label is not None:
                    kept = made.properties if "label" in made.properties else made.attributes
                    kept["label"] = StringAttr(self.labels[instruction.label, number])
                self.depend(made, [each for edge in instruction.edges for each in self.inside(edge, number)])
        return [values.get(operand, operand) for operand in end.operands]

    def widen(self, step: int) -> None:
        """Let an iteration step over as many as there are copies."""
        assert self.op.parent is not None
        wide = arith.ConstantOp(IntegerAttr(step * self.factor, IndexType()))
        self.op.parent.insert_op_before(wide, self.op)
        self.op.operands[2] = wide.result
        if (most := most_of(self.op)) is not None:
            self.op.attributes["most"] = IntegerAttr(most // self.factor, i64)

    def declare_maxima(self) -> None:
        """Declare the maximum of a value for each copy."""
        maxima = self.program.attributes.get("maxima")
        if not isinstance(maxima, DictionaryAttr):
            return
        declared: dict[str, Attribute] = {}
        for name, maximum in maxima.data.items():
            copies = [self.labels[name, number] for number in range(self.factor) if (name, number) in self.labels]
            declared.update(dict.fromkeys(copies or [name], maximum))
        self.program.attributes["maxima"] = DictionaryAttr(declared)


def _after(producer: str, components: tuple[Component, ...]) -> AfterAttr:
    """How a dependency is written; an offset where it is one."""
    *around, last = components or (0,)
    if any(around) or last == EVERY:
        return distance(producer, *components)
    return offset(producer, last)


def _ahead(block: Block, index: SSAValue, steps: int) -> SSAValue:
    """An index that is so much larger."""
    if not steps:
        return index
    more = arith.ConstantOp(IntegerAttr(steps, IndexType()))
    at = arith.AddiOp(index, more.result)
    block.add_ops([more, at])
    return at.result
