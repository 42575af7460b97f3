"""What a worker of the mega-kernel needs besides instructions: rings of pages, descriptors and events.

A ring's position counts over all kinds of task and all tasks, so the reuse of a page is a dependency at the
constant distance of the ring's number of pages (barrier-free section 4, on one virtual loop: the ring's).
"""

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.engine import Declaration
from mpkc.dialects.tile_transfer import ENGINE, TileInstruction
from mpkc.dialects.tile_types import (
    Access,
    Buffer,
    RingType,
    Space,
    TokenType,
    buffer_operand,
    buffer_result,
    expect_rank,
    expect_same_element,
    expect_shape,
    expect_space,
    is_integer,
    is_static,
)


@irdl_op_definition
class RingOp(IRDLOperation):
    """A ring of `pages` pages of near memory, each of `page_bytes` bytes."""

    name = "tile.ring"

    pages = prop_def(IntegerAttr.constr(I64))
    page_bytes = prop_def(IntegerAttr.constr(I64))
    result = result_def(RingType())

    traits = traits_def(Declaration())

    assembly_format = "$pages `x` $page_bytes attr-dict"

    def verify_(self) -> None:
        if self.pages.value.data < 1 or self.page_bytes.value.data < 1:
            raise VerifyException("a ring has one page or more, of one byte or more")


@irdl_op_definition
class AcquireOp(IRDLOperation):
    """The ring's next page, to be filled by one engine; it holds nothing yet."""

    name = "tile.acquire"

    ring = operand_def(RingType())
    page = buffer_result()

    assembly_format = "$ring attr-dict `:` type($page)"

    def verify_(self) -> None:
        _verify_page(self.ring, self.page.type)


@irdl_op_definition
class HeldOp(IRDLOperation):
    """The ring's oldest page that has not been released: one that an earlier loop filled and kept."""

    name = "tile.held"

    ring = operand_def(RingType())
    page = buffer_result()

    assembly_format = "$ring attr-dict `:` type($page)"

    def verify_(self) -> None:
        _verify_page(self.ring, self.page.type)


def _verify_page(ring: SSAValue, page: Buffer) -> None:
    expect_space(page, (Space.NEAR,), "a page")
    if not isinstance(ring.owner, RingOp):
        raise VerifyException("the ring must be named directly, as the result of tile.ring")
    size, limit = buffer_bytes(page), ring.owner.page_bytes.value.data
    if size is None:
        raise VerifyException(f"{page}: a page has a static shape and an element type of whole bytes")
    if size > limit:
        raise VerifyException(f"{page} takes {size} bytes, and a page of the ring has {limit}")


def buffer_bytes(type_: Buffer) -> int | None:
    """The bytes that a buffer of static shape takes, an i1 taking one; None where that is not known."""
    bits = getattr(type_.element_type, "bitwidth", None)
    if not isinstance(bits, int) or not is_static(type_):
        return None
    elements = 1
    for size in type_.get_shape():
        elements *= size
    return elements * -(-bits // 8)


@irdl_op_definition
class ReleaseOp(IRDLOperation):
    """Each engine that reads these pages is done with them after its last instruction before this place."""

    name = "tile.release"

    pages = var_operand_def(MemRefType)

    assembly_format = "$pages attr-dict `:` type($pages)"

    def verify_(self) -> None:
        for page in self.pages:
            if not isinstance(page.owner, AcquireOp | HeldOp):
                raise VerifyException("releases what is no page: pages come from tile.acquire or tile.held")


@irdl_op_definition
class FetchOp(TileInstruction):
    """The worker's next task descriptor, a row of `queue`, into a page; it blocks until there is one."""

    name = "tile.fetch"

    queue = buffer_operand()
    dest = buffer_operand()

    assembly_format = "$queue `->` $dest" + ENGINE + "attr-dict `:` type($queue) `->` type($dest)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0], [1])

    def verify_(self) -> None:
        expect_space(self.queue.type, (Space.FAR,), "the queue")
        expect_space(self.dest.type, (Space.NEAR,), "the destination")
        expect_rank(self.queue.type, 2, "the queue")
        expect_shape(self.dest.type, self.queue.type.get_shape()[1:], "the destination")
        expect_same_element(self.queue.type, self.dest.type, "queue and destination")


@irdl_op_definition
class ScalarsOp(IRDLOperation):
    """The first words of a descriptor as run-time integers; every engine of the worker reads them for itself."""

    name = "tile.scalars"

    source = buffer_operand()
    words = var_result_def(IndexType())

    assembly_format = "$source attr-dict `:` type($source) `->` type($words)"

    def __init__(self, source: SSAValue, count: int, attributes: dict[str, Attribute] | None = None):
        super().__init__(operands=[source], result_types=[[IndexType()] * count], attributes=attributes)

    def accesses(self) -> list[tuple[int, Access]]:
        """Every engine reads the descriptor."""
        return [(0, Access.READ)]

    def verify_(self) -> None:
        source = self.source.type
        expect_space(source, (Space.NEAR,), "the descriptor")
        expect_rank(source, 1, "the descriptor")
        if not is_integer(source.element_type):
            raise VerifyException(f"a descriptor holds integers, not {source.element_type}")
        if 0 <= source.get_shape()[0] < len(self.words):
            raise VerifyException(f"takes {len(self.words)} words of a descriptor of {source.get_shape()[0]}")


@irdl_op_definition
class EventWaitOp(TileInstruction):
    """Waits until the counter of an event has reached a number; what that event guards is in far memory then.

    Copies that read what the event guards take the token; others go ahead of the event.
    """

    name = "tile.event_wait"

    events = buffer_operand()
    event = operand_def(IndexType)
    needed = operand_def(IndexType)
    token = result_def(TokenType())

    assembly_format = "$events `[` $event `]` `until` $needed" + ENGINE + "attr-dict `:` type($events)"

    def accesses(self) -> list[tuple[int, Access]]:
        return []

    def verify_(self) -> None:
        _verify_events(self.events.type)


@irdl_op_definition
class EventSignalOp(TileInstruction):
    """Adds 1 to the counter of an event once every earlier write to the buffers after `after` has retired.

    It releases at the scope of the whole device: who waits for the event sees those writes.
    """

    name = "tile.event_signal"

    events = buffer_operand()
    event = operand_def(IndexType)
    written = var_operand_def(MemRefType)

    assembly_format = (
        "$events `[` $event `]` `after` $written" + ENGINE + "attr-dict `:` type($events) `,` type($written)"
    )

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at(range(2, len(self.operands)), [])

    def verify_(self) -> None:
        _verify_events(self.events.type)
        if not self.written:
            raise VerifyException("names no buffer after `after`: what does the event stand for?")
        for value in self.written:
            expect_space(value.type, (Space.FAR,), "what the event guards")


def _verify_events(events: Buffer) -> None:
    expect_space(events, (Space.FAR,), "the table of events")
    expect_rank(events, 1, "the table of events")
    if not is_integer(events.element_type):
        raise VerifyException(f"events count in integers, not in {events.element_type}")
