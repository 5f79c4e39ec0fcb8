"""The rows of the SASE+ paper's query: pairs of start and end, how their cost grows with the window, and bindings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from afa.pattern import TimeWindow
from arcfleet.bench import python_loops
from arcfleet.bench.batches import numbers_fed, record_batches
from arcfleet.bench.c_loops import CBindings
from arcfleet.bench.loop_rows import NO_COMPILER, against_loop, expected_codes, pattern_of, window_of
from arcfleet.bench.matches import DisagreementError, compare
from arcfleet.bench.measure import Bench, by_turns, call, feeding, net_matches, ratios
from arcfleet.bench.rows import Row
from arcfleet.bench.workloads import Stream, two_symbols

WIDE: int = 2000  # the window that costs are compared with

Bound = bytes  # the numbers of the events that a match binds, in order, 64 bits each


def python_pairs(stream: Stream, window: int) -> Callable[[], list[python_loops.Span]]:
    ts, symbols, prices, volumes = _lists(stream)
    return partial(python_loops.sase_pairs, ts, symbols, prices, volumes, window)


def python_bindings(stream: Stream, window: int) -> Callable[[], list[list[int]]]:
    ts, symbols, prices, volumes = _lists(stream)
    return partial(python_loops.sase_bindings, ts, symbols, prices, volumes, window)


def _lists(stream: Stream) -> list[list[int]]:
    return [column.tolist() for column in (stream.ts, *(stream.columns[n] for n in ("symbol", "price", "volume")))]


def sase_pairs(bench: Bench) -> Row:
    """Start and end are compared, and the engine is asked for no more."""
    pattern = pattern_of("sase")
    window = window_of(pattern)
    stream, short = _streams(bench, bench.events())
    loop = bench.loops.sase_pairs(stream, window) if bench.loops else None
    expected = expected_codes(loop, python_pairs(stream, window))
    row = against_loop(bench, "sase-pairs", pattern, stream, loop=loop, expected=expected, bindings=False)
    return replace(row, python_ns=_python_nanoseconds(bench, python_pairs(short, window), len(short)))


def sase_growth(bench: Bench) -> Row:
    """With four times the window there are four times as many matches; the cost per event may grow as much."""
    narrow = pattern_of("sase")
    wide = replace(narrow, window=TimeWindow(WIDE))
    stream, _ = _streams(bench, bench.events())
    expected = {}
    for pattern in (narrow, wide):
        window = window_of(pattern)
        loop = bench.loops.sase_pairs(stream, window) if bench.loops else None
        expected[window] = expected_codes(loop, python_pairs(stream, window))
    batches = record_batches(stream)
    open_engine = partial(bench.open_engine, net="record", bindings=False)
    makers = {window_of(pattern): partial(open_engine, [pattern]) for pattern in (narrow, wide)}
    for window, make in makers.items():
        compare(f"sase-growth, W={window}", net_matches(make(), batches, [narrow.name]), expected[window])
        bench.tick("matches compared")
    timings = by_turns(bench, {str(window): feeding(make, batches) for window, make in makers.items()})
    wide_timing, narrow_timing = timings[str(WIDE)], timings[str(window_of(narrow))]
    ratio, spread = ratios(wide_timing, narrow_timing)
    wide_ns, narrow_ns = (timing.nanoseconds(len(stream)) for timing in (wide_timing, narrow_timing))
    return Row("sase-growth", len(stream), len(expected[WIDE]), ratio, spread, wide_timing.seconds, wide_ns, narrow_ns)


def sase_bindings(bench: Bench) -> Row:
    """About 125 events a match. The engine writes ids of events as text in JSON, the loop numbers. What it costs a loop
    depends on where its arrays lie, so that a stream whose matches stay in the machine's caches is measured, too."""
    cached = _bindings(bench, bench.settings.small_events)
    row = _bindings(bench, bench.events())
    _, short = _streams(bench, bench.events())
    python = python_bindings(short, window_of(pattern_of("sase")))
    row = replace(row, python_ns=_python_nanoseconds(bench, python, len(short)))
    if cached.ratio is None or cached.yardstick_ns is None:
        return row
    note = f"{cached.ratio:.2g} on {cached.events:,} events, whose arrays stay in the caches of the machine"
    more = {"cached_ratio": cached.ratio, "cached_ns": cached.engine_ns, "cached_yardstick_ns": cached.yardstick_ns}
    return replace(row, note=f"{note} ({cached.yardstick_ns:.1f} ns for the loop)", more=more)


def _bindings(bench: Bench, events: int) -> Row:
    """The row of a stream of so many events."""
    pattern = pattern_of("sase")
    window = window_of(pattern)
    stream, _ = _streams(bench, events)
    loop = bench.loops.sase_bindings(stream, window) if bench.loops else None
    expected = expected_bound(stream, loop, window)
    name = "sase-bindings"
    row = Row(name, events, len(expected), None, None, 0.0)
    batches = record_batches(stream)
    make = partial(bench.open_engine, [pattern], net="record")
    compare_bound(name, told_bound(make(), batches), expected)
    bench.tick("matches compared")
    timings = by_turns(bench, {"engine": feeding(make, batches)} | ({"loop": call(loop)} if loop else {}))
    engine = timings["engine"]
    row = replace(row, seconds=engine.seconds, engine_ns=engine.nanoseconds(events))
    if loop is None:
        return replace(row, note=NO_COMPILER)
    ratio, spread = ratios(timings["loop"], engine)
    return replace(row, ratio=ratio, spread=spread, yardstick_ns=timings["loop"].nanoseconds(events))


def _streams(bench: Bench, events: int) -> tuple[Stream, Stream]:
    """The stream, and one that is short enough for a loop in Python."""
    seed = bench.settings.seed
    return two_symbols(events, seed), two_symbols(min(events, bench.settings.python_events), seed)


def _python_nanoseconds(bench: Bench, loop: Callable[[], Sequence[Any]], events: int) -> float:
    bench.tick("Python loop")
    seconds, _ = call(lambda: len(loop()))()
    return seconds / events * 1e9


def expected_bound(stream: Stream, loop: CBindings | None, window: int) -> list[Bound]:
    """In the engine's numbers: records that have been fed before."""
    fed = numbers_fed(stream)
    if loop is None:
        return sorted(fed[match].tobytes() for match in python_bindings(stream, window)())
    loop()
    offsets, numbers = loop.bound
    bound = fed[numbers]
    return sorted(bound[first:last].tobytes() for first, last in pairwise(offsets))


def told_bound(engine: Any, batches: Sequence[pa.RecordBatch]) -> list[Bound]:
    """What the engine's matches bind. Nothing is late in this stream, so nothing may be taken back."""
    found: list[Bound] = []
    for batch in batches:
        for row in engine.feed(batch).to_arrow(ids=False).to_pylist():
            if row["op"] == "retract":
                raise DisagreementError("the engine retracts matches of a stream in order; no speed is shown")
            if row["op"] == "insert":
                found.append(_numbers(row["bindings"]))
    return sorted(found)


def _numbers(bindings: str) -> Bound:
    names = [name for names in json.loads(bindings).values() for name in names]
    return np.array(names).astype(np.int64).tobytes()


def compare_bound(what: str, found: list[Bound], expected: list[Bound]) -> None:
    """Raises DisagreementError with the numbers if matches or what they bind differ."""
    if found == expected:
        return
    missing, extra = {*expected} - {*found}, {*found} - {*expected}
    raise DisagreementError(
        f"{what}: the engine has {len(found):,} matches, the yardstick {len(expected):,}; with what they bind, "
        f"{len(missing):,} are missing and {len(extra):,} too many; no speed is shown"
    )
