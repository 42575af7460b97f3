"""Registers of one engine: which virtual registers share one, and code over those that the machine has.

Greedy colouring of live ranges, without spilling. What loops and conditionals pass on shares a register with what it
takes the value from wherever their ranges allow it, so that a counter is one addition an iteration and no move. What
is there only for waits never shares a register with what the program needs.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_streams import StreamOp
from mpkc.runtime.neuron.isa import Branch, Engine, Item, Label, Move, Operand, Register
from mpkc.runtime.neuron.liveness import Liveness, Ranges, liveness_of
from mpkc.runtime.neuron.virtual import Code, Copies, Renaming


@dataclass(frozen=True)
class RegisterUse:
    """The registers of one engine: r0 and on are the program's, those behind are there only for waits."""

    program: int
    synchronization: int

    @property
    def total(self) -> int:
        return self.program + self.synchronization


class TooManyRegisters(OpError):
    """A stream needs more registers than its engine has.

    Attributes:
        engine: its name.
        needed, available: registers.
    """

    def __init__(self, stream: StreamOp, needed: RegisterUse, available: int):
        self.engine, self.needed, self.available = stream.engine.data, needed, available
        super().__init__(
            stream,
            f'engine "{self.engine}" needs {needed.total} registers, {needed.synchronization} of them for '
            f"synchronization, and has {available}: {needed.total - available} too many",
        )


@dataclass(frozen=True)
class Allocated:
    """An engine of the ISA, and what its registers are for."""

    engine: Engine
    use: RegisterUse


def allocate_registers(code: Code, stream: StreamOp, available: int | None) -> Allocated:
    """Give the virtual registers of `code` registers of the engine.

    Args:
        available: the registers that it has; None for no limit.

    Raises:
        TooManyRegisters: where there are not enough.
    """
    registers = _Registers(code, liveness_of(code))
    if available is not None and registers.use.total > available:
        raise TooManyRegisters(stream, registers.use, available)
    body = tuple(_without_jumps_ahead(list(registers.items())))
    return Allocated(Engine(code.engine, registers.use.total, body), registers.use)


class _Classes:
    """Virtual registers that share one, as a forest; of those that copies join, the innermost loops first."""

    def __init__(self, code: Code, ranges: dict[int, Ranges]):
        self.synchronization = code.synchronization
        self.parent = list(range(code.count))
        self.ranges = ranges
        for _, dest, source in sorted(_affinities(code), key=lambda each: -each[0]):
            self.join(dest, source)

    def root(self, register: int) -> int:
        parent = self.parent
        while parent[register] != register:
            parent[register] = parent[parent[register]]
            register = parent[register]
        return register

    def roots(self) -> list[int]:
        """One register of each class, by where the class begins to be live."""
        return sorted(self.ranges, key=lambda register: self.ranges[register][0])

    def join(self, a: int, b: int) -> None:
        """Let two registers share one, where their ranges and purposes allow it."""
        a, b = self.root(a), self.root(b)
        if a == b or (a in self.synchronization) != (b in self.synchronization):
            return
        if a not in self.ranges or b not in self.ranges:
            return
        small, large = sorted((a, b), key=lambda register: len(self.ranges[register]))
        if not _overlap(self.ranges[small], self.ranges[large]):
            self.parent[small] = large
            _merge(self.ranges.pop(small), self.ranges[large])


def _affinities(code: Code) -> Iterator[tuple[int, int, int]]:
    """The pairs of registers that copies join: (number of loops around, destination, source)."""
    change: dict[int, int] = {}
    for span in code.spans:
        change[span.start] = change.get(span.start, 0) + 1
        change[span.end] = change.get(span.end, 0) - 1
    depth = 0
    for at, item in enumerate(code.items):
        depth += change.get(at, 0)
        if isinstance(item, Copies):
            for dest, source in item.pairs:
                if isinstance(source, Register):
                    yield depth, dest.number, source.number


def _overlap(small: Ranges, large: Ranges) -> bool:
    for start, end in small:
        at = bisect_left(large, (end,)) - 1
        if at >= 0 and large[at][1] > start:
            return True
    return False


def _merge(small: Ranges, large: Ranges) -> None:
    """Add disjoint ranges; those that touch become one."""
    for start, end in small:
        at = bisect_left(large, (start,))
        if at < len(large) and large[at][0] == end:
            end = large.pop(at)[1]
        if at and large[at - 1][1] == start:
            large[at - 1] = large[at - 1][0], end
        else:
            large.insert(at, (start, end))


class _Colours:
    """Colours of classes, by first fit in the order in which they begin."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}
        self.busy: list[Ranges] = []
        self.last: list[int] = []
        self.taken: list[Ranges] | None = None

    @property
    def count(self) -> int:
        return len(self.busy)

    def colour(self, classes: _Classes, roots: list[int]) -> None:
        for root in roots:
            ranges = classes.ranges[root]
            start = ranges[0][0]
            free = (at for at, last in enumerate(self.last) if last <= start or not _overlap(ranges, self.busy[at]))
            colour = next(free, self.count)
            if colour == self.count:
                self.busy.append([])
                self.last.append(0)
            self.of[root] = colour
            if self.last[colour] <= start:
                self.busy[colour] = list(ranges)
            else:
                _merge(ranges, self.busy[colour])
            self.last[colour] = max(self.last[colour], ranges[-1][1])

    def free_at(self, at: int, classes: "_Classes") -> int:
        """A colour that nothing has at item `at`; a new one where there is none."""
        if self.taken is None:
            self.taken = [[] for _ in self.busy]
            for root, colour in self.of.items():
                self.taken[colour] += classes.ranges[root]
            for ranges in self.taken:
                ranges.sort()
        here = [(2 * at, 2 * at + 2)]
        free = (colour for colour, ranges in enumerate(self.taken) if not _overlap(here, ranges))
        colour = next(free, self.count)
        if colour == self.count:
            self.busy.append([])
            self.last.append(0)
            self.taken.append([])
        return colour


class _Registers:
    """The register of each virtual one, in the end, and the moves that copies become."""

    def __init__(self, code: Code, liveness: Liveness):
        self.code, self.liveness = code, liveness
        self.classes = _Classes(code, liveness.ranges)
        self.program, self.synchronization = _Colours(), _Colours()
        roots = self.classes.roots()
        self.program.colour(self.classes, [root for root in roots if root not in code.synchronization])
        self.synchronization.colour(self.classes, [root for root in roots if root in code.synchronization])
        self.moves = {
            at: self.in_sequence(at, item.pairs) for at, item in enumerate(code.items) if isinstance(item, Copies)
        }

    @property
    def use(self) -> RegisterUse:
        return RegisterUse(self.program.count, self.synchronization.count)

    def colours(self, register: int) -> _Colours:
        return self.synchronization if register in self.code.synchronization else self.program

    def place(self, register: Register) -> "_Place":
        root = self.classes.root(register.number)
        colours = self.colours(root)
        return _Place(colours, colours.of[root])

    def in_sequence(self, at: int, pairs: Iterable[tuple[Register, Operand]]) -> "list[tuple[_Place, _Place | int]]":
        """A parallel copy as one move after the other; where registers change places, through one that is free."""
        wanted: dict[_Place, _Place | int] = {}
        for dest, source in pairs:
            place = source if isinstance(source, int) else self.place(source)
            if self.place(dest) != place:
                wanted[self.place(dest)] = place
        readers: dict[_Place, int] = {}
        for source in wanted.values():
            if isinstance(source, _Place):
                readers[source] = readers.get(source, 0) + 1
        ready = [dest for dest in wanted if dest not in readers]
        moves: list[tuple[_Place, _Place | int]] = []
        while wanted:
            if not ready:
                dest = next(iter(wanted))
                spare = _Place(dest.colours, dest.colours.free_at(at, self.classes))
                moves.append((spare, dest))
                wanted = {d: spare if source == dest else source for d, source in wanted.items()}
                ready.append(dest)
            dest = ready.pop()
            source = wanted.pop(dest)
            moves.append((dest, source))
            if isinstance(source, _Place) and source in wanted:
                readers[source] -= 1
                if not readers[source]:
                    ready.append(source)
        return moves

    def items(self) -> Iterator[Item]:
        """The code, without what is dead."""
        numbers = {self.program: 0, self.synchronization: self.program.count}
        registers = [Register(0)] * self.code.count
        for register in range(self.code.count):
            if self.classes.root(register) in self.classes.ranges:
                place = self.place(Register(register))
                registers[register] = Register(numbers[place.colours] + place.colour)
        renaming = Renaming(registers)

        def number(place: _Place | int) -> Operand:
            return place if isinstance(place, int) else Register(numbers[place.colours] + place.colour)

        for at, item in enumerate(self.code.items):
            if isinstance(item, Copies):
                yield from (
                    Move(Register(numbers[dest.colours] + dest.colour), number(source))
                    for dest, source in self.moves[at]
                )
            elif at not in self.liveness.dead:
                yield renaming.item(item)


@dataclass(frozen=True)
class _Place:
    """A register among those of its purpose."""

    colours: _Colours
    colour: int


def _without_jumps_ahead(items: list[Item]) -> list[Item]:
    """Drop branches to what follows anyway, and labels that nothing branches to."""
    kept: list[Item] = []
    following: set[str] = set()
    for item in reversed(items):
        if isinstance(item, Label):
            following.add(item.name)
        elif isinstance(item, Branch) and item.target in following:
            continue
        else:
            following = set()
        kept.append(item)
    targets = {item.target for item in kept if isinstance(item, Branch)}
    return [item for item in reversed(kept) if not isinstance(item, Label) or item.name in targets]
