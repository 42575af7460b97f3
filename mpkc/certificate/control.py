"""Which way a stream goes, beside which way its program goes on that engine (Certificate.v: `control`)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation

from mpkc.certificate.specification import Specification, name_of
from mpkc.certificate.statements import Block, Choice, Enter, Gathering, Issue, Loop, Meet
from mpkc.dialects.sem_structure import regions_of

Control: TypeAlias = tuple[tuple[object, ...], ...]
"""("begin", loop), ("do", label), ("gather", barrier), ("many", control), ("either", control, control), in a row."""


def control_of(block: Block) -> Control:
    """The way that a block of a stream goes."""
    found: list[tuple[object, ...]] = []
    for statement in block:
        match statement:
            case Issue(label):
                found.append(("do", label))
            case Enter(loop):
                found.append(("begin", loop))
            case Meet(barrier):
                found.append(("gather", barrier))
            case Choice(then, otherwise):
                found += _either(control_of(then), control_of(otherwise))
            case Loop():
                found += _many(control_of(statement.body))
            case _:
                pass
    return tuple(found)


def begun_by(control: Control) -> set[int]:
    """The loops whose iterations a way tells of."""
    found: set[int] = set()
    for kind, *of in control:
        found |= {loop for loop in of if kind == "begin" and isinstance(loop, int)}
        found |= {loop for part in of if isinstance(part, tuple) for loop in begun_by(part)}  # pyright: ignore
    return found


def projection(said: Specification, engine: str, told: set[int]) -> Control:
    """The way that an engine goes through the program; of iterations only those of the loops `told`."""
    structure = said.structure

    def iteration(block: IRBlock) -> Control:
        loop = said.loops[structure.loop_of[block].name]
        return ((("begin", loop),) if loop in told else ()) + _block(said, engine, block, iteration)

    return _block(said, engine, structure.loops[0].block, iteration)


def _block(said: Specification, engine: str, block: IRBlock, iteration: Callable[[IRBlock], Control]) -> Control:
    found: list[tuple[object, ...]] = []
    for op in block.ops:
        found += _reads(said, engine, block, op)
        found += _gathered(engine, said.in_front_of(op))
        instruction = said.structure.by_op.get(op)
        if instruction is not None and instruction.engine == engine:
            found.append(("do", said.labels[name_of(instruction)]))
        elif isinstance(op, scf.ForOp):
            found += _many(iteration(op.body.block))
        elif isinstance(op, scf.IfOp):
            parts = [iteration(region.block) for _, region in regions_of(op)]
            found += _either(*parts, *[()] * (2 - len(parts)))
    return (*found, *_reads(said, engine, block, None), *_gathered(engine, said.at_end(block)))


def _reads(said: Specification, engine: str, block: IRBlock, op: Operation | None) -> Control:
    return tuple(("do", said.labels[read.name]) for read in said.reads_at(block, op) if read.engine == engine)


def _gathered(engine: str, gatherings: Sequence[Gathering]) -> Control:
    """Barriers as an engine comes to them: always, or now and then."""
    ways: list[Control] = [(("gather", each.barrier),) for each in gatherings if engine in each.engines]
    every = [each.every for each in gatherings if engine in each.engines]
    return tuple(step for way, n in zip(ways, every, strict=True) for step in (way if n == 1 else _either(way, ())))


def _many(control: Control) -> Control:
    return (("many", control),) if control else ()


def _either(then: Control, otherwise: Control) -> Control:
    return (("either", then, otherwise),) if then or otherwise else ()
