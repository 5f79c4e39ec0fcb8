"""The rows that compare the engine with itself: late with in order, with match ids and without."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from afa.pattern import Pattern
from arcfleet.bench import python_loops
from arcfleet.bench.batches import record_batches
from arcfleet.bench.loop_rows import (
    expected_codes,
    pattern_of,
    python_nanoseconds,
    python_q1,
    python_q2,
    window_of,
)
from arcfleet.bench.matches import compare
from arcfleet.bench.measure import Bench, by_turns, call, feeding, net_matches, ratios
from arcfleet.bench.rows import Row
from arcfleet.bench.workloads import Ints, Stream, made_late, ones_and_twos, price_walk


def _late_against_in_order(
    bench: Bench, name: str, pattern: Pattern, *, stream: Stream, late: Stream, expected: Ints, net: str
) -> Row:
    make = partial(bench.open_engine, [pattern], net=net)
    batches = {"in order": record_batches(stream), "late": record_batches(late)}
    for what, arriving in batches.items():
        compare(f"{name}, {what}", net_matches(make(), arriving, [pattern.name]), expected)
        bench.tick("matches compared")
    timings = by_turns(bench, {what: feeding(make, arriving) for what, arriving in batches.items()})
    ratio, spread = ratios(timings["in order"], timings["late"])
    late_ns, in_order_ns = (timings[what].nanoseconds(len(stream)) for what in ("late", "in order"))
    return Row(name, len(stream), len(expected), ratio, spread, timings["late"].seconds, late_ns, in_order_ns)


def q2_seq_late30(bench: Bench) -> Row:
    """AFA+O, net per batch, late and in order. About 28 matches an event: the stream is a short one."""
    pattern = pattern_of("q2")
    window = window_of(pattern)
    stream = price_walk(bench.events(bench.settings.small_events), 0.7, bench.settings.seed, sequence=True)
    late = made_late(stream, 0.30, bench.settings.seed)
    python = python_q2(stream, window)
    loop = bench.loops.q2(stream, window) if bench.loops else None
    expected = expected_codes(loop, python)
    row = _late_against_in_order(
        bench, "q2-seq-late30", pattern, stream=stream, late=late, expected=expected, net="batch"
    )
    loop_ns = by_turns(bench, {"loop": call(loop)})["loop"].nanoseconds(len(stream)) if loop else None
    return replace(row, python_ns=python_nanoseconds(bench, python, len(stream)), more={"c_ns": loop_ns})


def selfloop_late(bench: Bench) -> Row:
    pattern = pattern_of("selfloop")
    window = window_of(pattern)
    stream = ones_and_twos(bench.events(2 * bench.settings.small_events), bench.settings.seed)
    late = made_late(stream, 0.05, bench.settings.seed)
    loop = bench.loops.selfloop(stream, window) if bench.loops else None
    expected = expected_codes(loop, partial(python_selfloop, stream, window))
    return _late_against_in_order(
        bench, "selfloop-late", pattern, stream=stream, late=late, expected=expected, net="record"
    )


def python_selfloop(stream: Stream, window: int) -> list[python_loops.Span]:
    """Every 1 with each 2 that comes within the window."""
    x = stream.columns["x"]
    ones, twos = stream.ts[x == 1], stream.ts[x == 2]
    return [(int(one), int(two)) for two in twos for one in ones[(ones < two) & (two - ones < window)]]


def ids(bench: Bench) -> Row:
    """What the ids of matches cost: they are hashed only when asked for."""
    pattern = pattern_of("q1")
    window = window_of(pattern)
    stream = price_walk(bench.events(), 0.5, bench.settings.seed)
    expected = expected_codes(bench.loops.q1(stream, window) if bench.loops else None, python_q1(stream, window))
    batches = record_batches(stream)
    make = partial(bench.open_engine, [pattern], net="record")
    compare("ids", net_matches(make(), batches, [pattern.name]), expected)
    contenders = {what: feeding(make, batches, ids=what == "with") for what in ("with", "without")}
    timings = by_turns(bench, contenders)
    ratio, spread = ratios(timings["without"], timings["with"])
    with_ns, without_ns = (timings[what].nanoseconds(len(stream)) for what in ("with", "without"))
    of_an_id = (with_ns - without_ns) * len(stream) / max(1, len(expected))
    row = Row("ids", len(stream), len(expected), ratio, spread, timings["with"].seconds, with_ns, without_ns)
    return replace(row, more={"id_ns": of_an_id}, note=f"{of_an_id:.0f} ns an id")
