"""The drawing in Mermaid: one flowchart for each pattern, which shows labels with symbols more faithfully than a state
diagram does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from afa.pattern import Arc, Pattern
from arcfleet.drawing import text

PLAIN: Final = frozenset(" .,=+-/()ε…∞·→")
ROUND_COLUMNS: Final = 8  # longer names would make huge circles
TITLE_COLUMNS: Final = 110
STYLE: Final = """\
  classDef start fill:#1b2330,stroke:#8a94a3
  classDef state fill:#eaf1fd,stroke:#3d6fc4,color:#1d3f7d
  classDef final fill:#e0f5e9,stroke:#1f8f5a,color:#0f5c38
  style pattern fill:transparent,stroke:#8a94a3"""


def draw_mermaid(patterns: Sequence[Pattern]) -> str:
    """Each flowchart begins at a comment line with the pattern's name."""
    return "\n".join(_flowchart(pattern) for pattern in patterns)


def _flowchart(pattern: Pattern) -> str:
    finals = text.final_states(pattern)
    node = {state: f"s{number}" for number, state in enumerate(pattern.states)}
    title = text.cut(" · ".join([text.name_text(pattern), *text.caption(pattern)]), TITLE_COLUMNS)
    lines = [
        f"%% {_escaped(text.name_text(pattern))}",
        "flowchart LR",
        f"  subgraph pattern[{_quoted([title])}]",
        "    direction LR",
        '    start((" ")):::start',
    ]
    lines += [f"    {name}{_state(state, state in finals)}" for state, name in node.items()]
    lines.append(f"    start --> {node[pattern.start]}")
    lines += [f"    {node[arc.source]} {_arrow(arc)} {node[arc.target]}" for arc in pattern.arcs]
    return "\n".join([*lines, "  end", STYLE, ""])


def _state(state: str, final: bool) -> str:
    words = _quoted([text.state_text(state)])
    if text.columns(text.state_text(state)) <= ROUND_COLUMNS:
        return f"((({words}))):::final" if final else f"(({words})):::state"
    return f"[[{words}]]:::final" if final else f"([{words}]):::state"


def _arrow(arc: Arc) -> str:
    words = _quoted(["".join(span.text for span in line).strip() for line in text.label(arc).lines])
    return f"{'-.->' if arc.epsilon else '-->'}|{words}|"


def _quoted(lines: Sequence[str]) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(words: str) -> str:
    """Letters and harmless signs as they are, all else as `#code;`.

    Mermaid reads Markdown in labels, even in quotes, and strips a `;` from what looks to it like a style: so list
    markers at the beginning, emphasis, and colons that no space follows are codes too.
    """
    escaped = []
    for place, char in enumerate(words):
        before, after = words[place - 1 : place], words[place + 1 : place + 2]
        plain = char.isalnum() or char in PLAIN
        if place == 0:
            plain = char.isalpha()
        elif char == "_":
            plain = before.isalnum() and after.isalnum()
        elif char == ":":
            plain = after == " " or words[place + 1 : place + 3] == "= "
        escaped.append(char if plain else f"#{ord(char)};")
    return "".join(escaped)
