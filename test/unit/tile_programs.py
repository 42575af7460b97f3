"""Random tile programs, run in Python, and which executions the dependencies of a program order.

`random_program(rng)` gives the text of a kernel and a way to run it: which elements each execution reads and writes,
by the numbers of iterations and the branches that `Oracle` draws. Bounds and conditions are arguments in the text;
as nothing is asked of them, the oracle draws another one each time a loop or conditional is entered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from random import Random

from mpkc.dialects.sem_structure import Edge, up_to

ENGINES = ("e0", "e1", "e2")
WIDTH = 2  # elements of a tile
MOST_INSTRUCTIONS = 7


@dataclass(eq=False)
class Loop:
    """A for or while loop, or a conditional with one or more branches."""

    kind: str
    regions: list[list["Loop | Inst"]]
    iv: str = ""
    lower: int = 0
    step: int = 1
    trips: int | None = None


@dataclass(frozen=True)
class View:
    """A tile: elements of a buffer from an offset that is affine in the induction variables, by a stride.

    slots: the buffer rotates, the offset is the index of a slot.
    """

    buffer: str
    constant: int
    terms: tuple[tuple[str, int], ...]
    stride: int = 1
    slots: int = 0

    def elements(self, env: dict[str, int]) -> set[tuple[str, int]]:
        at = self.constant + sum(c * env[iv] for iv, c in self.terms)
        if self.slots:
            return {(self.buffer, at % self.slots * WIDTH + i) for i in range(WIDTH)}
        assert at >= 0
        return {(self.buffer, at + i * self.stride) for i in range(WIDTH)}


@dataclass(eq=False)
class Inst:
    kind: str
    engine: str
    operands: list[View]
    label: str
    in_order: bool = True

    @property
    def reads(self) -> list[View]:
        return self.operands if self.kind == "both" else self.operands[:-1]

    @property
    def writes(self) -> list[View]:
        return self.operands[-1:]


@dataclass(frozen=True)
class Execution:
    inst: Inst
    iteration: tuple[int, ...]
    reads: frozenset[tuple[str, int]]
    writes: frozenset[tuple[str, int]]

    def conflicts(self, later: "Execution") -> bool:
        return bool(self.writes & (later.reads | later.writes) or self.reads & later.writes)


class Oracle:
    """Draws how often loops run and which branches are taken: mostly the same for one loop or conditional."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.steady = rng.choice((0.5, 0.9, 1))
        self.usual: dict[Loop, int] = {}

    def count(self, loop: Loop) -> int:
        return self._draw(loop, (0, 0, 1, 2, 3, 4, 5))

    def branch(self, loop: Loop) -> int | None:
        count = len(loop.regions)
        taken = self._draw(loop, range(count) if count > 1 else (0, 0, 1))
        return taken if taken < count else None

    def _draw(self, loop: Loop, values: Sequence[int]) -> int:
        usual = self.usual.setdefault(loop, self.rng.choice(values))
        return usual if self.rng.random() < self.steady else self.rng.choice(values)


@dataclass
class Program:
    body: list[Loop | Inst]
    sizes: dict[str, tuple[int, int]]  # buffer: elements, slots

    def run(self, oracle: Oracle, most: int = 100) -> list[Execution]:
        found: list[Execution] = []
        for execution in self._block(self.body, {}, (), oracle):
            found.append(execution)
            if len(found) == most:
                break
        return found

    def _block(self, items, env, iteration, oracle) -> Iterator[Execution]:
        for item in items:
            if isinstance(item, Inst):
                reads = frozenset(e for view in item.reads for e in view.elements(env))
                writes = frozenset(e for view in item.writes for e in view.elements(env))
                yield Execution(item, iteration, reads, writes)
            elif item.kind == "for":
                for trip in range(oracle.count(item) if item.trips is None else item.trips):
                    env[item.iv] = item.lower + trip * item.step
                    yield from self._block(item.regions[0], env, (*iteration, trip + 1), oracle)
            elif item.kind == "while":
                last = oracle.count(item)
                for trip in range(last + 1):
                    env[item.iv] = env[f"{item.iv}b"] = trip
                    yield from self._block(item.regions[0], env, (*iteration, trip + 1), oracle)
                    if trip < last:
                        yield from self._block(item.regions[1], env, (*iteration, trip + 1), oracle)
            elif (taken := oracle.branch(item)) is not None:
                yield from self._block(item.regions[taken], env, iteration, oracle)

    @property
    def text(self) -> str:
        writer = Writer(self.sizes)
        body = list(writer.block(self.body, "  "))
        buffers = [f"  %{name} = memref.alloc() : {buffer_type(*size)}" for name, size in self.sizes.items()]
        constants = [f"  %c{i} = arith.constant {i} : index" for i in range(4)]
        constants.append("  %zero = arith.constant 0.0 : f32")
        engines = ", ".join(f'"{engine}"' for engine in ENGINES)
        head = f"tile.kernel @random({', '.join(writer.arguments)}) engines [{engines}] {{"
        return "\n".join([*TYPES, head, *constants, *buffers, *body, "}"]) + "\n"


ARRAY = 64  # elements of a buffer that is used in slices
NEAR = "#tile.space<near>"
TYPES = [
    f"!tile = memref<{WIDTH}xf32, {NEAR}>",
    f"!array = memref<{ARRAY}xf32, {NEAR}>",
    *(f"!slots{n} = memref<{n}x{WIDTH}xf32, {NEAR}>" for n in (2, 3)),
    *(f"!by{n} = memref<{WIDTH}xf32, strided<[{n}], offset: ?>, {NEAR}>" for n in (1, 2)),
]


def buffer_type(elements: int, slots: int) -> str:
    if slots:
        return f"!slots{slots}"
    return "!array" if elements == ARRAY else "!tile"


class Writer:
    """The text of a program."""

    def __init__(self, sizes: dict[str, tuple[int, int]]):
        self.sizes = sizes
        self.arguments: list[str] = []
        self.names = 0

    def name(self, stem: str) -> str:
        self.names += 1
        return f"%{stem}_{self.names}x"

    def argument(self, stem: str, type: str) -> str:
        name = self.name(stem)
        self.arguments.append(f"{name} : {type}")
        return name

    def block(self, items, indent) -> Iterator[str]:
        for item in items:
            lines = self.inst(item) if isinstance(item, Inst) else self.loop(item, indent)
            for line in lines:
                yield indent + line if isinstance(item, Inst) else line

    def loop(self, loop: Loop, indent: str) -> Iterator[str]:
        inner = indent + "  "
        if loop.kind == "for":
            upper = self.argument("n", "index")
            if loop.trips is not None:
                upper = self.name("u")
                yield f"{indent}{upper} = arith.constant {loop.lower + loop.trips * loop.step} : index"
            yield f"{indent}scf.for %{loop.iv} = %c{loop.lower} to {upper} step %c{loop.step} {{"
            yield from self.block(loop.regions[0], inner)
            yield indent + "}"
        elif loop.kind == "while":
            end, go, y = (self.name(stem) for stem in ("r", "go", "y"))
            bound = self.argument("n", "index")
            yield f"{indent}{end} = scf.while (%{loop.iv} = %c0) : (index) -> index {{"
            yield from self.block(loop.regions[0], inner)
            yield f"{inner}{go} = arith.cmpi ult, %{loop.iv}, {bound} : index"
            yield f"{inner}scf.condition({go}) %{loop.iv} : index"
            yield f"{indent}}} do {{"
            yield f"{indent}^bb0(%{loop.iv}b : index):"
            yield from self.block(loop.regions[1], inner)
            yield f"{inner}{y} = arith.addi %{loop.iv}b, %c1 : index"
            yield f"{inner}scf.yield {y} : index"
            yield indent + "}"
        elif loop.kind == "if":
            yield f"{indent}scf.if {self.argument('f', 'i1')} {{"
            yield from self.block(loop.regions[0], inner)
            for region in loop.regions[1:]:
                yield indent + "} else {"
                yield from self.block(region, inner)
            yield indent + "}"
        else:
            yield f"{indent}scf.index_switch {self.argument('s', 'index')}"
            for number, region in enumerate(loop.regions):
                yield f"{indent}case {number} {{" if number + 1 < len(loop.regions) else f"{indent}default {{"
                yield from self.block(region, inner)
                yield f"{inner}scf.yield"
                yield indent + "}"

    def index(self, view: View) -> Iterator[str]:
        """Lines that compute the offset; the last is its name."""
        total = "" if view.terms and not view.constant else f"%c{view.constant}"
        for iv, coefficient in view.terms:
            term = f"%{iv}"
            if coefficient != 1:
                term = self.name("m")
                yield f"{term} = arith.muli %{iv}, %c{coefficient} : index"
            before, total = total, self.name("a") if total else term
            if before:
                yield f"{total} = arith.addi {before}, {term} : index"
        yield total

    def view(self, view: View, size: int) -> Iterator[str]:
        """Lines that make the view; the last is its name and type."""
        if not view.slots and size == WIDTH:
            yield f"%{view.buffer} : !tile"
            return
        *lines, index = self.index(view)
        yield from lines
        name = self.name("v")
        if view.slots:
            yield f"{name} = tile.rotate %{view.buffer}[{index}] : !slots{view.slots} -> !tile"
            yield f"{name} : !tile"
        else:
            step = view.stride
            yield f"{name} = memref.subview %{view.buffer}[{index}] [{WIDTH}] [{step}] : !array to !by{step}"
            yield f"{name} : !by{step}"

    def inst(self, inst: Inst) -> Iterator[str]:
        names, types = [], []
        for view in inst.operands:
            *lines, last = self.view(view, self.sizes[view.buffer][0])
            yield from lines
            names.append(last.partition(" : ")[0])
            types.append(last.partition(" : ")[2])
        engine, label = f'engine "{inst.engine}"', f'{{label = "{inst.label}"}}'
        if not inst.in_order:
            engine += " retire async"
        match inst.kind:
            case "fill":
                yield f"tile.fill %zero -> {names[0]} {engine} {label} : f32 -> {types[0]}"
            case "copy":
                yield f"tile.copy {names[0]} -> {names[1]} {engine} {label} : {types[0]} -> {types[1]}"
            case "map":
                yield f"tile.map exp {names[0]} -> {names[1]} {engine} {label} : {types[0]} -> {types[1]}"
            case "both":
                yield (
                    f"tile.map add {names[0]}, {names[1]} -> {names[1]} {engine} {label} : "
                    f"{types[0]}, {types[1]} -> {types[1]}"
                )
            case "add":
                yield (
                    f"tile.map add {names[0]}, {names[1]} -> {names[2]} {engine} {label} : "
                    f"{types[0]}, {types[1]} -> {types[2]}"
                )


class Builder:
    """Draws a program.

    wild: also what the pass does not look into as far as it could: loops with constant bounds, differing coefficients.
    """

    def __init__(self, rng: Random, wild: bool):
        self.rng, self.wild = rng, wild
        self.labels = 0
        self.loops = 0
        self.sizes: dict[str, tuple[int, int]] = {}
        self.plans: dict[str, tuple] = {}

    def build(self) -> Program:
        for name in ("p", "q", "r")[: self.rng.randint(1, 3)]:
            self.plans[name] = self.plan(name)
        body = self.block(self.rng.choice((1, 2, 2, 3)), [])
        if not any(isinstance(item, Inst) for item in body):
            body.append(self.inst([]))
        return Program(body, self.sizes)

    def plan(self, name: str) -> tuple:
        """How a buffer is used: rotating, in slices, as a whole."""
        kind = self.rng.choice(("slots", "slots", "slices", "whole"))
        self.sizes[name] = (WIDTH, 0)
        if kind == "slots":
            self.sizes[name] = (0, self.rng.choice((2, 2, 3)))
            return kind, self.rng.choice((1, 1, 1, 2))
        if kind == "slices":
            self.sizes[name] = (ARRAY, 0)
            return kind, self.rng.choice((1, 2, 2, 3)), self.rng.choice((1, 1, 2))
        return (kind,)

    def block(self, depth: int, ivs: list[str]) -> list[Loop | Inst]:
        items: list[Loop | Inst] = []
        for _ in range(self.rng.randint(1, 3)):
            if self.labels >= MOST_INSTRUCTIONS:
                break
            kind = self.rng.choice(("inst", "inst", "inst", "for", "for", "while", "if", "if", "switch"))
            if kind == "inst" or not depth:
                items.append(self.inst(ivs))
            else:
                items.append(self.loop(kind, depth - 1, ivs))
        return items

    def loop(self, kind: str, depth: int, ivs: list[str]) -> Loop:
        if kind == "if":
            return Loop(kind, [self.block(depth, ivs) for _ in range(self.rng.randint(1, 2))])
        if kind == "switch":
            return Loop(kind, [self.block(depth, ivs) for _ in range(self.rng.randint(2, 3))])
        self.loops += 1
        iv = f"i{self.loops}i"
        if kind == "while":
            regions = [self.block(depth, [*ivs, iv]), self.block(depth, [*ivs, f"{iv}b"])]
            return Loop(kind, regions, iv)
        lower, step = self.rng.choice(((0, 1), (0, 1), (1, 1), (0, 2), (1, 2)))
        trips = self.rng.choice((None, 1, 2, 3)) if self.wild else None
        return Loop(kind, [self.block(depth, [*ivs, iv])], iv, lower, step, trips)

    def inst(self, ivs: list[str]) -> Inst:
        self.labels += 1
        kind = self.rng.choice(("fill", "map", "map", "both", "add", "copy"))
        count = {"fill": 1, "add": 3}.get(kind, 2)
        operands = [self.operand(ivs) for _ in range(count)]
        in_order = kind != "copy" or self.rng.random() < 0.6
        return Inst(kind, self.rng.choice(ENGINES), operands, f"L{self.labels}", in_order)

    def operand(self, ivs: list[str]) -> View:
        name = self.rng.choice(list(self.plans))
        kind, *how = self.plans[name]
        if kind == "whole":
            return View(name, 0, ())
        terms: tuple[tuple[str, int], ...] = ()
        if ivs and self.rng.random() < 0.85:
            iv = ivs[-1] if self.rng.random() < 0.7 else self.rng.choice(ivs)
            terms = ((iv, how[0] if not self.wild else self.rng.choice((how[0], 1, 2))),)
            if self.wild and self.rng.random() < 0.3:
                terms += ((self.rng.choice(ivs), self.rng.choice((1, 2))),)
        constant = self.rng.choice((0, 0, 0, 1, 2, 3))
        if kind == "slots":
            return View(name, constant, terms, slots=self.sizes[name][1])
        return View(name, constant, terms, stride=how[1])


def random_program(rng: Random, wild: bool = False) -> Program:
    """A program; see `Builder`."""
    return Builder(rng, wild).build()


class Order:
    """Which executions retire before which issue, by the edges of a program (barrier-free, section 4.2).

    An engine issues in order and retires in order, what retires async apart. Sets of executions are bits.
    """

    def __init__(self, executions: list[Execution], edges: list[Edge]):
        self.executions = executions
        by_label: dict[str, list[Edge]] = {}
        for edge in edges:
            by_label.setdefault(edge.consumer.label, []).append(edge)
        self.previous: list[int | None] = []  # of the same engine
        self.waits: list[list[tuple[Edge, int, int]]] = []  # edge, what it says has retired, the last producer
        latest: dict[str, int] = {}
        ran: dict[str, list[int]] = {}
        retired: list[int] = []  # what has retired when this one has
        in_order: dict[str, int] = {}
        for at, execution in enumerate(executions):
            inst = execution.inst
            self.previous.append(latest.get(inst.engine))
            waits: list[tuple[Edge, int, int]] = []
            for edge in by_label.get(inst.label, ()):
                target = edge.target(execution.iteration)
                if target is not None:
                    bound, shared = up_to(target), len(target)
                    due = [p for p in ran.get(edge.producer.label, ()) if executions[p].iteration[:shared] < bound]
                    if due:
                        waits.append((edge, reduce(or_, (retired[p] for p in due)), due[-1]))
            self.waits.append(waits)
            latest[inst.engine] = at
            ran.setdefault(inst.label, []).append(at)
            retired.append(1 << at)
            if inst.in_order:
                retired[at] |= in_order.get(inst.engine, 0)
                in_order[inst.engine] = retired[at]

    def broken(self, needed: list[int], without: Edge | None = None) -> list[tuple[Execution, Execution]]:
        """The first dependencies that are not kept, as (earlier, later)."""
        before: list[int] = []
        for at, previous in enumerate(self.previous):
            known = 0 if previous is None else before[previous]
            for edge, retired, last in self.waits[at]:
                if edge is not without:
                    known |= retired | before[last]
            before.append(known)
            if missing := needed[at] & ~known:
                return [(self.executions[earlier], self.executions[at]) for earlier in bits(missing)]
        return []

    def needs(self, edge: Edge) -> bool:
        """Whether a wait of this edge is owed at all."""
        return any(edge is wait for waits in self.waits for wait, _, _ in waits)


def dependencies(executions: list[Execution]) -> list[int]:
    """For each execution the earlier ones that it conflicts with, as bits."""
    readers: dict[tuple[str, int], int] = {}
    writers: dict[tuple[str, int], int] = {}
    found: list[int] = []
    for at, execution in enumerate(executions):
        needed = 0
        for element in execution.reads | execution.writes:
            needed |= writers.get(element, 0)
        for element in execution.writes:
            needed |= readers.get(element, 0)
        found.append(needed)
        for elements, table in ((execution.reads, readers), (execution.writes, writers)):
            for element in elements:
                table[element] = table.get(element, 0) | 1 << at
    return found


def bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
