"""`arcfleet graph`: the automaton as a drawing."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from afa import load_patterns
from arcfleet.cli.output import PatternsArgument
from arcfleet.drawing import draw


class Drawing(StrEnum):
    svg = "svg"
    dot = "dot"
    mermaid = "mermaid"


def graph(
    patterns: PatternsArgument,
    drawing_format: Annotated[Drawing, typer.Option("--format", help="What to draw.")] = Drawing.svg,
) -> None:
    """Draw automata as SVG, DOT or Mermaid. Needs no other program.

    [bold]Examples[/]

    arcfleet graph q1.yaml --format svg > q1.svg

    arcfleet graph q1.yaml --format mermaid
    """
    sys.stdout.write(draw(load_patterns(*patterns), drawing_format.value))
