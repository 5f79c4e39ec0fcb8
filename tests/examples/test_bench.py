"""`arcfleet bench`: its yardsticks agree with the semantics, and it compares matches before it shows any speed."""

import itertools
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console
from support.arrow_reference import ArrowReference
from support.commands import arcfleet

from afa.pattern import Pattern, TimeWindow
from arcfleet.bench import c_loops, catalogue, memory_row, python_loops, report, sase_rows
from arcfleet.bench.arc_rows import arc_changes
from arcfleet.bench.batches import json_lines, record_batches
from arcfleet.bench.loop_rows import pattern_of, python_keyed, python_q1, python_q2, python_q3
from arcfleet.bench.matches import DisagreementError, codes_of, compare
from arcfleet.bench.measure import Bench, net_matches
from arcfleet.bench.rows import Row
from arcfleet.bench.sase_rows import python_bindings, python_pairs
from arcfleet.bench.self_rows import python_selfloop
from arcfleet.bench.settings import TARGETS, Settings
from arcfleet.bench.workloads import Stream, keyed_walk, made_late, ones_and_twos, price_walk, two_symbols

# The reference computes everything anew with each event: a short stream has to do.
TINY = Settings(
    events=40,
    runs=1,
    seconds_least=0.0,
    python_events=40,
    small_events=40,
    keys=3,
    patterns=4,
    memory_events=60,
    memory_keys=20,
)
ON_KAFKA = ("worker-10k", "worker-100k", "latency", "restart", "idle-keys")  # tests/worker/test_bench_rows.py
FIELDS = ("name", "matches", "ratio", "spread", "floor", "aim", "seconds")
needs_compiler = pytest.mark.skipif(c_loops.compiler() is None, reason="no C compiler")


@pytest.fixture(scope="module")
def loops() -> c_loops.CLoops:
    found = c_loops.compiled()
    if found is None:
        pytest.skip("no C compiler")
    return found


def spans(found: list[python_loops.Span]) -> np.ndarray:
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def of_reference(pattern: Pattern, stream: Stream) -> np.ndarray:
    batches = record_batches(stream)
    return net_matches(ArrowReference([pattern], net="record"), batches, [pattern.name])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "python", "up"), [("q1", python_q1, 0.5), ("q2", python_q2, 0.7), ("q3", python_q3, 0.5)]
)
def test_python_loop_equals_reference(name, python, up, seed) -> None:
    stream = price_walk(90 if name == "q3" else 45, up, seed)
    for window in (12, 500):
        pattern = replace(pattern_of(name), window=TimeWindow(window), gap_free=False)
        assert np.array_equal(of_reference(pattern, stream), codes_of(spans(python(stream, window)())))


@pytest.mark.parametrize(
    ("name", "python", "up"), [("q1", python_q1, 0.5), ("q2", python_q2, 0.7), ("q3", python_q3, 0.5)]
)
@pytest.mark.parametrize("window", [9, 100, 2000])
def test_c_loop_equals_python_loop(loops, name, python, up, window) -> None:
    stream = price_walk(4_000, up, 7)
    loop = getattr(loops, name)(stream, window)
    assert loop() > 0
    assert np.array_equal(codes_of(loop.spans), codes_of(spans(python(stream, window)())))


@pytest.mark.parametrize("window", [50, 1000])
def test_c_loops_for_keys_and_for_the_self_loop_equal_python(loops, window) -> None:
    keyed = keyed_walk(replace(TINY, events=20_000, keys=20))
    loop = loops.q1_keyed(keyed, window, 20)
    assert loop() > 0
    assert np.array_equal(codes_of(loop.spans), codes_of(spans(python_keyed(keyed, window))))
    waiting = ones_and_twos(20_000, 1)
    loop = loops.selfloop(waiting, window)
    assert loop() > 0
    assert np.array_equal(codes_of(loop.spans), codes_of(spans(python_selfloop(waiting, window))))


def test_self_loop_equals_reference() -> None:
    generator = np.random.default_rng(1)
    stream = Stream(np.arange(40), {"x": generator.integers(0, 3, 40)})
    pattern = replace(pattern_of("selfloop"), window=TimeWindow(15))
    assert np.array_equal(of_reference(pattern, stream), codes_of(spans(python_selfloop(stream, 15))))


@pytest.mark.parametrize("seed", range(3))
def test_loops_of_the_sase_query_equal_reference(loops, seed) -> None:
    stream = two_symbols(70, seed)
    for window in (9, 500):
        pattern = replace(pattern_of("sase"), window=TimeWindow(window))
        pairs, bindings = loops.sase_pairs(stream, window), loops.sase_bindings(stream, window)
        assert pairs() == bindings()
        expected = of_reference(pattern, stream)
        assert np.array_equal(codes_of(pairs.spans), expected)
        assert np.array_equal(codes_of(spans(python_pairs(stream, window)())), expected)
        told = sase_rows.told_bound(ArrowReference([pattern], net="record"), record_batches(stream))
        assert told == sase_rows.expected_bound(stream, bindings, window)
        assert told == sase_rows.expected_bound(stream, None, window)
    assert len(expected) > 0


@pytest.mark.parametrize("count", [64, 65, 4_000])
@pytest.mark.parametrize("window", [7, 100, 2000])
def test_c_loops_of_the_sase_query_equal_python(loops, count, window) -> None:
    stream = two_symbols(count, 4)
    pairs, bindings = loops.sase_pairs(stream, window), loops.sase_bindings(stream, window)
    pairs()
    bindings()
    assert np.array_equal(codes_of(pairs.spans), codes_of(spans(python_pairs(stream, window)())))
    offsets, numbers = bindings.bound
    bound = [numbers[first:last].tolist() for first, last in itertools.pairwise(offsets)]
    assert sorted(bound) == sorted(python_bindings(stream, window)())


def test_two_symbols_are_as_selective_as_in_the_paper() -> None:
    columns = two_symbols(200_000, 1).columns
    assert {*columns["symbol"]} == {1, 2}
    assert (columns["price"].min(), columns["price"].max()) == (1, 1000)
    assert 0.0018 < np.mean(columns["price"] % 500 == 0) < 0.0022
    assert 0.145 < np.mean(columns["volume"] < 150) < 0.153


def test_no_speed_is_shown_if_bindings_differ() -> None:
    def short_sighted(patterns, *, net, bindings=True):
        return ArrowReference([replace(pattern, window=TimeWindow(5)) for pattern in patterns], net=net)

    with pytest.raises(DisagreementError, match=r"with what they bind, \d+ are missing and 0 too many; no speed"):
        catalogue.WORKLOADS["sase-bindings"](Bench(replace(TINY, events=90, small_events=90), None, short_sighted))


def test_late_streams_lose_nothing() -> None:
    stream = price_walk(5_000, 0.5, 1)
    late = made_late(stream, 0.3, 1)
    assert sorted(late.order) == list(range(5_000))
    newest = np.maximum.accumulate(late.order)
    behind = newest - late.order
    assert 0.25 < np.mean(behind > 0) < 0.35
    assert behind.max() <= 1000
    bound = -1000
    for batch in record_batches(late):
        for row in batch.to_pylist():
            assert row["ts"] >= bound
            bound = row["ts"] if row["op"] == "punctuation" else bound


def test_batches_have_their_shape() -> None:
    stream = price_walk(5_000, 0.5, 1, sequence=True)
    batches = record_batches(stream, list(arc_changes(5_000, 100)))
    assert [batch.num_rows for batch in batches] == [4096, 5_000 + 5 + 2 * 49 - 4096]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["seq"] for row in rows if row["op"] is None] == list(range(1, 5_001))
    ended, begun = (json.loads(row["arc"]) for row in rows[100:102])
    assert (ended["arc"], ended["valid"], begun["valid"]) == ({"id": "s4"}, [None, 100], [100, None])
    assert begun["arc"]["id"] != "s4"
    lines = [line for batch in json_lines(price_walk(5_000, 0.5, 1, first_ts=1_000_000)) for line in batch]
    assert {len(line) for line in lines if b"op" not in line} == {68}


@pytest.mark.parametrize("name", [name for name in catalogue.WORKLOADS if name not in ("memory", *ON_KAFKA)])
def test_every_workload_gives_a_row(name: str) -> None:
    row = catalogue.WORKLOADS[name](Bench(TINY, c_loops.compiled(), ArrowReference))
    told = row.as_json()
    assert (told["name"], list(told)[: len(FIELDS)]) == (name, list(FIELDS))
    assert (told["ratio"] is None) == (c_loops.compiler() is None and "C loop" in row.target.yardstick)


def test_memory_gives_a_row() -> None:
    sizes = iter([1000, 1100])
    hold = partial(memory_row.hold, ArrowReference, resident=lambda: next(sizes))
    row = memory_row.memory(Bench(TINY, None, ArrowReference), hold)
    assert (row.ratio, row.meets_floor) == (1.1, False)
    assert memory_row.resident_bytes() > 1_000_000


def test_without_a_compiler_there_is_no_ratio() -> None:
    row = catalogue.WORKLOADS["q1"](Bench(TINY, None, ArrowReference))
    assert (row.ratio, row.spread, row.meets_floor) == (None, None, None)
    assert "no C compiler" in row.note


def test_no_speed_is_shown_if_the_matches_differ() -> None:
    def forgetful(patterns, *, net, bindings=True):
        engine = ArrowReference(patterns, net=net)
        engine.engine.feed = lambda record, feed=engine.engine.feed: replace(feed(record), changes=[])
        return engine

    with pytest.raises(DisagreementError, match=r"has 0 matches, the yardstick \d+; .* no speed is shown"):
        catalogue.WORKLOADS["q1"](Bench(replace(TINY, events=50), None, forgetful))


def test_compare_names_the_first_difference() -> None:
    with pytest.raises(DisagreementError, match="1 are missing and 0 too many, the first from 5 to 9"):
        compare("x", codes_of(np.array([[1, 2]])), codes_of(np.array([[1, 2], [5, 9]])))


def some_rows() -> list[Row]:
    rows = [Row(name, 100, 7, 0.5, 0.1, 0.2, 30.0, 15.0, 900.0) for name in TARGETS]
    return [replace(rows[0], ratio=None, spread=None, note="no C compiler"), *rows[1:]]


def test_the_table_shows_every_row() -> None:
    console = Console(width=200)
    with console.capture() as shown:
        report.show(some_rows(), Settings(), console)
    text = shown.get()
    assert all(name in text for name in TARGETS)
    assert "≤ 100" in text


def test_the_chart_is_a_drawing(tmp_path: Path) -> None:
    report.draw(some_rows(), tmp_path / "ratios.svg")
    assert ElementTree.fromstring((tmp_path / "ratios.svg").read_text(encoding="utf-8")).tag.endswith("svg")


def test_rows_of_the_engine_itself_do_not_count_if_the_first_two_miss_their_floors() -> None:
    rows = [Row(name, 100, 7, ratio, 0.1, 0.2) for name, ratio in (("q1", 0.1), ("q3", 0.9), ("arcs-10", 0.9))]
    console = Console(width=200)
    with console.capture() as shown:
        report.show(rows, Settings(), console)
    assert "does not count" in shown.get()


def test_names_are_checked() -> None:
    unknown = arcfleet("bench", "q11")
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)
    chart = arcfleet("bench", "q1", "--plot", "x.doc")
    assert chart.code == 2


@needs_compiler
@pytest.mark.timeout(600)
def test_a_quick_run_of_the_native_engine() -> None:
    names = ("q1", "q3", "q1-late5-batch", "q1-keys", "arcs-1000", "q1-json")
    ran = arcfleet("bench", *names, "--quick", "--json")
    assert ran.code == 0, ran.err
    assert [row["name"] for row in ran.records] == list(names)
    assert all(row["matches"] > 0 and row["ratio"] > 0 for row in ran.records)
