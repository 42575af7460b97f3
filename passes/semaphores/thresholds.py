"""From a need to the threshold of a wait (barrier-free, sections 5.3 and 5.5).

Thresholds are exact in the arithmetic of the counters, which wrap at 2^W. With unsigned ones nothing may go below 0:

    N * w - (N - K)                    where w, the retirements that are owed, is at least 1
    mask * (N * w - (N - K))           where w is at least 1 whenever the mask is 1
    N * w - (N - K) * (w > 0)          where w can be 0
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mpkc.dialects.sem_streams import constant_attr

NONE: Mapping[str, Attribute] = {}


class Predicate(Enum):
    """How arith.cmpi compares, as its properties: unsigned."""

    ABOVE = {"predicate": IntegerAttr(8, i64)}
    AT_LEAST = {"predicate": IntegerAttr(9, i64)}


class Arithmetic:
    """Writes integer arithmetic on counters of one stream; equal constants are one, at its head.

    Args:
        head: the block of the stream, or what constants shall dominate.
        counter: the signless type of counters.
        signed: whether thresholds below 0 are less than every semaphore.
        wrapping: whether counters start again while the program runs, so that r may be less than what was.
    """

    def __init__(self, head: Block, counter: IntegerType, signed: bool, wrapping: bool):
        self.head, self.counter, self.signed, self.wrapping = head, counter, signed, wrapping
        self.limit = (1 << (counter.width.data - signed)) - 1
        self.block = head
        self._written: dict[tuple[object, ...], SSAValue] = {}
        self._constants: dict[tuple[int, IntegerType | IndexType], SSAValue] = {}

    def constant(self, value: int, type_: IntegerType | IndexType | None = None) -> SSAValue:
        """An integer; of the type of counters where no other is given."""
        type_ = type_ or self.counter
        found = self._constants.get((value, type_))
        if found is None:
            attr = constant_attr(value, type_) if isinstance(type_, IntegerType) else IntegerAttr(value, type_)
            op = arith.ConstantOp.create(result_types=[type_], properties={"value": attr})
            first = self.head.first_op
            if first is None:
                self.head.add_op(op)
            else:
                self.head.insert_op_before(op, first)
            found = self._constants[value, type_] = op.results[0]
        return found

    def enter(self, block: Block) -> Block:
        """Write into `block` from here on; the block that was written before."""
        earlier, self.block = self.block, block
        self._written = {}
        return earlier

    def write(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: Mapping[str, Attribute] = NONE,
    ) -> SSAValue:
        """The result of an operation, which is appended where this block does not compute it already."""
        key = (kind, type_, *operands, *properties.values())
        found = self._written.get(key)
        if found is None:
            op = kind.create(operands=operands, result_types=[type_], properties=properties)
            self.block.add_op(op)
            found = self._written[key] = op.results[0]
        return found

    def binary(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """The result of an operation on two integers of one type, which is of that type."""
        return self.write(kind, (a, b), a.type)

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.binary(arith.AddiOp, a, b)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.binary(arith.SubiOp, a, b)

    def times(self, n: int, value: SSAValue) -> SSAValue:
        return self.binary(arith.MuliOp, self.constant(n), value)

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.binary(arith.MuliOp, a, b)

    def at_least(self, value: SSAValue, bound: int) -> SSAValue:
        """`value`, raised to `bound`; neither is seen as negative."""
        return self.binary(arith.MaxUIOp, value, self.constant(bound))

    def index(self, value: SSAValue) -> SSAValue:
        """A counter, which is not negative, as an index."""
        word = IntegerType(64)
        wide = value if value.type == word else self.write(arith.ExtUIOp, (value,), word)
        return self.write(arith.IndexCastOp, (wide,), IndexType())

    def from_index(self, value: SSAValue) -> SSAValue:
        """An index as a counter."""
        return self.write(arith.IndexCastOp, (value,), self.counter)

    def compare(self, predicate: Predicate, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.write(arith.CmpiOp, (a, b), i1, predicate.value)

    def truth(self, predicate: Predicate, a: SSAValue, b: SSAValue) -> SSAValue:
        """1 or 0, as a counter: the paper's isGT."""
        return self.write(arith.ExtUIOp, (self.compare(predicate, a, b),), self.counter)

    def less(self, value: SSAValue, k: int, reached: bool = True) -> SSAValue:
        """`value` - k, and 0 where counters started again since.

        Args:
            reached: whether `value` is k at least otherwise; if not, the difference may be below 0 where it is signed.
        """
        if k == 0:
            return value
        if self.wrapping and k > self.limit:
            return self.constant(0)  # no counter gets that far from one start to the next
        exact = not self.wrapping and (reached or self.signed)
        return self.sub(value if exact else self.at_least(value, k), self.constant(k))

    def threshold(self, owed: SSAValue, mask: SSAValue | None, place: tuple[int, int], positive: bool) -> SSAValue:
        """The threshold for `owed` retirements of the producer at place K of N.

        Args:
            mask: 0 where nothing is owed; None where `owed` is 0 then.
            positive: whether `owed` is at least 1 where something is owed.
        """
        k, n = place
        if n == 1:
            return owed if mask is None else self.product(mask, owed)
        if k == n or self.signed or (positive and not self.wrapping):
            if not positive and mask is not None:
                owed, mask = self.product(mask, owed), None
            found = self.times(n, owed)
            found = self.sub(found, self.constant(n - k)) if k < n else found
            return found if mask is None else self.product(mask, found)
        owed = owed if mask is None else self.product(mask, owed)
        some = self.truth(Predicate.ABOVE, owed, self.constant(0))
        return self.sub(self.times(n, owed), self.times(n - k, some))
