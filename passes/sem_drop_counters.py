"""sem-drop-counters: remove from streams what no wait, bound, condition or instruction needs (section 6.2).

Counters are carried by every loop whether or not a wait of that engine refers to them, and one that goes from its
argument to its yield and back is used, so that dce and canonicalize keep it. Here liveness goes through what loops
carry and conditionals result in. A loop or conditional that then holds nothing but directives of iterations, and
whose results nobody needs, goes with them. Loops are taken to end, scf.while too: as canonicalize does, and because
a condition without an instruction in its loop is the same for every engine.

    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) {     scf.for %i = %c0 to %n step %c1 {
      sem.iteration "i" depth 1                                               sem.iteration "i" depth 1
      %b = arith.addi %a, %c1 : i32                                    ->     sem.inst @P engine "e0" cost 64
      sem.inst @P engine "e0" cost 64                                       }
      scf.yield %b : i32
    }
"""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects.engine import is_declaration
from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_needs import Needs, condition_of, needs_of, yield_of
from mpkc.dialects.sem_streams import IterationOp, StreamOp, StreamsOp


def drop_counters(streams: StreamsOp) -> None:
    """Remove from the streams, in place, what nothing needs."""
    body = streams.body.block
    _Sweep(needs_of(body, _stands_for_itself)).block(body)


def _stands_for_itself(op: Operation) -> bool:
    return not (_is_pure(op) or isinstance(op, CONTROL_OPS + (IterationOp, StreamOp)))


def _is_pure(op: Operation) -> bool:
    return type(op) in SCALAR_OPS or is_declaration(op)


class _Sweep:
    """One walk, users before what they use."""

    def __init__(self, needs: Needs):
        self.needs = needs

    def block(self, block: Block) -> None:
        for op in reversed(list(block.ops)):
            if isinstance(op, CONTROL_OPS):
                if op in self.needs.control:
                    self.control(op)
                else:
                    _erase(op)
            elif isinstance(op, StreamOp):
                self.block(op.body.block)
            elif _is_pure(op) and op.results and not any(result in self.needs.values for result in op.results):
                _erase(op)

    def control(self, op: Operation) -> None:
        """Take out the columns that nothing needs, then what computed them."""
        match op:
            case scf.ForOp():
                self.loop(op)
            case scf.WhileOp():
                self.while_loop(op)
            case _:
                self.conditional(op)

    def kept(self, *columns: Sequence[SSAValue]) -> list[int]:
        """The indices at which one of the columns holds a value that is needed."""
        rows = zip(*columns, strict=True)
        return [at for at, row in enumerate(rows) if any(value in self.needs.values for value in row)]

    def loop(self, op: scf.ForOp) -> None:
        block = op.body.block
        kept = self.kept(block.args[1:])
        if len(kept) < len(op.results):
            _keep_operands(yield_of(block), kept)
        self.block(block)
        if len(kept) < len(op.results):
            _keep_args(block, [0, *(at + 1 for at in kept)])
            inits = [op.iter_args[at] for at in kept]
            _replace(op, kept, [op.lb, op.ub, op.step, *inits])

    def while_loop(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        carried = self.kept(before.args)
        passed = self.kept(op.results, after.args)
        complete = len(carried) == len(before.args) and len(passed) == len(op.results)
        if not complete:
            _keep_operands(yield_of(after), carried)
            condition = condition_of(op)
            condition.operands = [condition.condition, *(condition.args[at] for at in passed)]
        self.block(after)
        self.block(before)
        if not complete:
            _keep_args(after, passed)
            _keep_args(before, carried)
            _replace(op, passed, [op.arguments[at] for at in carried])

    def conditional(self, op: Operation) -> None:
        kept = self.kept(op.results)
        blocks = [block for region in op.regions for block in region.blocks]
        for block in blocks:
            if len(kept) < len(op.results):
                _keep_operands(yield_of(block), kept)
            self.block(block)
        if len(kept) < len(op.results):
            _replace(op, kept, op.operands)


def _keep_operands(end: scf.YieldOp, kept: Sequence[int]) -> None:
    end.operands = [end.operands[at] for at in kept]


def _keep_args(block: Block, kept: Sequence[int]) -> None:
    keep = set(kept)
    for arg in reversed([arg for at, arg in enumerate(block.args) if at not in keep]):
        block.erase_arg(arg)


def _replace(op: Operation, kept: Sequence[int], operands: Sequence[SSAValue]) -> None:
    """Put an operation with these operands and results in the place of `op`, around the same regions."""
    new = type(op).create(
        operands=operands,
        result_types=[op.results[at].type for at in kept],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
        regions=[op.detach_region(region) for region in tuple(op.regions)],
    )
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    for at, result in zip(kept, new.results, strict=True):
        result.name_hint = op.results[at].name_hint
        op.results[at].replace_all_uses_with(result)
    _erase(op)


def _erase(op: Operation) -> None:
    assert op.parent is not None
    op.parent.erase_op(op)


class DropCountersPass(ModulePass):
    """Remove what no wait, bound, condition or instruction of a stream needs."""

    name = "sem-drop-counters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                drop_counters(streams)
