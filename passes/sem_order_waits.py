"""sem-order-waits: wait last for what comes last, and compute before that.

An instruction takes one wait along, the last one before it; each other is an instruction of its own. Whatever stands
between a wait that holds the engine and the instruction delays it; in front of the wait it costs nothing, since the
engine would stand still anyway. So all arithmetic comes first, then the waits, and that one last whose producer is
likely to retire last: those of earlier iterations come before those of this one, and other engines, which run ahead,
before the engine itself. A simulation knows better, and may say which it is.

    sem.wait "own" >= %t : i32                                      %u = arith.muli %r, %c2 : i32
    %u = arith.muli %r, %c2 : i32                                   sem.wait "dma" >= %u : i32
    sem.wait "dma" >= %u : i32                               ->     sem.wait "own" >= %t : i32
    sem.inst @M engine "tensor" cost 64                             sem.inst @M engine "tensor" cost 64
"""

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from mpkc.dialects.engine import is_instruction, label_of
from mpkc.dialects.sem_streams import StreamOp, StreamsOp, WaitOp, is_between
from mpkc.dialects.sem_structure import dependencies

Latest = Mapping[tuple[str, int], str]
"""The semaphore that is waited for last before an instruction, by its engine and its number in the stream."""


def order_waits(streams: StreamsOp, latest: Latest | None = None) -> None:
    """Order the waits of streams, in place.

    Args:
        latest: what is known; the others follow the rule.
    """
    engines = {label: engine for engine, stream in streams.streams.items() for label in _labels(stream)}
    for engine, stream in streams.streams.items():
        _Ordering(engine, engines, latest or {}).block(stream.body.block)


def _labels(stream: StreamOp) -> list[str]:
    return [label for op in stream.walk() if is_instruction(op) and (label := label_of(op)) is not None]


class _Ordering:
    """Goes through one stream.

    Attributes:
        number: of the next instruction.
        groups: waits that are the next instruction's, with the operation that they stand in front of: it, or a loop.
    """

    def __init__(self, engine: str, engines: Mapping[str, str], latest: Latest):
        self.engine, self.engines, self.latest = engine, engines, latest
        self.number = 0
        self.groups: list[tuple[Operation, list[WaitOp]]] = []

    def block(self, block: Block) -> None:
        waits: list[WaitOp] = []
        for op in block.ops:
            if isinstance(op, WaitOp):
                waits.append(op)
            elif is_between(op):
                continue
            else:
                if waits:
                    self.groups.append((op, waits))
                    waits = []
                if is_instruction(op):
                    self.instruction(op)
                else:
                    for region in op.regions:
                        for nested in region.blocks:
                            self.block(nested)

    def instruction(self, op: Operation) -> None:
        """Order the waits that are this instruction's, also those that stand in front of loops."""
        last = self.latest.get((self.engine, self.number))
        for behind, waits in self.groups:
            _place(sorted(waits, key=lambda wait: (wait.semaphore.data == last, *self.rank(op, wait))), behind)
        self.groups = []
        self.number += 1

    def rank(self, consumer: Operation, wait: WaitOp) -> tuple[int, bool]:
        """How late the producers of a wait are likely to retire."""
        names = wait.producer_names
        found = [after.distance for after in dependencies(consumer) if after.producer.data in names]
        nearest = max((_nearness(each.data) for each in found), default=0)
        return nearest, any(self.engines.get(name) == self.engine for name in names)


def _nearness(components: int | Sequence[object]) -> int:
    """2 for this iteration, 1 for an earlier one of the innermost loop, 0 for one of a loop around that."""
    distance = components if isinstance(components, Sequence) else (components,)
    if not any(distance):
        return 2
    return int(not any(distance[:-1]))


def _place(waits: Sequence[WaitOp], behind: Operation) -> None:
    """Let waits stand right in front of an operation, in this order."""
    for wait in waits:
        wait.detach()
        assert behind.parent is not None
        behind.parent.insert_op_before(wait, behind)


class OrderWaitsPass(ModulePass):
    """Wait last for what comes last, and compute before that."""

    name = "sem-order-waits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for streams in op.ops:
            if isinstance(streams, StreamsOp):
                order_waits(streams)
