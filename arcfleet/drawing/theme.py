"""How an SVG drawing looks, on light pages and on dark ones.

Colours come by class, not by custom property: every renderer knows classes. The panel has its own ground, so that the
picture is readable on a page of either kind even where the media query is not understood.
"""

from __future__ import annotations

from string import Template
from typing import Final

SHAPES: Final = """
.arcfleet { font-size: 12px;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace }
.arcfleet .name { font-size: 19px; font-weight: 700;
  font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif }
.arcfleet .line { fill: none; stroke-width: 1.6; stroke-linecap: round }
.arcfleet .head { stroke-width: 1; stroke-linejoin: round }
.arcfleet .epsilon .line { stroke-dasharray: 5 4.5 }
.arcfleet .touch { fill: none; pointer-events: all }
.arcfleet .never { opacity: .5 }
.arcfleet .state { stroke-width: 1.8 }
.arcfleet .ring { fill: none; stroke-width: 1.4 }
.arcfleet .state-name { font-size: 14px; font-weight: 700; text-anchor: middle }
.arcfleet .id, .arcfleet .epsilon-sign { font-weight: 700 }
.arcfleet .arc:hover .line { stroke-width: 2.4 }
"""

COLOURS: Final = Template("""\
.arcfleet .panel { fill: $ground; stroke: $border }
.arcfleet .name { fill: $ink }
.arcfleet .caption { fill: $quiet }
.arcfleet .line { stroke: $arc }
.arcfleet .head { fill: $arc; stroke: $arc }
.arcfleet .epsilon .line { stroke: $epsilon }
.arcfleet .epsilon .head { fill: $epsilon; stroke: $epsilon }
.arcfleet .start .line { stroke: $ink }
.arcfleet .start .head, .arcfleet .start circle { fill: $ink; stroke: $ink }
.arcfleet .chip { fill: $chip; stroke: $chip_border }
.arcfleet .rule { stroke: $border }
.arcfleet .epsilon .chip { stroke: $epsilon_border }
.arcfleet .state { fill: $state; stroke: $state_border }
.arcfleet .state-name { fill: $state_ink }
.arcfleet .final .state { fill: $final; stroke: $final_border }
.arcfleet .final .ring { stroke: $final_border }
.arcfleet .final .state-name { fill: $final_ink }
.arcfleet .label { fill: $text }
.arcfleet .id { fill: $id }
.arcfleet .mark, .arcfleet .more { fill: $mark }
.arcfleet .transfer { fill: $transfer }
.arcfleet .epsilon-sign { fill: $epsilon_ink }
.arcfleet .lifetime { fill: $lifetime }
.arcfleet .arc:hover .line, .arcfleet .arc:hover .chip { stroke: $id }
.arcfleet .arc:hover .head { fill: $id; stroke: $id }
""")

LIGHT: Final = {
    "ground": "#fdfdfe", "border": "#dfe3ea", "ink": "#1b2330", "quiet": "#667085", "text": "#2b3444",
    "mark": "#98a2b3", "arc": "#7b8798", "chip": "#ffffff", "chip_border": "#d5dbe5", "id": "#2a5db8",
    "transfer": "#7a4d0b", "lifetime": "#b0305c", "epsilon": "#9a6bd8", "epsilon_border": "#d9c8f2",
    "epsilon_ink": "#7c4bc4",
    "state": "#eaf1fd", "state_border": "#3d6fc4", "state_ink": "#1d3f7d",
    "final": "#e0f5e9", "final_border": "#1f8f5a", "final_ink": "#0f5c38",
}  # fmt: skip
DARK: Final = {
    "ground": "#12161d", "border": "#2a313d", "ink": "#eef2f8", "quiet": "#93a0b4", "text": "#d4dbe6",
    "mark": "#6b778b", "arc": "#76849a", "chip": "#1a202a", "chip_border": "#343e4e", "id": "#86b1ff",
    "transfer": "#e3b06a", "lifetime": "#f08aae", "epsilon": "#a98be0", "epsilon_border": "#4f4370",
    "epsilon_ink": "#c3a6f5",
    "state": "#1a2b49", "state_border": "#6c9bee", "state_ink": "#d5e4ff",
    "final": "#123526", "final_border": "#4cc38a", "final_ink": "#c4f2da",
}  # fmt: skip

STYLE: Final = (
    f"{SHAPES}{COLOURS.substitute(LIGHT)}@media (prefers-color-scheme: dark) {{\n{COLOURS.substitute(DARK)}}}\n"
)
