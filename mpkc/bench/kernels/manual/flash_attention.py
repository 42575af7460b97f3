"""Flash attention by hand: a semaphore for each stage of an engine, and one register, the number of the group.

Each stage runs once for each group of each section, some of them before the loop over groups and some behind it. A
semaphore that counts one stage counts groups, so a threshold is the same function of the group in all three places: n
times the groups before, and the signals of this one. The register counts groups from section to section; in the loop,
stages are for the next group and the one after, as the program has them.
"""

from mpkc.bench.kernels.kernel import Sizes
from mpkc.bench.kernels.placement import Number, Placement

BLOCKS, AHEAD = 4, 2
SCORE = ("scale", "max", "largest", "larger", "drop", "keep")
BACK = ("total", "decay", "add_total", "decay_output", "add_output", "divide")


def place(p: Placement, sizes: Sizes) -> None:
    banks = range(sizes["banks"])
    last = banks[-1]
    # Where a stage stands, and by how much its group is ahead of the register there.
    scores = {"a": 0, "b": 1, "": AHEAD}
    exponents = {"a": 0, "": 1, "z": 1}
    products = {"": 0, "y": 0, "z": 1}

    def each(names: list[str], places: dict[str, int]) -> list[str]:
        return [f"{name}{at}" for at in places for name in names]

    # What each stage signals, in order. A queue's transfers retire in order: that of v stands for that of k.
    score = [f"max{last}" if name == "max" else name for name in SCORE]
    turned = [f"turn{n}" for n in banks]
    power = ["ratio", *(f"{name}{n}" for n in banks for name in ("sub", "exp"))]
    product = [f"transpose{n * BLOCKS + BLOCKS - 1}" for n in banks] + [f"pv{n}" for n in range(len(banks) * BLOCKS)]
    keys = p.semaphore("keys", "load_v")
    queries = p.semaphore("queries", *each(["load_q"], scores))
    scored = p.semaphore("scored", *each([f"score{n}" for n in banks], scores))
    ranked = p.semaphore("ranked", *each(score, scores))
    # A ratio comes before the exponents of its group, and the ratio of the next one before those of that.
    raised = p.semaphore("raised", *each(power[:1], scores), *each(power[1:], exponents))
    summed = p.semaphore("summed", *each([f"sum{n}" for n in banks], exponents))
    multiplied = p.semaphore("multiplied", *each(product, products))
    written = p.semaphore("written", *each([*turned, *BACK], products))
    stored = p.semaphore("stored", *each(["store"], products))

    def until(signals: list[str], label: str) -> int:
        return signals.index(label) + 1

    back = [*turned, *BACK]
    load, v, s, t, g, store = (p.engine(name) for name in ("load", "vector", "scalar", "tensor", "gpsimd", "store"))
    group = {engine.name: engine.register(0, group=1, section=AHEAD) for engine in (load, v, s, t, g, store)}

    def count(engine: str, ahead: int, signals: list[str] | int, label: str = "") -> Number:
        """The signals of a stage up to a label of the group that is so far ahead, or of all groups before it."""
        n = signals if isinstance(signals, int) else len(signals)
        done = until(signals, label) if label and not isinstance(signals, int) else 0
        return group[engine] * n + (ahead * n + done)

    # Keys wait for all scores of earlier sections, values for all products: so nothing else has to in group a.
    load.before("load_k", keys >= load.index("section"), scored >= count("load", 0, len(banks)))
    load.before("load_v", multiplied >= count("load", 0, product))
    t.before("score0a", keys >= t.index("section") + 1)

    for at, ahead in scores.items():
        load.before(f"load_q{at}", queries >= count("load", ahead, 1))
        if not at:  # the slot of two groups before; that of the last one, for safety
            load.before(f"load_q{at}", ranked >= count("load", ahead - 1, score, "scale"))
        v.before(f"scale{at}", queries >= count("vector", ahead + 1, 1))
        t.before(f"score0{at}", ranked >= count("tensor", ahead, score, "scale"))
        for n in banks:
            if at != "a":
                t.before(f"score{n}{at}", raised >= count("tensor", ahead - 1, power, f"sub{n}"))
        # The tensor engine is faster: once the first score is there, the others soon are.
        v.before(f"max0{at}", scored >= group["vector"] * len(banks) + (ahead * len(banks) + 1))
        if last:
            v.before(f"max1{at}", scored >= count("vector", ahead + 1, len(banks)))
        v.before(f"largest{at}", ranked >= count("vector", ahead, score, f"max{last}"))
        v.before(f"larger{at}", ranked >= count("vector", ahead, score, "largest"))
        v.before(f"drop{at}", ranked >= count("vector", ahead, score, "larger"))
        v.before(f"keep{at}", ranked >= count("vector", ahead, score, "drop"))
        s.before(f"ratio{at}", ranked >= count("scalar", ahead, score, "drop"))

    for at, ahead in exponents.items():
        s.before(f"sub0{at}", ranked >= count("scalar", ahead, score, "keep"))
        if at != "a":
            if not last:  # with more banks, the scores have waited for that
                s.before(f"sub0{at}", raised >= count("scalar", ahead - 1, power, "exp0"))
            # The slots of two groups before, all of them at once; and of the sums those of the last one, done as well.
            s.before(f"exp0{at}", multiplied >= count("scalar", ahead - 2, product, product[last]))
            s.before(f"exp0{at}", summed >= count("scalar", ahead, len(banks)))
            g.before(f"sum0{at}", written >= count("gpsimd", ahead - 2, back, "total"))
        for n in banks:
            s.before(f"exp{n}{at}", raised >= count("scalar", ahead, power, f"sub{n}"))
        g.before(f"sum0{at}", raised >= count("gpsimd", ahead, power, f"exp{last}"))  # all at once: there is time

    for at, ahead in products.items():
        for n in banks:
            if n >= 2:
                t.before(f"transpose{n * BLOCKS}{at}", written >= count("tensor", ahead, back, f"turn{n - 2}"))
            v.before(f"turn{n}{at}", multiplied >= count("vector", ahead, product, product[n]))
        if at:
            t.before(f"transpose0{at}", raised >= count("tensor", ahead, power, f"exp{last}"))
        for n in range(len(banks) * BLOCKS):
            if n % BLOCKS == 0 and n // BLOCKS >= len(banks) - 2:
                t.before(f"pv{n}{at}", written >= count("tensor", ahead, back, f"turn{n // BLOCKS}"))
            if n:
                t.before(f"pv{n}{at}", multiplied >= count("tensor", ahead, product, f"pv{n - 1}"))
        v.before(f"total{at}", summed >= count("vector", ahead + 1, len(banks)))
        v.before(f"add_total{at}", written >= count("vector", ahead, back, "decay"))
        v.before(f"invert{at}", written >= count("vector", ahead, back, "add_total"))
        v.before(f"add_output{at}", written >= count("vector", ahead, back, "decay_output"))
        v.before(f"add_output{at}", multiplied >= count("vector", ahead + 1, product))
        if at != "z":  # the slot of two groups before; that of the last one, for safety
            v.before(f"divide{at}", stored >= count("vector", ahead, 1))
        v.before(f"divide{at}", written >= count("vector", ahead, back, "add_output"))
        store.before(f"store{at}", stored >= count("store", ahead, 1), written >= count("store", ahead + 1, back))
    v.before("decayy", raised >= count("vector", 1, power, "ratio"))
