"""The drawing as one SVG document that needs nothing else: no script, no font file, no reference to anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from afa.pattern import Pattern
from arcfleet.drawing import text
from arcfleet.drawing.geometry import Box, Curve, bounds
from arcfleet.drawing.layout import (
    LABEL_PADDING_X,
    LABEL_PADDING_Y,
    LINE,
    RADIUS,
    Layout,
    PlacedArcs,
    PlacedLabel,
    PlacedState,
    lay_out,
)
from arcfleet.drawing.theme import STYLE

MARGIN: Final = 28.0
PANEL_GAP: Final = 16.0
NAME_HEIGHT: Final = 24.0
CAPTION_LINE: Final = 18.0
CAPTION_CHARACTER: Final = 7.4
NAME_CHARACTER: Final = 11.4
MIN_CAPTION_COLUMNS: Final = 56
HEAD_GAP: Final = 22.0  # between caption and automaton
ARROW_LENGTH: Final = 9.0
ARROW_REACH: Final = 4.2
RING: Final = 4.5  # between the two outlines of a final state


def draw_svg(patterns: Sequence[Pattern]) -> str:
    """One document with a panel for each pattern, from top to bottom."""
    panels = [_Panel(pattern) for pattern in patterns]
    width = max((panel.width for panel in panels), default=2 * MARGIN)
    body: list[str] = []
    top = 0.5  # half a pixel: the outline of one pixel falls on whole pixels
    for panel in panels:
        body += panel.lines(top, width)
        top += panel.height + PANEL_GAP
    wide, high = _number(width + 1), _number(max(top - PANEL_GAP, 0) + 0.5)
    names = _quote(", ".join(text.name_text(pattern) for pattern in patterns))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="arcfleet" width="{wide}" height="{high}"'
        f' viewBox="0 0 {wide} {high}" role="img" aria-label="{names}">'
    )
    return "\n".join([opening, f"<style>{STYLE}</style>", *body, "</svg>", ""])


class _Panel:
    """One pattern: its name, its facts, its automaton."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.picture: Layout = lay_out(pattern)
        facts = text.caption(pattern)
        self.facts = facts
        self.caption = text.caption_lines(facts, max(MIN_CAPTION_COLUMNS, int(self.picture.width / CAPTION_CHARACTER)))
        widest = max(text.columns(line) for line in self.caption) * CAPTION_CHARACTER
        name = text.columns(text.name_text(pattern)) * NAME_CHARACTER
        self.width = max(self.picture.width, widest, name) + 2 * MARGIN
        self.head = NAME_HEIGHT + CAPTION_LINE * len(self.caption) + HEAD_GAP
        self.height = self.picture.height + self.head + 2 * MARGIN

    def lines(self, top: float, width: float) -> list[str]:
        outline = f'width="{_number(width)}" height="{_number(self.height)}" rx="12"'
        everything = "\n".join([text.clean(self.pattern.name), *self.facts])[: text.TOOLTIP_CHARACTERS]
        lines = [
            f'<g class="pattern" transform="translate(.5 {_number(top)})">',
            f'<rect class="panel" {outline}/>',
            f"<g><title>{_quote(everything)}</title>",
            _text("name", MARGIN, MARGIN + 14, _quote(text.name_text(self.pattern))),
        ]
        for number, line in enumerate(self.caption):
            y = MARGIN + NAME_HEIGHT + 12 + number * CAPTION_LINE
            lines.append(_text("caption", MARGIN, y, _quote(line)))
        lines += ["</g>", f'<g transform="translate({_number(MARGIN)} {_number(MARGIN + self.head)})">']
        for arc in self.picture.arcs:
            lines += _arc(arc)
        lines += _start(self.picture.start)
        for state in self.picture.states:
            lines += _state(state)
        return [*lines, "</g>", "</g>"]


def _arc(arc: PlacedArcs) -> list[str]:
    classes = " ".join(["arc", *(["epsilon"] if arc.epsilon else []), *(["never"] if arc.never else [])])
    whole = bounds(placed.box for placed in arc.labels)
    lines = [f'<g class="{classes}">', *_arrow(arc.curve), f'<rect class="chip" {_rectangle(whole)} rx="6"/>']
    for placed in arc.labels:
        lines += _label(placed, rule=placed is not arc.labels[0])
    return [*lines, "</g>"]


def _label(placed: PlacedLabel, *, rule: bool) -> list[str]:
    box, label = placed.box, placed.label
    lines = [
        f'<g class="label" data-arc="{_quote(text.clean(label.arc))}">',
        f"<title>{_quote(label.tooltip)}</title>",
        f'<rect class="touch" {_rectangle(box)}/>',
    ]
    if rule:
        lines.append(f'<path class="rule" d="M{_number(box.left)} {_number(box.top)}H{_number(box.right)}"/>')
    for number, line in enumerate(label.lines):
        spans = "".join(f'<tspan class="{span.role}">{_quote(span.text)}</tspan>' for span in line)
        y = box.top + LABEL_PADDING_Y + LINE * number + 12
        lines.append(_text("words", box.left + LABEL_PADDING_X, y, spans))
    return [*lines, "</g>"]


def _arrow(curve: Curve) -> Iterable[str]:
    (x, y), (dx, dy) = curve.end, curve.direction
    back_x, back_y = x - ARROW_LENGTH * dx, y - ARROW_LENGTH * dy
    path = [f"M{_number(curve.start[0])} {_number(curve.start[1])}"]
    for piece in curve.pieces:
        points = [*piece[:-1], (back_x, back_y)] if piece is curve.pieces[-1] else piece
        path.append(("L" if len(points) == 1 else "C") + " ".join(f"{_number(px)} {_number(py)}" for px, py in points))
    yield f'<path class="line" d="{"".join(path)}"/>'
    corners = [(x, y)] + [(back_x + side * ARROW_REACH * dy, back_y - side * ARROW_REACH * dx) for side in (1, -1)]
    yield f'<path class="head" d="M{"L".join(f"{_number(px)} {_number(py)}" for px, py in corners)}Z"/>'


def _start(curve: Curve) -> list[str]:
    x, y = curve.start
    return ['<g class="start">', *_arrow(curve), f'<circle cx="{_number(x)}" cy="{_number(y)}" r="3.5"/>', "</g>"]


def _state(state: PlacedState) -> list[str]:
    x, y = state.box.centre
    tooltip = _quote(text.clean(state.name)[: text.TOOLTIP_CHARACTERS])
    lines = [
        f'<g class="{"node final" if state.final else "node"}" data-state="{tooltip}"><title>{tooltip}</title>',
        f'<rect class="state" {_rectangle(state.box)} rx="{_number(RADIUS)}"/>',
    ]
    if state.final:
        box = state.box
        inner = Box(box.left + RING, box.top + RING, box.right - RING, box.bottom - RING)
        lines.append(f'<rect class="ring" {_rectangle(inner)} rx="{_number(RADIUS - RING)}"/>')
    return [*lines, _text("state-name", x, y + 5, _quote(state.text)), "</g>"]


def _text(role: str, x: float, y: float, content: str) -> str:
    return f'<text class="{role}" x="{_number(x)}" y="{_number(y)}" xml:space="preserve">{content}</text>'


def _rectangle(box: Box) -> str:
    return f'x="{_number(box.left)}" y="{_number(box.top)}" width="{_number(box.width)}" height="{_number(box.height)}"'


def _number(value: float) -> str:
    rounded = round(value, 1)
    return str(int(rounded)) if rounded == int(rounded) else str(rounded)


def _quote(words: str) -> str:
    """For text and for attributes."""
    return escape(words, quote=True)
