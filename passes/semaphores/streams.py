"""From a plan to streams: each engine's own copy of the control flow, with counters, waits and updates.

Counters are values that loops carry, so that what xDSL knows of SSA does most of barrier-free, section 6.2.

Operations are made by `create`, which takes operands and types as they stand; builders, which sort them out, take twice
as long.
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType, Signedness, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mpkc.dialects.sem_streams import (
    BarrierOp,
    IterationOp,
    MarkerOp,
    ReadOp,
    StreamOp,
    StreamsOp,
    WaitOp,
    threshold_type,
)
from mpkc.dialects.sem_structure import Loop, LoopKind
from mpkc.passes.semaphores.counters import Counter, Counters, Counts
from mpkc.passes.semaphores.needs import Marker, Read, Source
from mpkc.passes.semaphores.plan import Plan, Reset
from mpkc.passes.semaphores.scope import Scope, State
from mpkc.passes.semaphores.signals import Signals
from mpkc.passes.semaphores.thresholds import Arithmetic, Predicate


def write_streams(plan: Plan, name: str, counters: IntegerType, attributes: Mapping[str, Attribute]) -> StreamsOp:
    """The streams of a planned program.

    Args:
        counters: the arithmetic of semaphores, such as ui32.
        attributes: of the program, for the streams.
    """
    program = plan.structure.program
    source = program.regions[0].block
    body = Block(arg_types=[arg.type for arg in source.args])
    shared: dict[SSAValue, SSAValue] = {}
    for given, arg in zip(source.args, body.args, strict=True):
        arg.name_hint = given.name_hint
        shared[given] = arg
    for op in source.ops:
        if isinstance(op, memref.AllocOp):
            body.add_op(op.clone(shared))
    for engine in plan.structure.engines:
        body.add_op(_Writer(plan, engine, counters, shared).stream())
    return StreamsOp(name, counters, list(plan.groups.all), Region(body), dict(attributes))


class _Writer:
    """Writes the stream of one engine.

    Attributes:
        values: the value in this stream of each of the program's.
        scope: the counters, where the stream is written.
    """

    def __init__(self, plan: Plan, engine: str, counters: IntegerType, shared: dict[SSAValue, SSAValue]):
        self.plan, self.engine = plan, engine
        self.layout = plan.layouts[engine]
        self.kept = self.layout.kept
        self.counters = Counters(plan, engine)
        self.values = dict(shared)
        self.body = Block()
        signed = counters.signedness.data is Signedness.SIGNED
        math = Arithmetic(self.body, threshold_type(counters), signed, wrapping=bool(plan.resets))
        self.resets: dict[Loop, list[Reset]] = {}
        for reset in plan.resets:
            if engine in reset.engines:
                self.resets.setdefault(reset.epoch.loop, []).append(reset)
        self.scope = Scope(plan, math, [Signals(plan, each) for each in self.counters.signalling])

    @property
    def block(self) -> Block:
        return self.scope.math.block

    def stream(self) -> StreamOp:
        self.scope.state = {counter: self.scope.math.constant(0) for counter in self.counters.carried}
        self.items(self.plan.structure.loops[0])
        return StreamOp(self.engine, Region(self.body))

    # Blocks.

    def items(self, loop: Loop) -> None:
        """Everything in the block of `loop` but its terminator."""
        for signals in self.scope.signals:
            signals.start(loop.block, self.scope.state)
        for item in self.layout.of(loop.block):
            if isinstance(item, Source):
                self.source(item)
            elif item in self.plan.structure.loops_of:
                for signals in self.scope.signals:
                    signals.before(item, self.scope.state, self.scope.math)
                if item in self.plan.barriers.ops:
                    self.barrier()
                self.control(item)
                for signals in self.scope.signals:
                    signals.after(item, self.scope.state)
            elif not isinstance(item, memref.AllocOp):
                self.block.add_op(self.copied(item))
        for signals in self.scope.signals:
            signals.end(loop.block, self.scope.state, self.scope.math)

    def source(self, source: Source) -> None:
        """An instruction, a marker or a read, behind its waits."""
        for need in self.plan.waits.get(source, ()):
            threshold = self.scope.threshold(need)
            group = self.plan.groups.of[need.producer]
            self.block.add_op(WaitOp(group.name, threshold, [need.producer.name]))
        group = self.plan.groups.of.get(source)
        signal: dict[str, Attribute] = {"signal": StringAttr(group.name)} if group else {}
        match source:
            case Read():
                written = self.plan.sources[source.op].name
                op = ReadOp(source.name, self.engine, written, source.op.results[0].type, signal)
                self.values[source.op.results[0]] = op.result
                op.result.name_hint = source.op.results[0].name_hint
                op.location = source.op.location
            case Marker():
                op = MarkerOp(source.name, self.engine, signal)
                op.location = source.op.location
            case _:
                results = [self.values.get(result) for result in source.op.results]
                op = self.copied(source.op)
                for result, earlier in zip(source.op.results, results, strict=True):
                    if earlier is None:
                        del self.values[result]
                    else:
                        self.values[result] = earlier
                op.attributes.pop("semaphores", None)
                op.attributes.update(signal)
        self.block.add_op(op)

    def copied(self, op: Operation) -> Operation:
        """A copy of `op`, on the values of this stream; its results are those of this stream."""
        return op.clone(self.values) if op.regions else op.clone_without_regions(self.values)

    def barrier(self) -> None:
        names = [group.name for group in self.plan.groups.all.values() if group.kind == "barrier"]
        self.block.add_op(BarrierOp(names))

    # Control flow.

    def control(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                self.for_loop(op)
            case scf.WhileOp():
                self.while_loop(op)
            case scf.IfOp():
                self.conditional(op)
            case scf.IndexSwitchOp():
                self.switch(op)
            case _:
                raise AssertionError(f"{op.name} is not allowed in a verified program")

    def handed_on(self, op: Operation) -> list[Counter]:
        """The counters that `op` takes and gives back."""
        return [counter for counter in self.counters.updated.get(op, ()) if counter in self.scope.state]

    def for_loop(self, op: scf.ForOp) -> None:
        (loop,) = self.plan.structure.loops_of[op]
        carried = self.kept.carries(op)
        outer, local = self.handed_on(op), list(self.counters.local.get(loop, ()))
        initial = [self.values[op.iter_args[index]] for index in carried]
        initial += [self.scope.state[counter] for counter in outer] + [self.initial(counter) for counter in local]
        lower, upper, step = (self.values[value] for value in (op.lb, op.ub, op.step))
        body = Block(arg_types=[IndexType(), *(value.type for value in initial)])
        _hint(body.args[0], op.body.block.args[0])
        entered = self.scope.math.enter(body)
        self.values[op.body.block.args[0]] = body.args[0]
        for index, arg in zip(carried, body.args[1:], strict=False):
            self.values[op.body.block.args[index + 1]] = arg
            _hint(arg, op.body.block.args[index + 1])
        self.take([*outer, *local], body.args[1 + len(carried) :])
        self.begin(loop)
        self.scope.indices[loop] = body.args[0], lower, step
        self.items(loop)
        self.finish(loop)
        end = op.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        passed = [self.values[end.operands[index]] for index in carried] + [
            self.scope.state[c] for c in [*outer, *local]
        ]
        self.block.add_op(scf.YieldOp.create(operands=passed))
        self.scope.math.enter(entered)
        made = scf.ForOp.create(
            operands=[lower, upper, step, *initial],
            result_types=[value.type for value in initial],
            regions=[Region(body)],
        )
        self.place(made, op, loop.name)
        for index, result in zip(carried, made.results, strict=False):
            self.values[op.results[index]] = result
            _hint(result, op.results[index])
        self.take(outer, made.results[len(carried) : len(carried) + len(outer)])
        self.forget(local)

    def while_loop(self, op: scf.WhileOp) -> None:
        before, after = self.plan.structure.loops_of[op]
        end = before.block.last_op
        back = after.block.last_op
        assert isinstance(end, scf.ConditionOp)
        assert isinstance(back, scf.YieldOp)
        taken = [index for index, arg in enumerate(before.block.args) if arg in self.kept.carried]
        given = [
            index
            for index, (arg, result) in enumerate(zip(after.block.args, op.results, strict=True))
            if arg in self.kept.carried or result in self.kept.carried
        ]
        outer, local = self.handed_on(op), list(self.counters.local.get(before, ()))
        counters = [*outer, *local]
        initial = [self.values[op.arguments[index]] for index in taken]
        initial += [self.scope.state[counter] for counter in outer] + [self.initial(counter) for counter in local]
        first = Block(arg_types=[value.type for value in initial])
        entered = self.scope.math.enter(first)
        for index, arg in zip(taken, first.args, strict=False):
            self.values[before.block.args[index]] = arg
            _hint(arg, before.block.args[index])
        self.take(counters, first.args[len(taken) :])
        self.begin(before)
        self.items(before)
        if before in self.plan.barriers.loops:
            self.barrier()
        self.epochs(before)
        passed = [self.values[end.args[index]] for index in given] + [self.scope.state[counter] for counter in counters]
        types = [value.type for value in passed]
        self.block.add_op(scf.ConditionOp.create(operands=[self.values[end.condition], *passed]))
        second = Block(arg_types=types)
        self.scope.math.enter(second)
        for index, arg in zip(given, second.args, strict=False):
            self.values[after.block.args[index]] = arg
            _hint(arg, after.block.args[index])
        self.take(counters, second.args[len(given) :])
        self.begin(after)
        self.items(after)
        self.finish(before)
        returned = [self.values[back.operands[index]] for index in taken] + [self.scope.state[c] for c in counters]
        self.block.add_op(scf.YieldOp.create(operands=returned))
        self.scope.math.enter(entered)
        made = scf.WhileOp.create(operands=initial, result_types=types, regions=[Region(first), Region(second)])
        self.place(made, op, before.name)
        for index, result in zip(given, made.results, strict=False):
            self.values[op.results[index]] = result
            _hint(result, op.results[index])
        self.take(outer, made.results[len(given) : len(given) + len(outer)])
        self.forget(local)

    def conditional(self, op: scf.IfOp) -> None:
        condition = self.values[op.cond]
        regions, types = self.branches(op, list(op.regions))
        made = scf.IfOp.create(operands=[condition], result_types=types, regions=regions)
        self.branched(made, op)

    def switch(self, op: scf.IndexSwitchOp) -> None:
        selector = self.values[op.arg]
        regions, types = self.branches(op, list(op.regions))
        made = scf.IndexSwitchOp.create(
            operands=[selector], result_types=types, properties={"cases": op.cases}, regions=regions
        )
        self.branched(made, op)

    def branches(self, op: Operation, regions: Sequence[Region]) -> tuple[list[Region], list[Attribute]]:
        """The branches of a conditional, each with the results that the engine needs, and their types."""
        results = [index for index, result in enumerate(op.results) if result in self.kept.carried]
        outer = self.handed_on(op)
        types = [op.results[index].type for index in results] + [self.scope.state[counter].type for counter in outer]
        loops = {loop.block: loop for loop in self.plan.structure.loops_of[op]}
        state = {counter: self.scope.state[counter] for counter in outer}
        written: list[Region] = []
        for region in regions:
            loop = loops[region.block] if region.blocks else None
            if loop is None and not types:
                written.append(Region())
                continue
            block = Block()
            entered = self.scope.math.enter(block)
            passed: list[SSAValue] = []
            if loop is not None:
                self.begin(loop)
                self.items(loop)
                self.finish(loop)
                end = loop.block.last_op
                assert isinstance(end, scf.YieldOp)
                passed = [self.values[end.operands[index]] for index in results]
            passed += [self.scope.state[counter] for counter in outer]
            self.block.add_op(scf.YieldOp.create(operands=passed))
            self.scope.math.enter(entered)
            self.scope.state.update(state)
            written.append(Region(block))
        return written, types

    def branched(self, made: Operation, op: Operation) -> None:
        results = [result for result in op.results if result in self.kept.carried]
        self.place(made, op, self.plan.structure.loops_of[op][0].name)
        for result, new in zip(results, made.results, strict=False):
            self.values[result] = new
            _hint(new, result)
        self.take(self.handed_on(op), made.results[len(results) :])

    # What loops share.

    def take(self, counters: Sequence[Counter], values: Sequence[SSAValue]) -> None:
        for counter, value in zip(counters, values, strict=True):
            self.scope.state[counter] = value
            value.name_hint = counter.hint

    def forget(self, counters: Sequence[Counter]) -> None:
        for counter in counters:
            del self.scope.state[counter]

    def place(self, made: Operation, op: Operation, name: str) -> None:
        """Append what stands for the control operation `op`."""
        made.location = op.location
        made.attributes.update({key: value for key, value in op.attributes.items() if key != "semaphores"})
        made.attributes["loop"] = StringAttr(name)
        self.block.add_op(made)

    def begin(self, loop: Loop) -> None:
        """An iteration of `loop`: its directive, and its counters one more."""
        self.block.add_op(IterationOp(loop.name, loop.depth))
        self.count(Counter(Counts.ENTRIES, loop), self.scope.math.counter)
        self.count(Counter(Counts.EPOCH, loop), self.scope.math.counter)
        self.count(Counter(Counts.TRIP, loop), IndexType())

    def count(self, counter: Counter, type_: IntegerType | IndexType) -> None:
        if (value := self.scope.state.get(counter)) is not None:
            more = self.scope.state[counter] = self.scope.math.add(value, self.scope.math.constant(1, type_))
            more.name_hint = counter.hint

    def finish(self, loop: Loop) -> None:
        """The end of an iteration of `loop`: a barrier, the histories one iteration on, an epoch."""
        if loop in self.plan.barriers.loops:
            self.barrier()
        self.shift(loop)
        if loop.kind is not LoopKind.WHILE:
            self.epochs(loop)

    def shift(self, loop: Loop) -> None:
        """The histories that live in `loop`, one iteration on."""
        moved: State = {}
        for counter in self.counters.local.get(loop, ()):
            assert counter.loop is not None
            if counter.counts is Counts.TRIP:
                continue
            earlier = Counter(counter.counts, counter.loop, around=loop, j=counter.j - 1)
            moved[counter] = self.scope.state[Counter(Counts.ENTRIES, counter.loop) if counter.j == 1 else earlier]
        self.scope.state.update(moved)

    def epochs(self, loop: Loop) -> None:
        """The epochs at the iteration boundary of `loop`: after so many iterations, counters start again."""
        math, state = self.scope.math, self.scope.state
        for reset in self.resets.get(loop, ()):
            again = [counter for counter in self.counters.restarting[loop] if counter in state]
            iterations = math.constant(reset.epoch.iterations)
            full = math.compare(Predicate.AT_LEAST, state[self.counters.iterations[loop]], iterations)
            zeros = (math.constant(0) for _ in again)
            full_up = Block([BarrierOp(reset.epoch.semaphores, reset.engines), scf.YieldOp(*zeros)])
            go_on = Block([scf.YieldOp(*(state[counter] for counter in again))])
            made = scf.IfOp(full, [state[counter].type for counter in again], Region(full_up), Region(go_on))
            self.block.add_op(made)
            self.take(again, made.results)

    def initial(self, counter: Counter) -> SSAValue:
        """The value of a counter that lives in a loop, where a trip begins."""
        if counter.counts is Counts.STARTED:
            return self.scope.state[Counter(Counts.ENTRIES, counter.loop)]
        return self.scope.math.constant(0, IndexType() if counter.counts is Counts.TRIP else None)


def _hint(value: SSAValue, like: SSAValue) -> None:
    value.name_hint = like.name_hint
