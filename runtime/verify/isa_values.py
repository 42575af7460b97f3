"""What is known of the integers of a stream without running it: constants, trip counts, casts that change nothing."""

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import SCALAR_OPS, bits_of, evaluate
from mpkc.dialects.sem_needs import condition_of, yield_of

CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)


class Values:
    """Facts about values, each found out once."""

    def __init__(self) -> None:
        self._integers: dict[SSAValue, int | None] = {}
        self._trips: dict[Operation, int | None] = {}

    def integer(self, value: SSAValue) -> int | None:
        """The integer that a value always is."""
        value = self.canonical(value, 0)
        if value not in self._integers:
            self._integers[value] = self._integer(value)
        return self._integers[value]

    def _integer(self, value: SSAValue) -> int | None:
        op = value.block.parent_op() if isinstance(value, BlockArgument) else value.owner
        if isinstance(op, scf.WhileOp):
            if isinstance(value, BlockArgument) and value.block is op.before_region.block:
                return None
            assert isinstance(value, BlockArgument | OpResult)
            return self.integer(condition_of(op).args[value.index])
        if not isinstance(value, OpResult) or type(value.op) not in SCALAR_OPS:
            return None
        if isinstance(value.op, arith.ConstantOp) and not isinstance(value.op.value, IntegerAttr):
            return None
        operands: list[int] = []
        for operand in value.op.operands:
            known = self.integer(operand)
            if known is None:
                return None
            operands.append(known)
        try:
            return evaluate(value.op, operands)
        except OpError:  # a division by zero in a place that nothing comes to
            return None

    def trips(self, op: scf.ForOp) -> int | None:
        """The trip count of a loop with known bounds."""
        if op not in self._trips:
            lower, upper, step = (self.integer(value) for value in (op.lb, op.ub, op.step))
            if lower is None or upper is None or step is None or step < 1:
                self._trips[op] = None
            else:
                self._trips[op] = max(0, -((lower - upper) // step))
        return self._trips[op]

    def canonical(self, value: SSAValue, bits: int) -> SSAValue:
        """The value that a register holds which holds `value`, of which only the lowest `bits` count (0: all)."""
        while True:
            if isinstance(value, BlockArgument):
                op = value.block.parent_op()
                if not isinstance(op, scf.ForOp) or self.trips(op) != 1:
                    return value
                value = (op.lb, *op.iter_args)[value.index]
                continue
            assert isinstance(value, OpResult)
            match value.op:
                case scf.ForOp() as op if self.trips(op) == 1:
                    value = yield_of(op.body.block).operands[value.index]
                case op if isinstance(op, CASTS) and self._keeps(op, bits):
                    value = op.operands[0]
                case _:
                    return value

    @staticmethod
    def _keeps(op: Operation, bits: int) -> bool:
        """Whether a register that holds what is cast holds the result too."""
        source, result = bits_of(op.operands[0].type), bits_of(op.results[0].type)
        if result < source:
            return 0 < bits <= result
        if source == 1:
            return isinstance(op, arith.ExtUIOp)
        return not isinstance(op, arith.ExtUIOp)
