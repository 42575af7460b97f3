"""Barriers of streams, and what becomes 0 there: where a certificate's program has them (Program.v: `Gathering`).

Where a barrier comes under a condition, after so many iterations, the condition compares a count with a constant. All
of this is only said; that it is so, the checker sees.
"""

from collections.abc import Iterator, Mapping

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation

from mpkc.certificate.arithmetic import constant_of
from mpkc.certificate.reads import next_of_program
from mpkc.certificate.specification import Specification
from mpkc.certificate.statements import Gathering, Group
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, signal_of
from mpkc.dialects.scalars import bits_of
from mpkc.dialects.sem_streams import BarrierOp, StreamsOp
from mpkc.runtime.verify.places import Places

FIRST_BARRIER = 1


def gatherings_of(said: Specification, places: Places) -> tuple[list[Gathering], dict[Operation, int]]:
    """The barriers of streams, each once, and the number of each operation that is one.

    Raises:
        OpError: a barrier whose place in the program, or whose turn, can't be told.
    """
    found: list[Gathering] = []
    numbers: dict[Operation, int] = {}
    for number, sites in enumerate(places.barriers.values(), FIRST_BARRIER):
        ops = [place.op for place in sites.values()]
        numbers |= {op: number for op in ops}
        loop = next(iter(sites.values())).loop
        behind = {next_ for op in ops if (next_ := next_of_program(places, anchor(op))) is not None}
        if len(behind) > 1:
            raise OpError(ops[0], "cannot certify: a barrier that stands in different places of the program")
        every = {_turn(op) for op in ops}
        if len(every) > 1:
            raise OpError(
                ops[0], "cannot certify: a barrier that engines come to after different numbers of iterations"
            )
        found.append(Gathering(number, tuple(sites), said.loops[loop.name], every.pop(), next(iter(behind), None)))
    return found, numbers


def anchor(op: Operation) -> Operation:
    """The conditional that a barrier stands in alone, or the barrier."""
    parent = op.parent_op()
    return parent if isinstance(parent, scf.IfOp) and op is parent.true_region.block.first_op else op


def under_condition(op: scf.IfOp) -> bool:
    """Whether a conditional only says when a barrier has its turn."""
    return isinstance(op.true_region.block.first_op, BarrierOp)


def _turn(op: Operation) -> int:
    """After how many iterations a barrier comes."""
    if (held := anchor(op)) is op:
        return 1
    assert isinstance(held, scf.IfOp)
    compared = held.cond.owner
    if isinstance(compared, arith.CmpiOp) and (limit := constant_of(compared.rhs)) is not None:
        return limit % (1 << bits_of(compared.rhs.type))
    raise OpError(op, "cannot certify: a barrier under a condition that compares no count with a constant")


def groups_of(
    said: Specification,
    places: Places,
    semaphores: Mapping[str, int],
    streams: StreamsOp,
    numbers: dict[Operation, int],
) -> list[Group]:
    """The instructions of each block of a stream, where some of them signal or are waited for.

    Raises:
        OpError: a semaphore that several blocks signal.
    """
    found: dict[Block, list[Operation]] = {}
    home: dict[str, Block] = {}
    for op in streams.walk():
        if is_instruction(op) and (block := op.parent) is not None:
            signal = signal_of(op)
            if signal is not None and home.setdefault(signal, block) is not block:
                what = f'semaphore "{signal}", which several loops signal; use per-loop or per-instruction'
                raise OpError(op, f"cannot certify: {what}")
            found.setdefault(block, []).append(op)
    awaited = {need.producer for needs in said.needs.values() for need in needs}
    groups: list[Group] = []
    for ops in found.values():
        members = [(said.labels[places.of[op].name], semaphores[s] if (s := signal_of(op)) else None) for op in ops]
        if any(signal or label in awaited for label, signal in members):
            loop = said.loops[places.of[ops[0]].loop.name]
            groups.append(Group(members, loop, tuple(dict(_cuts(places, ops, numbers)).items())))
    return groups


def _cuts(places: Places, ops: list[Operation], numbers: dict[Operation, int]) -> Iterator[tuple[int, int]]:
    """The barriers at which semaphores of instructions become 0, each with the rounds done beyond the entries."""
    signals = {signal for op in ops if (signal := signal_of(op)) is not None}
    engine, first = places.of[ops[0]].engine, places.of[ops[0]]
    for sites in places.barriers.values():
        place = sites.get(engine)
        if place is not None and isinstance(place.op, BarrierOp) and signals & {s.data for s in place.op.semaphores}:
            inside = first.block in place.blocks
            yield numbers[place.op], -1 if inside and place.order < first.order else 0
