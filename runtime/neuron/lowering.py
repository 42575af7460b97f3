"""From a stream to code over virtual registers: structured control flow becomes labels and branches.

Values that are the same integer share a virtual register: the results of a loop and what its last iteration had, a cast
and what it casts. Constants are immediates. A comparison that one branch alone asks for is made by that branch. A
threshold that counts parts of transfers is multiplied by them where it is computed, once for all that wait for it.
"""

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import cost_of, is_instruction, label_of, latency_of, signal_of
from mpkc.dialects.scalars import SCALAR_OPS, bits_of, evaluate
from mpkc.dialects.sem import InstOp, ValueOp
from mpkc.dialects.sem_needs import condition_of, needs_of, yield_of
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, ReadOp, StreamOp, WaitOp
from mpkc.dialects.tile_buffers import RotateOp
from mpkc.dialects.tile_transfer import TileInstruction
from mpkc.runtime.neuron import arithmetic, isa
from mpkc.runtime.neuron.isa import AluOp, Branch, Condition, Label, Operand, Register
from mpkc.runtime.neuron.paths import Paths
from mpkc.runtime.neuron.shared import Shared
from mpkc.runtime.neuron.tile_parts import tile_parts
from mpkc.runtime.neuron.views import size_of, tile_operand
from mpkc.runtime.neuron.virtual import Code, Copies, Span

TERMINATORS = frozenset({scf.YieldOp, scf.ConditionOp})
VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, RotateOp)


class Lowering:
    """Writes the code of one stream.

    Attributes:
        values: the register or immediate that holds each integer.
        scaled: the register that holds so many parts of transfers, for each threshold of transfers in a register.
    """

    def __init__(self, stream: StreamOp, shared: Shared, paths: Paths):
        self.stream, self.shared, self.paths = stream, shared, paths
        self.code = Code(stream.engine.data)
        self.needs = needs_of(stream.body.block, _is_of_the_program)
        self.values: dict[SSAValue, Operand] = {}
        self.of_transfers = shared.of_transfers(stream)
        self.scaled: dict[SSAValue, Register] = {}
        self.labels = self.depth = 0
        self.pending: WaitOp | None = None

    def run(self) -> Code:
        used = self.shared.used_by(self.stream)
        for arg in used.numbers:
            self.emit(isa.Move(self.define(arg), isa.ArgumentRef(self.shared.names[arg])))
        self.scale(used.numbers)
        for op in used.scalars:
            self.scalar(op)
            self.scale(op.results)
        self.block(self.stream.body.block)
        return self.code

    # Registers.

    def emit(self, item: isa.Item | Copies) -> None:
        self.code.items.append(item)

    def register(self, synchronization: bool = False) -> Register:
        """A new virtual register."""
        register = Register(self.code.count)
        self.code.count += 1
        if synchronization:
            self.code.synchronization.add(register.number)
        return register

    def define(self, value: SSAValue) -> Register:
        """A new register for `value`."""
        register = self.register(value not in self.needs.values)
        self.values[value] = register
        return register

    def use_as(self, register: Register, operand: Operand) -> None:
        """Let what takes the place of a register of the program be of the program, too."""
        if isinstance(operand, Register) and register.number not in self.code.synchronization:
            self.code.synchronization.discard(operand.number)

    def of(self, values: Sequence[SSAValue]) -> list[Operand]:
        return [self.values[value] for value in values]

    def copies(self, destinations: Sequence[SSAValue], sources: Sequence[Operand]) -> None:
        pairs = [(self.values[dest], source) for dest, source in zip(destinations, sources, strict=True)]
        kept = tuple((dest, source) for dest, source in pairs if isinstance(dest, Register) and dest != source)
        if kept:
            self.emit(Copies(kept))

    def scale(self, values: Sequence[SSAValue]) -> None:
        """Count in parts of transfers what is compared with them, now that it is computed."""
        for value in values:
            operand = self.values.get(value) if value in self.of_transfers else None
            if isinstance(operand, Register):
                self.scaled[value] = scaled = self.register(synchronization=True)
                self.emit(isa.Alu(scaled, AluOp.MULT, (operand, self.shared.parts), bits_of(value.type)))

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels - 1}"

    # Operations.

    def block(self, block: Block) -> None:
        """Everything in a block but its terminator."""
        given = block.args
        for op in block.ops:
            if type(op) is not IterationOp:
                self.scale(given)
                given = ()
            if type(op) not in TERMINATORS:
                self.operation(op)
                self.scale(op.results)

    def operation(self, op: Operation) -> None:
        if type(op) in SCALAR_OPS:
            self.scalar(op)
        elif isinstance(op, memref.DimOp):
            self.emit(isa.Move(self.define(op.result), size_of(op, self.shared)))
        elif isinstance(op, VIEWS):
            pass
        elif is_instruction(op):
            self.instruction(op)
        else:
            self.flush()
            self.control(op)

    def scalar(self, op: Operation) -> None:
        result = op.results[0]
        if type(op) is arith.ConstantOp:
            if (number := self.shared.float_of(op)) is not None:
                self.shared.floats[result] = number
            else:
                self.values[result] = evaluate(op, ())
            return
        if type(op) is arith.CmpiOp and _decides_here(op):
            return
        operands = self.of(op.operands)
        if (known := _integers(operands)) is not None:
            self.values[result] = evaluate(op, known)
        elif (found := arithmetic.alu_of(op)) is None:
            self.values[result] = operands[0]
        else:
            self.emit(isa.Alu(self.define(result), found[0], tuple(operands), found[1]))

    def control(self, op: Operation) -> None:
        match op:
            case IterationOp():
                self.iteration(op)
            case WaitOp():
                self.pending = op
            case BarrierOp():
                self.barrier(op)
            case scf.ForOp():
                self.loop(op)
            case scf.WhileOp():
                self.while_loop(op)
            case scf.IfOp():
                self.conditional(op)
            case scf.IndexSwitchOp():
                self.switch(op)
            case _:
                raise OpError(op, f"'{op.name}' has no form in the ISA: streams hold scf, arith, sem and tile")

    # Instructions.

    def flush(self) -> None:
        """A wait that no instruction takes along: an instruction of its own."""
        if self.pending is not None:
            self.emit(isa.Nop(wait=self.wait(self.pending), depth=self.depth))
            self.pending = None

    def wait(self, op: WaitOp) -> isa.Wait:
        """The wait; a threshold counts the parts of transfers where those are what the semaphore counts."""
        threshold, name = self.values[op.threshold], op.semaphore.data
        if (parts := self.shared.counted_parts(name)) > 1:
            threshold = threshold * parts if isinstance(threshold, int) else self.scaled[op.threshold]
        return isa.Wait(self.shared.semaphores[name], threshold)

    def instruction(self, op: Operation) -> None:
        """An instruction, with the last wait before it as its own."""
        wait = self.wait(self.pending) if self.pending is not None else None
        self.pending = None
        signal = signal_of(op)
        update = (
            None if signal is None else isa.Update(self.shared.semaphores[signal], self.shared.counted_parts(signal))
        )
        label, depth = label_of(op), self.paths.depth_of(op, self.depth)
        match op:
            case MarkerOp():
                self.emit(isa.Nop(label=label, wait=wait, update=update, depth=depth))
            case ReadOp():
                dest = self.define(op.result)
                self.emit(isa.Read(label=label, wait=wait, update=update, depth=depth, dest=dest, value=op.source.data))
            case InstOp() | ValueOp():
                cost, latency = cost_of(op), latency_of(op)
                assert cost is not None
                self.emit(
                    isa.Opaque(
                        label=label,
                        wait=wait,
                        update=update,
                        depth=depth,
                        cost=cost,
                        latency=None if latency == cost else latency,
                        after=self.paths.after(op),
                        is_value=isinstance(op, ValueOp),
                    )
                )
            case TileInstruction():
                parts = tile_parts(op)
                shown = {
                    key: tile_operand(op, value, self.values, self.shared) for key, value in parts.operands.items()
                }
                self.emit(
                    isa.Tile(
                        label=label,
                        wait=wait,
                        update=update,
                        depth=depth,
                        opcode=parts.opcode,
                        operands=shown,
                        options=parts.options,
                    )
                )
            case _:
                raise OpError(op, f"'{op.name}' has no form in the ISA")

    def iteration(self, op: IterationOp) -> None:
        self.paths.check(op, self.depth)
        self.emit(isa.Iteration(op.loop.data, op.depth.data))

    def barrier(self, op: BarrierOp) -> None:
        names = [name.data for name in op.semaphores]
        own = tuple(self.shared.semaphores[name] for name in names if self.shared.resets(name, self.code.engine))
        engines = list(self.shared.streams.streams)
        met = () if op.engine_names is None or set(op.engine_names) == set(engines) else op.engine_names
        self.emit(isa.Drain())
        self.emit(isa.Handshake(met))
        if own:
            self.emit(isa.Reset(own))
        self.emit(isa.Handshake(met))

    # Loops.

    def loop(self, op: scf.ForOp) -> None:
        """Tests at the end, and once before it where the first iteration may not be there."""
        lower, upper, step, *inits = self.of(op.operands)
        index, *args = op.body.block.args
        trips = _trips(lower, upper, step)
        if trips == 1:
            self.straight(op, [lower, *inits])
            return
        bits = bits_of(index.type)
        counter = self.values[index] = self.register(op not in self.needs.control)
        carried = [self.define(arg).number for arg in args]
        self.copies([index, *args], [lower, *inits])
        header, end = self.label(), None if trips else self.label()
        if end is not None:
            self.emit(Branch(Condition.GE, (counter, upper), end, bits))
        start = len(self.code.items)
        self.emit(Label(header))
        self.inside(op.body.block)
        back = self.of(yield_of(op.body.block).operands)
        following = _following(op)
        if following is not None:
            self.copies([index, *args], [self.values[following], *back])
            self.use_as(counter, self.values[following])
        else:
            self.copies(args, back)
            self.emit(isa.Alu(counter, AluOp.ADD, (counter, step), bits))
        self.code.spans.append(Span(start, len(self.code.items), (counter.number, *carried)))
        self.emit(Branch(Condition.LT, (counter, upper), header, bits))
        if end is not None:
            self.emit(Label(end))
        for result, arg in zip(op.results, args, strict=True):
            self.values[result] = self.values[arg]

    def straight(self, op: scf.ForOp, given: Sequence[Operand]) -> None:
        """A loop of one iteration."""
        for arg, operand in zip(op.body.block.args, given, strict=True):
            self.values[arg] = operand
        self.inside(op.body.block)
        for result, passed in zip(op.results, self.of(yield_of(op.body.block).operands), strict=True):
            self.values[result] = passed

    def inside(self, block: Block) -> None:
        """The body of a loop that iterations count."""
        self.depth += 1
        self.block(block)
        self.flush()
        self.depth -= 1

    def while_loop(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        carried = tuple(self.define(arg).number for arg in before.args)
        self.copies(before.args, self.of(op.arguments))
        header, end = self.label(), self.label()
        start = len(self.code.items)
        self.emit(Label(header))
        self.inside(before)
        condition = condition_of(op)
        self.unless(condition.condition, end)
        passed = self.of(condition.args)
        for arg, operand in zip(after.args, passed, strict=True):
            self.values[arg] = operand
        self.inside(after)
        self.copies(before.args, self.of(yield_of(after).operands))
        self.code.spans.append(Span(start, len(self.code.items), carried))
        self.emit(Branch(Condition.ALWAYS, (), header))
        self.emit(Label(end))
        for result, operand in zip(op.results, passed, strict=True):
            self.values[result] = operand

    # Conditionals.

    def unless(self, condition: SSAValue, target: str) -> None:
        """Go to `target` where an i1 is false."""
        owner = condition.owner
        if isinstance(owner, arith.CmpiOp) and _decides_here(owner):
            negated = arithmetic.NEGATED[arithmetic.condition_of(owner)]
            self.emit(Branch(negated, tuple(self.of(owner.operands)), target, bits_of(owner.lhs.type)))
        else:
            self.emit(Branch(Condition.EQ, (self.values[condition], 0), target, 1))

    def conditional(self, op: scf.IfOp) -> None:
        for result in op.results:
            self.define(result)
        has_else = bool(op.false_region.blocks)
        end = self.label()
        other = self.label() if has_else else end
        self.unless(op.cond, other)
        self.branch(op.true_region.block, op.results)
        if has_else:
            self.emit(Branch(Condition.ALWAYS, (), end))
            self.emit(Label(other))
            self.branch(op.false_region.block, op.results)
        self.emit(Label(end))

    def switch(self, op: scf.IndexSwitchOp) -> None:
        for result in op.results:
            self.define(result)
        selector, end = self.values[op.arg], self.label()
        for case, region in zip(op.cases.iter_values(), op.case_regions, strict=True):
            other = self.label()
            self.emit(Branch(Condition.NE, (selector, case), other))
            self.branch(region.block, op.results)
            self.emit(Branch(Condition.ALWAYS, (), end))
            self.emit(Label(other))
        self.branch(op.default_region.block, op.results)
        self.emit(Label(end))

    def branch(self, block: Block, results: Sequence[SSAValue]) -> None:
        self.block(block)
        self.flush()
        self.copies(results, self.of(yield_of(block).operands))


def _is_of_the_program(op: Operation) -> bool:
    """Whether what `op` needs is needed for more than to know how long to wait."""
    return is_instruction(op) and not isinstance(op, MarkerOp)


def _decides_here(op: arith.CmpiOp) -> bool:
    """Whether one branch of the same block asks for this comparison, and nothing else does."""
    user = op.result.get_user_of_unique_use()
    return isinstance(user, scf.IfOp | scf.ConditionOp) and user.parent is op.parent and user.operands[0] is op.result


def _following(op: scf.ForOp) -> SSAValue | None:
    """The next index, where the body computes it and needs the index no more from there on: it takes its register."""
    index, block = op.body.block.args[0], op.body.block
    sums = [use.operation for use in index.uses if isinstance(use.operation, arith.AddiOp)]
    found = next((each for each in sums if each.parent is block and op.step in each.operands), None)
    if found is None:
        return None
    behind: set[Operation] = set()
    later = found.next_op
    while later is not None:
        behind.add(later)
        later = later.next_op
    users = (block.find_ancestor_op_in_block(use.operation) for use in index.uses)
    return None if any(user in behind for user in users) else found.result


def _integers(operands: Sequence[Operand]) -> list[int] | None:
    known = [operand for operand in operands if isinstance(operand, int)]
    return known if len(known) == len(operands) else None


def _trips(lower: Operand, upper: Operand, step: Operand) -> int | None:
    """The trip count of a loop, where its bounds are known."""
    if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int) and step > 0:
        return max(0, -((lower - upper) // step))
    return None
