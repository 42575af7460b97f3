"""Diagrams of boxes and arrows as DOT and as SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from mpkc.layers import place

CHARACTER = 7.3  # pixels of a monospaced character of 12 pixels
LINE = 16
PADDING = 8
LAYER_GAP = 34
MARGIN = 24
DOT_RADIUS = 5
COLOURS = ("#d9e8fb", "#fde3c8", "#d8f0d8", "#f3d9ec", "#fbf3c4", "#d5eef0", "#e6defa", "#f6d5d5", "#e3e8d0", "#dfe3e8")


@dataclass(frozen=True)
class Node:
    """A box with lines of text, or a dot where it has none.

    Attributes:
        name: unique in a diagram.
        lines: the text.
        kind: nodes of one kind have one colour.
    """

    name: str
    lines: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes by their numbers."""

    source: int
    target: int
    label: str = ""


@dataclass(frozen=True)
class Diagram:
    """A directed acyclic graph to look at."""

    title: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]

    def colours(self) -> dict[str, str]:
        """A colour for each kind, in the order in which they first occur."""
        kinds = dict.fromkeys(node.kind for node in self.nodes)
        return {kind: COLOURS[number % len(COLOURS)] for number, kind in enumerate(kinds)}


def dot(diagram: Diagram) -> str:
    """The diagram for Graphviz."""
    colours = diagram.colours()
    lines = [
        f"digraph {quoted(diagram.title)} {{",
        '  node [shape=box style="filled,rounded" fontname=monospace fontsize=10]',
        "  edge [fontname=monospace fontsize=9]",
    ]
    for node in diagram.nodes:
        look = f"label={quoted(*node.lines)}" if node.lines else 'label="" shape=point width=0.1'
        lines.append(f'  {quoted(node.name)} [{look} fillcolor="{colours[node.kind]}"]')
    for edge in diagram.edges:
        label = f" [label={quoted(edge.label)}]" if edge.label else ""
        ends = (quoted(diagram.nodes[end].name) for end in (edge.source, edge.target))
        lines.append(f"  {' -> '.join(ends)}{label}")
    return "\n".join([*lines, "}", ""])


def quoted(*lines: str) -> str:
    """Lines of text as Graphviz takes them."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def svg(diagram: Diagram) -> str:
    """The diagram as a picture, layered top to bottom."""
    drawn = _Drawn(diagram)
    width, height = drawn.size
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
            f"<title>{escape(diagram.title)}</title>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 8 4 0 8z" fill="#556"/></marker></defs>',
            f'<g fill="none" stroke="#556" marker-end="url(#arrow)">{"".join(drawn.arrows())}</g>',
            f'<g stroke="#556" text-anchor="middle">{"".join(drawn.shapes())}</g>',
            f'<g fill="#334" font-size="10" paint-order="stroke" stroke="white" stroke-width="3">'
            f"{''.join(drawn.labels())}</g>",
            "</svg>",
            "",
        ]
    )


class _Drawn:
    """A diagram with a place for everything in it, in pixels."""

    def __init__(self, diagram: Diagram):
        self.diagram, self.colours = diagram, diagram.colours()
        self.widths = [_width(node) for node in diagram.nodes]
        self.placed = place(self.widths, [(edge.source, edge.target) for edge in diagram.edges])
        self.box_height = LINE * max((len(node.lines) for node in diagram.nodes), default=1) + PADDING
        self.pitch = self.box_height + LAYER_GAP

    @property
    def size(self) -> tuple[float, float]:
        deepest = max(self.placed.layer, default=0)
        return self.placed.width + 2 * MARGIN, deepest * self.pitch + self.box_height + 2 * MARGIN

    def _middle(self, x: float, layer: float) -> tuple[float, float]:
        return MARGIN + x, MARGIN + layer * self.pitch + self.box_height / 2

    def _half(self, node: int) -> float:
        return self.box_height / 2 if self.diagram.nodes[node].lines else DOT_RADIUS

    def _points(self, number: int) -> list[tuple[float, float]]:
        """Where an edge begins, passes and ends."""
        edge = self.diagram.edges[number]
        x, layer = self.placed.x, self.placed.layer
        (x0, y0), (x1, y1) = (self._middle(x[end], layer[end]) for end in (edge.source, edge.target))
        passed = [self._middle(*point) for point in self.placed.routes[number]]
        return [(x0, y0 + self._half(edge.source)), *passed, (x1, y1 - self._half(edge.target))]

    def arrows(self) -> Iterator[str]:
        for number in range(len(self.diagram.edges)):
            points = self._points(number)
            path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
            for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
                middle = (y0 + y1) / 2
                path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
            yield f'<path d="{" ".join(path)}"/>'

    def labels(self) -> Iterator[str]:
        for number, edge in enumerate(self.diagram.edges):
            if edge.label:
                (x0, y0), (x1, y1) = self._points(number)[:2]
                yield f'<text x="{(x0 + x1) / 2 + 4:.1f}" y="{(y0 + y1) / 2:.1f}">{escape(edge.label)}</text>'

    def shapes(self) -> Iterator[str]:
        for number, node in enumerate(self.diagram.nodes):
            x, y = self._middle(self.placed.x[number], self.placed.layer[number])
            colour = self.colours[node.kind]
            parts = [f"<title>{escape(node.name)}</title>"]
            if not node.lines:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT_RADIUS}" fill="{colour}"/>')
            else:
                width, height = self.widths[number], self.box_height
                parts.append(
                    f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
                    f'height="{height}" rx="5" fill="{colour}"/>'
                )
            top = y - LINE * (len(node.lines) - 1) / 2 + 4
            parts += [
                f'<text x="{x:.1f}" y="{top + LINE * line:.1f}" stroke="none">{escape(text)}</text>'
                for line, text in enumerate(node.lines)
            ]
            yield f"<g data-name={quoteattr(node.name)}>{''.join(parts)}</g>"


def _width(node: Node) -> float:
    return CHARACTER * max(map(len, node.lines)) + 2 * PADDING if node.lines else 2 * DOT_RADIUS
