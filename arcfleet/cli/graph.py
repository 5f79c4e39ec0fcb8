"""`arcfleet graph`: the automaton as a drawing."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from afa import load_patterns
from arcfleet.drawing import draw


class Drawing(StrEnum):
    svg = "svg"
    dot = "dot"
    mermaid = "mermaid"


def graph(
    patterns: Annotated[list[Path], typer.Argument(metavar="PATTERN...", help="Pattern files (YAML or JSON).")],
    drawing_format: Annotated[Drawing, typer.Option("--format", help="What to draw.")] = Drawing.svg,
) -> None:
    """Draw automata as SVG, DOT or Mermaid. Needs no other program.

    [bold]Examples[/]

    arcfleet graph q1.yaml --format svg > q1.svg

    arcfleet graph q1.yaml --format mermaid
    """
    sys.stdout.write(draw(load_patterns(*patterns), drawing_format.value))
