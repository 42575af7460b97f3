"""sem-simplify: fold, share and hoist the integer arithmetic of streams, in one walk (barrier-free, section 6.2).

It does to the arithmetic and the views of streams what canonicalize, cse and licm do together, and as those it leaves
waits, instructions and directives where they are. Those three take minutes for 50,000 instructions; this one is linear
and fast. Each operation is simplified (`scalar_folding`), moved in front of the loops that its operands do not change
in, and left out where the same is computed in a place that dominates. Loops without an iteration go, and conditionals
whose branch is known; loops of one iteration stay, because iterations and distances count them.

    scf.for %i = ... {                                          %n2 = arith.muli %r, %c2 : i32
      %r1 = arith.subi %r, %c1 : i32                            %t = arith.addi %n2, %c-3 : i32
      %w = arith.muli %r1, %c2 : i32                      ->    scf.for %i = ... {
      %t = arith.subi %w, %c1 : i32                               sem.wait "s0" >= %t : i32
      sem.wait "s0" >= %t : i32
"""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from mpkc.dialects.scalars import SCALAR_OPS
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_needs import condition_of, terminators, yield_of
from mpkc.dialects.sem_streams import StreamOp, StreamsOp
from mpkc.dialects.tile_buffers import RotateOp
from mpkc.passes.scalar_folding import (
    CASTS,
    COMMUTATIVE,
    Constant,
    MaskedProduct,
    Product,
    ScaledSum,
    Simpler,
    Sum,
    constant_of,
    integer_attr,
    integer_like,
    may_fail,
    simpler,
)

Key: TypeAlias = tuple[Hashable, ...]

_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.DimOp, RotateOp)
_CASTS = frozenset(CASTS)
_FLAGS = {"overflowFlags": arith.IntegerOverflowAttr("none")}


def simplify(streams: StreamsOp) -> None:
    """Simplify the arithmetic of streams in place."""
    for stream in streams.streams.values():
        _drop_invariants(stream.body.block)
        _Simplifier(stream).run()


def _drop_invariants(block: Block) -> None:
    """Use outside values directly where a loop passes them on unchanged, or every branch results in them."""
    for op in block.ops:
        if not isinstance(op, CONTROL_OPS):
            continue
        for region in op.regions:
            for nested in region.blocks:
                _drop_invariants(nested)
        match op:
            case scf.ForOp():
                passed = yield_of(op.body.block).operands
                for init, arg, back, result in zip(
                    op.iter_args, op.body.block.args[1:], passed, op.results, strict=True
                ):
                    if back is arg or back is init:
                        arg.replace_all_uses_with(init)
                        result.replace_all_uses_with(init)
                _merge_equal(op, passed)
            case scf.WhileOp():
                _drop_invariants_of_while(op)
            case _:
                ends = list(terminators(op))
                for index, result in enumerate(op.results):
                    values = {end.operands[index] for end in ends}
                    if len(values) == 1 and all(_is_outside(value, op) for value in values):
                        result.replace_all_uses_with(values.pop())


def _merge_equal(op: scf.ForOp, passed: Sequence[SSAValue]) -> None:
    """Carry what begins and goes on alike once."""
    first: dict[tuple[SSAValue, SSAValue], int] = {}
    for at, column in enumerate(zip(op.iter_args, passed, strict=True)):
        same = first.setdefault(column, at)
        if same != at:
            op.body.block.args[at + 1].replace_all_uses_with(op.body.block.args[same + 1])
            op.results[at].replace_all_uses_with(op.results[same])


def _drop_invariants_of_while(op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    passed, back = condition_of(op).args, yield_of(after).operands
    for init, arg, value in zip(op.arguments, before.args, back, strict=True):
        if isinstance(value, BlockArgument) and value.block is after:
            value = passed[value.index]
        if value is arg or value is init:
            arg.replace_all_uses_with(init)


def _is_outside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    return not op.is_ancestor(owner)


class _Simplifier:
    """One walk over a stream.

    Attributes:
        blocks: the block that is being read, and those around it, outermost first.
        holders: the operation that holds each block; it stands in the block before.
        floors: how far out of each block arithmetic may move: the place in `blocks` it may move to.
        known: the value that is there for each expression.
        added: the expressions that became known in each block.
    """

    def __init__(self, stream: StreamOp):
        self.blocks: list[Block] = [stream.body.block]
        self.holders: list[Operation] = [stream]
        self.floors = [0]
        self.places = {stream.body.block: 0}
        self.known: dict[Key, SSAValue] = {}
        self.added: list[list[Key]] = [[]]

    def run(self) -> None:
        self.block(self.blocks[0])

    def block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            if type(op) in SCALAR_OPS or type(op) in _VIEWS:
                self.scalar(op)
            elif op.regions:
                following = self.control(op, following)
            op = following

    # Control flow.

    def control(self, op: Operation, following: Operation | None) -> Operation | None:
        """Simplify what `op` holds, or put what is known to run in its place; where to go on."""
        match op:
            case scf.ForOp() if _never_runs(op):
                _replace(op, op.iter_args)
            case scf.ForOp():
                self.enter(op, op.body.block, moves_out=True)
            case scf.WhileOp():
                # The second region sees nothing of the first.
                self.enter(op, op.before_region.block, moves_out=True)
                self.enter(op, op.after_region.block, moves_out=False)
            case scf.IfOp() | scf.IndexSwitchOp():
                if (selected := constant_of(op.operands[0])) is not None:
                    return self.inline(op, _branch(op, selected), following)
                for region in op.regions:
                    for block in region.blocks:
                        self.enter(op, block, moves_out=False)
            case _:
                pass
        return following

    def enter(self, op: Operation, block: Block, moves_out: bool) -> None:
        """Read a block that `op` holds."""
        place = len(self.blocks)
        self.blocks.append(block)
        self.holders.append(op)
        self.floors.append(self.floors[-1] if moves_out else place)
        self.places[block] = place
        self.added.append([])
        self.block(block)
        for key in self.added.pop():
            del self.known[key]
        del self.places[block]
        self.floors.pop()
        self.holders.pop()
        self.blocks.pop()

    def inline(self, op: Operation, taken: Block | None, following: Operation | None) -> Operation | None:
        """Put a branch in the place of its conditional."""
        if taken is None:
            _erase(op)
            return following
        end = yield_of(taken)
        results = end.operands
        end.detach()
        first = taken.first_op
        parent = op.parent
        assert parent is not None
        for moved in list(taken.ops):
            moved.detach()
            parent.insert_op_before(moved, op)
        _replace(op, results)
        end.erase()
        return first if first is not None else following

    # Arithmetic.

    def scalar(self, op: Operation) -> None:
        """Simplify an operation, share it with what is known, move it outward."""
        found = self.value_of(simpler(op), op) if type(op) in SCALAR_OPS else None
        if found is None:
            found = self.share(op)
        if found is not None:
            _replace(op, [found])

    def share(self, op: Operation) -> SSAValue | None:
        """The value that `op` computes, where it is known; else `op` is what is known from here on."""
        key = _key(op)
        if (found := self.known.get(key)) is not None:
            return found
        place = self.place_for(op)
        if place < len(self.blocks) - 1:
            op.detach()
            self.blocks[place].insert_op_before(op, self.holders[place + 1])
        self.know(key, op.results[0], place)
        return None

    def know(self, key: Key, value: SSAValue, place: int) -> None:
        self.known[key] = value
        self.added[place].append(key)

    def place_for(self, op: Operation) -> int:
        """Where `op` can be computed: not outside of a conditional, unless it costs nothing."""
        here = len(self.blocks) - 1
        if may_fail(op):
            return here
        place = 0 if isinstance(op, arith.ConstantOp) else self.floors[here]
        for operand in op.operands:
            owner = operand.owner
            block = owner if isinstance(owner, Block) else owner.parent
            place = max(place, self.places.get(block, 0) if block is not None else 0)
        return place

    def value_of(self, found: Simpler | None, op: Operation) -> SSAValue | None:
        """The value of an expression, which is written before `op` where it is not known."""
        match found:
            case None | SSAValue():
                return found
            case Constant():
                return self.constant(found, op)
            case Sum(value, constant):
                return self.write(arith.AddiOp, (value, self.number(constant, value, op)), op)
            case ScaledSum(value, factor, constant):
                scaled = self.write(arith.MuliOp, (value, self.number(factor, value, op)), op)
                return self.write(arith.AddiOp, (scaled, self.number(constant, value, op)), op)
            case MaskedProduct(mask, value, factor):
                scaled = self.write(arith.MuliOp, (value, self.number(factor, value, op)), op)
                return self.write(arith.MuliOp, (mask, scaled), op)
            case Product(value, factor):
                return self.write(arith.MuliOp, (value, self.number(factor, value, op)), op)

    def constant(self, found: Constant, before: Operation) -> SSAValue:
        attr = integer_attr(found.value, found.type)
        if (known := self.known.get(_constant_key(attr, found.type))) is not None:
            return known
        op = arith.ConstantOp.create(properties={"value": attr}, result_types=[found.type], location=before.location)
        return self.put(op, before)

    def number(self, value: int, like: SSAValue, before: Operation) -> SSAValue:
        return self.constant(integer_like(value, like), before)

    def write(self, kind: type[Operation], operands: Sequence[SSAValue], before: Operation) -> SSAValue:
        """A simplified operation in front of another."""
        if (known := self.known.get(_scalar_key(kind, operands))) is not None:
            return known
        op = kind.create(
            operands=operands, result_types=[operands[0].type], properties=_FLAGS, location=before.location
        )
        return self.put(op, before)

    def put(self, op: Operation, before: Operation) -> SSAValue:
        """The value that a new operation computes: simpler, known, or written."""
        assert before.parent is not None
        before.parent.insert_op_before(op, before)
        found = self.value_of(simpler(op), op) or self.share(op)
        if found is None:
            return op.results[0]
        _erase(op)
        return found


def _key(op: Operation) -> Key:
    """Equal for operations that compute the same; values are told apart by where they are."""
    kind = type(op)
    if kind is arith.ConstantOp:
        return _constant_key(op.properties["value"], op.results[0].type)
    if kind is arith.CmpiOp:
        return kind, op.properties["predicate"], *map(id, op.operands)
    if kind in _CASTS:
        return kind, op.results[0].type, id(op.operands[0])
    if kind in SCALAR_OPS:
        return _scalar_key(kind, op.operands)
    return kind, op.results[0].type, *map(id, op.operands), *(op.properties[name] for name in sorted(op.properties))


def _constant_key(attr: Attribute, type_: Attribute) -> Key:
    return arith.ConstantOp, attr.value.data if isinstance(attr, IntegerAttr) else attr, type_


def _scalar_key(kind: type[Operation], operands: Sequence[SSAValue]) -> Key:
    numbers = [id(operand) for operand in operands]
    if kind in COMMUTATIVE:
        numbers.sort()
    return kind, *numbers


def _never_runs(op: scf.ForOp) -> bool:
    lower, upper = constant_of(op.lb), constant_of(op.ub)
    return op.lb is op.ub or (lower is not None and upper is not None and lower >= upper)


def _branch(op: scf.IfOp | scf.IndexSwitchOp, selected: int) -> Block | None:
    """The branch that runs; None for an else that is not there."""
    if isinstance(op, scf.IndexSwitchOp):
        cases = dict(zip(op.cases.iter_values(), op.case_regions, strict=True))
        return cases.get(selected, op.default_region).block
    region = op.true_region if selected else op.false_region
    return region.first_block


def _replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Let other values be the results of `op`, and erase it."""
    for result, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    _erase(op)


def _erase(op: Operation) -> None:
    assert op.parent is not None
    op.parent.erase_op(op)


class SimplifyPass(ModulePass):
    """Fold, share and hoist the integer arithmetic of streams."""

    name = "sem-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                simplify(streams)
