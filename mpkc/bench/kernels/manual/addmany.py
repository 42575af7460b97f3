"""AddManyLoop by hand: one semaphore for each of the three who are waited for, one register in all."""

from mpkc.bench.kernels.kernel import Sizes
from mpkc.bench.kernels.placement import Placement


def place(p: Placement, sizes: Sizes) -> None:
    loaded = p.semaphore("load", "load_b")  # a queue's transfers retire in order: the last stands for both
    added = p.semaphore("vector", "add")
    negated = p.semaphore("scalar", "neg")

    # Both tiles arrive once, so the vector engine waits once, in front of its loop.
    p.engine("vector").before("i", loaded >= 1)

    # The native counter steps by the two columns of a part, so it can't count additions: a register does.
    scalar = p.engine("scalar")
    scalar.before("neg", added >= scalar.register(1, i=1))

    # How often the loop runs is known, so the store needs no loop to count it.
    p.engine("store").before("store_y", negated >= sizes["trips"])
