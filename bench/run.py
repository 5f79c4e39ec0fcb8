"""What `make bench` runs: the reference engine on Q1, beside a Python loop written for Q1 alone.

Both see the same seeded ticks, one key, times in CPU seconds of this process, reading and decoding excluded. Their
matches are compared before any speed is shown. The reference engine computes everything anew with each event, on
purpose; the numbers are the starting point for the native engine, not a claim.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table

from afa import load_patterns
from afa.pattern import Pattern, TimeWindow
from afa.records import Event, MatchChange, Punctuation, Record
from afa.reference import ReferenceEngine

Q1: Final = Path(__file__).parent.parent / "examples" / "q1.yaml"
EVENTS: Final = 500
WINDOW: Final = 20  # in events: ts is the position in the stream; the reference's cost grows with its square
PUNCTUATION_EVERY: Final = 20
LATE_BY_MOST: Final = 20  # events; punctuations stay this far behind, so that nothing late is lost
LARGE_DROP, V_PATTERNS = -0.25, 2  # of examples/q1.yaml
LOOP_SECONDS_LEAST: Final = 0.2  # the loop is repeated until one measurement takes this long

Result = TypeVar("Result")
Span = tuple[int, int]  # ts of the first and last event of a match


def price_changes(count: int, seed: int) -> list[float]:
    """The paper's workload: up with p = 0.5, the move drawn from N(0.70, 0.30), those below 0.01 drawn again."""
    source = random.Random(seed)
    changes: list[float] = []
    while len(changes) < count:
        move = source.gauss(0.70, 0.30)
        if move >= 0.01:
            changes.append(move if source.random() < 0.5 else -move)
    return changes


def arrivals(changes: list[float], late_share: float, seed: int) -> list[Record]:
    """The ticks as events in order of arrival, with punctuations."""
    source = random.Random(seed + 1)
    events = [Event("YHOO", ts, f"{ts:06d}", type="stock", data={"change": c}) for ts, c in enumerate(changes)]
    delays = [source.randint(1, LATE_BY_MOST) + 0.5 if source.random() < late_share else 0 for _ in events]
    arriving = sorted(events, key=lambda event: event.ts + delays[event.ts])
    records: list[Record] = []
    newest = 0
    for position, event in enumerate(arriving, 1):
        records.append(event)
        newest = max(newest, event.ts)
        if position % PUNCTUATION_EVERY == 0:
            records.append(Punctuation(newest - LATE_BY_MOST))
    return records


def run_engine(pattern: Pattern, records: Iterable[Record]) -> tuple[set[Span], int]:
    """The net matches, and how many were retracted on the way."""
    engine = ReferenceEngine([pattern])
    net: dict[str, Span] = {}
    retractions = 0
    for record in records:
        step = engine.feed(record)
        assert step.late is None, step.late
        for change in step.changes:
            if isinstance(change, MatchChange) and change.op == "insert":
                net[change.id] = (change.match.start, change.match.end)
            elif isinstance(change, MatchChange):
                del net[change.id]
                retractions += 1
    return set(net.values()), retractions


def run_loop(changes: list[float]) -> set[Span]:
    """Q1 by hand, for ticks in order: a run is [start, downticks minus upticks, V-patterns begun, rising]."""
    found: set[Span] = set()
    runs: list[list[int]] = []
    for ts, change in enumerate(changes):
        alive = []
        for run in runs:
            if ts >= run[0] + WINDOW:
                continue
            if change < 0:
                if run[3] or not run[2]:
                    run[2] += 1
                run[1] += 1
                run[3] = 0
                if run[2] > V_PATTERNS:
                    continue
            else:
                if not run[2]:
                    continue
                run[1] -= 1
                run[3] = 1
                if run[2] == V_PATTERNS and run[1] <= 0:
                    if run[1] == 0:
                        found.add((run[0], ts))
                    continue
            alive.append(run)
        runs = alive
        if change < LARGE_DROP:
            runs.append([ts, 0, 0, 0])
    return found


def timed(work: Callable[[], Result], repeats: int = 1) -> tuple[Result, float]:
    """What the work gives, and the CPU seconds that it takes once."""
    started = time.process_time()
    for _ in range(repeats):
        result = work()
    return result, (time.process_time() - started) / repeats


@dataclass(frozen=True)
class Row:
    """One workload. Lists hold one measurement per run."""

    name: str
    events: int
    matches: int
    retractions: int
    engine_seconds: list[float]
    loop_seconds: list[float]

    def as_json(self) -> dict[str, Any]:
        engine, loop = statistics.median(self.engine_seconds), statistics.median(self.loop_seconds)
        return {
            "name": self.name,
            "events": self.events,
            "matches": self.matches,
            "retractions": self.retractions,
            "seconds": engine,
            "spread": spread(self.engine_seconds),
            "events_per_second": round(self.events / engine),
            "loop_seconds": loop,
            "loop_spread": spread(self.loop_seconds),
            "loop_events_per_second": round(self.events / loop),
            "ratio": loop / engine,
        }


def spread(seconds: list[float]) -> float:
    """From the fastest to the slowest run, as a share of the median."""
    return (max(seconds) - min(seconds)) / statistics.median(seconds)


def measure(name: str, late_share: float, runs: int, seed: int, console: Console) -> Row:
    (pattern,) = load_patterns(Q1)
    pattern = replace(pattern, window=TimeWindow(WINDOW))
    changes = price_changes(EVENTS, seed)
    records = arrivals(changes, late_share, seed)
    expected, loop_once = timed(lambda: run_loop(changes))
    repeats = max(1, round(LOOP_SECONDS_LEAST / max(loop_once, 1e-6)))
    engine_seconds, loop_seconds = [], []
    for _ in track(range(runs), name, console=console, transient=True, disable=not console.is_terminal):
        (found, retractions), seconds = timed(lambda: run_engine(pattern, records))
        if found != expected:
            sys.exit(f"{name}: the engine has {len(found)} matches, the loop {len(expected)}; no speed is shown")
        engine_seconds.append(seconds)
        loop_seconds.append(timed(lambda: run_loop(changes), repeats)[1])
    return Row(name, len(changes), len(expected), retractions, engine_seconds, loop_seconds)


def show(rows: list[dict[str, Any]], runs: int, seed: int) -> None:
    title = f"Q1, {EVENTS:,} events, window {WINDOW}, median of {runs} runs, seed {seed}"
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("workload")
    for column in ("matches", "retracted", "engine, events/s", "loop, events/s", "ratio"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['matches']:,}",
            f"{row['retractions']:,}",
            f"{row['events_per_second']:,} ±{row['spread'] / 2:.0%}",
            f"{row['loop_events_per_second']:,} ±{row['loop_spread'] / 2:.0%}",
            f"{row['ratio']:.2g}",
        )
    console = Console()
    console.print(table)
    console.print("engine: the reference, slow on purpose; loop: Python written for Q1 alone,")
    console.print("given the ticks in order even where the engine gets them late.")
    console.print("ratio: the engine's speed by the loop's; both find the same matches.")


def main() -> None:
    parser = argparse.ArgumentParser(description="Today's engine on Q1, beside a Python loop written for Q1 alone.")
    parser.add_argument("--json", action="store_true", help="one JSON object per workload")
    parser.add_argument("--runs", type=int, default=3, help="measurements per workload (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the ticks and the disorder (default 1)")
    arguments = parser.parse_args()
    workloads = (("q1", 0.0), ("q1-late5", 0.05))
    talk = Console(stderr=True)
    rows = [measure(name, share, arguments.runs, arguments.seed, talk).as_json() for name, share in workloads]
    if arguments.json:
        for row in rows:
            print(json.dumps(row))
    else:
        show(rows, arguments.runs, arguments.seed)


if __name__ == "__main__":
    main()
