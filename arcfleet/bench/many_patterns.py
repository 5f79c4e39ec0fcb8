"""The row about many patterns at once: 1,000 words of eight ticks, each as rare as Q3."""

from __future__ import annotations

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
from arcfleet.bench.workloads import Ints, Stream, price_walk

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


def patterns_1000(bench: Bench) -> Row:
    count = bench.settings.patterns
    words = np.random.default_rng([bench.settings.seed, 6]).integers(0, WORDS, count)
    names = [f"w{index:04d}" for index in range(count)]
    patterns = [word_pattern(name, int(word)) for name, word in zip(names, words, strict=True)]
    stream = price_walk(bench.events(bench.settings.small_events), 0.5, bench.settings.seed)
    batches = record_batches(stream)
    expected = expected_codes(stream, words)
    make_many = partial(bench.open_engine, patterns, net="record")
    make_one = partial(bench.open_engine, patterns[:1], net="record")
    compare("patterns-1000", net_matches(make_many(), batches, names), expected)
    bench.tick("matches compared")
    compare("one of them", net_matches(make_one(), batches, names[:1]), expected_codes(stream, words[:1]))
    bench.tick("matches compared")
    timings = by_turns(bench, {"many": feeding(make_many, batches), "one": feeding(make_one, batches)})
    ratio, spread = ratios(timings["many"], timings["one"])
    many_ns, one_ns = (timings[what].nanoseconds(len(stream)) for what in ("many", "one"))
    row = Row("patterns-1000", len(stream), len(expected), ratio, spread, timings["many"].seconds, many_ns, one_ns)
    return replace(row, note="" if count == 1000 else f"{count} patterns")
