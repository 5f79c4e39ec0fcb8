"""The rows about many patterns at once: 1,000 words of eight ticks, each as rare as Q3; 1,000 that ask for a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from afa.document import build_pattern
from afa.pattern import Pattern
from arcfleet.bench.batches import record_batches
from arcfleet.bench.matches import codes_of, compare
from arcfleet.bench.measure import Bench, by_turns, feeding, net_matches, ratios
from arcfleet.bench.rows import Row
from arcfleet.bench.workloads import Ints, Stream, price_walk, some_users

STEPS: Final = 8
WORDS: Final = 1 << STEPS  # more patterns than words: some have the same word under another name


def word_pattern(name: str, word: int) -> Pattern:
    """A pattern that matches the word, whose bits from the highest on are U (1) and D (0)."""
    fences = ["e.change > 0" if word >> step & 1 else "e.change < 0" for step in reversed(range(STEPS))]
    arcs = [{"id": f"s{i}", "from": f"q{i}", "to": f"q{i + 1}", "when": fence} for i, fence in enumerate(fences)]
    return build_pattern({"pattern": name, "within": 500, "start": "q0", "final": [f"q{STEPS}"], "arcs": arcs})


def expected_codes(stream: Stream, words: Ints) -> Ints:
    """For each pattern, the places where the last eight ticks are its word."""
    ups = (stream.change > 0).astype(np.int64)
    starts = len(stream) - STEPS + 1
    at = sum(ups[step : step + starts] << (STEPS - 1 - step) for step in range(STEPS))
    found = {word: stream.ts[:starts][at == word] for word in range(WORDS)}
    spans = {word: np.stack((ts, ts + STEPS - 1), axis=1) for word, ts in found.items()}
    return np.sort(np.concatenate([codes_of(spans[int(word)], index) for index, word in enumerate(words)]))


def user_pattern(name: str, user: int) -> Pattern:
    """A pattern that matches two events in a row of one user."""
    fence = f"e.user == {user}"
    arcs = [{"id": f"s{i}", "from": f"q{i}", "to": f"q{i + 1}", "when": fence} for i in range(2)]
    return build_pattern({"pattern": name, "within": 500, "start": "q0", "final": ["q2"], "arcs": arcs})


def expected_users(stream: Stream, count: int) -> Ints:
    """For each pattern, the places where its user comes twice."""
    users = stream.columns["user"]
    starts = np.flatnonzero((users[:-1] == users[1:]) & (users[:-1] < count))
    spans = {int(start): np.array([start, start + 1], dtype=np.int64) for start in starts}
    codes = [codes_of(span, int(users[start])) for start, span in spans.items()]
    return np.sort(np.concatenate([*codes, np.empty(0, np.int64)]))


def patterns_1000(bench: Bench) -> Row:
    words = np.random.default_rng([bench.settings.seed, 6]).integers(0, WORDS, bench.settings.patterns)
    patterns = [word_pattern(f"w{index:04d}", int(word)) for index, word in enumerate(words)]
    stream = price_walk(bench.events(bench.settings.small_events), 0.5, bench.settings.seed)
    expected = expected_codes(stream, words), expected_codes(stream, words[:1])
    return _many_by_one(bench, "patterns-1000", patterns, stream, expected)


def equal_1000(bench: Bench) -> Row:
    count = bench.settings.patterns
    patterns = [user_pattern(f"u{user:04d}", user) for user in range(count)]
    stream = some_users(bench.events(bench.settings.small_events), count, bench.settings.seed)
    expected = expected_users(stream, count), expected_users(stream, 1)
    return _many_by_one(bench, "equal-1000", patterns, stream, expected)


def _many_by_one(
    bench: Bench, name: str, patterns: Sequence[Pattern], stream: Stream, expected: tuple[Ints, Ints]
) -> Row:
    """The cost of all patterns by the cost of the first; `expected` are the matches of both."""
    batches = record_batches(stream)
    makers = {"many": partial(bench.open_engine, patterns, net="record")}
    makers["one"] = partial(bench.open_engine, patterns[:1], net="record")
    names = [pattern.name for pattern in patterns]
    for what, codes in zip(makers, expected, strict=True):
        compare(f"{name}, {what}", net_matches(makers[what](), batches, names), codes)
        bench.tick("matches compared")
    timings = by_turns(bench, {what: feeding(make, batches) for what, make in makers.items()})
    ratio, spread = ratios(timings["many"], timings["one"])
    many_ns, one_ns = (timings[what].nanoseconds(len(stream)) for what in ("many", "one"))
    row = Row(name, len(stream), len(expected[0]), ratio, spread, timings["many"].seconds, many_ns, one_ns)
    count = len(patterns)
    return replace(row, note="" if count == 1000 else f"{count} patterns")
