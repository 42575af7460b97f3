"""Tiled matmul by hand: everything that can stands outside of the K loop, which keeps one register of its own."""

from mpkc.bench.kernels.kernel import Sizes
from mpkc.bench.kernels.placement import Placement


def place(p: Placement, sizes: Sizes) -> None:
    """With a hardware loop over K, whose iterations wait for each other and for nothing else."""
    n, k = sizes["n"], sizes["k"]
    loaded_a, loaded_b = p.semaphore("load_a", "load_a1"), p.semaphore("load_b", "load_b1")
    multiplied = p.semaphore("tensor", "matmul")
    evicted, stored = p.semaphore("vector", "evict"), p.semaphore("store", "store_c")

    # How many matmuls an iteration of a loop has is known: nobody but the tensor engine counts them one by one.
    q2 = p.engine("q2")
    q2.before("load_a0", loaded_a >= q2.index("i"), multiplied >= q2.register(0, i=n * k))
    load = p.engine("load")
    load.before("load_b0", loaded_b >= load.register(0, j=1), multiplied >= load.register(0, j=k))

    # What a tile needs besides matmuls does not change in the K loop: the first matmul waits for it in front. Banks
    # take turns, so all tiles but the last have to be evicted; that is enough where a row has four tiles or more.
    tensor = p.engine("tensor")
    tensor.before("j", loaded_a >= tensor.index("i") + 1)
    tensor.before("k", evicted >= tensor.register(-1, j=1), loaded_b >= tensor.register(1, j=1))
    tensor.before("matmul", multiplied >= tensor.register(0, k=1))

    vector = p.engine("vector")
    vector.before("evict", stored >= vector.register(-1, j=1), multiplied >= vector.register(k, j=k))
    store = p.engine("store")
    store.before("store_c", stored >= store.register(0, j=1), evicted >= store.register(1, j=1))


def place_unrolled(p: Placement, sizes: Sizes) -> None:
    """With K unrolled: each half of the tiles is loaded as soon as the matmuls with it are done."""
    n, k = sizes["n"], sizes["k"]
    half = k // 2
    loaded_a = [p.semaphore(f"load_a{part}", f"load_a{part}") for part in range(2)]
    loaded_b = [p.semaphore(f"load_b{part}", f"load_b{part}") for part in range(2)]
    multiplied = p.semaphore("tensor", *(f"matmul{step}" for step in range(k)))
    evicted, stored = p.semaphore("vector", "evict"), p.semaphore("store", "store_c")

    q2, load = p.engine("q2"), p.engine("load")
    for part, left in enumerate((half, 0)):
        q2.before(f"load_a{part}", loaded_a[part] >= q2.index("i"), multiplied >= q2.register(-left, i=n * k))
        load.before(f"load_b{part}", loaded_b[part] >= load.register(0, j=1), multiplied >= load.register(-left, j=k))

    # Every matmul waits for the one before it, which takes so long that the threshold is computed meanwhile.
    tensor = p.engine("tensor")
    tile, done = tensor.register(1, j=1), tensor.register(0, j=k)
    tensor.before("j", loaded_a[0] >= tensor.index("i") + 1)
    tensor.before("matmul0", evicted >= tensor.register(-1, j=1), loaded_b[0] >= tile)
    tensor.before(f"matmul{half}", loaded_a[1] >= tensor.index("i") + 1, loaded_b[1] >= tile)
    for step in range(1, k):
        tensor.before(f"matmul{step}", multiplied >= done + step)

    vector = p.engine("vector")
    vector.before("evict", stored >= vector.register(-1, j=1), multiplied >= vector.register(k, j=k))
    store = p.engine("store")
    store.before("store_c", stored >= store.register(0, j=1), evicted >= store.register(1, j=1))
