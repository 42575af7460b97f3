"""AdamW by hand: vector and scalar engine take six steps a chunk, side by side, so that a register serves both."""

from mpkc.bench.kernels.kernel import Sizes
from mpkc.bench.kernels.placement import Placement

STEPS = 6


def place(p: Placement, sizes: Sizes) -> None:
    # A queue's transfers retire in order: the last of a chunk stands for all of it.
    loaded = p.semaphore("load", "load_v")
    stored = p.semaphore("store", "store_v")
    vector = p.semaphore("vector", "decay_m", "decay_v", "add_v", "invert", "divide_m", "decay_p")
    scalar = p.semaphore("scalar", "square_g", "share_square", "correct_v", "sqrt_v", "add_epsilon", "scale_step")
    # The end of a chunk has its own, so that the store can compare with the native counter.
    stepped = p.semaphore("stepped", "step_p")

    # Two slots: chunk i takes the place of chunk i - 2, which has to be stored. The queue has done the chunk before.
    load = p.engine("load")
    load.before("load_p", stored >= load.register(-1, i=1), loaded >= load.index("i"))

    store = p.engine("store")
    store.before("store_p", stored >= store.index("i"), stepped >= store.index("i") + 1)

    v = p.engine("vector")
    first, second, fourth, fifth, sixth = (v.register(step, i=STEPS) for step in (1, 2, 4, 5, 6))
    v.before("decay_m", loaded >= v.index("i") + 1)
    v.before("add_m", scalar >= first, vector >= first)  # share_g is a step before square_g, which is long done
    v.before("add_v", scalar >= second, vector >= second)
    v.before("invert", scalar >= fifth)
    v.before("divide_m", vector >= fourth)
    v.before("step_p", vector >= sixth, scalar >= sixth)

    s = p.engine("scalar")
    first, third, fourth, fifth = (s.register(step, i=STEPS) for step in (1, 3, 4, 5))
    s.before("share_g", loaded >= s.index("i") + 1)
    s.before("share_square", scalar >= first)
    s.before("correct_v", vector >= third)
    s.before("sqrt_v", scalar >= third)
    s.before("add_epsilon", scalar >= fourth)
    s.before("scale_step", vector >= fifth)
