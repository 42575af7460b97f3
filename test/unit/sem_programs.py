"""Random sem programs and what the rules say of them, written apart from the verifier.

`random_program(rng)` gives a valid one; `rng` is a `random.Random`, or hypothesis' own (`programs()`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from random import Random

from hypothesis import strategies as st

ENGINES = ("e0", "e1", "e2")
MOST_EXECUTIONS = 256


@dataclass(eq=False)
class Inst:
    label: str
    engine: str
    cost: int
    latency: int | None = None
    result: str | None = None
    after: list[tuple[str, object]] = field(default_factory=list)  # (label, offset or tuple of components)


@dataclass(eq=False)
class Control:
    """A loop or conditional. The after region of a while counts as the last item of its before region."""

    kind: str  # for, while, after, if, switch
    regions: list[list["Inst | Control"]]
    lines: tuple[str, ...] = ()  # what stands around the regions

    @property
    def counted(self) -> bool:
        return self.kind in ("for", "while")


@dataclass
class Program:
    body: list[Inst | Control]
    arguments: dict[str, int | bool]
    values: dict[str, list[int | bool]]

    @property
    def bindings(self) -> dict[str, object]:
        return {**self.arguments, **self.values}

    @cached_property
    def instructions(self) -> dict[str, Inst]:
        return {inst.label: inst for inst, _ in located(self.body)}

    @cached_property
    def ways(self) -> dict[str, tuple]:
        """The way to each instruction, see `located`."""
        return {inst.label: way for inst, way in located(self.body)}

    @cached_property
    def neighbours(self) -> list[tuple[str, str]]:
        """The pairs of instructions of one straight-line run, in textual order."""
        blocks: dict[int, list[str]] = {}
        for label, way in self.ways.items():
            blocks.setdefault(id(way[-1][0]), []).append(label)
        return [
            (a, b)
            for labels in blocks.values()
            for a, b in combinations(labels, 2)
            if same_run(self.ways[a][-1][0], self.ways[a][-1][1], self.ways[b][-1][1])
        ]

    @property
    def text(self) -> str:
        types = ", ".join(
            f"%{name} : {'i1' if isinstance(value, bool) else 'index'}" for name, value in self.arguments.items()
        )
        constants = [f"%c{i} = arith.constant {i} : index" for i in range(5)]
        lines = [f"sem.program @random({types}) {{", *constants, *text_of(self.body), "}"]
        return "\n".join(lines) + "\n"


def text_of(items: list[Inst | Control]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Inst):
            yield inst_text(item)
        elif isinstance(item, str):
            yield item
        else:
            for line, region in zip(item.lines, [*item.regions, []], strict=True):
                yield from line.split("\n")
                yield from text_of(region)


def inst_text(inst: Inst) -> str:
    parts = [f'@{inst.label} engine "{inst.engine}" cost {inst.cost}']
    if inst.latency is not None:
        parts.append(f"latency {inst.latency}")
    if inst.after:
        parts.append(f"after [{', '.join(after_text(*after) for after in inst.after)}]")
    if inst.result is None:
        return f"sem.inst {' '.join(parts)}"
    name, type = inst.result.split(" : ")
    return f"{name} = sem.value {' '.join(parts)} : {type}"


def after_text(label: str, distance: object) -> str:
    if isinstance(distance, tuple):
        return f"@{label} distance [{', '.join(map(str, distance))}]"
    return f"@{label} offset {distance}"


def located(items: list[Inst | Control], path: tuple = ()) -> Iterator[tuple[Inst, tuple]]:
    """Each instruction with the way to it: (items, index) in a block, then (control, region), and so on."""
    for index, item in enumerate(items):
        if isinstance(item, Inst):
            yield item, (*path, (items, index))
        elif isinstance(item, Control):
            for number, region in enumerate(item.regions):
                yield from located(region, (*path, (items, index), (item, number)))


def shared_loops(p: tuple, c: tuple) -> int:
    """How many counted loops two ways share."""
    count = 0
    for a, b in zip(p, c, strict=False):
        if a[0] is not b[0] or a[1] != b[1]:
            break
        count += isinstance(a[0], Control) and a[0].counted
    return count


def same_run(items: list, a: int, b: int) -> bool:
    """Whether no loop or conditional with an instruction stands from item `a` to item `b`."""
    low, high = min(a, b), max(a, b)
    return not any(isinstance(item, Control) and any(True for _ in located([item])) for item in items[low : high + 1])


def is_forward(p: tuple, c: tuple, same_engine: bool) -> bool:
    for a, b in zip(p, c, strict=False):
        if a[0] is b[0] and a[1] == b[1]:
            continue
        if a[0] is b[0] and isinstance(a[0], list) and not same_engine and same_run(a[0], a[1], b[1]):
            return True
        return a[1] < b[1]
    return False


def expand(distance: object, shared: int) -> tuple:
    """The vector of an offset, with a component for the whole program where no loop is shared."""
    return distance if isinstance(distance, tuple) else (0,) * (shared - 1) + (distance,)


def edge_is_allowed(program: Program, producer: str, consumer: str, distance: object) -> bool:
    """What docs/sem.md says of one dependency, cycles apart."""
    p, c = program.instructions[producer], program.instructions[consumer]
    to_p, to_c = program.ways[producer], program.ways[consumer]
    shared = shared_loops(to_p, to_c)
    if isinstance(distance, tuple) and len(distance) != shared:
        return False
    vector = expand(distance, shared)
    first = next((i for i, d in enumerate(vector) if d != 0), None)
    if first is None:
        return is_forward(to_p, to_c, p.engine == c.engine)
    if vector[first] == "*" or vector[first] < 0:
        return False
    rest = vector[first + 1 :]
    if "*" in rest:
        star = rest.index("*")
        return all(d != "*" and d >= 0 for d in rest[:star]) and all(d in ("*", 0) for d in rest[star:])
    return sum(d < 0 for d in rest) <= 1


def has_cycle(program: Program) -> bool:
    """Whether offset-0 dependencies and the order on each engine form a cycle in a straight-line run."""
    instructions, ways = program.instructions, program.ways
    follows: dict[str, set[str]] = {label: set() for label in ways}
    for pair in program.neighbours:
        if instructions[pair[0]].engine == instructions[pair[1]].engine:
            follows[pair[0]].add(pair[1])
        for p, c in (pair, pair[::-1]):
            shared = shared_loops(ways[p], ways[c])
            distances = [expand(distance, shared) for label, distance in instructions[c].after if label == p]
            if any(not any(vector) for vector in distances):
                follows[p].add(c)
    # Take away what follows nothing, until there is nothing to take.
    while free := [label for label, after in follows.items() if not after]:
        for label in free:
            del follows[label]
        for after in follows.values():
            after.difference_update(free)
    return bool(follows)


def random_distance(rng: Random, shared: int) -> object:
    """Any distance, valid or not; where loops nest, often one that is carried by an outer one."""
    if shared > 1 and rng.random() < 0.4:
        zeros = rng.randrange(shared - 1)
        tail = [0] * (shared - zeros - 1)
        tail[rng.randrange(len(tail))] = rng.choice(("*", "*", -1, 1))
        return (*[0] * zeros, 1, *tail)
    if not shared or rng.random() < 0.5:
        return rng.choice((0, 0, 1, 1, 2, 3))
    return tuple(rng.choice((0, 0, 0, 1, 1, 2, -1, "*")) for _ in range(shared))


def random_edge(rng: Random, program: Program) -> tuple[str, str, object]:
    """Any producer, consumer and distance.

    Often two of one straight-line run, where cycles are made, or two that share more loops than others.
    """
    if program.neighbours and rng.random() < 0.4:
        producer, consumer = rng.sample(rng.choice(program.neighbours), 2)
        shared = shared_loops(program.ways[producer], program.ways[consumer])
        return producer, consumer, rng.choice((0, (0,) * shared))
    labels = list(program.ways)
    pairs = [(rng.choice(labels), rng.choice(labels)) for _ in range(rng.choice((1, 4)))]
    shared, producer, consumer = max((shared_loops(*map(program.ways.get, pair)), *pair) for pair in pairs)
    return producer, consumer, random_distance(rng, shared)


def carried_around(distance: object, shared: int) -> list[tuple]:
    """For a dependency that a loop carries, those that the loops around it carry where a buffer is used again."""
    vector = expand(distance, shared)
    carrier = next((at for at, d in enumerate(vector) if d), 0)
    return [(*[0] * at, 1, *["*"] * (shared - at - 1)) for at in range(carrier)]


def random_program(rng: Random, edges: int = 6, depth: int = 3) -> Program:
    """A valid program: nested loops and conditionals with run-time bounds, values, dependencies."""
    program = _Builder(rng, depth).build()
    for _ in range(edges * 3):
        if not program.instructions:
            break
        producer, consumer, distance = random_edge(rng, program)
        if edges and edge_is_allowed(program, producer, consumer, distance):
            inst = program.instructions[consumer]
            inst.after.append((producer, distance))
            if has_cycle(program):
                inst.after.pop()
            else:
                edges -= 1
    return program


def programs(**options: int) -> st.SearchStrategy[Program]:
    """Valid programs, as a strategy."""
    return st.randoms(use_true_random=False).map(lambda rng: random_program(rng, **options))


class _Builder:
    def __init__(self, rng: Random, depth: int):
        self.rng, self.depth, self.names = rng, depth, 0
        self.values: dict[str, list[int | bool]] = {}

    def build(self) -> Program:
        arguments = {"n": self.rng.randint(0, 4), "m": self.rng.randint(1, 4), "flag": self.rng.random() < 0.5}
        body = self.block(self.depth, ["%n", "%m", "%c1", "%c2"], ["%flag"])
        if not any(True for _ in located(body)):
            body.append(self.inst(self.name("I")))
        return Program(body, arguments, self.values)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def inst(self, label: str, result: str | None = None) -> Inst:
        latency = self.rng.choice((None, None, 0, 150))
        return Inst(label, self.rng.choice(ENGINES), self.rng.choice((1, 40, 64)), latency, result)

    def block(self, depth: int, numbers: list[str], flags: list[str]) -> list:
        numbers, flags = list(numbers), list(flags)
        items: list = []
        for _ in range(self.rng.randint(1, 3)):
            kind = self.rng.choice(("inst", "inst", "value", "for", "for", "while", "if", "switch"))
            if kind == "value":
                self.value(items, numbers, flags)
            elif kind == "inst" or depth == 0:
                items.append(self.inst(self.name("I")))
            else:
                getattr(self, f"{kind}_loop")(items, depth - 1, numbers, flags)
        return items

    def value(self, items: list, numbers: list[str], flags: list[str]) -> None:
        label = self.name("V")
        kind = self.rng.choice(("index", "i1"))
        scope, highest = (numbers, 4) if kind == "index" else (flags, 1)
        pattern = [self.rng.randint(0, highest) for _ in range(5)]
        self.values[label] = (pattern * MOST_EXECUTIONS)[:MOST_EXECUTIONS]
        items.append(self.inst(label, f"%{label} : {kind}"))
        scope.append(f"%{label}")

    def trips(self, items: list, numbers: list[str]) -> str:
        """A bound from 0 to 3."""
        bound = f"%{self.name('b')}"
        items.append(f"{bound} = arith.minui {self.rng.choice(numbers)}, %c3 : index")
        return bound

    def for_loop(self, items: list, depth: int, numbers: list[str], flags: list[str]) -> None:
        bound, iv, acc = self.trips(items, numbers), f"%{self.name('i')}", f"%{self.name('a')}"
        if self.rng.random() < 0.6:
            head, tail = f"scf.for {iv} = %c0 to {bound} step %c1 {{", "}"
            items.append(Control("for", [self.block(depth, [*numbers, iv], flags)], (head, tail)))
            return
        result, following = f"%{self.name('r')}", f"%{self.name('f')}"
        head = f"{result} = scf.for {iv} = %c0 to {bound} step %c1 iter_args({acc} = %c1) -> (index) {{"
        body = self.block(depth, [*numbers, iv, acc], flags)
        tail = f"{following} = arith.addi {acc}, {self.rng.choice(numbers)} : index"
        items.append(Control("for", [body], (head, f"{tail}\nscf.yield {following} : index\n}}")))
        numbers.append(result)

    def while_loop(self, items: list, depth: int, numbers: list[str], flags: list[str]) -> None:
        bound, w, x = self.trips(items, numbers), f"%{self.name('w')}", f"%{self.name('x')}"
        goes, following, result = f"%{self.name('k')}", f"%{self.name('y')}", f"%{self.name('r')}"
        before = self.block(depth, [*numbers, w], flags)
        after = self.block(depth, [*numbers, x], flags)
        head = f"{result} = scf.while ({w} = %c0) : (index) -> (index) {{"
        between = (
            f"{goes} = arith.cmpi ult, {w}, {bound} : index\n"
            f"scf.condition({goes}) {w} : index\n}} do {{\n^bb0({x} : index):"
        )
        tail = f"{following} = arith.addi {x}, %c1 : index\nscf.yield {following} : index\n}}"
        before.append(Control("after", [after], (between, tail)))
        items.append(Control("while", [before], (head, "")))
        numbers.append(result)

    def if_loop(self, items: list, depth: int, numbers: list[str], flags: list[str]) -> None:
        regions = [self.block(depth, numbers, flags)]
        lines = [f"scf.if {self.rng.choice(flags)} {{"]
        if self.rng.random() < 0.5:
            regions.append(self.block(depth, numbers, flags))
            lines.append("} else {")
        items.append(Control("if", regions, (*lines, "}")))

    def switch_loop(self, items: list, depth: int, numbers: list[str], flags: list[str]) -> None:
        cases = self.rng.randint(0, 2)
        regions = [self.block(depth, numbers, flags) for _ in range(cases + 1)]
        labels = [*(f"case {i} {{" for i in range(cases)), "default {"]
        lines = [f"scf.index_switch {self.rng.choice(numbers)}\n{labels[0]}"]
        lines += [f"scf.yield\n}}\n{label}" for label in labels[1:]]
        items.append(Control("switch", regions, (*lines, "scf.yield\n}")))
