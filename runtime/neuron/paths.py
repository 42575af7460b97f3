"""Where the instructions of streams stand: the counted loops around them, which iterations and distances count."""

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, label_of
from mpkc.dialects.sem import InstOp, ValueOp
from mpkc.dialects.sem_distance import AfterAttr, DistanceAttr, OffsetAttr
from mpkc.dialects.sem_streams import IterationOp, StreamsOp
from mpkc.runtime.neuron.isa import After, Component


class Paths:
    """The loops around each instruction, by their names.

    An attribute `depth` of an instruction says how many there were before loops were unrolled or inlined; then
    distances must be written out.
    """

    def __init__(self, streams: StreamsOp):
        self.of: dict[str, tuple[str, ...]] = {}
        self.moved: IterationOp | None = None
        for stream in streams.streams.values():
            self._read(stream.body.block, ())

    def _read(self, block: Block, path: tuple[str, ...]) -> None:
        for op in block.ops:
            if is_instruction(op):
                if (label := label_of(op)) is not None:
                    self.of.setdefault(label, path)
            else:
                inner = path
                for region in op.regions:
                    for nested in region.blocks:
                        inner = (inner if isinstance(op, scf.WhileOp) else path) + _counted(nested)
                        self._read(nested, inner)

    def check(self, op: IterationOp, depth: int) -> None:
        """Note a directive that does not stand in a loop of its depth."""
        if op.depth.data not in (0, depth):
            self.moved = op

    def depth_of(self, op: Operation, depth: int) -> int:
        """The number of counted loops around an instruction, of which `depth` are still there.

        Raises:
            OpError: where loops are gone and nothing says how many there were.
        """
        given = op.attributes.get("depth")
        if isinstance(given, IntegerAttr):
            return given.value.data
        if self.moved is not None:
            raise OpError(
                self.moved,
                "the loop of this iteration is gone: instructions need their depth, the number of loops that "
                "iterations count (or clean up with sem-simplify instead of canonicalize)",
            )
        return depth

    def after(self, op: InstOp | ValueOp) -> tuple[After, ...]:
        """What an opaque instruction reads."""
        return () if op.after is None else tuple(self._after(op, after) for after in op.after)

    def _after(self, op: Operation, after: AfterAttr) -> After:
        label = label_of(op)
        assert label is not None, "verified"
        producer = after.producer.data
        if producer not in self.of:  # it stood in a loop that never ran
            return After(label, None)
        match after.distance:
            case DistanceAttr(data=components):
                return After(producer, components)
            case OffsetAttr(data=k):
                if "depth" in op.attributes:
                    raise OpError(op, f"the offset to @{producer} must be written as a distance: its loops are gone")
                return After(producer, self._expanded(self.of[producer], self.of[label], k))

    def _expanded(self, producer: tuple[str, ...], consumer: tuple[str, ...], k: int) -> tuple[Component, ...] | None:
        shared = 0
        for ours, theirs in zip(producer, consumer, strict=False):
            if ours != theirs:
                break
            shared += 1
        if not shared:
            return None if k else ()
        return (0,) * (shared - 1) + (k,)


def _counted(block: Block) -> tuple[str, ...]:
    """The name of the loop that `block` is the body of, if iterations count it."""
    first = block.first_op
    return (first.loop.data,) if isinstance(first, IterationOp) and first.depth.data else ()
