"""Q1 from JSON bytes, beside what decoding them costs by itself with the fastest decoder that Python has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from arcfleet.bench.batches import json_lines
from arcfleet.bench.loop_rows import expected_codes, pattern_of, python_q1, window_of
from arcfleet.bench.matches import compare
from arcfleet.bench.measure import Bench, Contender, by_turns, call, feeding, net_matches, ratios
from arcfleet.bench.rows import Row
from arcfleet.bench.workloads import price_walk

FIRST_TS: Final = 1_000_000  # seven digits from the first to the last


class Tick(msgspec.Struct):
    """The data of an event."""

    change: float
    price: float


class Line(msgspec.Struct):
    """An event or a punctuation of a tape."""

    ts: int
    key: str | None = None
    op: str | None = None
    data: Tick | None = None


def decoders(batches: Sequence[list[bytes]]) -> dict[str, Contender]:
    """Decoding every line: into dicts, and into structs of the right types."""

    def decoding(decode: Callable[[bytes], object]) -> Contender:
        return call(lambda: sum(len(list(map(decode, batch))) for batch in batches))

    return {"untyped": decoding(msgspec.json.decode), "typed": decoding(msgspec.json.Decoder(Line).decode)}


def q1_json(bench: Bench) -> Row:
    """Decode and match, against decoding alone; the ratio is that to plain dicts, a typed struct is shown beside it."""
    pattern = pattern_of("q1")
    window = window_of(pattern)
    stream = price_walk(bench.events(2 * bench.settings.small_events), 0.5, bench.settings.seed, first_ts=FIRST_TS)
    batches = json_lines(stream)
    expected = expected_codes(bench.loops.q1(stream, window) if bench.loops else None, python_q1(stream, window))
    make = partial(bench.open_engine, [pattern], net="record")
    compare("q1-json", net_matches(make(), batches, [pattern.name]), expected)
    timings = by_turns(bench, {"engine": feeding(make, batches), **decoders(batches)})
    engine, untyped, typed = (timings[name] for name in ("engine", "untyped", "typed"))
    ratio, spread = ratios(untyped, engine)
    engine_ns, untyped_ns, typed_ns = (timing.nanoseconds(len(stream)) for timing in (engine, untyped, typed))
    row = Row("q1-json", len(stream), len(expected), ratio, spread, engine.seconds, engine_ns, untyped_ns)
    typed_ratio = ratios(typed, engine)[0]
    more = {"typed_ns": typed_ns, "typed_ratio": typed_ratio}
    return replace(row, more=more, note=f"{typed_ratio:.2g} by msgspec into a typed struct ({typed_ns:.0f} ns)")
