"""Boxes and curves of a drawing, in pixels, y downwards."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
# One point: a straight line to it. Three: a cubic curve, two control points and the end.
Piece: TypeAlias = tuple[Point] | tuple[Point, Point, Point]


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def centre(self) -> Point:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def moved(self, x: float, y: float) -> Box:
        return Box(self.left + x, self.top + y, self.right + x, self.bottom + y)

    def meets(self, other: Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class Curve:
    """A line that ends in an arrowhead."""

    start: Point
    pieces: tuple[Piece, ...]

    @property
    def end(self) -> Point:
        return self.pieces[-1][-1]

    @property
    def direction(self) -> Point:
        """Of the arrowhead: a unit vector."""
        *_, (from_x, from_y), (to_x, to_y) = [self.start, *(point for piece in self.pieces for point in piece)]
        length = math.hypot(to_x - from_x, to_y - from_y) or 1.0
        return (to_x - from_x) / length, (to_y - from_y) / length

    def reversed(self) -> Curve:
        ends = [self.start, *(piece[-1] for piece in self.pieces)]
        pieces: list[Piece] = []
        for end, piece in zip(reversed(ends[:-1]), reversed(self.pieces), strict=True):
            pieces.append((end,) if len(piece) == 1 else (piece[1], piece[0], end))
        return Curve(ends[-1], tuple(pieces))

    def moved(self, x: float, y: float) -> Curve:
        def move(point: Point) -> Point:
            return point[0] + x, point[1] + y

        pieces: list[Piece] = [
            (move(piece[0]),) if len(piece) == 1 else (move(piece[0]), move(piece[1]), move(piece[2]))
            for piece in self.pieces
        ]
        return Curve(move(self.start), tuple(pieces))


def bounds(boxes: Iterable[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*((box.left, box.top, box.right, box.bottom) for box in boxes), strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))
