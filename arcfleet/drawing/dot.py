"""The drawing in DOT, the language of Graphviz: one digraph for each pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from afa.pattern import Arc, Pattern
from arcfleet.drawing import text

ROUND_COLUMNS: Final = 8  # longer names would make huge circles
HEAD: Final = """\
  rankdir=LR; labelloc=t; labeljust=l; nodesep=0.4; fontname="monospace";
  node [shape=circle, fontname="monospace", style=filled, fillcolor="#eaf1fd", color="#3d6fc4"];
  edge [fontname="monospace", fontsize=11, color="#7b8798"];
  start [shape=point, label="", color="#1b2330", fillcolor="#1b2330"];"""


def draw_dot(patterns: Sequence[Pattern]) -> str:
    return "\n".join(_digraph(pattern) for pattern in patterns)


def _digraph(pattern: Pattern) -> str:
    finals = text.final_states(pattern)
    node = {state: f"s{number}" for number, state in enumerate(pattern.states)}
    title = [text.name_text(pattern), *text.caption_lines(text.caption(pattern), 80)]
    lines = [f"digraph {_quoted(text.clean(pattern.name))} {{", HEAD, f"  label={_label(title)};"]
    lines += [f"  {name} [{_state(state, state in finals)}];" for state, name in node.items()]
    lines.append(f"  start -> {node[pattern.start]};")
    lines += [f"  {node[arc.source]} -> {node[arc.target]} [{_attributes(arc)}];" for arc in pattern.arcs]
    return "\n".join([*lines, "}", ""])


def _state(state: str, final: bool) -> str:
    words = text.state_text(state)
    attributes = [f"label={_quoted(words)}", f"tooltip={_quoted(text.clean(state))}"]
    if text.columns(words) > ROUND_COLUMNS:
        attributes.append('shape=box, style="filled,rounded"')
    if final:
        attributes.append('peripheries=2, fillcolor="#e0f5e9", color="#1f8f5a"')
    return ", ".join(attributes)


def _attributes(arc: Arc) -> str:
    label = text.label(arc)
    words = ["".join(span.text for span in line) for line in label.lines]
    dashed = ', style=dashed, color="#9a6bd8"' if arc.epsilon else ""
    return f"label={_label(words)}, tooltip={_quoted(label.tooltip)}{dashed}"


def _label(lines: Sequence[str]) -> str:
    r"""Flush left: `\l` ends a line."""
    return '"' + "".join(_escaped(line) + r"\l" for line in lines) + '"'


def _quoted(words: str) -> str:
    return f'"{_escaped(words)}"'


def _escaped(words: str) -> str:
    """Inside double quotes. Graphviz reads backslash sequences and HTML entities in labels: neither is left in them."""
    return words.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
