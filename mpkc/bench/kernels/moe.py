"""A dropless mixture of experts: blocks of up to 128 tokens that chose the same expert.

How many blocks there are follows from what the tokens chose, and is known when the program runs; so are each block's
expert and the numbers of its tokens, which it gathers from the inputs, and whose outputs it adds to. What a block has
less than 128 tokens is filled up with rows of their own behind all tokens, which nobody reads.

Weights have a queue of their own, so those of the next block do not wait behind its tokens.
"""

from functools import cache

import numpy as np

from mpkc.bench.kernels.kernel import Arrays, Kernel, Sizes
from mpkc.bench.kernels.manual import moe as manual
from mpkc.bench.kernels.writer import Writer

BLOCK, PART, TOP = 128, 128, 2
ENGINES = ("sync", "load", "q2", "tensor", "scalar", "vector", "store")


def build(tokens: int, experts: int, hidden: int, middle: int) -> str:
    """`hidden` and `middle` are the widths of tokens and of what is between the matrices of an expert."""
    w = Writer("moe", ENGINES)
    rows, most = tokens + BLOCK, _most_blocks(tokens, experts)
    x_far, y_far = w.far("x", "bf16", rows, hidden), w.far("y", "f32", rows, hidden)
    gate_far, up_far = (w.far(name, "bf16", experts, hidden, middle) for name in ("gate", "up"))
    down_far = w.far("down", "bf16", experts, middle, hidden)
    expert_far, tokens_far = w.far("expert", "i32", most), w.far("tokens", "i32", most, BLOCK)
    weights_far, blocks = w.far("weights", "f32", most, BLOCK, 1), w.integer("blocks", most)
    ins, middles = range(hidden // PART), range(middle // PART)
    numbers, weights = w.near("numbers", "i32", BLOCK), w.near("chosen", "f32", BLOCK, 1)
    x, y, out = (
        w.near(f"{name}_tile", type_, BLOCK, hidden) for name, type_ in (("x", "bf16"), ("y", "f32"), ("o", "f32"))
    )
    gate, up = (w.near(f"{name}_tiles", "bf16", hidden, middle) for name in ("gate", "up"))
    down = w.near("down_tiles", "bf16", middle, hidden)
    turned = [w.near(f"turned{n}", "bf16", PART, BLOCK) for n in ins]
    active, gated = (
        [w.near(f"{name}{n}", type_, PART, BLOCK) for n in middles]
        for name, type_ in (("active", "f32"), ("gated", "bf16"))
    )
    turned_banks = w.accumulator("turned_banks", "bf16", 2, PART, BLOCK)
    gate_banks, up_banks = (w.accumulator(f"{name}_banks", "f32", 2, PART, BLOCK) for name in ("gate", "up"))
    down_bank = w.accumulator("down_bank", "f32", BLOCK, hidden)

    with w.loop(blocks, "block") as block:
        expert = w.value(expert_far, block, "sync", "chosen_expert")
        w.load(w.part(tokens_far, [block, w.index(0)], [1, BLOCK], drop=1), numbers, "q2", "load_numbers")
        chosen = w.part(weights_far, [block, w.index(0), w.index(0)], [1, BLOCK, 1], drop=1)
        w.load(chosen, weights, "q2", "load_weights")
        w.gather(x_far, numbers, x, "q2", "gather_x")
        w.gather(y_far, numbers, y, "q2", "gather_y")
        for name, far, near in (("gate", gate_far, gate), ("up", up_far, up), ("down", down_far, down)):
            matrix = w.part(far, [expert, w.index(0), w.index(0)], [1, *near.shape], drop=1)
            w.load(matrix, near, label=f"load_{name}")
        for n in ins:
            bank = w.slot(turned_banks, w.index(n % 2))
            w.transpose(w.columns(x, w.index(n * PART), PART), bank, f"transpose{n}")
            w.copy(bank, turned[n], "vector", f"turn{n}")
        for n in middles:
            products = [w.slot(banks, w.index(n % 2)) for banks in (gate_banks, up_banks)]
            for name, near, bank in zip(("gate", "up"), (gate, up), products, strict=True):
                for k in ins:
                    part = w.part(near, [w.index(k * PART), w.index(n * PART)], [PART, PART])
                    w.matmul(part, turned[k], bank, k > 0, f"{name}{n}_{k}")
            w.map("silu", [products[0]], active[n], "scalar", f"silu{n}")
            w.map("mul", [active[n], products[1]], gated[n], "vector", f"mul{n}")
        for n in middles:
            w.matmul(gated[n], w.rows(down, w.index(n * PART), PART), down_bank, n > 0, f"down{n}")
        w.map("mul", [down_bank, weights], out, "scalar", "weigh")
        w.map("add", [y, out], out, "vector", "add")
        w.scatter(out, y_far, numbers, "scatter")
    return str(w)


def _most_blocks(tokens: int, experts: int) -> int:
    """Blocks that there can be, whatever the tokens choose: one of each expert is not full."""
    return -(-tokens * TOP // BLOCK) + experts


class _Routing:
    """What tokens choose; the same whenever asked for."""

    def __init__(self, tokens: int, experts: int):
        rng = np.random.default_rng(0)
        self.chosen = np.argsort(rng.random((tokens, experts)), axis=1)[:, :TOP]
        self.shares = rng.dirichlet(np.ones(TOP), tokens).astype(np.float32)
        self.experts: list[int] = []
        most = _most_blocks(tokens, experts)
        self.numbers = np.tile(np.arange(tokens, tokens + BLOCK, dtype=np.int32), (most, 1))
        self.weights = np.zeros((most, BLOCK, 1), np.float32)
        for expert in range(experts):
            mine, place = np.nonzero(self.chosen == expert)
            for first in range(0, len(mine), BLOCK):
                block, count = len(self.experts), len(mine[first : first + BLOCK])
                self.numbers[block, :count] = mine[first : first + BLOCK]
                self.weights[block, :count, 0] = self.shares[mine, place][first : first + BLOCK]
                self.experts.append(expert)


@cache
def _routing(tokens: int, experts: int) -> _Routing:
    return _Routing(tokens, experts)


def inputs(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    tokens, experts, hidden, middle = (sizes[name] for name in ("tokens", "experts", "hidden", "middle"))
    routing = _routing(tokens, experts)
    chosen = np.zeros(_most_blocks(tokens, experts), np.int32)
    chosen[: len(routing.experts)] = routing.experts

    def normal(*shape: int) -> np.ndarray:
        """Numbers that bfloat16 holds: the upper half of those of float32."""
        array = rng.standard_normal(shape, np.float32) * np.float32(shape[-2] ** -0.5 if len(shape) == 3 else 1)
        return (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)

    return {
        "x": normal(tokens + BLOCK, hidden),
        "y": np.zeros((tokens + BLOCK, hidden), np.float32),
        "gate": normal(experts, hidden, middle),
        "up": normal(experts, hidden, middle),
        "down": normal(experts, middle, hidden),
        "expert": chosen,
        "tokens": routing.numbers,
        "weights": routing.weights,
    }


def reference(given: Arrays, sizes: Sizes) -> Arrays:
    """The outputs of the tokens, and zeros behind them: what fills up blocks weighs nothing."""
    routing = _routing(sizes["tokens"], sizes["experts"])
    y = np.zeros_like(given["y"])
    for token, (chosen, shares) in enumerate(zip(routing.chosen, routing.shares, strict=True)):
        x = given["x"][token]
        for expert, share in zip(chosen, shares, strict=True):
            gate = x @ given["gate"][expert]
            y[token] += share * ((gate / (1 + np.exp(-gate)) * (x @ given["up"][expert])) @ given["down"][expert])
    return {"y": y}


def bindings(sizes: Sizes) -> dict[str, int | list[int]]:
    experts = _routing(sizes["tokens"], sizes["experts"]).experts
    return {"blocks": len(experts), "chosen_expert": experts}


def _kernel(tokens: int, experts: int) -> Kernel:
    return Kernel(
        f"moe-{tokens}",
        f"MoE T={tokens} E={experts} k={TOP}",
        build,
        {"tokens": tokens, "experts": experts, "hidden": 512, "middle": 512},
        {"tokens": 2 * tokens // experts, "experts": 4, "hidden": 256, "middle": 256},
        inputs,
        reference,
        1,
        (0, 1),
        bindings,
        manual.place,
    )


KERNELS = tuple(_kernel(tokens, experts) for tokens, experts in ((384, 4), (2048, 8), (4096, 16)))
