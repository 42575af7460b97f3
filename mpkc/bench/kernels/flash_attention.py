"""Flash attention of one head: sections of keys, and for each of them all groups of 128 queries, software-pipelined.

While group i is multiplied by the values, group i + 1 is exponentiated, and the scores of group i + 2 are computed.
Maxima, sums and unnormalized outputs of all groups stay in near memory from section to section, and each section writes
what its outputs are so far. Scores take four banks of the accumulator; transposed probabilities and outputs alternate
between two each.
"""

import numpy as np

from mpkc.bench.kernels.kernel import Arrays, Kernel, Sizes
from mpkc.bench.kernels.manual import flash_attention as manual
from mpkc.bench.kernels.writer import Number, Tile, Writer

D, QUERIES, KEYS, BANK = 128, 128, 128, 512
BLOCKS = BANK // KEYS
AHEAD = 2
LOWEST = -1e30
ENGINES = ("load", "tensor", "scalar", "vector", "gpsimd", "store")


class _Flash:
    """The stages of a group, each with the group's number, and what labels end with outside of the loop over groups:
    the letter of the group, a and b for the first, y and z for the last."""

    def __init__(self, sections: int, groups: int, banks: int):
        self.banks = range(banks)
        self.blocks = range(banks * BLOCKS)
        self.w = w = Writer("flash_attention", ENGINES)
        queries, keys = groups * QUERIES, sections * banks * BANK
        self.q_far, self.k_far = w.far("q", "bf16", D, queries), w.far("k", "bf16", D, keys)
        self.v_far, self.o_far = w.far("v", "bf16", keys, D), w.far("o", "f32", queries, D)
        self.k = w.near("k_section", "bf16", D, banks * BANK)
        self.v = w.near("v_section", "bf16", banks * BANK, D)
        self.q = w.near("q_slots", "bf16", 2, D, QUERIES)
        self.scaled = w.near("scaled_slots", "bf16", 2, D, QUERIES)
        self.scores = [w.accumulator(f"scores{n}", "f32", QUERIES, BANK) for n in self.banks]
        self.shifted = [w.near(f"shifted{n}", "f32", QUERIES, BANK) for n in self.banks]
        self.p = [w.near(f"p_slots{n}", "bf16", 2, QUERIES, BANK) for n in self.banks]
        self.turned_banks = w.accumulator("turned_banks", "bf16", 2, KEYS, BLOCKS * QUERIES)
        self.turned = [w.near(f"turned{n}", "bf16", KEYS, BLOCKS * QUERIES) for n in self.banks]
        self.pv = w.accumulator("pv_banks", "f32", 2, QUERIES, D)
        self.o = w.near("o_slots", "f32", 2, QUERIES, D)
        self.largest_parts = w.near("largest_parts", "f32", QUERIES, banks)
        self.largest, self.total = w.near("largest", "f32", QUERIES, 1), w.near("total", "f32", QUERIES, 1)
        self.drop, self.inverse = w.near("drop", "f32", QUERIES, 1), w.near("inverse", "f32", QUERIES, 1)
        self.sum_parts = w.near("sum_slots", "f32", 2, QUERIES, banks)
        self.maxima, self.sums, self.ratios = (
            w.near(name, "f32", QUERIES, groups) for name in ("maxima", "sums", "ratios")
        )
        self.outputs = w.near("outputs", "f32", QUERIES, groups * D)

    def begin(self) -> None:
        """Nothing has been seen."""
        self.w.fill(self.w.constant(LOWEST), self.maxima, "vector", "fill_maxima")
        self.w.fill(self.w.constant(0), self.sums, "vector", "fill_sums")
        self.w.fill(self.w.constant(0), self.outputs, "gpsimd", "fill_outputs")

    def load_section(self, section: Number) -> None:
        w = self.w
        keys = len(self.banks) * BANK
        first = w.product(section, w.index(keys))
        w.load(w.columns(self.k_far, first, keys), self.k, label="load_k")
        w.load(w.rows(self.v_far, first, keys), self.v, label="load_v")

    def score(self, group: Number, at: str = "") -> None:
        """Queries times keys, the largest score of each row, and what earlier sums and outputs are scaled by."""
        w = self.w
        q, scaled = w.slot(self.q, group), w.slot(self.scaled, group)
        w.load(w.columns(self.q_far, w.product(group, w.index(QUERIES)), QUERIES), q, label=f"load_q{at}")
        w.map("mul", [q, w.constant(D**-0.5)], scaled, "vector", f"scale{at}")
        for n in self.banks:
            w.matmul(scaled, w.columns(self.k, w.index(n * BANK), BANK), self.scores[n], label=f"score{n}{at}")
            w.reduce("max", self.scores[n], self.one(self.largest_parts, n), "vector", f"max{n}{at}")
        maximum, ratio = w.columns(self.maxima, group, 1), w.columns(self.ratios, group, 1)
        w.reduce("max", self.largest_parts, self.largest, "vector", f"largest{at}")
        w.map("max", [maximum, self.largest], self.largest, "vector", f"larger{at}")
        w.map("sub", [maximum, self.largest], self.drop, "vector", f"drop{at}")
        w.map("exp", [self.drop], ratio, "scalar", f"ratio{at}")
        w.copy(self.largest, maximum, "vector", f"keep{at}")

    def exponentiate(self, group: Number, at: str = "") -> None:
        w = self.w
        maximum, sums = w.columns(self.maxima, group, 1), w.slot(self.sum_parts, group)
        for n in self.banks:
            p = w.slot(self.p[n], group)
            w.map("sub", [self.scores[n], maximum], self.shifted[n], "scalar", f"sub{n}{at}")
            w.map("exp", [self.shifted[n]], p, "scalar", f"exp{n}{at}")
            w.reduce("sum", p, self.one(sums, n), "gpsimd", f"sum{n}{at}")

    def multiply(self, group: Number, at: str = "") -> None:
        """Probabilities, transposed, times values."""
        w = self.w
        pv = w.slot(self.pv, group)
        for n in self.banks:
            p, bank = w.slot(self.p[n], group), w.slot(self.turned_banks, w.index(n % 2))
            for block in range(BLOCKS):
                label = f"transpose{n * BLOCKS + block}{at}"
                w.transpose(w.columns(p, w.index(block * KEYS), KEYS), self.queries(bank, block), label)
            w.copy(bank, self.turned[n], "vector", f"turn{n}{at}")
        for n in self.blocks:
            values = w.rows(self.v, w.index(n * KEYS), KEYS)
            w.matmul(self.queries(self.turned[n // BLOCKS], n % BLOCKS), values, pv, n > 0, f"pv{n}{at}")

    def write_back(self, group: Number, at: str = "") -> None:
        w = self.w
        total, ratio = w.columns(self.sums, group, 1), w.columns(self.ratios, group, 1)
        output = w.columns(self.outputs, w.product(group, w.index(D)), D)
        w.reduce("sum", w.slot(self.sum_parts, group), self.total, "vector", f"total{at}")
        w.map("mul", [total, ratio], total, "vector", f"decay{at}")
        w.map("add", [total, self.total], total, "vector", f"add_total{at}")
        w.map("reciprocal", [total], self.inverse, "vector", f"invert{at}")
        w.map("mul", [output, ratio], output, "vector", f"decay_output{at}")
        w.map("add", [output, w.slot(self.pv, group)], output, "vector", f"add_output{at}")
        o = w.slot(self.o, group)
        w.map("mul", [output, self.inverse], o, "vector", f"divide{at}")
        w.store(o, w.rows(self.o_far, w.product(group, w.index(QUERIES)), QUERIES), f"store{at}")

    def one(self, tile: Tile, column: int) -> Tile:
        return self.w.columns(tile, self.w.index(column), 1)

    def queries(self, tile: Tile, block: int) -> Tile:
        return self.w.columns(tile, self.w.index(block * QUERIES), QUERIES)


def build(sections: int, groups: int, banks: int) -> str:
    """`banks` times 512 keys are a section."""
    flash = _Flash(sections, groups, banks)
    w = flash.w
    flash.begin()
    with w.loop(w.index(sections), "section") as section:
        flash.load_section(section)
        flash.score(w.index(0), "a")
        flash.exponentiate(w.index(0), "a")
        flash.score(w.index(1), "b")
        with w.loop(w.index(groups - AHEAD), "group") as i:
            flash.exponentiate(w.sum(i, w.index(1)))
            flash.score(w.sum(i, w.index(AHEAD)))
            flash.multiply(i)
            flash.write_back(i)
        flash.exponentiate(w.index(groups - 1), "z")
        for group, at in zip(range(groups - AHEAD, groups), "yz", strict=True):
            flash.multiply(w.index(group), at)
            flash.write_back(w.index(group), at)
    return str(w)


def inputs(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    queries, keys = sizes["groups"] * QUERIES, sizes["sections"] * sizes["banks"] * BANK
    return {
        "q": _rounded(rng.standard_normal((D, queries), np.float32)),
        "k": _rounded(rng.standard_normal((D, keys), np.float32)),
        "v": _rounded(rng.standard_normal((keys, D), np.float32)),
        "o": np.zeros((queries, D), np.float32),
    }


def reference(given: Arrays, sizes: Sizes) -> Arrays:
    scores = given["q"].T @ given["k"] * np.float32(D**-0.5)
    p = np.exp(scores - scores.max(1, keepdims=True))
    return {"o": p @ given["v"] / p.sum(1, keepdims=True)}


def _rounded(array: np.ndarray) -> np.ndarray:
    """Numbers that bfloat16 holds: the upper half of those of float32."""
    return (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


KERNEL = Kernel(
    "flash-attention",
    "flash attention 8192^2, d=128",
    build,
    {"sections": 4, "groups": 64, "banks": 4},
    {"sections": 2, "groups": 4, "banks": 1},
    inputs,
    reference,
    2,
    (0, 1, 2),
    place=manual.place,
)
