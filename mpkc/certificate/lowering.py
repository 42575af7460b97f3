"""From a program and its streams to what a certificate says of them.

Of arithmetic only that is kept which thresholds of waits depend on; bounds and conditions are left out, since a
certificate is about all trip counts. What the checker has no rule for is refused by name.
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block as IRBlock
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from mpkc.certificate.arithmetic import computation_of, constant_of, unknown
from mpkc.certificate.control import begun_by, control_of, projection
from mpkc.certificate.meetings import gatherings_of, groups_of, under_condition
from mpkc.certificate.specification import Specification
from mpkc.certificate.statements import (
    Assume,
    Block,
    Choice,
    Enter,
    Expression,
    Ghost,
    Group,
    Issue,
    Let,
    Loop,
    Meet,
    Model,
    Stream,
    Wait,
)
from mpkc.certificate.symbolic import ROOT
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, signal_of
from mpkc.dialects.scalars import is_scalar
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_streams import BarrierOp, IterationOp, MarkerOp, StreamOp, StreamsOp, WaitOp
from mpkc.runtime.verify.places import Places

FIRST_VARIABLE = 2  # 1 counts the rounds of a block
UNCOVERED: dict[type[Operation], str] = {
    MarkerOp: "markers, which stand for dependencies that no wait is exact for",
}
"""What may stand in streams and in no certificate."""


def refused(op: Operation, what: str) -> OpError:
    """An error for what no certificate covers."""
    return OpError(op, f"cannot certify: {what}")


def lowered(program: Operation, streams: StreamsOp, maxima: Mapping[str, int]) -> Model:
    """What a certificate says.

    Args:
        maxima: how often each loop is entered at most, by name.

    Raises:
        OpError: what no certificate covers.
    """
    for kind, what in UNCOVERED.items():
        if any(isinstance(op, kind) for op in streams.walk()):
            raise refused(program, what)
    places = Places.read(program, streams)
    if places.strange:
        raise refused(*places.strange[0])
    said = Specification(places)
    semaphores = {name: number for number, name in enumerate(streams.semaphore_names, 1)}
    said.gatherings, barriers = gatherings_of(said, places)
    groups = groups_of(said, places, semaphores, streams, barriers)
    lowered_ = [
        _Lowering(said, places, semaphores, groups, barriers, engine, op).stream()
        for engine, op in streams.streams.items()
    ]
    for stream in lowered_:
        way = control_of(stream.body)
        if way != projection(said, stream.engine, begun_by(way)):
            raise refused(
                program, f'the stream of "{stream.engine}" does not have all loops that the program has for it'
            )
    return Model(
        said.loops,
        said.labels,
        semaphores,
        said.engines,
        said.parents,
        {said.loops[name]: most for name, most in maxima.items() if name in said.loops and name != "program"},
        (1 << (streams.counters.width.data - streams.signed)) - 1,
        groups,
        {each.barrier: each for each in said.gatherings},
        said.needs,
        said.tree,
        lowered_,
    )


class _Lowering:
    """Lowers the stream of one engine."""

    def __init__(
        self,
        said: Specification,
        places: Places,
        semaphores: Mapping[str, int],
        groups: Sequence[Group],
        barriers: Mapping[Operation, int],
        engine: str,
        op: StreamOp,
    ):
        self.said, self.places, self.semaphores, self.engine, self.op = said, places, semaphores, engine, op
        self.groups, self.barriers = groups, barriers
        self.needed = _needed(op)
        self.ghosts = self._ghosts()
        self.variables: dict[SSAValue, int] = {}
        self.next = max(self.ghosts, default=FIRST_VARIABLE - 1) + 1

    def stream(self) -> Stream:
        streams = self.places.streams.body.block
        body: Block = []
        for arg in streams.args:
            if arg in self.needed:
                body.append(Let(self.variable(arg), unknown(arg.type)))
        for op in streams.ops:
            body += self._computed(op)
        return Stream(self.engine, body + self.block(self.op.body.block), self.ghosts)

    def _ghosts(self) -> dict[int, Ghost]:
        """The counters that the needs and barriers of the engine speak of, and those of what it signals."""
        found: dict[Ghost, None] = {}
        loops: dict[int, None] = {}
        pasts: dict[Ghost, None] = {}
        for label in self._own():
            for need in self.said.needs[label]:
                loops[need.loop] = None
                if need.carrier is not None:
                    loops[need.carrier] = None
                    if need.carrier != need.loop:
                        back = range(1, need.k + 1 + (need.inner is not None))
                        pasts |= {Ghost("Past", (need.carrier, k, need.loop)): None for k in back}
        signals: dict[int, None] = {}
        since = self._since()
        loops |= {ghost.of[0]: None for ghost in since if ghost.kind == "Base"}
        for op in self.op.walk():
            if isinstance(op, IterationOp):
                loops[self.said.loops[op.loop.data]] = None
            elif is_instruction(op) and (signal := signal_of(op)) is not None:
                signals[self.semaphores[signal]] = None
        found |= {Ghost("Entries", (loop,)): None for loop in loops}
        found |= {Ghost("Iteration", (loop,)): None for loop in loops if loop != ROOT}
        found |= pasts | since
        found |= {Ghost("Sent", (signal,)): None for signal in signals}
        return dict(enumerate(found, FIRST_VARIABLE))

    def _since(self) -> dict[Ghost, None]:
        """What counts since barriers: for each that the engine comes to, and each group whose semaphores become 0."""
        met = {number for op, number in self.barriers.items() if self.places.of[op].engine == self.engine}
        found: dict[Ghost, None] = {}
        for each in self.said.gatherings:
            if each.barrier in met:
                found[Ghost("Base", (each.loop, each.barrier, 0))] = None
        own = set(self._own())
        for group in self.groups:
            if group.cuts and all(barrier in met for barrier, _ in group.cuts):
                found[Ghost("Base", (group.loop, *(x for cut in group.cuts for x in cut)))] = None
                if group.members[0][0] in own:
                    found[Ghost("Issues", (group.members[0][0],))] = None
        return found

    def _own(self) -> list[int]:
        return [self.said.labels[p.name] for p in self.places.by_label.values() if p.engine == self.engine]

    def variable(self, value: SSAValue) -> int:
        if value not in self.variables:
            self.variables[value] = self._fresh()
        return self.variables[value]

    def _fresh(self) -> int:
        self.next += 1
        return self.next - 1

    # Blocks.

    def block(self, block: IRBlock) -> Block:
        found: Block = []
        for op in block.ops:
            match op:
                case IterationOp():
                    found.append(Enter(self.said.loops[op.loop.data]))
                case WaitOp():
                    found += self._wait(op)
                case scf.ForOp():
                    found += self._for(op)
                case scf.IfOp():
                    found.append(self._if(op))
                case BarrierOp():
                    own = [s.data for s in op.semaphores if self._signals(s.data)]
                    found.append(Meet(self.barriers[op], tuple(self.semaphores[s] for s in own), op))
                case _ if isinstance(op, CONTROL_OPS):
                    raise refused(op, f"'{op.name}'; certificates are for scf.for and scf.if")
                case _ if is_instruction(op):
                    signal = signal_of(op)
                    label = self.said.labels[self.places.of[op].name]
                    found.append(Issue(label, self.semaphores[signal] if signal else None, op))
                    found += self._computed(op)
                case _:
                    found += self._computed(op)
        return found

    def _signals(self, semaphore: str) -> bool:
        return any(place.engine == self.engine for place in self.places.members.get(semaphore, ()))

    def _wait(self, op: WaitOp) -> Block:
        semaphore, threshold = self.semaphores[op.semaphore.data], self.variable(op.threshold)
        streams = self.places.streams
        if not streams.signed:
            return [Wait(semaphore, threshold)]
        value = self._fresh()
        return [
            Let(value, Expression("Signed", (threshold,), 1 << streams.counters.width.data)),
            Wait(semaphore, value),
        ]

    def _computed(self, op: Operation) -> Block:
        """What a threshold needs of an operation: its result, or any value where the checker has no rule for it."""
        needed = [result for result in op.results if result in self.needed]
        if not is_scalar(op):
            return [Let(self.variable(result), unknown(result.type)) for result in needed]
        return [*computation_of(op, self.variable, self._fresh)] if needed else []

    def _for(self, loop: scf.ForOp) -> Block:
        index, *args = loop.body.block.args
        end = loop.body.block.last_op
        assert end is not None
        carried = [
            (arg, init, given, result)
            for arg, init, given, result in zip(args, loop.iter_args, end.operands, loop.results, strict=True)
            if arg in self.needed
        ]
        before: Block = [Let(self.variable(arg), _move(self.variable(init))) for arg, init, _, _ in carried]
        start, step = constant_of(loop.lb), constant_of(loop.step)
        body: Block = []
        counts = index in self.needed and start is not None and start >= 0 and step is not None and step > 0
        if counts:
            before.append(Let(self.variable(index), Expression("Constant", (), start or 0)))
        elif index in self.needed:
            body.append(Let(self.variable(index), unknown(index.type)))
        body += self.block(loop.body.block)
        body += self._together([(self.variable(arg), self.variable(given)) for arg, _, given, _ in carried])
        if counts:
            body.append(Let(self.variable(index), Expression("Advance", (self.variable(index),), step or 1)))
        results = [
            Let(self.variable(result), _move(self.variable(arg)))
            for arg, _, _, result in carried
            if result in self.needed
        ]
        return [*before, Loop(body, loop), *results]

    def _together(self, moves: Sequence[tuple[int, int]]) -> Block:
        """Assignments at once: by way of others where one reads what another writes."""
        moves = [(x, y) for x, y in moves if x != y]
        written = {x for x, _ in moves}
        aside = {y: self._fresh() for _, y in moves if y in written}
        first: Block = [Let(x, _move(y)) for y, x in aside.items()]
        return [*first, *(Let(x, _move(aside.get(y, y))) for x, y in moves)]

    def _if(self, op: scf.IfOp) -> Choice:
        then, otherwise = (self._branch(op, region.blocks) for region in (op.true_region, op.false_region))
        if under_condition(op):
            x = self.variable(op.cond)
            return Choice([Assume(x, True), *then], [Assume(x, False), *otherwise])
        return Choice(then, otherwise)

    def _branch(self, op: scf.IfOp, blocks: Sequence[IRBlock]) -> Block:
        if not blocks:
            return []
        end = blocks[0].last_op
        assert end is not None
        found = self.block(blocks[0])
        passed = zip(op.results, end.operands, strict=True)
        return found + [Let(self.variable(r), _move(self.variable(v))) for r, v in passed if r in self.needed]


def _move(x: int) -> Expression:
    return Expression("Move", (x,))


def _needed(stream: StreamOp) -> set[SSAValue]:
    """The values that thresholds depend on, and the turns of barriers, on whatever way."""
    found: set[SSAValue] = set()
    left: list[SSAValue] = [op.threshold for op in stream.walk() if isinstance(op, WaitOp)]
    left += [op.cond for op in stream.walk() if isinstance(op, scf.IfOp) and under_condition(op)]
    while left:
        value = left.pop()
        if value not in found:
            found.add(value)
            left += _behind(value)
    return found


def _behind(value: SSAValue) -> Sequence[SSAValue]:
    """What a value is computed from, or passed on from."""
    match value:
        case OpResult(op=scf.ForOp() as op, index=i):
            return [op.body.block.args[i + 1]]
        case OpResult(op=scf.IfOp() as op, index=i):
            return [end.operands[i] for region in op.regions for block in region.blocks if (end := block.last_op)]
        case OpResult(op=op) if is_scalar(op):
            return op.operands
        case BlockArgument(block=block, index=i) if i and isinstance(op := block.parent_op(), scf.ForOp):
            end = block.last_op
            assert end is not None
            return [op.iter_args[i - 1], end.operands[i - 1]]
        case _:
            return []
