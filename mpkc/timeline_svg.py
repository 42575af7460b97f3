"""Simulations of ISA programs as a picture: a row for each engine, and what every wait waited for."""

from collections.abc import Iterator
from statistics import median
from xml.sax.saxutils import escape

from mpkc.drawing import CHARACTER, COLOURS, MARGIN
from mpkc.runtime.neuron.simulator import Result, Span

MOST = 5000  # instructions in a picture
ROW, BOX = 64, 34  # pixels of a row and of a box in it
LEAST_BOX, NARROWEST, WIDEST = 56, 640, 1200  # pixels: of a usual box, of the picture


def svg(result: Result) -> str:
    """The timeline of a simulation.

    A box is an instruction, from its issue to the next one's; the line below it goes on to its retirement. A hatched
    box is a wait, with an arrow to the retirement of what it waited for. Grey is a handshake.

    Raises:
        ValueError: for more than 5,000 instructions, of which nobody could see one.
    """
    count = sum(map(len, result.spans.values()))
    if count > MOST:
        raise ValueError(f"a picture of {count} instructions: at most {MOST}; look at fewer iterations, or at a trace")
    return _Picture(result).text()


class _Picture:
    def __init__(self, result: Result):
        self.result = result
        self.rows = {engine: row for row, engine in enumerate(result.spans)}
        self.left = MARGIN + CHARACTER * (max(map(len, self.rows), default=0) + 2)
        costs = [span.free - span.issue for spans in result.spans.values() for span in spans if span.free > span.issue]
        wished = LEAST_BOX / median(costs) * result.time_ns if costs else 0.0
        self.width = min(max(wished, NARROWEST), WIDEST)
        self.scale = self.width / result.time_ns if result.time_ns else 1.0
        names = dict.fromkeys(span.name for spans in result.spans.values() for span in spans)
        self.colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}

    def text(self) -> str:
        width, height = self.left + self.width + MARGIN, len(self.rows) * ROW + 3 * MARGIN
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
                "<title>engines over time, in ns</title>",
                f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
                '<defs><pattern id="wait" width="6" height="6" patternUnits="userSpaceOnUse" '
                'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
                '<path d="M0 0V6" stroke="#b55" stroke-width="2"/></pattern>'
                '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto"><path d="M0 0 8 4 0 8z" fill="#b33"/></marker></defs>',
                f'<g stroke="#dde" fill="#667" font-size="10">{"".join(self.axis())}</g>',
                *(self.engine(engine) for engine in self.rows),
                f'<g fill="none" stroke="#b33" marker-end="url(#arrow)">{"".join(self.arrows())}</g>',
                "</svg>",
                "",
            ]
        )

    def x(self, time: float) -> float:
        return self.left + time * self.scale

    def y(self, engine: str) -> float:
        """The upper edge of the boxes of an engine."""
        return 2 * MARGIN + self.rows[engine] * ROW

    def axis(self) -> Iterator[str]:
        """A line every 1, 2 or 5 times a power of ten ns, 100 pixels apart or more."""
        step, factors = 1.0, (2.0, 2.5, 2.0)
        at = 0
        while step * self.scale < 100:
            step *= factors[at % 3]
            at += 1
        bottom = 2 * MARGIN + len(self.rows) * ROW
        for tick in range(int(self.result.time_ns / step) + 1):
            x = self.x(tick * step)
            yield f'<path d="M{x:.1f} {MARGIN}V{bottom}"/>'
            yield f'<text x="{x:.1f}" y="{MARGIN - 6}" stroke="none" text-anchor="middle">{tick * step:g} ns</text>'

    def engine(self, engine: str) -> str:
        middle = self.y(engine) + BOX / 2 + 4
        spans = self.result.spans[engine]
        parts = [f'<text x="{MARGIN}" y="{middle:.1f}" font-weight="bold">{escape(engine)}</text>']
        parts += [shape for span in spans for shape in self.instruction(span)]
        parts += [shape for span in self.result.handshakes[engine] for shape in self.handshake(span)]
        return f"<g>{''.join(parts)}</g>"

    def instruction(self, span: Span) -> Iterator[str]:
        y, issue, free, retire = self.y(span.engine), self.x(span.issue), self.x(span.free), self.x(span.retire)
        iteration = ",".join(map(str, span.iteration))
        times = f"issues at {span.issue:g} ns, retires at {span.retire:g} ns"
        about = f"{span.name} {iteration}: {times} (ISA line {span.line})"
        if span.semaphore is not None:
            yield self.waiting(span, f"{span.name} waits for {span.semaphore}")
        yield f"<g><title>{escape(about)}</title>"
        if retire > free:
            yield f'<path d="M{free:.1f} {y + BOX + 4:.1f}H{retire:.1f}v-4v8" stroke="#88a" fill="none"/>'
        yield (
            f'<rect x="{issue:.1f}" y="{y}" width="{max(free - issue, 1):.1f}" height="{BOX}" rx="3" '
            f'fill="{self.colours[span.name]}" stroke="#556"/>'
        )
        lines = [span.name, iteration] if iteration else [span.name]
        if max(map(len, lines)) * CHARACTER <= free - issue:
            top = y + BOX / 2 + 4 - 7 * (len(lines) - 1)
            for at, line in enumerate(lines):
                middle = (issue + free) / 2
                yield f'<text x="{middle:.1f}" y="{top + 14 * at:.1f}" text-anchor="middle">{escape(line)}</text>'
        yield "</g>"

    def handshake(self, span: Span) -> Iterator[str]:
        yield self.waiting(span, "waits for all engines")
        issue, free = self.x(span.issue), self.x(span.free)
        yield (
            f'<g><title>handshake</title><rect x="{issue:.1f}" y="{self.y(span.engine)}" '
            f'width="{free - issue:.1f}" height="{BOX}" fill="#ccc" stroke="#556"/></g>'
        )

    def waiting(self, span: Span, about: str) -> str:
        arrival, issue = self.x(span.arrival), self.x(span.issue)
        return (
            f'<g><title>{escape(about)}</title><rect x="{arrival:.1f}" y="{self.y(span.engine) + 6}" '
            f'width="{issue - arrival:.1f}" height="{BOX - 12}" fill="url(#wait)" stroke="#b55"/></g>'
        )

    def arrows(self) -> Iterator[str]:
        """From the end of each wait to the retirement of what it waited for."""
        for spans in self.result.spans.values():
            for span in spans:
                if span.cause is None:
                    continue
                cause = self.result.spans[span.cause[0]][span.cause[1]]
                down = self.y(cause.engine) > self.y(span.engine)
                x0, x1 = self.x(span.issue), self.x(cause.retire)
                y0 = self.y(span.engine) + (BOX - 6 if down or cause.engine == span.engine else 6)
                y1 = self.y(cause.engine) + (0 if down else BOX + 4)
                bend = (y0 + y1) / 2 if cause.engine != span.engine else y1 + 18
                yield f'<path d="M{x0:.1f} {y0:.1f}C{x0:.1f} {bend:.1f} {x1:.1f} {bend:.1f} {x1:.1f} {y1:.1f}"/>'
