"""`sem-imply-dependencies`: write down dependencies that others imply, where a wait is simpler with them.

An instruction that depends on an earlier iteration of its loop owes nothing in the first one, so its wait needs a mask
(barrier-free, section 5.2). Where it depends on all iterations of earlier runs of the loop as well, its threshold just
goes on counting. Often it does, by way of another: what it needs in this iteration of a loop around, which comes after
all that ran in the iteration before.

    scf.for %i ... {                                     scf.for %i ... {
      sem.inst @L ... after [@M offset 1]                  sem.inst @L ... after [@M offset 1]
      scf.for %j ... {                                     scf.for %j ... {
        sem.inst @M ... after [@L offset 0,         ->       sem.inst @M ... after [@L offset 0, @M offset 1,
                               @M offset 1]                                         @M distance [1, *]]

Nothing is owed that was not before: the program runs as it did.
"""

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from mpkc.dialects import sem, tile
from mpkc.dialects.sem_distance import EVERY, AfterAttr, Component, distance
from mpkc.dialects.sem_structure import Edge, Instruction, structure_of

Distance = tuple[Component, ...]


def imply_dependencies(program: sem.ProgramOp | tile.KernelOp) -> None:
    """Add dependencies that are owed anyway to instructions that need no mask then."""
    for consumer in structure_of(program).instructions:
        added = [after for edge in consumer.edges for after in _earlier_runs(edge)]
        if added:
            _set_after(consumer, [*(edge.after for edge in consumer.edges), *dict.fromkeys(added)])


def _earlier_runs(edge: Edge) -> list[AfterAttr]:
    """What is missing of the dependencies on all earlier runs of the loop that carries `edge`, if all are implied."""
    loop, producer = edge.carrier, edge.producer
    if loop is None or producer.loop is not loop or edge.common[-1] is not loop:
        return []
    wanted = list(_in_loops_around(len(edge.counted)))
    known = {other.counted for other in edge.consumer.edges if other.producer is producer}
    missing = [each for each in wanted if each not in known]
    if not all(_implied(edge.consumer, producer, each.index(1)) for each in missing):
        return []
    assert producer.label is not None, "what is depended on has a label"
    return [distance(producer.label, *each) for each in missing]


def _in_loops_around(depth: int) -> Iterator[Distance]:
    """All iterations up to the last but this one of each loop around the innermost of `depth`."""
    for at in reversed(range(depth - 1)):
        yield _before(at, depth)


def _before(at: int, depth: int) -> Distance:
    inside: list[Component] = [EVERY] * (depth - at - 1)
    return (*([0] * at), 1, *inside)


def _implied(consumer: Instruction, producer: Instruction, at: int) -> bool:
    """Whether something that the consumer needs in this iteration of its loop number `at` comes after all that the
    producer did in the iteration before."""
    loop = consumer.counted[at]
    return any(
        edge.carrier is None
        and edge.producer.loop in consumer.loop.path
        and loop in edge.producer.loop.path
        and any(
            other.producer is producer and other.counted == _before(at, len(other.counted))
            for other in edge.producer.edges
        )
        for edge in consumer.edges
    )


def _set_after(consumer: Instruction, after: list[AfterAttr]) -> None:
    """Set what is a property of some instructions, and a discardable attribute of others."""
    op = consumer.op
    kept = op.properties if isinstance(op, sem.InstOp | sem.ValueOp) else op.attributes
    kept["after"] = ArrayAttr(after)


class ImplyDependenciesPass(ModulePass):
    """Write down dependencies that others imply, where a wait is simpler with them."""

    name = "sem-imply-dependencies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.ops:
            if isinstance(program, sem.ProgramOp | tile.KernelOp):
                imply_dependencies(program)
