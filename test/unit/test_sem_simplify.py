"""sem-simplify on random streams: the same thresholds, and no more arithmetic than xDSL's three passes leave."""

from time import process_time

import pytest
from semaphore_fuzz import out_of_scope
from stream_programs import Generator, effects, execute
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp, Signedness, i32
from xdsl.ir import Block, Region
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.scalars import evaluate
from mpkc.dialects.sem import InstOp
from mpkc.dialects.sem_streams import StreamOp, StreamsOp, WaitOp
from mpkc.parsing import parse_module
from mpkc.passes.scalar_folding import Constant, MaskedProduct, Product, ScaledSum, Sum, simpler
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify

ARGUMENTS = ([2, 1, 0], [1, 4, 1], [0, 2, 1])


def arithmetic_of(streams: StreamsOp) -> int:
    """The operations of arithmetic that all runs take together."""
    counts: list[int] = []
    for arguments in ARGUMENTS:
        execute(streams, arguments, counts)
    return sum(counts)


def xdsl_clean_up(module: ModuleOp) -> None:
    context = Context()
    context.load_dialect(arith.Arith)
    for step in (CanonicalizePass, CommonSubexpressionElimination, LoopInvariantCodeMotionPass):
        step().apply(context, module)


def test_random_streams():
    before = after = 0
    for seed in range(30):
        streams = Generator(seed).streams()
        expected = [execute(streams, arguments) for arguments in ARGUMENTS]
        before += arithmetic_of(streams)
        simplify(streams)
        verify(streams)
        drop_counters(streams)
        verify(streams)
        after += arithmetic_of(streams)
        for arguments, events in zip(ARGUMENTS, expected, strict=True):
            for engine, found in execute(streams, arguments).items():
                assert effects(found) == effects(events[engine]), f"seed {seed}"
    assert after < 0.6 * before


def test_xdsl_passes_on_streams():
    """xDSL's canonicalize, cse and licm keep every effect in its place too; they leave more arithmetic."""
    theirs = ours = 0
    for seed in range(10):
        module, streams = Generator(seed).module(), Generator(seed).streams()
        other = module.ops.first
        assert isinstance(other, StreamsOp)
        expected = [execute(streams, arguments) for arguments in ARGUMENTS]
        xdsl_clean_up(module)
        verify(module)
        for arguments, events in zip(ARGUMENTS, expected, strict=True):
            for engine, found in execute(other, arguments).items():
                assert effects(found) == effects(events[engine]), f"seed {seed}"
        simplify(streams)
        drop_counters(streams)
        drop_counters(other)
        theirs += arithmetic_of(other)
        ours += arithmetic_of(streams)
    assert ours <= theirs


OPERATIONS = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    *(arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp, arith.RemUIOp),
    *(arith.RemSIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp),
)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_rules(kind):
    """Every rule on an argument and constants on both sides, over sums and products of an argument and a constant."""
    for type_ in (i32, IndexType()):
        for inner in (arith.AddiOp, arith.MuliOp):
            for a, b in ((0, 1), (1, 0), (3, -2), (-2, 3), (5, 5)):
                block = Block(arg_types=[type_])
                (x,) = block.args
                constants = [arith.ConstantOp(IntegerAttr(value, type_)) for value in (a, b)]
                first = inner(x, constants[0])
                ops = [first, kind(first, constants[1]), kind(constants[1], first), kind(x, x)]
                block.add_ops([*constants, *ops])
                for op in ops:
                    check_rule(op, block)


def check_rule(op, block):
    """What is said to be simpler is the same number, for a few arguments."""
    found = simpler(op)
    if found is None:
        return
    for x in (0, 1, 5, -7, 2**31 - 1):
        values = {block.args[0]: x}
        for each in block.ops:
            try:
                values[each.results[0]] = evaluate(each, [values[operand] for operand in each.operands])
            except (OpError, KeyError):
                continue
        if op.results[0] in values:
            assert (value_of(found, values) - values[op.results[0]]) % (1 << 32) == 0, f"{op} at {x}: {found}"


def value_of(found, values) -> int:
    match found:
        case Constant(value, _):
            return value
        case Sum(value, constant):
            return values[value] + constant
        case Product(value, factor):
            return values[value] * factor
        case ScaledSum(value, factor, constant):
            return values[value] * factor + constant
        case MaskedProduct(mask, value, factor):
            return values[mask] * values[value] * factor
        case _:
            return values[found]


WHILE = """
sem.streams @p(%n : index) counters ui32 semaphores ["s"] {
  sem.stream "e" {
    %zero = arith.constant 0 : index
    scf.while (%x = %zero) : (index) -> index {
      %divided = arith.divui %zero, %n : index
      %first = arith.index_cast %divided : index to i32
      sem.wait "s" >= %first : i32 for []
      sem.inst @P engine "e" cost 1
      %more = arith.cmpi ult, %x, %divided : index
      scf.condition(%more) %x : index
    } do {
    ^bb0(%y: index):
      %divided = arith.divui %zero, %n : index
      %second = arith.index_cast %divided : index to i32
      sem.wait "s" >= %second : i32 for []
      sem.inst @Q engine "e" cost 1
      scf.yield %y : index
    }
  }
}
"""


def test_regions_of_a_while_share_nothing():
    """What may fail stays where it is, and the second region does not see it."""
    (streams,) = parse_module(WHILE).ops
    simplify(streams)
    assert out_of_scope(streams) is None
    assert sum(isinstance(op, arith.DivUIOp) for op in streams.walk()) == 2


def straight_line(size: int) -> StreamsOp:
    """Streams of that many sums, of which each is computed twice."""
    body = Block()
    one = arith.ConstantOp(IntegerAttr(1, i32))
    body.add_op(one)
    value = one.result
    for _ in range(size // 3):
        pair = [arith.AddiOp(value, value), arith.AddiOp(value, value)]
        body.add_ops(pair)
        total = arith.MuliOp(pair[0], pair[1])
        body.add_op(total)
        value = total.result
    body.add_op(WaitOp("s", value))
    body.add_op(InstOp("P", "e", 1))
    top = Block([StreamOp("e", Region(body))])
    return StreamsOp("line", IntegerType(32, Signedness.UNSIGNED), ["s"], Region(top))


def test_linear():
    times: list[float] = []
    for size in (1_500, 6_000):
        streams = straight_line(size)
        start = process_time()
        simplify(streams)
        drop_counters(streams)
        times.append(process_time() - start)
    assert times[1] < 8 * times[0]
