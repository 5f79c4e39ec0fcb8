"""Pictures of automata: SVG that needs no other program, DOT and Mermaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from afa.pattern import Pattern
from arcfleet.drawing.dot import draw_dot
from arcfleet.drawing.mermaid import draw_mermaid
from arcfleet.drawing.svg import draw_svg

Format: TypeAlias = Literal["svg", "dot", "mermaid"]

__all__ = ["Format", "draw"]


def draw(patterns: Sequence[Pattern], format: Format) -> str:
    """The patterns in one text: the same for the same patterns, and nothing in them can leave its quotes."""
    match format:
        case "svg":
            return draw_svg(patterns)
        case "dot":
            return draw_dot(patterns)
        case "mermaid":
            return draw_mermaid(patterns)
