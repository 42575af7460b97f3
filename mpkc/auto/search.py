"""The search of `auto`: greedy, and led by the critical path.

The choices are those of the paper's experts (barrier-free, section 8.2): which producers have a semaphore of their own
and which share one, which loops get barriers, and whether registers keep thresholds from one iteration to the next.
Each candidate is compiled and simulated on the machine, within a budget. The search begins with the plain kinds and
goes on from the best of them: producers whose waits cost the most time on the critical path earn semaphores of their
own, and others share where that costs nothing. It ends when nothing helps, or after a number of candidates that the
size of the program decides.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mpkc.auto.choice import NOTHING, UNLIMITED, Budget, Choice, Cost, EngineProgram, numbered
from mpkc.auto.critical import control_of
from mpkc.auto.latest import latest_waits, with_lines
from mpkc.auto.steady import Length, simulated, steady
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import Loop, structure_of
from mpkc.passes.semaphores.plan import Plan
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.emit import Emission

PLAIN = ("per-loop", "per-engine", "per-instruction", "barrier")
"""Those that share the most first."""
PRICES = (0.01, 0.1)
"""What a semaphore or a register beyond the budget costs, as a part of the time: the search begins with the first."""
EFFORT = 700_000
"""How much is compiled and simulated, in instructions that are simulated."""
COMPILED = 120
"""Instructions that are simulated in the time in which one is compiled."""
FEWEST, MOST = 12, 80
"""Candidates."""
ENOUGH = 256
"""Semaphores that are tried where there is no limit."""
ROUNDS = 4
"""How often the critical path is looked at."""


class Candidate(Protocol):
    """What a candidate is compiled to."""

    @property
    def program(self) -> EngineProgram: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def emission(self) -> Emission: ...


Compile = Callable[[EngineProgram, Choice], Candidate]
"""Compiles a program in which a choice is written down; raises OpError where it does not fit."""

Move = Callable[[Choice], Choice]
"""Another choice, from one."""


def choose(
    programs: Sequence[EngineProgram], machine: Machine, compile_: Compile, budget: Budget = UNLIMITED
) -> tuple[EngineProgram, Choice]:
    """The fastest of programs that do the same, and the choice for it.

    Args:
        programs: with their dependencies written down, and transfers not yet ordered.

    Raises:
        OpError: where, for none of them, any kind of semaphores fits the machine and the budget and comes to its end in
            the simulator.
    """
    searches = [Search(program, machine, compile_, budget) for program in programs]
    for search in searches:
        search.run()
    best = searches[0]
    for search in searches[1:]:
        if search.fits and (not best.fits or search.cost(search.best).beats(best.cost(best.best), 0)):
            best = search
    return best.program, best.found()


class Search:
    """Simulates candidates, each once.

    Attributes:
        best: the best of what was tried, within the budget if anything is.
        price: see `Cost.beats`.
        known: the costs of what was tried.
        left: candidates that may still be tried.
        refusal: the last error of a candidate that does not fit.
    """

    def __init__(self, program: EngineProgram, machine: Machine, compile_: Compile, budget: Budget):
        self.program, self.machine, self.compile, self.budget = program, machine, compile_, budget
        self.queues = machine.dma.queues if machine.dma else ()
        self.steady = steady(program)
        self.structure = structure_of(program)
        size = sum(length.executions + COMPILED * len(self.structure.instructions) for length in self.steady.lengths)
        self.left = max(FEWEST, min(MOST, EFFORT // max(size, 1)))
        self.numbers = {op: number for number, op in enumerate(numbered(program))}
        self.most = min(most for most in (budget.semaphores, machine.limits.semaphores, ENOUGH) if most is not None)
        self.producers, self.transfers = self.grouped()
        self.known: dict[tuple[object, ...], Cost] = {}
        self.refusal: OpError | None = None
        self.price = PRICES[0]
        self.best = Choice("barrier", lean=False)

    def run(self) -> None:
        """Try candidates until nothing helps."""
        plain = [Choice(kind, lean=True, latest={}) for kind in PLAIN]
        sharing, fastest = plain[:2], self.least(plain)
        for choice in (*sharing, fastest) if self.budget.limits else (sharing[0], fastest):
            for self.price in PRICES:
                choice = self.climb(choice)
                if not self.cost(choice).over:
                    break

    @property
    def fits(self) -> bool:
        """Whether the best choice comes to an end within the budget."""
        cost = self.cost(self.best)
        return cost != NOTHING and not cost.over

    def found(self) -> Choice:
        """The best choice; raises OpError where there is none."""
        cost = self.cost(self.best)
        if cost == NOTHING:
            raise self.refusal or OpError(self.program, "no kind of semaphores comes to an end in the simulator")
        if cost.over:
            raise OpError(
                self.program,
                f"no choice of semaphores was found within {self.budget.limits}: the nearest takes "
                f"{Budget(cost.semaphores, cost.registers).limits}: {cost.over} too many",
            )
        return self.best

    def grouped(self) -> tuple[dict[tuple[str, Loop], list[int]], dict[str, int]]:
        """Producers by engine and loop, and the most transfers of a loop by DMA queue.

        What asks for semaphores of a kind itself is left as it is.
        """
        producers: dict[tuple[str, Loop], list[int]] = {}
        for each in dict.fromkeys(edge.producer for edge in self.structure.edges):
            if "semaphores" not in each.op.attributes:
                producers.setdefault((each.engine, each.loop), []).append(self.numbers[each.op])
        transfers: Counter[str] = Counter()
        for engine, loop in [place for place in producers if place[0] in self.queues]:
            transfers[engine] = max(transfers[engine], len(producers.pop((engine, loop))))
        return producers, transfers

    # Candidates.

    def least(self, choices: Iterable[Choice]) -> Choice:
        first, *others = choices
        for other in others:
            if self.better(other, first):
                first = other
        return first

    def better(self, one: Choice, other: Choice) -> bool:
        return self.cost(one).beats(self.cost(other), self.price)

    def cost(self, choice: Choice) -> Cost:
        if choice.key not in self.known:
            if self.left <= 0:
                return NOTHING
            self.left -= 1
            cost = self.known[choice.key] = self.measured(choice)
            best = self.known.get(self.best.key, NOTHING)
            if best == NOTHING or cost.over < best.over or (cost.over == best.over and cost.beats(best, 0)):
                self.best = choice
        return self.known[choice.key]

    def measured(self, choice: Choice) -> Cost:
        try:
            sizes: list[tuple[int, int, int]] = []

            def time(length: Length) -> float:
                emitted = self.compiled(length, choice).emission
                result = simulated(emitted.program, self.machine, length)
                if not result.ok:
                    raise _NoEnd
                code = emitted.program.code_bytes(self.machine.instruction_bytes)
                sizes.append((len(emitted.program.semaphores), emitted.added_registers, code))
                return result.time_ns

            total = self.steady.time_of(time)
            return Cost(self.budget.over(*sizes[0][:2]), total, *sizes[0])
        except OpError as err:
            self.refusal = err
        except _NoEnd:
            pass
        return NOTHING

    def compiled(self, length: Length, choice: Choice) -> Candidate:
        return self.compile(choice.given_to(length.program, self.queues), choice)

    # Moves.

    def climb(self, start: Choice) -> Choice:
        """The best that comes of a choice by one move after another."""
        choice = self.improved(start, [_lean_or_not, _carried_or_not, _plain])
        for _ in range(ROUNDS):
            before = choice
            if self.cost(choice).over:
                shared = list(self.sharing())
                choice = self.improved(choice, [*shared, *map(_then_plain, shared), *self.taking_turns()])
            choice = self.promoted(choice)
            if choice is before:
                break
        return self.improved(choice, [*self.sharing(), *self.barriers(), self.waiting_last])

    def improved(self, choice: Choice, moves: Iterable[Move]) -> Choice:
        """What becomes of a choice by those moves, one after the other, that improve it."""
        for move in moves:
            other = move(choice)
            if self.better(other, choice):
                choice = other
        return choice

    def barriers(self) -> Iterator[Move]:
        """A loop gets barriers, the innermost first."""
        loops = [loop for loop in self.structure.loops if loop.counted and loop.parent is not None]
        for loop in sorted(loops, key=lambda loop: -loop.depth):
            if "semaphores" not in loop.op.attributes:
                yield self.giving([self.numbers[loop.op]], "barrier")

    def sharing(self) -> Iterator[Move]:
        """The producers of a loop on an engine share a semaphore, or all of an engine."""
        for producers in self.producers.values():
            yield self.giving(producers, "per-loop")
        for engine in dict.fromkeys(engine for engine, _ in self.producers):
            together = [number for (of, _), numbers in self.producers.items() if of == engine for number in numbers]
            yield self.giving(together, "per-engine")

    def taking_turns(self) -> Iterator[Move]:
        """Transfers take turns with fewer semaphores."""
        for number, count in self.transfers.items():
            for turns in sorted({1, count // 2, count - 1} - {0, count}, reverse=True):
                yield lambda choice, queue=number, turns=turns: _with_turns(choice, queue, turns)

    def waiting_last(self, choice: Choice) -> Choice:
        """Waits in the order in which they end in the simulation of a choice."""
        if self.cost(choice) == NOTHING or self.left <= 0 or choice.latest is None:
            return choice
        length = self.steady.lengths[0]
        program = with_lines(self.compiled(length, choice).emission.program)
        result = simulated(program, self.machine, length, timeline=True)
        return replace(choice, latest=latest_waits(program, result))

    def giving(self, numbers: Sequence[int], kind: str) -> Move:
        """Give some operations semaphores of a kind."""
        return lambda choice: replace(
            choice, of=_without_needless(choice.kind, {**choice.of, **dict.fromkeys(numbers, kind)})
        )

    def promoted(self, choice: Choice) -> Choice:
        """Give the producers that cost the most on the critical path semaphores of their own, as many as there are."""
        if self.cost(choice) == NOTHING or self.left <= 0:
            return choice
        earned = [number for number, ns in self.earned(choice).most_common() if ns > 0]
        for base in (choice, *(move(choice) for move in self.taking_turns())):
            spare = self.most - self.cost(base).semaphores
            count = min(spare, len(earned))
            while count > 0:
                other = self.giving(earned[:count], "per-instruction")(base)
                if self.better(other, choice):
                    return other
                count //= 2
            if base is choice and spare > 0:
                break
        return choice

    def earned(self, choice: Choice) -> Counter[int]:
        """For producers that share a semaphore, the ns of control before waits for them on the critical path."""
        length = self.steady.lengths[0]
        found = self.compiled(length, choice)
        result = simulated(found.emission.program, self.machine, length, timeline=True)
        control = control_of(result, {source.name for source in found.plan.sources.values()})
        numbers = {op: number for number, op in enumerate(numbered(found.program))}
        promotable = {number for each in self.producers.values() for number in each}
        ns: Counter[int] = Counter()
        for consumer, needs in found.plan.waits.items():
            for need in needs:
                group = found.plan.groups.of[need.producer]
                if len(group.members) > 1 and (number := numbers.get(need.producer.op)) in promotable:
                    ns[number] += control[consumer.name] // len(needs)
        return ns


def _lean_or_not(choice: Choice) -> Choice:
    return replace(choice, lean=not choice.lean)


def _carried_or_not(choice: Choice) -> Choice:
    return replace(choice, carried=not choice.carried)


def _plain(choice: Choice) -> Choice:
    """Nothing is kept in registers for waits that need not be, and waits stay where they are."""
    return replace(choice, lean=False, latest=None, carried=False)


def _then_plain(move: Move) -> Move:
    return lambda choice: _plain(move(choice))


def _without_needless(kind: str, of: Mapping[int, str]) -> Mapping[int, str]:
    """Kinds of operations without those that all have anyway."""
    return of if "barrier" in of.values() else {number: each for number, each in of.items() if each != kind}


def _with_turns(choice: Choice, queue: str, turns: int) -> Choice:
    return replace(choice, turns={**choice.turns, queue: turns})


class _NoEnd(Exception):
    """A simulation that does not come to its end."""
