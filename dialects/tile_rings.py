"""The discipline of rings: who fills and reads a page, the order of release, pages live in program order.

Rings are checked in one walk in program order. The state is, for each ring, the queue of its live pages, oldest
first. A schedule that follows program order never needs more than that; so where the queue never grows beyond the
ring's pages, program order is a schedule that satisfies every wait, and no schedule deadlocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from mpkc.dialects.diagnostics import describe
from mpkc.dialects.engine import engine_of
from mpkc.dialects.tile_buffers import view_source
from mpkc.dialects.tile_program import fault
from mpkc.dialects.tile_transfer import TileInstruction
from mpkc.dialects.tile_types import Access
from mpkc.dialects.tile_worker import AcquireOp, HeldOp, ReleaseOp, RingOp, ScalarsOp

PageOp: TypeAlias = AcquireOp | HeldOp
Kind: TypeAlias = Region | None
ProgramOrder: TypeAlias = dict[Operation, int]


@dataclass(frozen=True)
class PageUse:
    """Who uses a page: the engine that fills it (None for a held page), the engines that read it, its release."""

    filler: str | None
    readers: tuple[str, ...]
    release: ReleaseOp | None


@dataclass(frozen=True)
class Live:
    """A page that is not released; with `loop`, one page of each iteration of that loop."""

    acquire: AcquireOp
    loop: scf.ForOp | None = None
    passed_on: bool = False
    """The loop that releases these pages has released its page of this iteration."""

    @property
    def pages(self) -> int:
        """How many pages at least: those of a loop with a run-time bound are not known."""
        trips = 1 if self.loop is None else static_trips(self.loop) or 0
        return max(trips - self.passed_on, 0)


Queue: TypeAlias = tuple[Live, ...]
State: TypeAlias = dict[RingOp, Queue]


def constant(value: SSAValue) -> int | None:
    """The integer that an arith.constant gives, if that is where `value` comes from."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def static_trips(loop: scf.ForOp) -> int | None:
    """The trip count of a loop with constant bounds, None for any other."""
    lower, upper, step = constant(loop.lb), constant(loop.ub), constant(loop.step)
    if lower is None or upper is None or not step:
        return None
    return max(-((lower - upper) // step), 0)


def same_trips(a: scf.ForOp, b: scf.ForOp) -> bool:
    """Whether two loops have the same bounds, so the same number of iterations."""
    return all(
        x is y or (constant(x) is not None and constant(x) == constant(y))
        for x, y in ((a.lb, b.lb), (a.ub, b.ub), (a.step, b.step))
    )


def ring_of(page: PageOp) -> RingOp:
    """The ring that a page belongs to."""
    owner = page.ring.owner
    assert isinstance(owner, RingOp), "verified"
    return owner


def kind_of(op: Operation) -> Kind:
    """The kind of task that `op` belongs to: its region of the outermost scf.index_switch, None outside of one."""
    kind, region = None, op.parent_region()
    while region is not None:
        parent = region.parent_op()
        if isinstance(parent, scf.IndexSwitchOp):
            kind = region
        region = parent.parent_region() if parent else None
    return kind


def accesses_of(page: SSAValue) -> Iterator[tuple[TileInstruction | ScalarsOp, Access]]:
    """What instructions do with a page, through views of it."""
    for use in page.uses:
        op = use.operation
        if view_source(op) is not None:
            yield from accesses_of(op.results[0])
        elif isinstance(op, TileInstruction | ScalarsOp):
            yield from ((op, access) for index, access in op.accesses() if index == use.index)


def order_of(program: Operation) -> ProgramOrder:
    """The place of every operation of a program in its text."""
    return {op: at for at, op in enumerate(program.walk())}


def page_use(page: PageOp, engines: tuple[str, ...], order: ProgramOrder) -> PageUse:
    """Who fills, reads and releases a page, in a program of these engines and this order.

    Raises:
        OpError: where the page's life is not: filled by one engine, then read, then released once, or kept.
    """
    accesses = list(accesses_of(page.page))
    fillers = sorted({_issuer(op) for op, access in accesses if access is Access.WRITE} - {""})
    if isinstance(page, HeldOp) and fillers:
        fault(page, f'"{fillers[0]}" writes to a page that an earlier loop has filled')
    if isinstance(page, AcquireOp) and len(fillers) != 1:
        fault(page, f"a page is filled by one engine, this one by {', '.join(fillers) or 'none'}")
    filler = fillers[0] if fillers else None
    readers: set[str] = set()
    for op, access in accesses:
        if access is Access.READ:
            readers |= set(engines) if isinstance(op, ScalarsOp) else {_issuer(op)}
    others = readers - {filler}
    releases = [use.operation for use in page.page.uses if isinstance(use.operation, ReleaseOp)]
    if len(releases) > 1:
        fault(releases[-1], "releases a page a second time")
    release = releases[0] if releases else None
    _verify_order(page, filler, release, accesses, order)
    if release and not readers:
        fault(page, "nothing reads this page")
    return PageUse(filler, tuple(engine for engine in engines if engine in (others or readers)), release)


def _issuer(op: TileInstruction | ScalarsOp) -> str:
    return "" if isinstance(op, ScalarsOp) else engine_of(op)


def _verify_order(
    page: PageOp,
    filler: str | None,
    release: ReleaseOp | None,
    accesses: list[tuple[TileInstruction | ScalarsOp, Access]],
    order: ProgramOrder,
) -> None:
    """In the block of the page: all that fills it, then all that other engines read, then its release."""
    block = page.parent_block()
    assert block is not None
    if release and release.parent_block() is not block:
        fault(release, "a page is released in the block that acquired it, whatever the branches in between do")
    filled = max((order[_statement(op, block)] for op, access in accesses if access is Access.WRITE), default=-1)
    for op, access in accesses:
        if access is Access.READ and _issuer(op) != filler and order[_statement(op, block)] <= filled:
            fault(op, f'reads a page that "{filler}" has not filled: first fill, then read, in statements of their own')
        if release and order[op] > order[release]:
            fault(op, "uses a page after its release")
    first = min((op for op, _ in accesses), key=order.__getitem__, default=None)
    if filler and first and (first, Access.READ) in accesses:
        fault(first, "reads this page before anything is in it")


def _statement(op: Operation, block: Block) -> Operation:
    """The operation of `block` that is `op` or holds it."""
    found = block.find_ancestor_op_in_block(op)
    assert found is not None, "a value is used where it is defined"
    return found


def verify_rings(program: Operation, engines: tuple[str, ...]) -> None:
    """Verify the discipline of every ring of a program.

    Raises:
        OpError: at the operation that breaks it.
    """
    walk = _RingWalk(engines, order_of(program))
    walk.block(program.regions[0].block)
    for queue in walk.state.values():
        for live in queue:
            fault(live.acquire, "this page is never released")


class _RingWalk:
    """The queues of live pages, in program order."""

    def __init__(self, engines: tuple[str, ...], order: ProgramOrder):
        self.engines = engines
        self.order = order
        self.state: State = {}
        self.peak: dict[RingOp, int] = {}
        self.fillers: dict[tuple[RingOp, Kind], str] = {}

    def block(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case RingOp():
                    self.state[op] = ()
                    self.peak[op] = 0
                case AcquireOp():
                    self.acquire(op)
                case HeldOp():
                    self.held(op)
                case ReleaseOp():
                    for page in op.pages:
                        self.release(op, page)
                case scf.ForOp():
                    self.loop(op)
                case scf.WhileOp():
                    self.balanced(op, op.before_region)
                    self.balanced(op, op.after_region)
                case scf.IfOp() | scf.IndexSwitchOp():
                    for region in op.regions:
                        self.balanced(op, region)
                case _:
                    pass

    def acquire(self, op: AcquireOp) -> None:
        use = page_use(op, self.engines, self.order)
        assert use.filler is not None
        ring, kind = ring_of(op), kind_of(op)
        filler = self.fillers.setdefault((ring, kind), use.filler)
        if filler != use.filler:
            fault(op, f'"{use.filler}" fills this page, and "{filler}" others of the ring in the same kind of task')
        self.state[ring] += (Live(op),)
        self.grow(ring, op, sum(live.pages for live in self.state[ring]))

    def grow(self, ring: RingOp, op: Operation, live: int) -> None:
        self.peak[ring] = max(self.peak[ring], live)
        pages = ring.pages.value.data
        if live > pages:
            fault(op, f"{live} pages of the ring are live here and it has {pages}: whoever fills it waits for ever")

    def held(self, op: HeldOp) -> None:
        if page_use(op, self.engines, self.order).release is None:
            fault(op, "this page is never released")
        queue, loop = self.state[ring_of(op)], op.parent_op()
        oldest = queue[0] if queue else None
        if oldest is None or oldest.loop is None:
            fault(op, "no earlier loop has kept pages of this ring")
        if op.page.type != oldest.acquire.page.type:
            fault(op, f"the page it holds was acquired as {oldest.acquire.page.type}")
        if oldest.passed_on:
            fault(op, "takes a second page in one iteration: the loop that kept them kept one")
        if not isinstance(loop, scf.ForOp) or not same_trips(loop, oldest.loop):
            fault(op, "stands in no loop of the same bounds as the one that kept the pages")

    def release(self, op: ReleaseOp, page: SSAValue) -> None:
        owner = page.owner
        assert isinstance(owner, AcquireOp | HeldOp), "verified"
        ring = ring_of(owner)
        oldest, *rest = self.state[ring]
        if isinstance(owner, HeldOp):
            self.state[ring] = (replace(oldest, passed_on=True), *rest)
        elif oldest == Live(owner):
            self.state[ring] = tuple(rest)
        else:
            older = describe(oldest.acquire)
            fault(op, f"releases a page before an older one of its ring, acquired at {older}: release that one first")

    def balanced(self, op: Operation, region: Region) -> None:
        """Run a region that must release what it acquires."""
        before = dict(self.state)
        for block in region.blocks:
            self.block(block)
        for ring, queue in self.state.items():
            if queue != before[ring]:
                if queue[: len(before[ring])] != before[ring]:
                    fault(op, f"releases pages that a loop outside of it kept: '{op.name}' does not always run")
                fault(queue[-1].acquire, f"this page is not released in its region of '{op.name}'")

    def loop(self, op: scf.ForOp) -> None:
        """Run the body once; pages that it keeps are there once for each iteration."""
        before, peak = dict(self.state), self.peak
        self.peak = {ring: sum(live.pages for live in queue) for ring, queue in before.items()}
        self.block(op.body.block)
        for ring, queue in self.state.items():
            old = before[ring]
            if old and queue[:1] == (replace(old[0], passed_on=True),) and queue[:1] != old[:1]:
                old, queue = old[1:], queue[1:]
            kept = queue[len(old) :]
            if queue[: len(old)] != old:
                fault(op, "releases pages that a loop outside of it kept, in each of its iterations")
            if any(live.loop for live in kept) or len(kept) > 1:
                fault(kept[-1].acquire, "a loop keeps one page of a ring an iteration, no more")
            self.state[ring] = (*old, *(Live(live.acquire, op) for live in kept))
            if kept:
                self.grow(ring, kept[0].acquire, self.peak[ring] + max((static_trips(op) or 0) - 1, 0))
        self.peak = {ring: max(high, peak[ring]) for ring, high in self.peak.items()}
