"""RMSNorm by hand: the tensor engine sets the pace and finds its thresholds in registers; the others compute theirs.

What an engine computes while it waits anyway costs nothing, and that is where the vector and the scalar engine do it.
"""

from mpkc.bench.kernels.kernel import Sizes
from mpkc.bench.kernels.placement import Placement

BANKS = 4
NORM = ("sum_left", "sum_right", "mean", "add_epsilon", "rsqrt", "scale")
TAIL = ("absmax", "normalize", "to_scale", "invert", "quantize")


def place(p: Placement, sizes: Sizes) -> None:
    parts = sizes["parts"]
    last = f"multiply{parts - 1}"
    # A bank is free once its part is multiplied. The tensor engine asks for the first two of a tile one by one, since
    # it waits for them, and for the others two at a time: that is safe, and it comes too late for none of them.
    freed = {part + BANKS: part if part < 2 else part + 1 for part in range(parts - BANKS) if part < 2 or part % 2 == 0}
    counted = (*(f"multiply{part}" for part in freed.values()), last, *TAIL)
    step = len(counted)

    loaded = p.semaphore("load", "load_x")
    spread = p.semaphore("tensor", *(f"spread{part}" for part in range(parts)))
    vector = p.semaphore("vector", "fill_ones", *counted)
    scalar = p.semaphore("scalar", *NORM)
    stored = p.semaphore("store", "store_s")  # behind store_q in its queue, so it stands for both

    def until(label: str) -> int:
        """The signals of the vector engine up to an instruction of the first tile; that of the ones comes first."""
        return 2 + counted.index(label)

    load = p.engine("load")
    scaled, seen = load.index("i") * len(NORM) - len(NORM), load.index("i") * step + until("absmax") - 2 * step
    load.before("load_x", scalar >= scaled, vector >= seen, loaded >= load.index("i"))

    s = p.engine("scalar")
    s.before("sum_left", loaded >= s.index("i") + 1)
    for number, label in enumerate(NORM[1:], 1):
        s.before(label, scalar >= s.index("i") * len(NORM) + number)
    s.before("scale", vector >= s.register(until(last), i=step))

    # Gamma comes before the first tile in its queue, so that stands for it: nobody has work before the tile is there.
    t = p.engine("tensor")
    t.before("i", loaded >= 1, vector >= 1)
    if parts <= BANKS:  # then nothing below tells that tile i - 2, whose banks these are, is done
        t.before("spread0", vector >= t.register(1 - step, i=step))
    for part, multiplied in freed.items():
        t.before(f"spread{part}", vector >= t.register(until(f"multiply{multiplied}"), i=step))

    v = p.engine("vector")
    tile, normed = v.index("i"), v.register(len(NORM) - 1, i=len(NORM))
    # The norm is ready long before it is used, so the wait for the first sum is one for all of it.
    v.before("multiply0", scalar >= normed, spread >= tile * parts + min(BANKS, parts))
    v.before("multiply1", stored >= tile - 1)  # of use to to_scale, but here it is off the way to the next tile
    for part in range(BANKS, parts):
        v.before(f"multiply{part}", spread >= tile * parts + part + 1)
    for before, label in zip((last, *TAIL), TAIL, strict=False):
        v.before(label, vector >= tile * step + until(before))
    v.before("quantize", scalar >= normed + 1)

    store = p.engine("store")
    store.before("store_q", stored >= store.index("i"), vector >= store.register(1 + step, i=step))
