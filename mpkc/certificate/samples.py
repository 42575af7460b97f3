"""Runs of a lowered stream with drawn trip counts: what its variables and counters are at the heads of its loops."""

from collections import Counter
from collections.abc import Sequence
from random import Random

from mpkc.certificate.statements import (
    Assume,
    Block,
    Choice,
    Enter,
    Expression,
    Ghost,
    Issue,
    Let,
    Loop,
    Meet,
    Stream,
    Wait,
)
from mpkc.certificate.symbolic import ROOT, initial, pairs

Sample = dict[int, int]
MOST_TRIPS, MOST_ENTRIES = 9, 400


class Sampler:
    """Runs a stream.

    Args:
        parents: of each loop, the loop around.
        maxima: how often each loop is entered at most.

    Attributes:
        seen: at the head of each loop, all variables and counters, each time.
    """

    def __init__(self, stream: Stream, parents: dict[int, int], maxima: dict[int, int]):
        self.stream, self.parents, self.maxima = stream, parents, maxima
        self.seen: dict[Loop, list[Sample]] = {}

    def run(self, seed: int) -> None:
        """One run with trip counts that the seed draws."""
        self.random = Random(seed)
        self.left = MOST_ENTRIES
        self.entries: Counter[int] = Counter()
        self.values: Sample = {x: initial(ghost) for x, ghost in self.stream.ghosts.items()}
        self.block(self.stream.body)

    def block(self, block: Block) -> None:
        for statement in block:
            match statement:
                case Let(x, expression):
                    self.values[x] = self.computed(expression)
                case Enter(loop):
                    self.enter(loop)
                case Issue(label, signal):
                    for x, ghost in self.stream.ghosts.items():
                        self.values[x] += ghost in (Ghost("Sent", (signal or 0,)), Ghost("Issues", (label,)))
                case Meet(barrier, zeroes):
                    self.meet(barrier, zeroes)
                case Choice():
                    self.choice(statement)
                case Loop():
                    self.loop(statement)
                case Wait() | Assume():
                    pass

    def loop(self, loop: Loop) -> None:
        seen = self.seen.setdefault(loop, [])
        own = next((each.loop for each in loop.body if isinstance(each, Enter)), ROOT)
        for _ in range(self.random.randint(0, MOST_TRIPS)):
            if self.left <= 0 or self.entries[own] >= self.maxima.get(own, MOST_ENTRIES):
                break
            seen.append(dict(self.values))
            self.left -= 1
            self.block(loop.body)
        seen.append(dict(self.values))

    def choice(self, choice: Choice) -> None:
        """One of two ways; barriers also before their turn, which else none of a few iterations might come to."""
        match choice.then:
            case [Assume(x), *_]:
                taken = self.values[x] != 0 or self.random.random() < 0.2
            case _:
                taken = self.random.random() < 0.6
        self.block(choice.then if taken else choice.otherwise)

    def meet(self, barrier: int, zeroes: Sequence[int]) -> None:
        of = {ghost: self.values[x] for x, ghost in self.stream.ghosts.items()}
        for x, ghost in self.stream.ghosts.items():
            match ghost.kind, ghost.of:
                case "Sent", (semaphore,) if semaphore in zeroes:
                    self.values[x] = 0
                case "Base", (loop, *cuts) if (more := dict(pairs(cuts)).get(barrier)) is not None:
                    self.values[x] = of[Ghost("Entries", (loop,))] + more
                case _:
                    pass

    def enter(self, loop: int) -> None:
        self.entries[loop] += 1
        values, ghosts = self.values, self.stream.ghosts
        of = {ghost: values[x] for x, ghost in ghosts.items()}
        for x, ghost in ghosts.items():
            match ghost.kind, ghost.of:
                case ("Entries" | "Iteration", (l,)) if l == loop:
                    values[x] += 1
                case ("Iteration", (l,)) if self.parents.get(l, ROOT) == loop:
                    values[x] = 0
                case ("Past", (carrier, k, l)) if carrier == loop:
                    values[x] = of[Ghost("Entries", (l,)) if k == 1 else Ghost("Past", (carrier, k - 1, l))]
                case _:
                    pass

    def computed(self, e: Expression) -> int:
        of, m = [self.values[x] for x in e.operands], e.number
        match e.kind, of:
            case "Constant", []:
                return m
            case "Add", [a, b]:
                return (a + b) % m
            case "Sub", [a, b]:
                return (a - b) % m
            case "Mul", [a, b]:
                return (a * b) % m
            case "Truncate", [a]:
                return a % m
            case "Signed", [a]:
                return a if a < m // 2 else a - m
            case "Divide", [a]:
                return a // m
            case "Maximum", [a, b]:
                return max(a, b)
            case "Minimum", [a, b]:
                return min(a, b)
            case "GeU", [a, b]:
                return int(a >= b)
            case "GtU", [a, b]:
                return int(a > b)
            case "Eq", [a, b]:
                return int(a == b)
            case "Ne", [a, b]:
                return int(a != b)
            case "Select", [c, a, b]:
                return a if c else b
            case "Move", [a]:
                return a
            case "Advance", [a]:
                return a + m
            case _:
                return self.random.randrange(min(m, 1 << 20))
