"""How far right every layer stands, and where in the channel between two layers a link may bend.

A layer is pushed left until something of it touches what is drawn already, as blocks fall in a game: a wide label above
a state may hang over its neighbours. Links take part, so no link runs through a label or a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from arcfleet.drawing.geometry import Box, bounds

GAP: Final = 18.0  # between boxes of different layers
CLEARANCE: Final = 5.0  # above and below boxes and links
CHANNEL: Final = 30.0  # of a straight link; steep ones get more
STEEPNESS: Final = 0.3
MAX_CHANNEL: Final = 150.0
MIN_ROW: Final = 4.0
MAX_ROWS: Final = 3_000


@dataclass(slots=True)
class Link:
    """From a node to one of the next layer: it bends between `bend_from` and `bend_to`, beyond that it is level."""

    left: int
    right: int
    y_left: float
    y_right: float
    bend_from: float = 0.0
    bend_to: float = 0.0

    def box(self) -> Box:
        return Box(0.0, min(self.y_left, self.y_right), 0.0, max(self.y_left, self.y_right))

    def channel(self) -> float:
        return min(MAX_CHANNEL, CHANNEL + STEEPNESS * abs(self.y_left - self.y_right))


class _Skyline:
    """For every row of the drawing one x. Rows are coarse in tall drawings, which errs on the wide side."""

    def __init__(self, frame: Box, x: float) -> None:
        self.top = frame.top - CLEARANCE
        self.row = max(MIN_ROW, (frame.height + 2 * CLEARANCE) / MAX_ROWS)
        self.xs = [x] * (int((frame.height + 2 * CLEARANCE) / self.row) + 2)

    def get(self, box: Box, choose: Callable[[Sequence[float]], float]) -> float:
        return choose(self.xs[self._rows(box)])

    def set(self, box: Box, x: float, choose: Callable[[float, float], float]) -> None:
        rows = self._rows(box)
        self.xs[rows] = [choose(old, x) for old in self.xs[rows]]

    def _rows(self, box: Box) -> slice:
        first = int((box.top - CLEARANCE - self.top) / self.row)
        return slice(first, int((box.bottom + CLEARANCE - self.top) / self.row) + 1)


def spread(layers: Sequence[Sequence[int]], shapes: Sequence[Sequence[Box]], links: Iterable[Link]) -> list[float]:
    """The x of every layer. `shapes`: the boxes of each node, x from its own centre. Sets where the links bend."""
    frame = bounds(box for nodes in layers for node in nodes for box in shapes[node])
    leaving: dict[int, list[Link]] = {}
    for link in links:
        leaving.setdefault(link.left, []).append(link)
    taken = _Skyline(frame, 0.0)
    xs: list[float] = []
    arriving: list[list[Link]] = []
    for nodes in layers:
        boxes = [box for node in nodes for box in shapes[node]]
        x = max((taken.get(box, max) + GAP - box.left for box in boxes), default=0.0)
        x = max(x, xs[-1] + GAP) if xs else x
        xs.append(x)
        _end_bends(arriving, frame, boxes, x)
        for box in boxes:
            taken.set(box, x + box.right, max)
        arriving = _groups([link for node in nodes for link in leaving.get(node, ())])
        _begin_bends(arriving, taken)
    return xs


def _groups(links: Sequence[Link]) -> list[list[Link]]:
    """Links of one channel whose heights overlap. They bend together, so that none overtakes and crosses another."""
    groups: list[list[Link]] = []
    bottom = 0.0
    for link in sorted(links, key=lambda link: link.box().top):
        if groups and link.box().top <= bottom:
            groups[-1].append(link)
            bottom = max(bottom, link.box().bottom)
        else:
            groups.append([link])
            bottom = link.box().bottom
    return groups


def _begin_bends(groups: Sequence[Sequence[Link]], taken: _Skyline) -> None:
    begins = [max(taken.get(link.box(), max) for link in group) for group in groups]
    for group, begin in zip(groups, begins, strict=True):
        end = begin + max(link.channel() for link in group)
        for link in group:
            link.bend_from, link.bend_to = begin, end
            taken.set(link.box(), end - GAP, max)


def _end_bends(groups: Sequence[Sequence[Link]], frame: Box, boxes: Sequence[Box], x: float) -> None:
    free = _Skyline(frame, x)
    for box in boxes:
        free.set(box, x + box.left, min)
    for group in groups:
        end = max(group[0].bend_to, min(free.get(link.box(), min) for link in group))
        for link in group:
            link.bend_to = end
