"""The rows whose yardstick is a loop by hand: Q1 and Q3, in order and late, over one key and many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from afa import load_patterns
from afa.pattern import Pattern, TimeWindow
from arcfleet.bench import python_loops
from arcfleet.bench.batches import record_batches
from arcfleet.bench.c_loops import CLoop
from arcfleet.bench.matches import codes_of, compare
from arcfleet.bench.measure import Bench, by_turns, call, feeding, net_matches, ratios
from arcfleet.bench.rows import Row
from arcfleet.bench.workloads import Ints, Stream, keyed_walk, made_late, price_walk

_PATTERNS: Final = Path(__file__).with_name("patterns")
NO_COMPILER: Final = "no C compiler (cc, gcc or clang) was found: no ratio"
KEYED_WINDOW: Final = 2000 * 10_000  # as many events of a key as the window of one key holds

PythonLoop = Callable[[], list[python_loops.Span]]


def pattern_of(name: str) -> Pattern:
    """A pattern of the benchmark, by its file."""
    (pattern,) = load_patterns(_PATTERNS / f"{name}.yaml")
    return pattern


def window_of(pattern: Pattern) -> int:
    assert isinstance(pattern.window, TimeWindow)
    return pattern.window.length


def python_q1(stream: Stream, window: int) -> PythonLoop:
    return partial(python_loops.q1, stream.ts.tolist(), stream.change.tolist(), window)


def python_q2(stream: Stream, window: int) -> PythonLoop:
    return partial(python_loops.q2, stream.ts.tolist(), stream.change.tolist(), stream.price.tolist(), window)


def python_q3(stream: Stream, window: int) -> PythonLoop:
    return partial(python_loops.q3, stream.ts.tolist(), stream.change.tolist(), window)


def expected_codes(loop: CLoop | None, otherwise: PythonLoop) -> Ints:
    """What the yardstick finds: the C loop, or the Python one if there is no compiler."""
    if loop is None:
        return codes_of(np.array(otherwise(), dtype=np.int64))
    loop()
    return codes_of(loop.spans)


def python_nanoseconds(bench: Bench, loop: PythonLoop, events: int) -> float:
    """Of one event, once: a loop in Python is far from everything else, and its spread does not matter."""
    bench.tick("Python loop")
    seconds, _ = call(lambda: len(loop()))()
    return seconds / events * 1e9


def _q1_or_q3(bench: Bench, name: str, *, late: float = 0, net: str = "record") -> Row:
    pattern = pattern_of(name[:2])
    window = window_of(pattern)
    stream = price_walk(bench.events(), 0.5, bench.settings.seed)
    short = price_walk(bench.events(bench.settings.python_events), 0.5, bench.settings.seed)
    if name.startswith("q1"):
        loop = bench.loops.q1(stream, window) if bench.loops else None
        expected = expected_codes(loop, python_q1(stream, window))
        python = python_q1(short, window)
    else:
        loop = bench.loops.q3(stream, window) if bench.loops else None
        expected = expected_codes(loop, python_q3(stream, window))
        python = python_q3(short, window)
    arriving = made_late(stream, late, bench.settings.seed) if late else stream
    row = against_loop(bench, name, pattern, arriving, loop=loop, expected=expected, net=net)
    return replace(row, python_ns=python_nanoseconds(bench, python, len(short)))


def against_loop(
    bench: Bench,
    name: str,
    pattern: Pattern,
    stream: Stream,
    *,
    loop: CLoop | None,
    expected: Ints,
    net: str = "record",
    bindings: bool = True,
) -> Row:
    """Compares the matches, then the speed, with those of the C loop."""
    batches = record_batches(stream)
    make = partial(bench.open_engine, [pattern], net=net, bindings=bindings)
    compare(name, net_matches(make(), batches, [pattern.name]), expected)
    bench.tick("matches compared")
    contenders = {"engine": feeding(make, batches)} | ({"loop": call(loop)} if loop else {})
    timings = by_turns(bench, contenders)
    engine, events = timings["engine"], len(stream)
    row = Row(name, events, len(expected), None, None, engine.seconds, engine.nanoseconds(events), note=NO_COMPILER)
    if loop is None:
        return row
    ratio, spread = ratios(timings["loop"], engine)
    return replace(row, ratio=ratio, spread=spread, yardstick_ns=timings["loop"].nanoseconds(events), note="")


def q1(bench: Bench) -> Row:
    return _q1_or_q3(bench, "q1")


def q3(bench: Bench) -> Row:
    return _q1_or_q3(bench, "q3")


def q1_late5(bench: Bench) -> Row:
    return _q1_or_q3(bench, "q1-late5", late=0.05)


def q1_late30(bench: Bench) -> Row:
    return _q1_or_q3(bench, "q1-late30", late=0.30)


def q1_late5_batch(bench: Bench) -> Row:
    return _q1_or_q3(bench, "q1-late5-batch", late=0.05, net="batch")


def q1_late30_batch(bench: Bench) -> Row:
    return _q1_or_q3(bench, "q1-late30-batch", late=0.30, net="batch")


def q1_keys(bench: Bench) -> Row:
    """The keyed loop is the only one with a state per key; without a compiler each key goes through the Python loop."""
    stream = keyed_walk(bench.settings)
    pattern = replace(pattern_of("q1"), window=TimeWindow(KEYED_WINDOW))
    loop = bench.loops.q1_keyed(stream, KEYED_WINDOW, bench.settings.keys) if bench.loops else None
    expected = expected_codes(loop, lambda: python_keyed(stream, KEYED_WINDOW))
    return against_loop(bench, "q1-keys", pattern, stream, loop=loop, expected=expected)


def python_keyed(stream: Stream, window: int) -> list[python_loops.Span]:
    """Q1 key by key."""
    assert stream.key is not None
    order = np.argsort(stream.key, kind="stable")
    bounds = np.flatnonzero(np.diff(stream.key[order])) + 1
    found: list[python_loops.Span] = []
    for events in np.split(order, bounds):
        found += python_loops.q1(stream.ts[events].tolist(), stream.change[events].tolist(), window)
    return found
