"""Writes the text of tile programs: names and types of views follow from what they are views of."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Tile:
    """A buffer or a part of one, by its name in the text."""

    name: str
    shape: tuple[int, ...]
    element: str
    space: str
    strides: tuple[int, ...] | None = None

    @property
    def type(self) -> str:
        layout = ""
        if self.strides is not None:
            layout = f", strided<[{', '.join(map(str, self.strides))}], offset: ?>"
        sizes = "".join(f"{size}x" for size in self.shape)
        return f"memref<{sizes}{self.element}{layout}, #tile.space<{self.space}>>"

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides of its dimensions, in elements."""
        if self.strides is not None:
            return self.strides
        steps = [1]
        for size in reversed(self.shape[1:]):
            steps.insert(0, steps[0] * size)
        return tuple(steps)


@dataclass(frozen=True)
class Number:
    """A number by its name in the text."""

    name: str
    type: str = "index"


Operand = Tile | Number


class Writer:
    """The text of one kernel, operation by operation.

    Args:
        engines: whose streams there are.
    """

    def __init__(self, name: str, engines: Sequence[str]):
        self.name, self.engines = name, engines
        self.arguments: list[Operand] = []
        self.constants: dict[str, Number] = {}
        self.maxima: dict[str, int] = {}
        self.allocated: list[Tile] = []
        self.lines: list[str] = []
        self.depth = 1
        self.fresh = 0

    def __str__(self) -> str:
        arguments = ", ".join(f"{each.name} : {each.type}" for each in self.arguments)
        engines = ", ".join(f'"{engine}"' for engine in self.engines)
        constants = [f"  {number.name} = arith.constant {value}" for value, number in self.constants.items()]
        allocated = [f"  {tile.name} = memref.alloc() : {tile.type}" for tile in self.allocated]
        promised = ", ".join(f"{name} = {most} : index" for name, most in self.maxima.items())
        words = f" attributes {{maxima = {{{promised}}}}}" if promised else ""
        head = f"tile.kernel @{self.name}({arguments}) engines [{engines}]{words} {{"
        return "\n".join([head, *constants, *allocated, *self.lines, "}", ""])

    def far(self, name: str, element: str, *shape: int) -> Tile:
        """An argument in far memory."""
        tile = Tile(f"%{name}", shape, element, "far")
        self.arguments.append(tile)
        return tile

    def integer(self, name: str, most: int) -> Number:
        """An argument that is an `index`, and no more than `most`."""
        number = Number(f"%{name}")
        self.arguments.append(number)
        self.maxima[name] = most
        return number

    def near(self, name: str, element: str, *shape: int, space: str = "near") -> Tile:
        tile = Tile(f"%{name}", shape, element, space)
        self.allocated.append(tile)
        return tile

    def accumulator(self, name: str, element: str, *shape: int) -> Tile:
        return self.near(name, element, *shape, space="accumulator")

    def constant(self, value: float, type_: str = "f32") -> Number:
        """A constant; an integer where `type_` is `index`, true or false where it is `i1`."""
        if type_ == "i1":
            text = str(bool(value)).lower()
        else:
            text = f"{int(value) if type_ == 'index' else f'{value:.9e}'} : {type_}"
        return self.constants.setdefault(text, Number(f"%const{len(self.constants)}", type_))

    def index(self, value: int) -> Number:
        return self.constant(value, "index")

    def sum(self, a: Number, b: Number) -> Number:
        return self._arith("addi", a, b)

    def product(self, a: Number, b: Number) -> Number:
        return self._arith("muli", a, b)

    def part(self, tile: Tile, offsets: Sequence[Number], sizes: Sequence[int], drop: int = 0) -> Tile:
        """A part of a tile; `drop` of its first dimensions, of size 1, are left out."""
        part = Tile(self._name(), tuple(sizes)[drop:], tile.element, tile.space, tile.steps[drop:])
        at, size = (", ".join(map(str, each)) for each in ([each.name for each in offsets], sizes))
        ones = ", ".join("1" for _ in sizes)
        self.write(f"{part.name} = memref.subview {tile.name}[{at}] [{size}] [{ones}] : {tile.type} to {part.type}")
        return part

    def columns(self, tile: Tile, at: Number, count: int) -> Tile:
        return self.part(tile, [self.index(0), at], [tile.shape[0], count])

    def rows(self, tile: Tile, at: Number, count: int) -> Tile:
        return self.part(tile, [at, self.index(0)], [count, tile.shape[1]])

    def slot(self, tile: Tile, at: Number) -> Tile:
        """The slot whose turn it is."""
        slot = replace(tile, name=self._name(), shape=tile.shape[1:])
        self.write(f"{slot.name} = tile.rotate {tile.name}[{at.name}] : {tile.type} -> {slot.type}")
        return slot

    @contextmanager
    def loop(self, trips: Number, name: str = "") -> Generator[Number]:
        """A loop; `name` is that of its index."""
        index = Number(f"%{name}" if name else self._name())
        zero, one = self.index(0), self.index(1)
        self.write(f"scf.for {index.name} = {zero.name} to {trips.name} step {one.name} {{")
        self.depth += 1
        yield index
        self.depth -= 1
        self.write("}")

    # Instructions. A label is what placements know one by (`mpkc.bench.kernels.placement`).

    def load(self, source: Tile, dest: Tile, engine: str = "load", label: str = "") -> None:
        self._copy(source, dest, engine, " retire async", label)

    def store(self, source: Tile, dest: Tile, label: str = "") -> None:
        self._copy(source, dest, "store", "", label)

    def copy(self, source: Tile, dest: Tile, engine: str, label: str = "") -> None:
        self._copy(source, dest, engine, "", label)

    def gather(self, source: Tile, rows: Tile, dest: Tile, engine: str, label: str = "") -> None:
        types = f"{source.type}[{rows.type}] -> {dest.type}"
        head = f"tile.gather {source.name}[{rows.name}] -> {dest.name}"
        self.write(f'{head} engine "{engine}" retire async{_named(label)} : {types}')

    def scatter(self, source: Tile, dest: Tile, rows: Tile, label: str = "") -> None:
        types = f"{source.type} -> {dest.type}[{rows.type}]"
        head = f"tile.scatter {source.name} -> {dest.name}[{rows.name}]"
        self.write(f'{head} engine "store"{_named(label)} : {types}')

    def value(self, source: Tile, at: Number, engine: str, label: str) -> Number:
        value = Number(f"%{label}")
        head = f"{value.name} = tile.value {source.name}[{at.name}]"
        self.write(f'{head} engine "{engine}"{_named(label)} : {source.type}')
        return value

    def matmul(self, a: Tile, b: Tile, dest: Tile, more: bool = False, label: str = "") -> None:
        """`dest` = the transpose of `a`, times `b`; added to it where there is `more`: both have K in their rows."""
        accumulate = f" accumulate {self.constant(True, 'i1').name}" if more else ""
        words = f'{accumulate} transpose_lhs engine "tensor"{_named(label)}'
        types = f"{a.type}, {b.type} -> {dest.type}"
        self.write(f"tile.matmul {a.name}, {b.name} -> {dest.name}{words} : {types}")

    def transpose(self, source: Tile, dest: Tile, label: str = "") -> None:
        types = f"{source.type} -> {dest.type}"
        self.write(f'tile.transpose {source.name} -> {dest.name} engine "tensor"{_named(label)} : {types}')

    def map(self, function: str, inputs: Sequence[Operand], dest: Tile, engine: str, label: str = "") -> None:
        names, types = (", ".join(each) for each in ([a.name for a in inputs], [a.type for a in inputs]))
        head = f"tile.map {function} {names} -> {dest.name}"
        self.write(f'{head} engine "{engine}"{_named(label)} : {types} -> {dest.type}')

    def reduce(self, how: str, source: Tile, dest: Tile, engine: str, label: str = "") -> None:
        """Along rows; `how` is a reduction, and of which function."""
        words = f'axis 1 engine "{engine}"{_named(label)}'
        self.write(f"tile.reduce {how} {source.name} -> {dest.name} {words} : {source.type} -> {dest.type}")

    def fill(self, value: Number, dest: Tile, engine: str, label: str = "") -> None:
        head = f"tile.fill {value.name} -> {dest.name}"
        self.write(f'{head} engine "{engine}"{_named(label)} : {value.type} -> {dest.type}')

    def write(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def _copy(self, source: Tile, dest: Tile, engine: str, words: str, label: str) -> None:
        types = f"{source.type} -> {dest.type}"
        self.write(f'tile.copy {source.name} -> {dest.name} engine "{engine}"{words}{_named(label)} : {types}')

    def _arith(self, name: str, a: Number, b: Number) -> Number:
        result = Number(self._name())
        self.write(f"{result.name} = arith.{name} {a.name}, {b.name} : index")
        return result

    def _name(self) -> str:
        self.fresh += 1
        return f"%of{self.fresh}"


def _named(label: str) -> str:
    return f' {{label = "{label}"}}' if label else ""
