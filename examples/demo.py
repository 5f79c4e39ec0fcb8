"""What `make demo` shows: Q1 on a disordered tape, told step by step. Everything shown comes from the engine.

`examples/demo.py [--fast]`; without pauses too when the output is not a terminal. The tape is `demo.jsonl`, the pattern
`q1.yaml`; `arcfleet replay examples/q1.yaml --tape examples/demo.jsonl --emit changes` prints the same changes.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from afa import Engine, load_patterns
from afa.arcs import read_lifetime
from afa.pattern import Lifetime, Pattern
from afa.records import ArcChange, Change, Event, Match, MatchChange, Punctuation, Record
from afa.tape import Tape
from arcfleet.drawing import draw

HERE = Path(__file__).parent
PAUSE_PER_RECORD_S = 0.5
PAUSE_PER_WORD_S = 0.06
TICK_WIDTH = 5


@dataclass(frozen=True)
class Scene:
    """Words, and then so many lines of the tape."""

    title: str
    words: str
    lines: int


SCENES = (
    Scene(
        "A match, at once",
        "Q1: a large drop, then two V-patterns (downticks, then upticks) with as many upticks as downticks. "
        "Events arrive one by one, and the match is told with the event that completes it, not when a window closes.",
        5,
    ),
    Scene(
        "A late event: the match is taken back, and the right one told",
        "e6 happened between e4 and e5, but arrives after both. With it, the second V was complete at e6 already, "
        "and at e5 there is one uptick too many.",
        1,
    ),
    Scene(
        "Half a pattern is under way",
        "A new drop, a whole V-pattern and half of the next. The next uptick would complete a match.",
        4,
    ),
    Scene(
        "The pattern changes while it runs",
        "From ts 4350 on, three V-patterns are asked for: three arcs end there, three others begin. The partial match "
        "from e7 to e10 took arcs that were valid at its time, so it lives on.",
        6,
    ),
    Scene(
        "The partial match goes on under the new pattern",
        "e11 completes the second V, which is not enough any more. e13 completes the third.",
        3,
    ),
    Scene(
        "A punctuation makes it final",
        "It promises that nothing older than ts 7000 will come. Whatever ended before that will not change again.",
        1,
    ),
)


@dataclass
class Stage:
    """The terminal, and what the audience has seen so far."""

    console: Console
    fast: bool
    events: dict[str, Event] = field(default_factory=dict)
    matches: dict[str, Match] = field(default_factory=dict)

    def pause(self, seconds: float) -> None:
        if not self.fast:
            time.sleep(seconds)

    def title(self, text: str, words: str) -> None:
        self.console.print()
        self.console.rule(Text(text, "bold"), align="left", style="dim")
        self.console.print(Text(words), width=min(self.console.width, 100))
        self.pause(PAUSE_PER_WORD_S * len(words.split()))

    def record(self, record: Record, changes: list[Change]) -> None:
        self.console.print(Text.assemble("  ", *_record_words(record)))
        if isinstance(record, Event):
            self.events[record.id] = record
        for change in changes:
            if isinstance(change, MatchChange):
                self._match(change)
            else:
                self.console.print(
                    Text(f"      punctuation  {change.pattern}: all below ts {change.ts} is final", "cyan")
                )
        self.pause(PAUSE_PER_RECORD_S)

    def _match(self, change: MatchChange) -> None:
        style = "bold green" if change.op == "insert" else "bold red"
        match = change.match
        registers = " ".join(f"{name}={value}" for name, value in match.registers)
        told = f"{match.first} to {match.last}  {registers}  id {change.id[:8]}"
        self.console.print(Text.assemble("      ", (f"{change.op:<7}", style), f"  {told}"))
        if change.op == "insert":
            self.matches[change.id] = match
        else:
            del self.matches[change.id]

    def chart(self) -> None:
        """The ticks in the order in which they happened, and the matches that stand."""
        ordered = sorted(self.events.values(), key=lambda event: event.order)
        self.console.print()
        self.console.print(Text("  " + "".join(f"{event.id:^{TICK_WIDTH}}" for event in ordered), "dim"))
        self.console.print(Text.assemble("  ", *(_arrow(event) for event in ordered)))
        places = {event.id: position for position, event in enumerate(ordered)}
        for match in self.matches.values():
            first, last = places[match.first], places[match.last]
            line = "╰" + "─" * ((last - first) * TICK_WIDTH - 1) + "╯"
            self.console.print(Text("  " + " " * (first * TICK_WIDTH + TICK_WIDTH // 2) + line, "green"))
        self.pause(1.0)


def _record_words(record: Record) -> Iterator[str | tuple[str, str]]:
    match record:
        case Event(data=data):
            yield (f"{record.id:<4}", "bold")
            yield f"ts {record.ts}  {(data or {})['change']:+.2f}"
        case ArcChange(arc=arc, valid=valid):
            yield (f"{arc['id']:<4}", "bold magenta")
            span = _span(read_lifetime(valid, ("valid",)))
            yield f"{'begins' if 'from' in arc else 'ends'}: valid for ts in {span}"
        case Punctuation(ts=ts):
            yield ("punctuation", "bold cyan")
            yield f" ts {ts}"


def _arrow(event: Event) -> tuple[str, str]:
    change = (event.data or {})["change"]
    sign, style = ("⇓", "bold red") if change < -0.25 else ("↓", "red") if change < 0 else ("↑", "green")
    return f"{sign:^{TICK_WIDTH}}", style


def _span(lifetime: Lifetime) -> str:
    le, re = lifetime.as_pair()
    return f"[{'-inf' if le is None else le}, {'inf' if re is None else re})"


def show_arcs(stage: Stage, pattern: Pattern) -> None:
    """The automaton as a table, small enough for a terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("  arc", "from", "to", "if", "then", "valid"):
        table.add_column(column)
    for arc in pattern.arcs:
        transfer = ", ".join(f"{name} := {value.text}" for name, value in arc.transfer)
        final = " (final)" if arc.target in pattern.finals else ""
        valid = "" if arc.lifetime == Lifetime() else _span(arc.lifetime)
        cells = (f"  {arc.id}", arc.source, arc.target + final, arc.fence.text, transfer, valid)
        table.add_row(*(Text(cell) for cell in cells))
    stage.console.print(table)


def write_drawings(*patterns: tuple[str, Pattern]) -> list[Path]:
    """The drawings as files, in $ARCFLEET_CACHE/demo or a new folder for temporary files."""
    cache = os.environ.get("ARCFLEET_CACHE")
    folder = Path(cache) / "demo" if cache else Path(tempfile.mkdtemp(prefix="arcfleet-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, pattern in patterns:
        path = folder / f"{name}.svg"
        path.write_text(draw([pattern], "svg"), encoding="utf-8")
        written.append(path)
    return written


def play(stage: Stage) -> None:
    (pattern,) = load_patterns(HERE / "q1.yaml")
    engine = Engine([pattern])
    stage.title("The automaton Q1", "Each computation carries two counters: r1 downticks minus upticks, r2 V-patterns.")
    show_arcs(stage, pattern)
    with (HERE / "demo.jsonl").open("rb") as opened:
        lines = iter(Tape(opened, "demo.jsonl"))
        for scene in SCENES:
            stage.title(scene.title, scene.words)
            for _ in range(scene.lines):
                line = next(lines)
                record = line.read()
                stage.record(record, engine.feed_lines([line]).changes)
            if isinstance(record, Event):
                stage.chart()
    (changed,) = engine.patterns()
    stage.title("The automaton now", "With the lifetimes of its arcs; and drawn, before and after the change:")
    show_arcs(stage, changed)
    stage.console.print()
    for path in write_drawings(("q1", pattern), ("q1-changed", changed)):
        stage.console.print(Text.assemble("  drawn: ", (str(path), "bold")), soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Q1 of the AFA paper on a disordered tape, step by step.")
    parser.add_argument("--fast", action="store_true", help="without pauses (as when stdout is not a terminal)")
    arguments = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    console = Console(highlight=False)
    try:
        play(Stage(console, fast=arguments.fast or not console.is_terminal))
    except KeyboardInterrupt:
        sys.exit(130)
    console.print("\n  Next: README.md, and the examples beside this one.\n")


if __name__ == "__main__":
    main()
