"""The arith operations of streams as operations of registers."""

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.ir import Operation

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
    low_bits_do = all(_takes_low_bits(use.operation) for use in op.results[0].uses)
    return None if low_bits_do else (AluOp.TRUNC, result)


def _takes_low_bits(user: Operation) -> bool:
    """Whether `user` looks at the bits of its integers alone, whatever registers hold above them."""
    return type(user) in BINARY or isinstance(user, arith.CmpiOp | WaitOp)
