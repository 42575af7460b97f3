"""What is wrong with semaphores placed by hand is seen: each wait left out or one too short, each signal left out."""

from collections.abc import Callable, Iterator

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from mpkc.bench.kernels import KERNELS, Kernel
from mpkc.bench.manual import place_by_hand
from mpkc.dialects.engine import is_instruction, label_of, signal_of
from mpkc.dialects.sem_streams import StreamsOp, WaitOp
from mpkc.runtime.machine import machine
from mpkc.runtime.verify.product import Product
from mpkc.semaphores import Compiled
from mpkc.verification import chosen_bindings, possible, verify_compiled, with_sizes

TRN2 = machine("trn2")
PLACED = [name for name, kernel in KERNELS.items() if kernel.place is not None and name not in ("moe-2048", "moe-4096")]
"""The mixtures of experts differ in their sizes alone."""
EACH = {"flash-attention": 4}
"""Every which fault is tried, where there are many."""
NOT_OWED = {
    "rmsnorm": {"too short: vector before spread0"},
    "flash-attention": {
        f"{fault}: {wait}"
        for fault in ("left out", "too short")
        for wait in (
            "keys before load_k",
            "queries before load_qa",
            "queries before load_qb",
            "stored before storey",
            "stored before storez",
        )
    },
}
"""Waits that are longer than is owed, so that one less is enough too, or that only keep transfers apart, which no
dependency tells (test_verify_manual)."""


def left_out(wait: WaitOp) -> None:
    wait.detach()
    wait.erase()


def too_short(wait: WaitOp) -> None:
    one = arith.ConstantOp(IntegerAttr(1, wait.threshold.type))
    less = arith.SubiOp(wait.threshold, one)
    assert wait.parent is not None
    wait.parent.insert_ops_before([one, less], wait)
    wait.operands[0] = less.result


def not_signalled(op: Operation) -> None:
    del op.attributes["signal"]


def waits(streams: StreamsOp) -> list[Operation]:
    return [op for op in streams.walk() if isinstance(op, WaitOp)]


def signals(streams: StreamsOp) -> list[Operation]:
    return [op for op in streams.walk() if is_instruction(op) and signal_of(op) is not None]


Fault = tuple[str, Callable[[StreamsOp], list[Operation]], Callable[..., None]]
FAULTS: list[Fault] = [
    ("left out", waits, left_out),
    ("too short", waits, too_short),
    ("not signalled", signals, not_signalled),
]


def faulty(streams: StreamsOp) -> Iterator[tuple[str, StreamsOp]]:
    """Streams with one fault, and what it is."""
    for name, places, do in FAULTS:
        for number in range(len(places(streams))):
            copy = streams.clone()
            op = places(copy)[number]
            what = f"{op.semaphore.data} before {waiting(op)}" if isinstance(op, WaitOp) else label_of(op)
            do(op)
            yield f"{name}: {what}", copy


def waiting(wait: WaitOp) -> str:
    """The label of the instruction behind a wait, or the name of the loop."""
    following = wait.next_op
    while following is not None and not is_instruction(following) and not following.regions:
        following = following.next_op
    assert following is not None
    return label_of(following) or following.attributes["loop"].data


def placed(kernel: Kernel) -> Compiled:
    return place_by_hand(kernel, kernel.small, TRN2)


@pytest.mark.parametrize("name", PLACED)
def test_nothing_is_wrong(name: str) -> None:
    assert TRN2.dma is not None
    report = verify_compiled(placed(KERNELS[name]), written=True, queues=TRN2.dma.queues)
    assert not [failure.message for check in report.checks for failure in check.failures]
    assert {"waits", "runs", "registers"} <= {check.name for check in report.checks if check.count}


@pytest.mark.parametrize("name", PLACED)
def test_every_fault_is_seen(name: str) -> None:
    found = placed(KERNELS[name])
    program, streams = with_sizes(found.program, found.streams)
    product = Product(program, bindings=possible(program, chosen_bindings(program)))
    assert product.check(streams, patient=True) == []
    tried = list(faulty(streams))[:: EACH.get(name, 1)]
    unseen = {what for what, wrong in tried if not product.check(wrong, patient=True)}
    assert unseen == NOT_OWED.get(name, set()) & {what for what, _ in tried}
