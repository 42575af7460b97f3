"""Whether streams are those of a program: its instructions, its loops, its rules, whatever their waits are.

What the proof of waits (`mpkc.runtime.verify.waits`) takes for given of streams is looked at here: an engine runs its
instructions, all of them and in order, in the loops that the program has around them; barriers stand where all who meet
have them. Bounds and conditions are not compared: a run of both does that (`mpkc.runtime.verify.product`).
"""

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, is_value, label_of, signal_of
from mpkc.dialects.scalars import evaluate, is_scalar
from mpkc.dialects.sem_order import program_order
from mpkc.dialects.sem_rules import check_rules
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, ReadOp, StreamsOp, WaitOp
from mpkc.dialects.sem_structure import Instruction, Loop, LoopKind, structure_of
from mpkc.runtime.verify.places import Place, Places
from mpkc.runtime.verify.report import Check, Failure, checked

_OPS: dict[LoopKind, type[Operation]] = {
    LoopKind.FOR: scf.ForOp,
    LoopKind.WHILE: scf.WhileOp,
    LoopKind.AFTER: scf.WhileOp,
    LoopKind.THEN: scf.IfOp,
    LoopKind.ELSE: scf.IfOp,
    LoopKind.CASE: scf.IndexSwitchOp,
}
_ADDED = {"signal", "semaphores"}  # attributes that an allocator adds or takes


def check_program(program: Operation, argument_names: tuple[str, ...]) -> list[Check]:
    """Check the rules of docs/sem.md, and that no order of engines deadlocks.

    A program deadlocks only where the dependencies of distance 0 and the order on each engine have a cycle in a block
    (barrier-free, section 5.2: such a dependency never comes from later in the iteration).
    """

    def rules() -> tuple[int, int, list[Failure]]:
        try:
            check_rules(program, argument_names)
        except OpError as err:
            return 1, 1, [Failure("rules", str(err))]
        return 1, 0, []

    def deadlock() -> tuple[int, int, list[Failure]]:
        structure = structure_of(program)
        found: list[Failure] = []
        for loop in structure.loops:
            try:
                program_order(structure, loop.block)
            except OpError as err:
                found.append(Failure("deadlock", str(err)))
        return len(structure.loops), len(found), found

    checks = [checked("rules", rules)]
    return checks if checks[0].failed else [*checks, checked("deadlock", deadlock)]


def check_structure(program: Operation, streams: StreamsOp) -> Check:
    """Check that streams hold the instructions of a program, in its loops and in its order, and nothing else."""

    def look() -> tuple[int, int, list[Failure]]:
        reader = _Structure(program, streams)
        failures = [Failure("structure", f"{where}: {message}") for where, message in reader.wrong()]
        return len(reader.places.of), len(failures), failures

    return checked("structure", look)


class _Structure:
    def __init__(self, program: Operation, streams: StreamsOp):
        self.streams = streams
        self.places = Places.read(program, streams)
        self.structure = self.places.structure

    def wrong(self) -> Iterator[tuple[str, str]]:
        """What is wrong, and where."""
        for op, message in self.places.strange:
            yield _named(op), message
        for check in (self._instructions, self._order, self._loops, self._additions, self._barriers):
            yield from check()

    def _instructions(self) -> Iterator[tuple[str, str]]:
        """Each is there, in its stream, as it was."""
        for instruction in self.structure.instructions:
            place = self.places.by_label.get(instruction.label or instruction.name)
            if place is None:
                if not any(_never_runs(loop) for loop in instruction.loop.path):
                    yield instruction.name, f'is missing in the stream of "{instruction.engine}"'
            elif place.engine != instruction.engine:
                yield instruction.name, f'stands in the stream of "{place.engine}", not of "{instruction.engine}"'
            elif (difference := _difference(instruction, place.op)) is not None:
                yield instruction.name, f"{difference} changed"
            else:
                yield from self._around(instruction, place)

    def _around(self, instruction: Instruction, place: Place) -> Iterator[tuple[str, str]]:
        """The loops around an instruction, by the directives around it and before it in these blocks."""
        wanted = list(instruction.loop.path[1:])
        begun = [self.places.begins.get((place.engine, loop)) for loop in wanted]
        for loop, directive in zip(wanted, begun, strict=True):
            inside = directive is not None and _holds(directive, place)
            if not inside and not _runs_once(loop):
                yield instruction.name, f"does not run in loop '{loop.name}' on its engine"
        for block in place.blocks[1:]:
            for head in self.places.heads[block]:
                if head not in wanted and not _runs_once(head) and block.first_op is _directive_in(block, head):
                    yield instruction.name, f"runs in loop '{head.name}', where it does not belong"

    def _order(self) -> Iterator[tuple[str, str]]:
        last: dict[str, tuple[Instruction, Place]] = {}
        for instruction in self.structure.instructions:
            place = self.places.by_label.get(instruction.label or instruction.name)
            if place is None or place.engine != instruction.engine:
                continue
            if instruction.engine in last and last[instruction.engine][1].order > place.order:
                yield instruction.name, f"comes before {last[instruction.engine][0].name} on its engine"
            last[instruction.engine] = instruction, place

    def _loops(self) -> Iterator[tuple[str, str]]:
        """Each directive fits its loop, and each body of a loop and each branch that runs anything has one."""
        for (engine, loop), place in self.places.begins.items():
            op = place.op
            assert isinstance(op, IterationOp)
            parent = loop.parent
            around = [head for block in place.blocks for head in self.places.heads[block]]
            around += _before(place, self.places)
            where = f"loop '{loop.name}' on \"{engine}\""
            if op.depth.data != loop.depth:
                yield where, f"depth {op.depth.data} in its directive, but it is {loop.depth}"
            if parent is not None and parent.parent is not None and parent not in around and not _runs_once(parent):
                yield where, f"runs outside of loop '{parent.name}'"
            first = op is place.block.first_op and len(place.blocks) > 1
            if first and not isinstance(place.block.parent_op(), _OPS[loop.kind]):
                yield where, f"is no {_OPS[loop.kind].name} any more"
            elif not first and not _runs_once(loop):
                yield where, "runs once, but may run any number of times"
        for engine, stream in self.streams.streams.items():
            for block in _bodies(stream):
                if not isinstance(block.first_op, IterationOp) and _runs_something(block):
                    yield f'a loop on "{engine}"', "has no directive, so nobody knows which it is"

    def _additions(self) -> Iterator[tuple[str, str]]:
        """Reads read values of the program, of their type."""
        for place in self.places.by_label.values():
            if isinstance(place.op, ReadOp):
                source = self.structure.by_label.get(place.op.source.data)
                if source is None or not is_value(source.op):
                    yield f"@{place.name}", f"reads @{place.op.source.data}, which is no value of the program"
                elif source.op.results[0].type != place.op.result.type:
                    yield f"@{place.name}", f"reads @{place.op.source.data} as {place.op.result.type}"

    def _barriers(self) -> Iterator[tuple[str, str]]:
        """Who meets at a barrier has it, in the same loop; who uses what it resets, meets."""
        everyone = set(self.streams.streams)
        for met in self.places.barriers.values():
            place = next(iter(met.values()))
            assert isinstance(place.op, BarrierOp)
            wanted = everyone if place.op.engine_names is None else set(place.op.engine_names)
            reset = {semaphore.data for semaphore in place.op.semaphores}
            where = f"a barrier in loop '{place.loop.name}'"
            for engine in sorted(wanted ^ set(met)):
                what = "is missing in" if engine in wanted else "is no concern of, but stands in,"
                yield where, f'{what} the stream of "{engine}"'
            for engine in sorted(everyone - wanted):
                used = sorted(reset & _used(self.streams, engine))
                if used:
                    yield where, f'resets "{used[0]}", which "{engine}" uses without meeting there'


def _difference(instruction: Instruction, op: Operation) -> str | None:
    """What of an instruction is not as it was."""
    was = instruction.op
    if type(op) is not type(was):
        return "the operation"
    if _operands(op) != _operands(was):
        return "the operands"
    old, new = ({**each.properties, **each.attributes} for each in (was, op))
    return next((name for name in sorted({*old, *new} - _ADDED) if old.get(name) != new.get(name)), None)


def _operands(op: Operation) -> list[object]:
    """What kind of operands it has; shapes and indices aside, which are one offset once views are lowered."""
    types = (operand.type for operand in op.operands)
    return [
        (type_.element_type, type_.memory_space) if isa(type_, MemRefType) else type_
        for type_ in types
        if not isinstance(type_, IndexType)
    ]


def _holds(directive: Place, place: Place) -> bool:
    """Whether a place is in the iteration that a directive begins."""
    if directive.order > place.order:
        return False
    if directive.block in place.blocks:
        return True
    return any(directive.block in _first_blocks(block) for block in place.blocks)


def _before(place: Place, places: Places) -> list[Loop]:
    """The loops of the first region of an scf.while, around its second."""
    return [head for block in place.blocks for first in _first_blocks(block) for head in places.heads[first]]


def _first_blocks(block: Block) -> list[Block]:
    match block.parent_op():
        case scf.WhileOp(before_region=before, after_region=after) if block is after.block:
            return [before.block]
        case _:
            return []


def _directive_in(block: Block, loop: Loop) -> Operation | None:
    return next((op for op in block.ops if isinstance(op, IterationOp) and op.loop.data == loop.name), None)


def _bodies(op: Operation) -> Iterator[Block]:
    """The blocks of control flow in `op` that are iterations; not those of a condition that an allocator added."""
    for nested in op.walk():
        if isinstance(nested, scf.ForOp | scf.WhileOp):
            yield from (region.block for region in nested.regions)


def _runs_something(block: Block) -> bool:
    return any(is_instruction(op) or isinstance(op, WaitOp | BarrierOp | MarkerOp) for op in block.ops)


def _used(streams: StreamsOp, engine: str) -> set[str]:
    """The semaphores that an engine signals or waits on."""
    found: set[str] = set()
    for op in streams.streams[engine].walk():
        if isinstance(op, WaitOp):
            found.add(op.semaphore.data)
        elif is_instruction(op) and (signal := signal_of(op)) is not None:
            found.add(signal)
    return found


def _runs_once(loop: Loop) -> bool:
    """Whether constants say that a loop has one iteration each time, so that clean-up may take it apart."""
    return constant_trips(loop) == 1


def _never_runs(loop: Loop) -> bool:
    """Whether constants say that a loop has no iteration, so that clean-up may drop it."""
    return constant_trips(loop) == 0


def constant_trips(loop: Loop) -> int | None:
    """How many iterations a loop has each time, where constants say it."""
    match loop.kind, loop.op:
        case LoopKind.FOR, scf.ForOp(lb=lb, ub=ub, step=step):
            low, high, by = (_constant(value) for value in (lb, ub, step))
            if lb is ub or (low is not None and high is not None and low >= high):
                return 0
            return None if low is None or high is None or by is None else len(range(low, high, max(by, 1)))
        case ((LoopKind.THEN | LoopKind.ELSE), scf.IfOp(cond=condition)):
            taken = _constant(condition)
            return None if taken is None else int(bool(taken) == (loop.kind is LoopKind.THEN))
        case LoopKind.CASE, scf.IndexSwitchOp(arg=arg) as op:
            selected = _constant(arg)
            cases = dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
            return None if selected is None else int(cases.get(selected, op.default_region).block is loop.block)
        case _:
            return None


def _constant(value: SSAValue) -> int | None:
    """The value of arithmetic on constants, also where loops carry it and do not change it."""
    value = _carried(value)
    if not isinstance(value, OpResult) or not is_scalar(value.op):
        return None
    operands = [_constant(operand) for operand in value.op.operands]
    known = [operand for operand in operands if operand is not None]
    try:
        return evaluate(value.op, known) if len(known) == len(operands) else None
    except OpError:
        return None


def _carried(value: SSAValue, unchanged: frozenset[SSAValue] = frozenset()) -> SSAValue:
    """What an scf.for carries all along, if `value` is that.

    Args:
        unchanged: arguments of loops that are taken not to change, as long as nothing else is found.
    """
    match value:
        case OpResult(op=scf.ForOp() as op):
            index = value.index
        case BlockArgument(block=block) if isinstance(op := block.parent_op(), scf.ForOp) and value.index:
            index = value.index - 1
        case _:
            return value
    argument = op.body.block.args[index + 1]
    if argument in unchanged:
        return argument
    end = op.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    start = _carried(op.iter_args[index], unchanged)
    passed = _carried(end.operands[index], unchanged | {argument})
    return start if passed in (argument, start) else value


def _named(op: Operation) -> str:
    label = label_of(op)
    return f"@{label}" if label else f"'{op.name}'"
