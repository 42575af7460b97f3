"""sem-carry-thresholds: let loops carry thresholds where that takes fewer operations (barrier-free, section 8.2).

Of a counter r that loops carry and only add constants to, m * r + k can be carried as well: it begins and grows by m
times as much. One addition an iteration then stands for the product, for the first sum, and for the counter itself
where nothing else needs it; further thresholds with that m differ by constants. It is done where it saves operations,
those of inner loops counting for more.

    %r_end = scf.for ... iter_args(%r = %c0) -> (i32) {             %t_end = scf.for ... iter_args(%t = %c-1) -> (i32) {
      %r1 = arith.addi %r, %c1 : i32                                  %t1 = arith.addi %t, %c3 : i32
      %w = arith.muli %r1, %c3 : i32                                  sem.wait "s" >= %t1 : i32
      %t = arith.addi %w, %c-1 : i32                           ->     sem.inst @C engine "e" cost 64
      sem.wait "s" >= %t : i32                                        scf.yield %t1 : i32
      sem.inst @C engine "e" cost 64                                }
      scf.yield %r1 : i32
    }
"""

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects.sem_needs import yield_of
from mpkc.dialects.sem_streams import StreamOp, StreamsOp
from mpkc.passes.scalar_folding import constant_of, integer_attr, integer_like
from mpkc.passes.semaphores.carried import Affine, Carried, Counter, Counters


def carry_thresholds(streams: StreamsOp) -> None:
    """Let the loops of streams carry thresholds, in place; `drop_counters` takes away what nothing needs then."""
    for stream in streams.streams.values():
        chosen: dict[Counter, list[Carried]] = {}
        for counter in Counters(stream).found:
            if carried := counter.worth_carrying():
                chosen[counter] = carried
        if chosen:
            _Rewriting(chosen).run(stream)


class _Rewriting:
    """Writes what is carried beside its counters, and lets all uses read it.

    Attributes:
        carried: by each value of a counter.
        images: what stands for a value of a counter.
        results: of the loops that were written anew, by those that they had.
    """

    def __init__(self, chosen: dict[Counter, list[Carried]]):
        self.chosen = chosen
        self.carried = {value: each for counter, each in chosen.items() for value in counter.values}
        self.steps = {value: step for counter in chosen for value, step in counter.steps.items()}
        self.images: dict[tuple[SSAValue, Carried], SSAValue] = {}
        self.results: dict[SSAValue, SSAValue] = {}

    def run(self, stream: StreamOp) -> None:
        self.block(stream.body.block)
        for carried in self.chosen.values():
            for each in carried:
                for use in each.uses:
                    self.use(each, use)

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, scf.ForOp):
                self.loop(op)
            elif op.regions:
                for region in op.regions:
                    for nested in region.blocks:
                        self.block(nested)
            elif len(op.results) == 1 and op.results[0] in self.steps and op.results[0] in self.carried:
                self.step(op)

    def step(self, op: Operation) -> None:
        value = op.results[0]
        source, more = self.steps[value]
        for each in self.carried[value]:
            self.images[value, each] = _plus(self.image(source, each, op), more * each.factor, op)

    def loop(self, op: scf.ForOp) -> None:
        block = op.body.block
        columns = [
            (init, arg, at, each)
            for at, (init, arg) in enumerate(zip(op.iter_args, block.args[1:], strict=True))
            for each in self.carried.get(arg, ())
        ]
        if not columns:
            self.block(block)
            return
        inits = [self.image(init, each, op) for init, _, _, each in columns]
        for _, arg, _, each in columns:
            self.images[arg, each] = image = block.insert_arg(arg.type, len(block.args))
            image.name_hint = arg.name_hint
        self.block(block)
        end = yield_of(block)
        end.operands = [*end.operands, *(self.image(end.operands[at], each, end) for _, _, at, each in columns)]
        new = scf.ForOp.create(
            operands=[*op.operands, *inits],
            result_types=[*(result.type for result in op.results), *(arg.type for _, arg, _, _ in columns)],
            properties=op.properties,
            attributes=op.attributes,
            location=op.location,
            regions=[op.detach_region(op.body)],
        )
        assert op.parent is not None
        op.parent.insert_op_before(new, op)
        for old, result in zip(op.results, new.results, strict=False):
            result.name_hint = old.name_hint
            self.renamed(old, result)
        for (_, _, at, each), image in zip(columns, new.results[len(op.results) :], strict=True):
            self.images[new.results[at], each] = image
        op.parent.erase_op(op)

    def renamed(self, old: SSAValue, new: SSAValue) -> None:
        """A loop that was written anew has other results."""
        old.replace_all_uses_with(new)
        if old in self.carried:
            self.carried[new] = self.carried[old]
            self.results[old] = new

    def image(self, value: SSAValue, carried: Carried, before: Operation) -> SSAValue:
        """What stands for a value of a counter, or for the constant that it begins with."""
        number = constant_of(value)
        if number is None:
            return self.images[value, carried]
        return _constant(number * carried.factor + carried.constant, value, before)

    def use(self, carried: Carried, use: Affine) -> None:
        """Read what is carried, where a multiple of the counter was computed."""
        base = self.results.get(use.base, use.base)
        image = self.images[base, carried]
        before = use.user or use.value.owner
        assert isinstance(before, Operation)
        found = _plus(image, use.constant - carried.constant, before)
        if use.user is None:
            use.value.replace_all_uses_with(found)
        else:
            use.user.operands = [found if operand is base else operand for operand in use.user.operands]


def _constant(number: int, like: SSAValue, before: Operation) -> SSAValue:
    """A constant of the type of another value, in front of an operation."""
    constant = integer_like(number, like)
    op = arith.ConstantOp(integer_attr(constant.value, constant.type))
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.result


def _plus(value: SSAValue, more: int, before: Operation) -> SSAValue:
    """A sum in front of an operation; the value itself where nothing is added."""
    if not more:
        return value
    op = arith.AddiOp(value, _constant(more, value, before))
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.result


class CarryThresholdsPass(ModulePass):
    """Let loops carry thresholds where that takes fewer operations."""

    name = "sem-carry-thresholds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                carry_thresholds(streams)
