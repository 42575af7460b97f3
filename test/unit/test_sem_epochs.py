"""Epochs: no semaphore or counter passes its limit, and what is reset stands where the counters say."""

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sem_programs import programs

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_structure import Loop, LoopKind, Structure, structure_of
from mpkc.parsing import new_context, parse_module
from mpkc.passes.semaphores.bounds import trips
from mpkc.passes.semaphores.epochs import Epoch, EpochError, Tally, plan_epochs

CONTEXT = new_context()
SETTINGS = settings(max_examples=70, deadline=None, suppress_health_check=list(HealthCheck))
MOST_STEPS = 3000


def structure(text: str) -> Structure:
    module = parse_module(text, "test.mlir", CONTEXT)
    verify(module)
    return structure_of(module.body.block.first_op)


def nest(body: str) -> Structure:
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in (0, 1, 3, 10, 1000))
    return structure(f"sem.program @p(%n : index) {{\n{constants}\n{body}\n}}")


def loop(name: str, trips: str, body: str) -> str:
    return f"scf.for %{name} = %c0 to %{trips} step %c1 {{\n{body}\n}}"


def inst(label: str, engine: str = "e0") -> str:
    return f'sem.inst @{label} engine "{engine}" cost 1'


def per_loop(found: Structure) -> list[Tally]:
    """A semaphore for each loop and engine, as if all instructions signalled."""
    counts = Counter((i.engine, i.loop) for i in found.instructions)
    return [Tally(f"{engine}.{where.name}", {where: n}, (where,)) for (engine, where), n in counts.items()]


def per_engine(found: Structure) -> list[Tally]:
    """A semaphore for each engine, which counts on its own."""
    return [
        Tally(f"{engine}.all", Counter(i.loop for i in found.instructions if i.engine == engine))
        for engine in found.engines
    ]


def planned(found: Structure, tallies: list[Tally], limit: int) -> dict[str, tuple]:
    epochs = plan_epochs(found, tallies, limit)
    return {e.loop.name: (e.iterations, e.semaphores, tuple(loop.name for loop in e.counters)) for e in epochs}


def test_nothing_to_do():
    found = nest(loop("i", "c10", inst("P") + "\n" + inst("Q")))
    assert planned(found, per_loop(found), 20) == {}
    assert planned(found, per_loop(found), 19) == {"i": (9, ("e0.i",), ("i",))}


def test_the_outermost_loop_of_which_an_iteration_fits():
    found = nest(loop("a", "n", loop("b", "c10", loop("c", "c3", inst("P") + "\n" + inst("Q")))))
    assert planned(found, per_loop(found), 255) == {"a": (4, ("e0.c",), ("c",))}
    assert planned(found, per_loop(found), 59) == {"b": (9, ("e0.c",), ("c",))}
    assert planned(found, per_loop(found), 5) == {"c": (2, ("e0.c",), ("c",))}
    assert planned(found, per_loop(found), 2**32 - 1) == {"a": ((2**32 - 1) // 60, ("e0.c",), ("c",))}


def test_a_counter_of_more_entries_than_signals():
    found = nest(loop("a", "n", inst("P")))
    (a,) = (each for each in found.loops if each.name == "a")
    assert planned(found, [Tally("s", {a: 0}, (a,))], 7) == {"a": (7, ("s",), ("a",))}


def test_what_stands_around_is_left_alone():
    """The case against resetting all: in the middle of an iteration of a, @Q is still to signal for it."""
    body = "\n".join([inst("P"), loop("b", "n", inst("X")), inst("Q")])
    found = nest(loop("a", "n", body))
    assert planned(found, per_loop(found), 100) == {
        "a": (50, ("e0.a",), ("a",)),
        "b": (100, ("e0.b",), ("b",)),
    }
    with pytest.raises(EpochError, match="an unknown number: declare `maxima` or `most`; no iteration") as refused:
        plan_epochs(found, per_engine(found), 100)
    assert refused.value.semaphores == ("e0.all",)
    assert refused.value.op.location.line.data == 7


def test_siblings_each_have_their_own():
    found = nest("\n".join(loop(f"i{k}x", "n", inst(f"P{k}")) for k in range(50)))
    assert planned(found, per_loop(found), 7) == {f"i{k}x": (7, (f"e0.i{k}x",), (f"i{k}x",)) for k in range(50)}


def test_semaphores_that_share_a_counter_start_again_together():
    found = nest(loop("a", "n", inst("P") + "\n" + loop("b", "c3", inst("Q") + "\n" + inst("R", "e1"))))
    _, a, b = found.loops
    tallies = [Tally("s", {a: 1, b: 1}, (a, b)), Tally("t", {b: 1}, (b,)), Tally("u", {b: 1})]
    assert planned(found, tallies, 8) == {"a": (2, ("s", "t", "u"), ("a", "b"))}
    assert planned(found, [tallies[2]], 2) == {"b": (2, ("u",), ())}


def test_refused_with_the_numbers():
    many = "\n".join(inst(f"P{k}") for k in range(20))
    found = nest(loop("a", "n", many))
    with pytest.raises(EpochError, match="go up to 15, and an iteration of loop 'a' adds to 'e0.a' 20: use wider"):
        plan_epochs(found, per_loop(found), 15)
    assert planned(found, per_loop(found), 20) == {"a": (1, ("e0.a",), ("a",))}
    found = nest(many)
    with pytest.raises(EpochError, match="and the program adds to 'e0.program' 20: use wider"):
        plan_epochs(found, per_loop(found), 15)
    assert planned(found, per_loop(found), 20) == {}


class Run:
    """Runs a structure with random trip counts, within the bounds that were found, and counts what signals.

    Instructions are counted in program order; all that a reset does is done at its place.
    """

    def __init__(self, found: Structure, tallies: list[Tally], epochs: list[Epoch], rng: Random):
        self.rng, self.bounds, self.left = rng, trips(found), MOST_STEPS
        self.epochs: dict[Loop, Epoch] = {epoch.loop: epoch for epoch in epochs}
        self.iterations: Counter[Loop] = Counter()
        self.value: Counter[object] = Counter()
        self.highest: Counter[object] = Counter()
        self.open: Counter[tuple[str, Loop]] = Counter()
        self.tallies = {tally.semaphore: tally for tally in tallies}
        self.inside: dict[Loop, list] = {each: [] for each in found.loops}
        for each in found.loops:
            if each.parent:
                self.inside[each.parent].append((each.position, each))
        for instruction in found.instructions:
            for tally in tallies:
                if tally.signals.get(instruction.loop) and tally.semaphore.split(".")[0] == instruction.engine:
                    self.inside[instruction.loop].append((instruction.position, tally))
        for items in self.inside.values():
            items.sort(key=lambda item: item[0])
        self.counted = {each for tally in tallies for each in tally.counters}

    def add(self, key: object) -> None:
        self.value[key] += 1
        self.highest[key] = max(self.highest[key], self.value[key])

    def run(self, at: Loop) -> None:
        bound = self.bounds[at]
        if not at.counted:
            for _ in range(1 if at.parent is None else self.rng.randint(0, 1)):
                self.iteration(at)
            return
        most = self.rng.choice((1, 3, 40)) if bound is None else bound
        for _ in range(self.rng.randint(at.kind is LoopKind.WHILE, max(most, at.kind is LoopKind.WHILE))):
            if self.left < 0:
                return
            self.iteration(at)

    def iteration(self, at: Loop) -> None:
        self.left -= 1
        if at in self.counted:
            self.add(at)
        last: list[Loop] = []
        for _, item in self.inside[at]:
            if isinstance(item, Loop):
                if item.kind is LoopKind.AFTER:
                    last.append(item)
                else:
                    self.run(item)
            else:
                self.add(item.semaphore)
                self.open[item.semaphore, at] += 1
        for tally in self.tallies.values():
            self.open[tally.semaphore, at] = 0
        self.boundary(at)
        for after in last:
            self.run(after)

    def boundary(self, at: Loop) -> None:
        epoch = self.epochs.get(at)
        if epoch is None:
            return
        self.iterations[at] += 1
        if self.iterations[at] < epoch.iterations:
            return
        self.iterations[at] = 0
        for key in (*epoch.semaphores, *epoch.counters):
            self.value[key] = 0
        for semaphore in epoch.semaphores:
            assert all(not self.open[semaphore, each] for each in self.tallies[semaphore].loops)
            self.matches(semaphore)

    def matches(self, semaphore: str) -> None:
        """Outside of every entry of its loops, a semaphore is the sum of what their entries signal."""
        tally = self.tallies[semaphore]
        if tally.counters:
            assert self.value[semaphore] == sum(n * self.value[each] for each, n in tally.signals.items())


def share(found: Structure, rng: Random) -> list[Tally]:
    """Semaphores of engines, loops, or several loops whose entries are counted."""
    tallies = per_loop(found)
    for tally in per_engine(found):
        kind = rng.choice(("loops", "engine", "counted"))
        if kind != "loops":
            tallies = [each for each in tallies if each.semaphore.split(".")[0] != tally.semaphore.split(".")[0]]
            tallies.append(Tally(tally.semaphore, tally.signals, tuple(tally.signals) if kind == "counted" else ()))
    return tallies


@given(programs(edges=0, depth=3), st.randoms(use_true_random=False), st.sampled_from((3, 7, 15, 40)))
@SETTINGS
def test_no_semaphore_passes_its_limit(program, rng, limit):
    found = structure(program.text)
    tallies = share(found, rng)
    planned: list[Epoch] = []
    while tallies:
        try:
            planned = plan_epochs(found, tallies, limit)
            break
        except EpochError as refused:
            check_refusal(found, tallies, refused, limit)
            tallies = [tally for tally in tallies if tally.semaphore not in refused.semaphores]
    assert all(1 <= epoch.iterations <= limit for epoch in planned)
    run = Run(found, tallies, planned, rng)
    run.run(found.loops[0])
    assert all(value <= limit for value in run.highest.values()), run.highest
    for tally in tallies:
        run.matches(tally.semaphore)


def check_refusal(found: Structure, tallies: list[Tally], refused: EpochError, limit: int) -> None:
    """A semaphore of one loop is refused only if one entry of that loop is too much."""
    for tally in tallies:
        if tally.semaphore in refused.semaphores and len(refused.semaphores) == 1:
            loops = list(tally.signals)
            if len(loops) == 1:
                assert tally.signals[loops[0]] > limit


class Longest(Random):
    """Runs every loop as often as it may."""

    def randint(self, a: int, b: int) -> int:
        return b

    def choice(self, seq):
        return seq[-1]


def test_what_the_plan_says_is_needed():
    """One iteration more before a reset, and the limit is passed: the bound of the plan is as good as it gets."""
    found = nest(loop("a", "n", loop("b", "c3", inst("P") + "\n" + inst("Q"))))
    tallies = per_loop(found)
    (epoch,) = plan_epochs(found, tallies, 20)
    later = Epoch(epoch.loop, epoch.iterations + 1, epoch.semaphores, epoch.counters)

    def highest(epochs: list[Epoch]) -> int:
        run = Run(found, tallies, epochs, Longest())
        run.run(found.loops[0])
        return run.highest["e0.b"]

    assert highest([epoch]) == 18
    assert highest([later]) == 24
    assert highest([]) > 24
