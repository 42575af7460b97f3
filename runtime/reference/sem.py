"""The interpreter of sem.program in program order, and what a dependency owes (barrier-free, section 4).

Program order is textual order, except that in a straight-line run the producer of an offset-0 dependency goes
first. Each instruction writes a hash of its label, its iteration and the values of its producers, so two runs
agree on every value exactly when every consumer read what it should.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from xdsl.dialects import scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_value
from mpkc.dialects.scalars import evaluate, is_scalar
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_distance import Component
from mpkc.dialects.sem_maxima import maxima_of, most_of
from mpkc.dialects.sem_order import program_order
from mpkc.dialects.sem_structure import Edge, Instruction, structure_of, up_to
from mpkc.dialects.wording import counted, ordinal
from mpkc.runtime.bindings import Bindings, Scalar, bindings_of
from mpkc.runtime.declared import check_names


@dataclass(frozen=True, slots=True)
class Wait:
    """What one execution of a consumer owes to one of its dependencies.

    Attributes:
        producer: the name of the producer.
        target: the producer iteration that is needed, `*` for every iteration of a loop; None for no wait.
        owed: the retirements of the producer that must have been, in all: condition (1); None for no wait.
    """

    producer: str
    target: tuple[Component, ...] | None
    owed: int | None


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of one instruction.

    Attributes:
        name: its label; what else names it where it has none.
        iteration: the 1-based iteration of each scf.for and scf.while around it, outermost first.
        value: what it wrote, 64 bits.
        waits: one for each of its dependencies, in the order in which they are written.
    """

    name: str
    engine: str
    iteration: tuple[int, ...]
    value: int
    waits: tuple[Wait, ...]


@dataclass(frozen=True)
class Trace:
    """The executions of a program, in program order."""

    executions: Sequence[Execution]

    def of(self, name: str) -> list[Execution]:
        """The executions of the instruction `name`, in order."""
        return [execution for execution in self.executions if execution.name == name]


def run_program(
    program: ProgramOp,
    bindings: Bindings | Mapping[str, Scalar | Sequence[Scalar]] | None = None,
    limit: int = 10_000_000,
) -> Trace:
    """Run a verified program in program order.

    Args:
        bindings: a value for each argument, by its name, and for each sem.value that runs, by its label,
            a list with one value for each execution.
        limit: the iterations of all loops together after which a program is said to run forever.

    Raises:
        OpError: a binding that is missing, unknown, of the wrong type or for one engine alone; a value or a
            loop that breaks what the program declares of it; a step below 1; a division by zero; more
            iterations than `limit`.
    """
    if not isinstance(bindings, Bindings):
        bindings = bindings_of(bindings or {})
    interpreter = _Interpreter(program, bindings, limit)
    interpreter.run_block(program.body.block)
    return Trace(interpreter.executions)


def instruction_value(name: str, iteration: tuple[int, ...], producers: Sequence[int | None]) -> int:
    """The 64-bit value that an instruction writes: the same in every process and on every machine.

    Args:
        producers: for each dependency, in written order, the producer's last value in or before the target
            iteration; None where no wait is owed or there is no such value.
    """
    written = repr((name, iteration, tuple(producers))).encode()
    return int.from_bytes(blake2b(written, digest_size=8).digest(), "little")


def owed(trace: Trace, edge: Edge, iteration: tuple[int, ...]) -> int | None:
    """Condition (1), as written: the retirements that the producer owes to the consumer's `iteration`.

    The sum over the iterations of the common loops up to the target, in lexicographic order, of the executions
    of the producer in each; None where the target underflows, so that no wait is owed. It reads a whole
    trace: a definition to check allocators and the interpreter against.
    """
    target = edge.target(iteration)
    if target is None:
        return None
    shared, bound = len(target), up_to(target)
    counts: dict[tuple[int, ...], int] = {}
    for execution in trace.of(name_of(edge.producer)):
        common = execution.iteration[:shared]
        counts[common] = counts.get(common, 0) + 1
    return sum(count for common, count in counts.items() if common < bound)


def name_of(instruction: Instruction) -> str:
    """The name of an instruction in traces: its label; what else names it where it has none."""
    return instruction.label or instruction.name


@dataclass
class _History:
    """What one instruction has done so far: its iterations, in order, and what it wrote in each."""

    iterations: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    values: list[int] = field(default_factory=list[int])


class _Interpreter:
    def __init__(self, program: ProgramOp, bindings: Bindings, limit: int):
        self.structure = structure_of(program)
        self.bindings = bindings
        self.left = self.limit = limit
        self.scalars: dict[SSAValue, int] = {}
        self.iteration: list[int] = []
        self.executions: list[Execution] = []
        self.history = {instruction: _History() for instruction in self.structure.instructions}
        self.maxima = maxima_of(program)
        self.order = {block: program_order(self.structure, block) for block in self.structure.loop_of}
        self._bind_arguments(program)

    def _bind_arguments(self, program: ProgramOp) -> None:
        values = {i.label for i in self.structure.instructions if is_value(i.op) and i.label}
        names = program.argument_names
        check_names(program, names, values, self.bindings)
        for name, arg in zip(names, program.body.block.args, strict=True):
            given = self.bindings.values.get(name)
            if given is None:
                raise OpError(program, f"the argument %{name} has no value: bind it, {name}=VALUE")
            if len(given) != 1:
                raise OpError(program, f"the argument %{name} has {len(given)} values: bind one")
            self.scalars[arg] = self._checked(program, name, f"the argument %{name}", given[0], arg.type)

    def run_block(self, block: Block) -> tuple[int | None, ...]:
        """Run one block once; what its terminator passes on, None for what is no integer."""
        for op in self.order[block]:
            if (instruction := self.structure.by_op.get(op)) is not None:
                self._issue(instruction)
            elif is_scalar(op):
                operands = [self.scalars[operand] for operand in op.operands if operand in self.scalars]
                known = len(operands) == len(op.operands)
                self._write(op.results, (evaluate(op, operands) if known else None,))
            elif op.regions:
                self._run_control(op)
        end = block.last_op
        return self._read(end.operands) if isinstance(end, scf.YieldOp | scf.ConditionOp) else ()

    def _issue(self, instruction: Instruction) -> None:
        iteration = tuple(self.iteration)
        waits: list[Wait] = []
        producers: list[int | None] = []
        for edge in instruction.edges:
            target, count, value = edge.target(iteration), None, None
            if target is not None:
                history = self.history[edge.producer]
                count = bisect_right(history.iterations, up_to(target))
                value = history.values[count - 1] if count else None
            waits.append(Wait(name_of(edge.producer), target, count))
            producers.append(value)
        history = self.history[instruction]
        if is_value(instruction.op):
            self._read_value(instruction, len(history.values))
        name = name_of(instruction)
        value = instruction_value(name, iteration, producers)
        history.iterations.append(iteration)
        history.values.append(value)
        self.executions.append(Execution(name, instruction.engine, iteration, value, tuple(waits)))

    def _read_value(self, instruction: Instruction, earlier: int) -> None:
        name = name_of(instruction)
        given = self.bindings.values.get(name, ())
        if earlier >= len(given):
            has = counted(len(given), "value") if given else "no value"
            raise OpError(
                instruction.op,
                f"@{name} runs for the {ordinal(earlier + 1)} time and has {has}: "
                f"bind one for each execution, {name}=1,2,...",
            )
        result = instruction.op.results[0]
        self.scalars[result] = self._checked(instruction.op, name, f"@{name}", given[earlier], result.type)

    def _checked(self, op: Operation, name: str, what: str, value: Scalar, type: Attribute) -> int:
        """`value` as an integer of `type` within the declared maximum of `name`."""
        number, maximum = _typed(op, what, value, type), self.maxima.get(name)
        if maximum is not None and not 0 <= number <= maximum:
            raise OpError(op, f"{what} is {number} and was declared to lie in 0..{maximum}: see `maxima`")
        return number

    def _run_control(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                results = self._run_for(op)
            case scf.WhileOp():
                results = self._run_while(op)
            case scf.IfOp():
                taken = op.true_region if self.scalars[op.cond] else op.false_region
                results = self.run_block(taken.block) if taken.blocks else ()
            case scf.IndexSwitchOp():
                cases = dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
                results = self.run_block(cases.get(self.scalars[op.arg], op.default_region).block)
            case _:
                raise AssertionError(f"{op.name} is not allowed in a verified program")
        self._write(op.results, results)

    def _run_for(self, op: scf.ForOp) -> tuple[int | None, ...]:
        lower, upper, step = (self.scalars[value] for value in (op.lb, op.ub, op.step))
        if step < 1:
            raise OpError(op, f"the step is {step} here: a step is 1 or more")
        variable, *carried = op.body.block.args
        state = self._read(op.iter_args)
        self.iteration.append(0)
        most = most_of(op)
        for index in range(lower, upper, step):
            self._count_iteration(op, most)
            self.scalars[variable] = index
            self._write(carried, state)
            state = self.run_block(op.body.block)
        self.iteration.pop()
        return state

    def _run_while(self, op: scf.WhileOp) -> tuple[int | None, ...]:
        before, after = op.before_region.block, op.after_region.block
        state = self._read(op.arguments)
        self.iteration.append(0)
        most = most_of(op)
        while True:
            self._count_iteration(op, most)
            self._write(before.args, state)
            goes_on, *state = self.run_block(before)
            if not goes_on:
                break
            self._write(after.args, state)
            state = self.run_block(after)
        self.iteration.pop()
        return tuple(state)

    def _count_iteration(self, op: Operation, most: int | None) -> None:
        self.iteration[-1] += 1
        if most is not None and self.iteration[-1] > most:
            raise OpError(
                op, f"the loop runs for the {ordinal(self.iteration[-1])} time and was declared to run {most} at most"
            )
        self.left -= 1
        if self.left < 0:
            raise OpError(op, f"the loops of the program ran {self.limit} iterations: it seems to run forever")

    def _read(self, values: Sequence[SSAValue]) -> tuple[int | None, ...]:
        return tuple(self.scalars.get(value) for value in values)

    def _write(self, targets: Sequence[SSAValue], values: Sequence[int | None]) -> None:
        for target, value in zip(targets, values, strict=True):
            if value is None:
                self.scalars.pop(target, None)
            else:
                self.scalars[target] = value


def _typed(op: Operation, what: str, value: Scalar, type: Attribute) -> int:
    """`value` as an integer of `type`; an i1 takes true, false, 0 and 1, an index integers only."""
    if type == i1 and value not in (0, 1):
        raise OpError(op, f"{what} is an i1 and cannot be {value}: use true or false")
    if type != i1 and isinstance(value, bool):
        raise OpError(op, f"{what} is an index and cannot be {str(value).lower()}: use an integer")
    return int(value)
