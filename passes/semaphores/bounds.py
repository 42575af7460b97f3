"""How often the loops of a program run at most.

Bounds come from constants, from declared maxima (`maxima`, `most`: docs/sem.md) and from interval arithmetic on what
is computed from them. They bound what semaphores and counters can reach.

    sem.program @p(%n : index) attributes {maxima = {n = 1000 : index}} {
      scf.for %i = %c0 to %n step %c4 {              trips 250, entries 250
        %end = arith.addi %i, %c4 : index
        scf.for %j = %i to %end step %c1 { ... }     trips 4, entries 1000
"""

from xdsl.dialects import arith, scf
from xdsl.ir import OpResult, SSAValue

from mpkc.dialects.sem_maxima import most_of
from mpkc.dialects.sem_structure import Loop, LoopKind, Structure
from mpkc.passes.semaphores.intervals import Intervals

Most = int | None
"""An upper bound; None where there is none."""


def trips(structure: Structure) -> dict[Loop, Most]:
    """The most iterations of one run of each loop; 1 for the program and for a branch of a conditional.

    A run of an scf.while counts its first region.

    Raises:
        OpError: `maxima` or `most` is malformed.
    """
    intervals = Intervals(structure.program)
    return {loop: _trips(loop, intervals) for loop in structure.loops}


def entries(structure: Structure, within: Loop | None = None) -> dict[Loop, Most]:
    """The most entries of each loop during one iteration of `within`, or of the whole program.

    Loops outside of `within` are left out; `within` itself is entered once.
    """
    within = within or structure.loops[0]
    most = trips(structure)
    found: dict[Loop, Most] = {}
    for loop in structure.loops:
        if loop is within:
            found[loop] = 1
        elif loop.parent in found:
            found[loop] = product(found[loop.parent], most[loop])
    return found


def product(a: Most, b: Most) -> Most:
    """a * b; nothing in each of unboundedly many is nothing."""
    return 0 if a == 0 or b == 0 else None if a is None or b is None else a * b


def _trips(loop: Loop, intervals: Intervals) -> Most:
    if not loop.counted:
        return 1
    declared = most_of(loop.op)
    if loop.kind is LoopKind.WHILE:
        return declared
    assert isinstance(loop.op, scf.ForOp)
    step = max(intervals.of(loop.op.step)[0], 1)
    length = _distance(loop.op.lb, loop.op.ub, intervals)
    found = max(-(-length // step), 0)
    if declared is not None:
        return min(declared, found)
    return None if found > MOST_TRIPS else found


def always(loop: Loop, intervals: Intervals) -> Most:
    """How many iterations an scf.for has each time; None where constants do not say it."""
    if not isinstance(loop.op, scf.ForOp):
        return None
    lower, upper, step = (intervals.constant(value) for value in (loop.op.lb, loop.op.ub, loop.op.step))
    if lower is None or upper is None or step is None or step < 1:
        return None
    return len(range(lower, upper, step))


MOST_TRIPS = 1 << 48  # no run lives to see more: a bound beyond comes from what is unknown


def _distance(lower: SSAValue, upper: SSAValue, intervals: Intervals) -> int:
    """An upper bound of `upper - lower`, which a loop from one to the other runs through."""
    found = intervals.of(upper)[1] - intervals.of(lower)[0]
    (low_base, low), (high_base, high) = _based(lower, intervals), _based(upper, intervals)
    if low_base is high_base and high >= low:
        # Where one of the sums wraps and not the other, `upper` is the smaller, and the loop does not run.
        found = min(found, high - low)
    if isinstance(upper, OpResult) and isinstance(upper.op, arith.MinSIOp | arith.MinUIOp):
        signed = isinstance(upper.op, arith.MinSIOp)
        for operand in upper.op.operands:
            # The unsigned minimum is not above an operand that is not negative.
            if signed or intervals.of(operand)[0] >= 0:
                found = min(found, _distance(lower, operand, intervals))
    return found


def _based(value: SSAValue, intervals: Intervals) -> tuple[SSAValue, int]:
    """`value` as a value and a constant that is added to it."""
    total = 0
    while isinstance(value, OpResult) and isinstance(value.op, arith.AddiOp):
        lhs, rhs = value.op.operands
        if (constant := intervals.constant(rhs)) is not None:
            value = lhs
        elif (constant := intervals.constant(lhs)) is not None:
            value = rhs
        else:
            break
        total += constant
    return value, total
