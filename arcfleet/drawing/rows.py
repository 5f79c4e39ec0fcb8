"""Long automata in several rows: a picture that is much wider than a page would be shrunk until nobody can read it.

What leads from the end of a row to the next one turns down at the right, runs back between the rows and comes in from
the left. The lanes are nested, so arcs that did not cross before do not cross here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from arcfleet.drawing.channels import CHANNEL, Link, spread
from arcfleet.drawing.geometry import Box, Piece, Point, bounds

PAGE_WIDTH: Final = 1_400.0
ROW_WIDTH: Final = 1_150.0
SLACK: Final = 0.35  # a row may be longer or shorter by this part, to cut where little has to be led back
MAX_RETURNS: Final = 6  # arcs led back at one cut; where all is woven together, a wide picture is the better one
COST: Final = 0.12  # of leading one more arc back, in parts of a row
WORTH: Final = 0.75  # of the whole: if the longest row is longer than this, rows do not help
LANE: Final = 12.0
ROW_GAP: Final = 38.0
CORNER: Final = 12.0


@dataclass(slots=True)
class Arrangement:
    """For every node its x, and how far its row moved it down. `routes`: links to the next row, from turn to turn."""

    x: list[float]
    down: list[float]
    routes: dict[tuple[int, int], list[Point]]


def arrange(
    layers: Sequence[Sequence[int]], cuts: Sequence[int], shapes: Sequence[Sequence[Box]], links: Sequence[Link]
) -> Arrangement:
    """Rows that begin with the first layer and those in `cuts`. Moves the links along with their nodes."""
    arrangement = Arrangement([0.0] * len(shapes), [0.0] * len(shapes), {})
    layer = {node: number for number, nodes in enumerate(layers) for node in nodes}
    bottom = 0.0
    waiting: list[Link] = []  # from the row above
    for begin, end in zip([0, *cuts], [*cuts, len(layers)], strict=True):
        row = _Row(layers[begin:end], shapes, [link for link in links if begin <= layer[link.left] < end - 1])
        leaving = [link for link in links if layer[link.left] == end - 1 < len(layers) - 1]
        down = bottom + (ROW_GAP + LANE * len(waiting) if waiting else 0.0) - row.frame.top
        row.move(arrangement, LANE * len(waiting) + CHANNEL if waiting else 0.0, down)
        _lead_back(waiting, arrangement, bottom, down)
        for link in leaving:
            link.y_left += down
        for number, link in enumerate(sorted(leaving, key=lambda link: -link.y_left)):
            x = row.right(arrangement) + CORNER + LANE * (number + 1)
            arrangement.routes[link.left, link.right] = [(x - CORNER, link.y_left), (x, link.y_left)]
        waiting, bottom = leaving, row.frame.bottom + down
    return arrangement


def choose_cuts(layers: Sequence[Sequence[int]], shapes: Sequence[Sequence[Box]], links: Sequence[Link]) -> list[int]:
    """The layers that begin a new row: none if all fits on a page.

    A row ends with labels: they stand with the states that their arcs leave.
    """
    xs = spread(layers, shapes, links)
    if xs[-1] <= PAGE_WIDTH:
        return []
    layer = {node: number for number, nodes in enumerate(layers) for node in nodes}
    across = [0] * len(layers)
    for link in links:
        across[layer[link.left]] += 1
    rows = math.ceil(xs[-1] / ROW_WIDTH)
    width = xs[-1] / rows
    cuts: list[int] = []
    for row in range(1, rows):
        costs = {
            number + 1: abs(xs[number] / width - row) + COST * across[number]
            for number in range(cuts[-1] + 1 if cuts else 1, len(xs) - 1)
            if number % 2 == 1 and across[number] <= MAX_RETURNS and abs(xs[number] / width - row) < SLACK
        }
        if costs:
            cuts.append(min(costs, key=costs.__getitem__))
    ends = [0.0, *(xs[cut - 1] for cut in cuts), xs[-1]]
    return cuts if max(end - begin for begin, end in pairwise(ends)) < WORTH * xs[-1] else []


class _Row:
    def __init__(self, layers: Sequence[Sequence[int]], shapes: Sequence[Sequence[Box]], links: Sequence[Link]) -> None:
        self.layers, self.shapes, self.links = layers, shapes, links
        self.xs = spread(layers, shapes, links)
        boxes = [box for nodes in layers for node in nodes for box in shapes[node]]
        self.frame = bounds([*boxes, *(link.box() for link in links)])

    def move(self, arrangement: Arrangement, x: float, down: float) -> None:
        for number, nodes in enumerate(self.layers):
            for node in nodes:
                arrangement.x[node] = self.xs[number] + x
                arrangement.down[node] = down
        for link in self.links:
            link.bend_from += x
            link.bend_to += x
            link.y_left += down
            link.y_right += down

    def right(self, arrangement: Arrangement) -> float:
        nodes = [node for layer in self.layers for node in layer]
        return max(arrangement.x[node] + box.right for node in nodes for box in self.shapes[node])


def _lead_back(links: Sequence[Link], arrangement: Arrangement, bottom: float, down: float) -> None:
    """Completes the routes from the row above, whose lower edge is `bottom`, into one that was moved `down`."""
    for link in links:
        link.y_right += down
    for number, link in enumerate(sorted(links, key=lambda link: -link.y_left)):
        route = arrangement.routes[link.left, link.right]
        y = bottom + ROW_GAP / 2 + LANE * number
        inner = sum(1 for other in links if other.y_right > link.y_right)
        x = LANE * inner
        route += [(route[-1][0], y), (x, y), (x, link.y_right), (x + CORNER, link.y_right)]


def rounded(route: Sequence[Point]) -> list[Piece]:
    """The route from its second point on, its corners rounded."""
    pieces: list[Piece] = []
    for before, corner, after in zip(route, route[1:], route[2:], strict=False):
        begin, end = _towards(corner, before), _towards(corner, after)
        pieces.append((begin,))
        pieces.append((_between(begin, corner), _between(end, corner), end))
    return [*pieces, (route[-1],)]


def _towards(corner: Point, other: Point) -> Point:
    length = math.dist(corner, other)
    part = min(CORNER, length / 2) / length if length else 0.0
    return corner[0] + part * (other[0] - corner[0]), corner[1] + part * (other[1] - corner[1])


def _between(one: Point, other: Point) -> Point:
    return one[0] + 0.55 * (other[0] - one[0]), one[1] + 0.55 * (other[1] - one[1])
