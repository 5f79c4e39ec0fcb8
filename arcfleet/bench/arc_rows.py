"""The rows about changing Q3 while it runs: an arc ends, and one with a new id and a text seen before begins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from afa.arcs import build_arc
from afa.pattern import Arc, Lifetime, Pattern
from arcfleet.bench.batches import Control, record_batches
from arcfleet.bench.loop_rows import pattern_of, window_of
from arcfleet.bench.matches import codes_of, compare, starts_of
from arcfleet.bench.measure import Bench, Contender, by_turns, call, feeding, net_matches, ratios
from arcfleet.bench.python_loops import WORD
from arcfleet.bench.rows import Row
from arcfleet.bench.settings import PUNCTUATION_BEHIND, PUNCTUATION_EVERY
from arcfleet.bench.workloads import Ints, Stream, price_walk

STEP: Final = 4  # of the word, a D: the step whose arc changes
LIMITS: Final = (0.0, -0.5)  # what a downtick of that step stays below, by turns
RESTARTS: Final = 20  # of the operator, spread over the second half of the stream


@dataclass(frozen=True)
class Version:
    """The changing arc between two changes: from `le` on, until the next one begins."""

    number: int
    le: int | None

    @property
    def body(self) -> dict[str, Any]:
        id_ = f"s{STEP}" + (f"-{self.number}" if self.number else "")
        limit = LIMITS[self.number % len(LIMITS)]
        return {"id": id_, "from": f"q{STEP}", "to": f"q{STEP + 1}", "when": f"e.change < {limit:g}"}


def version_at(ts: int, every: int) -> Version:
    """The one that is valid at this ts: a change comes after every so many events, and takes effect just above them."""
    number = ts // every
    return Version(number, number * every or None)


def arc_changes(count: int, every: int) -> Iterator[Control]:
    """Two records per change: the old arc ends, the new one begins."""
    for after in range(every, count, every):
        old, new = version_at(after - 1, every), version_at(after, every)
        ended = {"op": "arc", "pattern": "q3", "arc": {"id": old.body["id"]}, "valid": [old.le, after]}
        begun = {"op": "arc", "pattern": "q3", "arc": new.body, "valid": [after, None]}
        yield from (Control(after, "arc", arc=json.dumps(record)) for record in (ended, begun))


def expected_codes(stream: Stream, every: int | None) -> Ints:
    """Q3 over whole columns: step by step, the changing one with the limit of its time."""
    change = stream.change
    limits = np.zeros(len(stream)) if every is None else np.array(LIMITS)[stream.ts // every % len(LIMITS)]
    starts = max(0, len(stream) - len(WORD) + 1)
    hits = np.ones(starts, dtype=bool)
    for step, tick in enumerate(WORD):
        part = slice(step, step + starts)
        limit = limits[part] if step == STEP else 0.0
        hits &= change[part] > 0 if tick == "U" else change[part] < limit
    found = stream.ts[:starts][hits]
    return codes_of(np.stack((found, found + len(WORD) - 1), axis=1))


def _open(bench: Bench, pattern: Pattern) -> Any:
    """An engine that has seen the texts of all arcs to come, on arcs that are never alive: a text is checked once."""
    engine = bench.open_engine([pattern], net="record")
    for number in range(1, len(LIMITS)):
        arc = Version(number, None).body | {"id": f"seen-{number}"}
        engine.change_arc({"op": "arc", "pattern": pattern.name, "arc": arc, "valid": [0, 0]})
    return engine


def _changing(bench: Bench, name: str, every: int) -> Row:
    pattern = pattern_of("q3")
    stream = price_walk(bench.events(10 * every * PUNCTUATION_EVERY), 0.5, bench.settings.seed)
    make = partial(_open, bench, pattern)
    batches = {
        "changing": record_batches(stream, list(arc_changes(len(stream), every))),
        "steady": record_batches(stream),
    }
    for what, number in (("changing", every), ("steady", None)):
        compare(f"{name}, {what}", net_matches(make(), batches[what], ["q3"]), expected_codes(stream, number))
        bench.tick("matches compared")
    timings = by_turns(bench, {what: feeding(make, batches[what]) for what in batches})
    ratio, spread = ratios(timings["steady"], timings["changing"])
    changing_ns, steady_ns = (timings[what].nanoseconds(len(stream)) for what in ("changing", "steady"))
    matches = len(expected_codes(stream, every))
    a_change = (changing_ns - steady_ns) * every
    row = Row(name, len(stream), matches, ratio, spread, timings["changing"].seconds, changing_ns, steady_ns)
    return replace(row, more={"change_ns": a_change}, note=f"{a_change:,.0f} ns a change")


def arcs_1000(bench: Bench) -> Row:
    return _changing(bench, "arcs-1000", 1000)


def arcs_10(bench: Bench) -> Row:
    return _changing(bench, "arcs-10", 10)


def arcs_restart(bench: Bench) -> Row:
    """Ten events and an arc change, live; against a new engine given the arcs, the active events and those ten."""
    every = 10
    pattern = pattern_of("q3")
    stream = price_walk(bench.events(bench.settings.small_events), 0.5, bench.settings.seed)
    batches = record_batches(stream, list(arc_changes(len(stream), every)))
    make = partial(bench.open_engine, [pattern], net="record")
    expected = expected_codes(stream, every)
    compare("arcs-restart", net_matches(make(), batches, ["q3"]), expected)
    restarts = [_restart(pattern, stream, at, every) for at in _restart_positions(len(stream), every)]
    for restarted, active, first, last in restarts:
        spans = codes_of(_spans_within(expected, first, last))
        found = net_matches(bench.open_engine([restarted], net="record"), [active], ["q3"])
        compare(f"arcs-restart, a restart at {last}", found, spans)
    bench.tick("matches compared")
    timings = by_turns(bench, {"live": feeding(make, batches), "restart": _restarting(bench, restarts)})
    periods = len(stream) / every
    ratio, spread = ratios(timings["restart"], timings["live"], periods / len(restarts))
    live_ns = timings["live"].nanoseconds(len(stream))
    restart_ns = timings["restart"].nanoseconds(len(restarts)) / every
    row = Row("arcs-restart", len(stream), len(expected), ratio, spread, timings["live"].seconds, live_ns, restart_ns)
    return replace(row, note=f"a restart with {np.mean([r[1].num_rows for r in restarts]):,.0f} active events")


def _restart_positions(count: int, every: int) -> list[int]:
    """Where an arc changes, in the second half, with room for the events up to the next change."""
    positions = np.linspace(count // 2, count - every, RESTARTS).astype(int) // every * every
    return sorted({int(position) for position in positions})


def _restart(pattern: Pattern, stream: Stream, at: int, every: int) -> tuple[Pattern, pa.RecordBatch, int, int]:
    """The pattern with the arcs that the active events can meet, those events up to the next change, and their bounds.

    Active is what is not below the last punctuation minus the window.
    """
    punctuation = at // PUNCTUATION_EVERY * PUNCTUATION_EVERY - 1 - PUNCTUATION_BEHIND
    first, last = max(0, punctuation - window_of(pattern)), min(at + every, len(stream))
    part = slice(first, last)
    active = Stream(stream.ts[part], {name: column[part] for name, column in stream.columns.items()})
    whole = pa.Table.from_batches(record_batches(active)).combine_chunks().to_batches()[0]
    events = whole.filter(pc.is_null(whole["op"]))
    steady = tuple(arc for arc in pattern.arcs if arc.id != f"s{STEP}")
    versions = tuple(_arc(number, at, every, pattern) for number in range(first // every, at // every + 1))
    return replace(pattern, arcs=steady + versions), events, first, last


def _arc(number: int, at: int, every: int, pattern: Pattern) -> Arc:
    version = version_at(number * every, every)
    ends = (number + 1) * every if number < at // every else None
    begins = Lifetime().le if version.le is None else version.le
    lifetime = Lifetime(begins, Lifetime().re if ends is None else ends)
    return build_arc(version.body, pattern, (), lifetime_inside=False, lifetime=lifetime)


def _spans_within(codes: Ints, first: int, last: int) -> Ints:
    starts = starts_of(codes)
    kept = starts[(starts >= first) & (starts + len(WORD) <= last)]
    return np.stack((kept, kept + len(WORD) - 1), axis=1)


def _restarting(bench: Bench, restarts: list[tuple[Pattern, pa.RecordBatch, int, int]]) -> Contender:
    """Here making the engine counts: it is what a restart is."""

    def run() -> int:
        changes = 0
        for pattern, active, _, _ in restarts:
            changes += bench.open_engine([pattern], net="record").feed(active).to_arrow(ids=False).num_rows
        return changes

    return call(run)
