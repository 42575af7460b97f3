"""The mixture of experts by hand: whom the tensor engine waits for, it reads directly, at the price of semaphores.

A semaphore that counts one retirement a block is compared with the number of the block, which every engine has: the
index of its loop, which the kernel keeps anyway. Who has time computes a threshold from the tensor engine's count, or
from what Scalar's last three share.
"""

from itertools import pairwise

from mpkc.bench.kernels.kernel import Sizes
from mpkc.bench.kernels.placement import Placement, Semaphore

PART = 128


def place(p: Placement, sizes: Sizes) -> None:
    ins, middles = sizes["hidden"] // PART, sizes["middle"] // PART

    def own(*labels: str) -> list[Semaphore]:
        return [p.semaphore(label, label) for label in labels]

    # The queues, each transfer by itself; that of y comes behind that of the weights of tokens.
    chosen, read = own("chosen_expert", "chosen_expert.load")
    numbers, x, y, scattered = own("load_numbers", "gather_x", "gather_y", "scatter")
    gate, up, down = own("load_gate", "load_up", "load_down")

    # Products are sums, each of which waits for the one before.
    sums = [[f"{name}{n}_{k}" for k in range(ins)] for n in range(middles) for name in ("gate", "up")]
    sums.append([f"down{n}" for n in range(middles)])
    order = [*(f"transpose{n}" for n in range(ins)), *(label for each in sums for label in each)]
    multiplied = p.semaphore("tensor", *order)
    count = {label: number for number, label in enumerate(order, 1)}

    turned = own(*(f"turn{n}" for n in range(ins) if n != ins - 2))
    gated = own(*(f"mul{n}" for n in range(middles) if n != middles - 2))
    active = own(*(f"silu{n}" for n in range(middles - 2)))
    scalar_last = [*(f"silu{n}" for n in range(middles - 2, middles)), "weigh"]
    scaled = p.semaphore("scalar", *scalar_last)
    (added,) = own("add")

    sync = p.engine("sync")
    sync.before("chosen_expert", read >= sync.index("block"))

    # A slot is free once the last block is done with it; the wait that takes longest is the transfer's own.
    q2 = p.engine("q2")
    q2.before("load_numbers", y >= q2.index("block"), scattered >= q2.index("block"))
    q2.before("gather_x", numbers >= q2.index("block") + 1)
    load = p.engine("load")
    load.before("chosen_expert.load", chosen >= load.index("block") + 1)
    done = load.register(-len(order), block=len(order))
    for name, loaded, last in (("gate", gate, sums[-3]), ("up", up, sums[-2]), ("down", down, sums[-1])):
        load.before(f"load_{name}", loaded >= load.index("block"), multiplied >= done + count[last[-1]])
    store = p.engine("store")
    store.before("scatter", scattered >= store.index("block"), added >= store.index("block") + 1)

    # Two banks: a transpose, and a sum, takes the bank of the last but one.
    tensor = p.engine("tensor")
    block, done = tensor.index("block") + 1, tensor.register(0, block=len(order))
    tensor.before("transpose0", x >= block)
    for n in range(2, ins):
        tensor.before(f"transpose{n}", turned[n - 2] >= block)
    for n in range(2, middles):
        tensor.before(f"gate{n}_0", active[n - 2] >= block)
        tensor.before(f"up{n}_0", gated[n - 2] >= block)
    tensor.before("gate0_0", gate >= block)
    tensor.before("up0_0", up >= block)
    tensor.before("down0", down >= block)
    # The last two that Vector turns, and multiplies, come together: one wait less for the second.
    tensor.before(f"gate0_{ins - 2}", turned[-1] >= block)
    tensor.before(f"down{middles - 2}", gated[-1] >= block)
    # The threshold is computed while the matmul before is under way.
    for each in sums:
        for before, label in pairwise(each):
            tensor.before(label, multiplied >= done + count[before])

    vector = p.engine("vector")
    block, done = vector.index("block") + 1, vector.register(0, block=len(order))
    scalar_done = vector.register(0, block=len(scalar_last))
    for n in range(ins):
        vector.before(f"turn{n}", multiplied >= done + count[f"transpose{n}"])
    for n in range(middles):
        late = n - (middles - 2)
        vector.before(f"mul{n}", active[n] >= block if late < 0 else scaled >= scalar_done + (late + 1))
        vector.before(f"mul{n}", multiplied >= done + count[f"up{n}_{ins - 1}"])
    vector.before("add", y >= block, scaled >= scalar_done + len(scalar_last))

    scalar = p.engine("scalar")
    done = scalar.register(0, block=len(order))
    for n in range(middles):
        scalar.before(f"silu{n}", multiplied >= done + count[f"gate{n}_{ins - 1}"])
    scalar.before("weigh", y >= scalar.index("block") + 1, multiplied >= done + len(order))
