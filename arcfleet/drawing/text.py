"""What a drawing says: the words of states, arcs and the caption, cleaned, wrapped and cut. Quoting is the formats'."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from afa.expression import tree
from afa.pattern import ALWAYS, Arc, CountWindow, Lifetime, Pattern, Register, TimeWindow

LINE_COLUMNS: Final = 30  # of an arc's label
MIN_FENCE_COLUMNS: Final = 16  # with less room beside its id, a fence begins below it
FENCE_LINES: Final = 4
TRANSFER_LINES: Final = 4
ID_COLUMNS: Final = 20
STATE_COLUMNS: Final = 20
NAME_COLUMNS: Final = 60
CAPTION_LINES: Final = 4
TOOLTIP_CHARACTERS: Final = 12_000

Role: TypeAlias = Literal["id", "mark", "epsilon-sign", "fence", "transfer", "lifetime", "more"]

# Surrogates and most controls are not XML; direction marks would let one label rewrite how its neighbours read.
_UNPRINTABLE: Final = frozenset({"Cc", "Cs", "Cn", "Co"})
_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CLAUSE: Final = re.compile(r" (?=(?:and|or|if|else) )")


@dataclass(frozen=True, slots=True)
class Span:
    role: Role
    text: str


Line: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """The words of one arc. `tooltip` has all of what `lines` may cut."""

    arc: str
    lines: tuple[Line, ...]
    tooltip: str

    @property
    def columns(self) -> int:
        return max(sum(columns(span.text) for span in line) for line in self.lines)


def clean(text: str) -> str:
    """On one line, and without characters that have no picture or turn the reading direction."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    shown = (
        " " if char.isspace() else "\ufffd" if unicodedata.category(char) in _UNPRINTABLE else char for char in text
    )
    return _DIRECTION.sub("\ufffd", " ".join("".join(shown).split()))


def columns(text: str) -> int:
    """Its width in cells of a monospaced font; never too small."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, width: int) -> str:
    """At most `width` columns, the last of them an ellipsis if something is missing."""
    if columns(text) <= width:
        return text
    kept, used = [], 1
    for char in text:
        used += columns(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def wrap(text: str, first: int, width: int, lines: int) -> list[str]:
    """Broken before `and`, `or`, `if`, `else` where that will do, else at spaces; cut after so many lines.

    `first` is the width of the first line; 0 leaves it empty.
    """
    widths = [first, *[width] * lines]
    wrapped = [""] if first else ["", ""]
    for clause in _CLAUSE.split(text):
        words = [clause]
        if columns(clause) > (first if wrapped == [""] else width):
            words = clause.split(" ")
            wrapped += [""] if wrapped[-1] else []
        for word in words:
            longer = f"{wrapped[-1]} {word}" if wrapped[-1] else word
            if columns(longer) <= widths[min(len(wrapped), lines) - 1] or not wrapped[-1]:
                wrapped[-1] = longer
            else:
                wrapped.append(word)
        if len(wrapped) > lines:
            break
    if len(wrapped) > lines:
        wrapped[lines - 1 :] = [cut(wrapped[lines - 1], width - 2).removesuffix("…").rstrip() + " …"]
    return [cut(line, limit) for line, limit in zip(wrapped, widths, strict=False)]


def state_text(state: str) -> str:
    return cut(clean(state), STATE_COLUMNS) or "\N{OPEN BOX}"


def label(arc: Arc) -> Label:
    """`id: fence`, the transfers below it, and the lifetime if it is not always."""
    transfers = [(clean(name), clean(expression.text)) for name, expression in arc.transfer]
    lines = [*_fence_lines(arc), *_transfer_lines(transfers)]
    if arc.lifetime != ALWAYS:
        lines.append((Span("lifetime", lifetime_text(arc.lifetime)),))
    fence = clean(arc.fence.text)
    said = [
        f"{clean(arc.id)}: {f'ε {fence}' if arc.epsilon else fence}",
        *(f"{name} := {value}" for name, value in transfers),
    ]
    if arc.lifetime != ALWAYS:
        said.append(lifetime_text(arc.lifetime))
    said.append(f"{clean(arc.source)} → {clean(arc.target)}")
    return Label(arc.id, tuple(lines), "\n".join(said)[:TOOLTIP_CHARACTERS])


def _fence_lines(arc: Arc) -> list[Line]:
    head: list[Span] = [Span("id", cut(clean(arc.id), ID_COLUMNS) or "\N{OPEN BOX}"), Span("mark", ": ")]
    always = isinstance(arc.fence.root, tree.Literal) and arc.fence.root.value is True
    if arc.epsilon:
        head.append(Span("epsilon-sign", "ε" if always else "ε "))
        if always:
            return [tuple(head)]
    width = LINE_COLUMNS - sum(columns(span.text) for span in head)
    fence = clean(arc.fence.text)
    if columns(fence) <= width:
        return [(*head, Span("fence", fence))]
    first, *rest = wrap(fence, width if width >= MIN_FENCE_COLUMNS else 0, LINE_COLUMNS - 2, FENCE_LINES)
    return [(*head, Span("fence", first)), *((Span("mark", "  "), Span("fence", line)) for line in rest)]


def _transfer_lines(transfers: list[tuple[str, str]]) -> list[Line]:
    shown = transfers if len(transfers) <= TRANSFER_LINES else transfers[: TRANSFER_LINES - 1]
    lines: list[Line] = [(Span("transfer", cut(f"{name} := {value}", LINE_COLUMNS)),) for name, value in shown]
    if len(shown) < len(transfers):
        lines.append((Span("more", f"… {len(transfers) - len(shown)} more"),))
    return lines


def lifetime_text(lifetime: Lifetime) -> str:
    le, re_ = lifetime.as_pair()
    text = f"[{'-∞' if le is None else le}, {'∞' if re_ is None else re_})"
    return f"{text} never" if lifetime.is_empty else text


def name_text(pattern: Pattern) -> str:
    return cut(clean(pattern.name), NAME_COLUMNS)


def caption(pattern: Pattern) -> list[str]:
    """The facts below the name: window, key, what a query forbids around a match, registers with initial values."""
    facts = [_window_text(pattern)]
    if pattern.key_field is not None:
        facts.append(f"key {cut(clean('.'.join(pattern.key_field)), NAME_COLUMNS)}")
    if pattern.query is not None:
        absent = [("before", found) for found in pattern.query.leading]
        absent += [("after", found) for found in pattern.query.trailing]
        facts += [cut(clean(f"none {where}: {found.text}"), NAME_COLUMNS) for where, found in absent]
    return facts + [cut(_register_text(register), NAME_COLUMNS) for register in pattern.registers]


def caption_lines(facts: list[str], width: int) -> list[str]:
    """The facts in lines of at most `width` columns; only a single long fact is wider. Cut after a few lines."""
    lines = [""]
    for number, fact in enumerate(facts):
        longer = f"{lines[-1]}  ·  {fact}" if lines[-1] else fact
        if not lines[-1] or columns(longer) <= width:
            lines[-1] = longer
        elif len(lines) < CAPTION_LINES:
            lines.append(fact)
        else:
            lines[-1] += f"  ·  … {len(facts) - number} more"
            break
    return lines


def _window_text(pattern: Pattern) -> str:
    match pattern.window:
        case TimeWindow(length=length):
            return f"within {length}"
        case CountWindow(events=events):
            return f"within {events} events"
        case None:
            counted = None if pattern.query is None else pattern.query.counted
            return "no window" if counted is None else f"within {counted} events of a partition"


def _register_text(register: Register) -> str:
    return clean(f"{register.name} = {json.dumps(register.initial, ensure_ascii=False)}")


def final_states(pattern: Pattern) -> frozenset[str]:
    return pattern.finals | {arc.target for arc in pattern.arcs if arc.final}
