"""Who waits for whom in a multi-engine program, as rows, as DOT and as a picture."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from mpkc.dialects.sem_distance import Component
from mpkc.dialects.sem_structure import Instruction, Loop, Structure, structure_of
from mpkc.drawing import CHARACTER, COLOURS, MARGIN, PADDING, quoted
from mpkc.semaphores import EngineProgram

ROW, BOX, INDENT, TITLE = 46, 26, 12, 18  # pixels: of a row, of a box in it, of a loop in a loop, of a loop's name
MOST_INSTRUCTIONS = 2000  # of a picture


@dataclass(frozen=True)
class InstructionRow:
    """An instruction.

    Attributes:
        loops: around it, outermost first.
        after: what it depends on, each with its distance.
    """

    name: str
    engine: str
    loops: tuple[str, ...]
    after: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, object]:
        """The keys of an instruction in `mpkc graph --json`; no distance is a distance of 0."""
        after = [{"producer": producer, "distance": distance or "0"} for producer, distance in self.after]
        return {"instruction": self.name, "engine": self.engine, "loops": list(self.loops), "after": after}


def instruction_rows(program: EngineProgram) -> list[InstructionRow]:
    """The instructions of a program, in textual order."""
    return [
        InstructionRow(
            each.name,
            each.engine,
            tuple(loop.name for loop in each.loop.path if loop.parent),
            tuple((edge.producer.name, distance_text(edge.counted)) for edge in each.edges),
        )
        for each in structure_of(program).instructions
    ]


def distance_text(distance: tuple[Component, ...]) -> str:
    """A distance as a label; nothing where it is zero."""
    if not any(distance):
        return ""
    return str(distance[0]) if len(distance) == 1 else f"[{', '.join(map(str, distance))}]"


def dot(program: EngineProgram, title: str) -> str:
    """The program for Graphviz: a cluster a loop, a colour an engine, an edge a dependency."""
    structure = structure_of(program)
    colours = _colours(structure)
    inside = _inside(structure)
    names = {instruction: f"n{number}" for number, instruction in enumerate(structure.instructions)}

    def lines(loop: Loop, indent: str) -> Iterator[str]:
        for item in inside[loop]:
            if isinstance(item, Instruction):
                label = quoted(item.name, item.engine)
                yield f'{indent}{names[item]} [label={label} fillcolor="{colours[item.engine]}"]'
            else:
                yield f"{indent}subgraph {quoted(f'cluster_{item.name}')} {{"
                yield f"{indent}  label={quoted(item.name)}"
                yield from lines(item, indent + "  ")
                yield f"{indent}}}"

    edges = (
        f"  {names[edge.producer]} -> {names[edge.consumer]} [label={quoted(distance_text(edge.counted))}]"
        for edge in structure.edges
    )
    head = ['  node [shape=box style="filled,rounded" fontname=monospace fontsize=10]', "  edge [fontname=monospace]"]
    return "\n".join([f"digraph {quoted(title)} {{", *head, *lines(structure.loops[0], "  "), *edges, "}", ""])


def svg(program: EngineProgram, title: str) -> str:
    """The program as a picture: a column an engine, an instruction below the other, loops around them.

    Raises:
        ValueError: for more instructions than anybody could see.
    """
    structure = structure_of(program)
    if (count := len(structure.instructions)) > MOST_INSTRUCTIONS:
        raise ValueError(f"{count:,} instructions are too many to draw, {MOST_INSTRUCTIONS:,} is the most: use --dot")
    return _Picture(structure, title).text()


def _colours(structure: Structure) -> Mapping[str, str]:
    return {engine: COLOURS[at % len(COLOURS)] for at, engine in enumerate(structure.engines)}


def _inside(structure: Structure) -> dict[Loop, list[Instruction | Loop]]:
    """What stands in each loop, loops without an instruction left out; in textual order."""
    found: dict[Loop, list[Instruction | Loop]] = {loop: [] for loop in structure.loops}
    entered = {structure.loops[0]}
    for instruction in structure.instructions:
        for outer, loop in zip(instruction.loop.path, instruction.loop.path[1:], strict=False):
            if loop not in entered:
                entered.add(loop)
                found[outer].append(loop)
        found[instruction.loop].append(instruction)
    return found


@dataclass
class _Picture:
    structure: Structure
    title: str
    y: float = 2 * MARGIN + TITLE
    places: dict[Instruction, float] = field(default_factory=dict[Instruction, float])
    loops: list[tuple[Loop, float, float]] = field(default_factory=list[tuple[Loop, float, float]])

    def __post_init__(self) -> None:
        self.colours, self.inside = _colours(self.structure), _inside(self.structure)
        self.depth = max((len(each.loop.path) - 1 for each in self.structure.instructions), default=0)
        self.widths = {
            engine: CHARACTER * max(len(i.name) for i in self.structure.instructions if i.engine == engine)
            + 2 * PADDING
            for engine in self.structure.engines
        }
        self.middles: dict[str, float] = {}
        self.right = MARGIN + INDENT * (self.depth + 1)
        for engine in self.structure.engines:
            width = max(self.widths[engine], CHARACTER * len(engine)) + 3 * MARGIN
            self.middles[engine] = self.right + width / 2
            self.right += width
        self.place(self.structure.loops[0])

    def place(self, loop: Loop) -> None:
        """Give everything in a loop its height."""
        for item in self.inside[loop]:
            if isinstance(item, Instruction):
                self.places[item] = self.y + BOX / 2
                self.y += ROW
            else:
                top = self.y
                self.y += TITLE + PADDING
                self.place(item)
                self.loops.append((item, top, self.y - PADDING))
                self.y += PADDING

    def text(self) -> str:
        width, height = self.right + MARGIN + INDENT * (self.depth + 1), self.y + MARGIN
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
                f"<title>{escape(self.title)}</title>",
                f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
                '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto"><path d="M0 0 8 4 0 8z" fill="#b33"/></marker></defs>',
                *self.frames(),
                f'<g font-weight="bold" text-anchor="middle">{"".join(self.headings())}</g>',
                f'<g stroke="#556" text-anchor="middle">{"".join(self.boxes())}</g>',
                *self.arrows(),
                "</svg>",
                "",
            ]
        )

    def frames(self) -> Iterator[str]:
        for loop, top, bottom in reversed(self.loops):
            inset = MARGIN + INDENT * (len(loop.path) - 1)
            width = self.right + INDENT * (self.depth + 1) + MARGIN - INDENT * (len(loop.path) - 1) - inset
            dashes = "" if loop.counted else ' stroke-dasharray="4 3"'
            yield (
                f'<g><rect x="{inset:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.1f}" rx="6" '
                f'fill="#f4f6fa" fill-opacity="0.6" stroke="#99a"{dashes}/>'
                f'<text x="{inset + 6:.1f}" y="{top + 14:.1f}" fill="#667">{escape(loop.name)}</text></g>'
            )

    def headings(self) -> Iterator[str]:
        for engine, middle in self.middles.items():
            yield f'<text x="{middle:.1f}" y="{MARGIN:.1f}">{escape(engine)}</text>'

    def boxes(self) -> Iterator[str]:
        for each, y in self.places.items():
            x, width = self.middles[each.engine], self.widths[each.engine]
            yield (
                f'<rect x="{x - width / 2:.1f}" y="{y - BOX / 2:.1f}" width="{width:.1f}" height="{BOX}" rx="4" '
                f'fill="{self.colours[each.engine]}"/>'
                f'<text x="{x:.1f}" y="{y + 4:.1f}" stroke="none">{escape(each.name)}</text>'
            )

    def arrows(self) -> Iterator[str]:
        """From producer to consumer; dashed where a loop carries the dependency."""
        together: dict[tuple[Instruction, Instruction, bool], list[str]] = {}
        for edge in self.structure.edges:
            labels = together.setdefault((edge.producer, edge.consumer, edge.carrier is not None), [])
            labels.append(distance_text(edge.counted))
        for (producer, consumer, carried), labels in together.items():
            yield from self.arrow(producer, consumer, carried, labels)

    def arrow(self, producer: Instruction, consumer: Instruction, carried: bool, labels: list[str]) -> Iterator[str]:
        """One arrow, with the distances of all dependencies that it stands for."""
        shift = BOX / 4 if carried else -BOX / 4
        (x0, y0), (x1, y1) = ((self.middles[end.engine], self.places[end] + shift) for end in (producer, consumer))
        side0, side1 = self.widths[producer.engine] / 2, self.widths[consumer.engine] / 2
        if x0 == x1:
            x0, y1 = x0 + side0, y1 + (4 if producer is consumer else 0)
            path = f"M{x0:.1f} {y0:.1f}c{MARGIN} 0 {MARGIN} {y1 - y0:.1f} 0 {y1 - y0:.1f}"
            x, y = x0 + MARGIN, (y0 + y1) / 2 + 4
        else:
            towards = 1 if x1 > x0 else -1
            x0, x1 = x0 + towards * side0, x1 - towards * side1
            x, y = (x0 + x1) / 2, (y0 + y1) / 2 + 4
            path = f"M{x0:.1f} {y0:.1f}C{x:.1f} {y0:.1f} {x:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        dashes = ' stroke-dasharray="5 3"' if carried else ""
        yield f'<path d="{path}" fill="none" stroke="#b33" marker-end="url(#arrow)"{dashes}/>'
        for at, label in enumerate(label for label in labels if label):
            yield (
                f'<text x="{x:.1f}" y="{y + 11 * at:.1f}" font-size="10" text-anchor="middle" fill="#933" '
                f'paint-order="stroke" stroke="white" stroke-width="3">{escape(label)}</text>'
            )
