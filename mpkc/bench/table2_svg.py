"""The rows of `mpkc bench semaphores` as a picture: bars, and the paper's figures as marks on them."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from mpkc.bench.rows import Row, Table2

COLOURS = {"per-loop": "#4c84bd", "manual": "#c98a45", "auto": "#57a05c", "unrolled": "#8c8fa3"}
"""Of the kinds that are shown, in their order; they can be told apart on light and on dark ground."""
LEFT, WIDTH, RIGHT, TOP = 190, 600, 70, 60  # pixels: of names, of what is as long as barrier, of what is longer
BAR, PITCH, GAP, LEGEND = 11, 14, 14, 100
STYLE = """\
.ground { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .line { stroke: #d1d9e0 }
.mark { fill: #1f2328; stroke: #ffffff }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 } .ink { fill: #f0f6fc } .soft { fill: #9198a1 } .line { stroke: #3d444d }
  .mark { fill: #f0f6fc; stroke: #0d1117 }
}"""


def chart(result: Table2) -> str:
    """Latencies relative to barrier; light or dark as the reader's screen is."""
    body: list[str] = []
    y = TOP
    for program in result.programs:
        kinds = result.kinds(program)
        rows = [kinds[kind] for kind in COLOURS if kind in kinds]
        middle = y + len(rows) * PITCH / 2 + 3
        body.append(f'<text class="ink" x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{escape(program)}</text>')
        for row in rows:
            body += _bar(row, y)
            y += PITCH
        y += GAP
    width, height = LEFT + WIDTH + RIGHT, y + 4
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
            f"<title>Latency on {escape(result.device)}, relative to barrier</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="ground" width="{width}" height="{height}"/>',
            *_legend(result),
            *_axis(y - GAP + 4),
            *body,
            "</svg>",
            "",
        ]
    )


def _bar(row: Row, y: int) -> Iterator[str]:
    length, paper = row.latency * WIDTH, row.paper.latency * WIDTH if row.paper else 0.0
    told = f"{row.program}, {row.kind}: {row.latency:.2f}"
    if row.paper:
        told += f"; the paper: {row.paper.latency:.2f}"
    yield f"<g><title>{escape(told)}</title>"
    yield f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[row.kind]}"/>'
    if row.paper:
        yield f'<rect class="mark" x="{LEFT + paper - 2:.1f}" y="{y - 1.5}" width="4" height="{BAR + 3}"/>'
    end = LEFT + max(length, paper) + 7
    yield f'<text class="soft" x="{end:.1f}" y="{y + BAR - 2}" font-size="10">{row.latency:.2f}</text></g>'


def _axis(bottom: int) -> Iterator[str]:
    for tick in range(6):
        x = LEFT + WIDTH * tick / 5
        yield f'<path class="line" d="M{x:.0f} {TOP - 8}V{bottom}"/>'
        name = "1, barrier" if tick == 5 else f"{tick / 5:.1f}"
        yield f'<text class="soft" x="{x:.0f}" y="{TOP - 13}" text-anchor="middle" font-size="11">{name}</text>'


def _legend(result: Table2) -> Iterator[str]:
    used = [kind for kind in COLOURS if any(row.kind == kind for row in result.rows)]
    for place, kind in enumerate(used):
        x = LEFT + place * LEGEND
        yield f'<rect x="{x}" y="10" width="12" height="12" fill="{COLOURS[kind]}"/>'
        yield f'<text class="ink" x="{x + 18}" y="20">{kind}</text>'
    x = LEFT + len(used) * LEGEND
    yield f'<rect class="mark" x="{x + 4}" y="9" width="4" height="14"/>'
    yield f'<text class="ink" x="{x + 18}" y="20">the paper</text>'
