"""The arith operations of streams as operations of registers."""

from collections.abc import Mapping

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue, Use

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.scalars import bits_of
from mpkc.dialects.sem_streams import WaitOp
from mpkc.runtime.neuron.isa import AluOp, Condition

BINARY: Mapping[type[Operation], AluOp] = {
    arith.AddiOp: AluOp.ADD,
    arith.SubiOp: AluOp.SUB,
    arith.MuliOp: AluOp.MULT,
    arith.DivSIOp: AluOp.DIV,
    arith.DivUIOp: AluOp.DIVU,
    arith.FloorDivSIOp: AluOp.FLOOR_DIV,
    arith.CeilDivSIOp: AluOp.CEIL_DIV,
    arith.CeilDivUIOp: AluOp.CEIL_DIVU,
    arith.RemSIOp: AluOp.REM,
    arith.RemUIOp: AluOp.REMU,
    arith.MinSIOp: AluOp.MIN,
    arith.MaxSIOp: AluOp.MAX,
    arith.MinUIOp: AluOp.MINU,
    arith.MaxUIOp: AluOp.MAXU,
    arith.AndIOp: AluOp.AND,
    arith.OrIOp: AluOp.OR,
    arith.XOrIOp: AluOp.XOR,
    arith.ShLIOp: AluOp.SHL,
    arith.ShRSIOp: AluOp.SHR,
    arith.ShRUIOp: AluOp.SHRU,
}

# In the order of arith.cmpi's predicates.
CONDITIONS = (
    Condition.EQ,
    Condition.NE,
    Condition.LT,
    Condition.LE,
    Condition.GT,
    Condition.GE,
    Condition.LTU,
    Condition.LEU,
    Condition.GTU,
    Condition.GEU,
)
NEGATED: Mapping[Condition, Condition] = {
    a: b
    for pair in (("eq", "ne"), ("lt", "ge"), ("le", "gt"), ("ltu", "geu"), ("leu", "gtu"))
    for a, b in (map(Condition, pair), map(Condition, reversed(pair)))
}


def condition_of(op: arith.CmpiOp) -> Condition:
    """When the comparison is true."""
    return CONDITIONS[op.predicate.value.data]


def alu_of(op: Operation) -> tuple[AluOp, int] | None:
    """The operation of registers that computes a scalar operation, and its width; None where it is a mere copy.

    Registers hold the signed value of an integer (0 or 1 for an i1), so most casts change nothing.
    """
    if (binary := BINARY.get(type(op))) is not None:
        return binary, bits_of(op.results[0].type)
    match op:
        case arith.CmpiOp():
            return AluOp(f"is_{condition_of(op)}"), bits_of(op.lhs.type)
        case arith.SelectOp():
            return AluOp.SELECT, bits_of(op.result.type)
        case arith.IndexCastOp() | arith.ExtSIOp() | arith.ExtUIOp() | arith.TruncIOp():
            return _cast(op, bits_of(op.input.type), bits_of(op.result.type))
        case _:
            raise OpError(op, f"'{op.name}' is no arithmetic of registers")


def _cast(op: Operation, source: int, result: int) -> tuple[AluOp, int] | None:
    if isinstance(op, arith.ExtUIOp):
        return (AluOp.ZEXT, source) if source > 1 else None
    if result >= source:
        return (AluOp.SEXT, 1) if source == 1 and result > 1 else None
    return None if _low_bits_do(op.results[0], set()) else (AluOp.TRUNC, result)


def _low_bits_do(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Whether all that use an integer look at its bits alone, whatever registers hold above them."""
    if value in seen:
        return True
    seen.add(value)
    return all(_takes_low_bits(use, seen) for use in value.uses)


def _takes_low_bits(use: Use, seen: set[SSAValue]) -> bool:
    user = use.operation
    if isinstance(user, scf.ForOp):
        return use.index >= 3 and _carried_low_bits_do(user, use.index - 3, seen)
    loop = user.parent_op()
    if isinstance(user, scf.YieldOp) and isinstance(loop, scf.ForOp):
        return _carried_low_bits_do(loop, use.index, seen)
    return type(user) in BINARY or isinstance(user, arith.CmpiOp | WaitOp)


def _carried_low_bits_do(loop: scf.ForOp, at: int, seen: set[SSAValue]) -> bool:
    return _low_bits_do(loop.body.block.args[at + 1], seen) and _low_bits_do(loop.results[at], seen)
