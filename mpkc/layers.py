"""Where the nodes of a directed acyclic graph stand in a drawing: in layers, top to bottom.

An edge that crosses layers gets a waypoint in each of them, so it runs between the nodes and not across them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

SWEEPS = 4  # how often the layers are put in the order of their neighbours
WAYPOINT_WIDTH = 12.0
GAP = 16.0  # between two nodes of a layer

Link = tuple[int, int]  # source, target


@dataclass(frozen=True)
class Placement:
    """A layered drawing, in pixels.

    Attributes:
        x: the middle of each node, the leftmost edge of any of them at 0.
        layer: the layer of each node, 0 on top.
        routes: for each edge the (x, layer) of its waypoints, from source to target.
        width: of the widest layer.
    """

    x: Sequence[float]
    layer: Sequence[int]
    routes: Sequence[Sequence[tuple[float, int]]]
    width: float


def place(widths: Sequence[float], links: Sequence[Link]) -> Placement:
    """Place nodes of these widths; `links` have no cycle."""
    layer = layers(len(widths), links)
    spans = _with_waypoints(layer, links)
    rows = _rows(layer, spans)
    wide = [*widths, *[WAYPOINT_WIDTH] * (sum(map(len, rows)) - len(widths))]
    _untangle(rows, [(a, b) for chain in spans for a, b in zip(chain, chain[1:], strict=False)])
    x, width = _centred(rows, wide)
    depth = {node: number for number, row in enumerate(rows) for node in row}
    routes = [[(x[node], depth[node]) for node in chain[1:-1]] for chain in spans]
    return Placement([x[node] for node in range(len(widths))], layer, routes, width)


def layers(count: int, links: Sequence[Link]) -> list[int]:
    """The number of links on the longest path to each of `count` nodes."""
    following: defaultdict[int, list[int]] = defaultdict(list)
    before = [0] * count
    for source, target in links:
        following[source].append(target)
        before[target] += 1
    layer = [0] * count
    ready = [node for node in range(count) if before[node] == 0]
    for node in ready:
        for target in following[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            before[target] -= 1
            if before[target] == 0:
                ready.append(target)
    return layer


def _with_waypoints(layer: Sequence[int], links: Sequence[Link]) -> list[list[int]]:
    """The nodes along each link: its ends, and between them a new node for each layer that it crosses."""
    spans: list[list[int]] = []
    fresh = len(layer)
    for source, target in links:
        crossed = layer[target] - layer[source] - 1
        spans.append([source, *range(fresh, fresh + crossed), target])
        fresh += crossed
    return spans


def _rows(layer: Sequence[int], spans: Sequence[Sequence[int]]) -> list[list[int]]:
    """The nodes of each layer, waypoints last."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, depth in enumerate(layer):
        rows[depth].append(node)
    for chain in spans:
        for number, node in enumerate(chain[1:-1], 1):
            rows[layer[chain[0]] + number].append(node)
    return rows


def _untangle(rows: list[list[int]], links: Sequence[Link]) -> None:
    """Sort each layer by the mean place of its nodes' neighbours, downwards and upwards in turn."""
    above: defaultdict[int, list[int]] = defaultdict(list)
    below: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        place: dict[int, float] = {}
        for row in rows if down else reversed(rows):
            means = {
                node: sum(place[other] for other in neighbours[node]) / len(neighbours[node])
                if neighbours[node]
                else (number + 0.5) / len(row)
                for number, node in enumerate(row)
            }
            row.sort(key=means.__getitem__)
            place |= {node: (number + 0.5) / len(row) for number, node in enumerate(row)}


def _centred(rows: Sequence[Sequence[int]], widths: Sequence[float]) -> tuple[dict[int, float], float]:
    """The middle of each node where every layer is centred, and the width of the widest one."""
    totals = [sum(widths[node] for node in row) + GAP * (len(row) - 1) for row in rows]
    width = max(totals, default=0.0)
    x: dict[int, float] = {}
    for row, total in zip(rows, totals, strict=True):
        at = (width - total) / 2
        for node in row:
            x[node] = at + widths[node] / 2
            at += widths[node] + GAP
    return x, width
