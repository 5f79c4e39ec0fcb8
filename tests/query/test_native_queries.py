"""Queries on the native engine against the reference, after every record and in batches."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa import Engine
from afa.pattern import Pattern
from afa.query import parse_query
from afa.query.compiler import compile_query
from afa.query.tree import EventSet, TimeWindow
from tests.support.queries import QueryMaker, events_of

SEEDS = st.integers(0, 2**32)


def pattern_of(seed: int, name: str = "q") -> Pattern:
    """A query with settings of any kind that may stand together."""
    pick, query = random.Random(seed), QueryMaker(seed).query()
    pattern = compile_query(query, name)
    assert pattern.query is not None
    timed = isinstance(query.window, TimeWindow)
    outputs = ["all", "all", "non_overlapping"]
    if timed and any(isinstance(part, EventSet) for part in query.components):
        outputs += ["earliest_maximal"] * 3
    options = replace(
        pattern.query,
        absence=pick.choice(("window_end", "speculative")),
        timeouts=timed and pick.random() < 0.3,
        compressed=pick.random() < 0.2,
    )
    return replace(
        pattern,
        query=options,
        output=pick.choice(outputs),
        hold_output=pick.random() < 0.2,
        speculation=pick.choice((math.inf, math.inf, math.inf, 0, 2)),
        gap_free=pick.random() < 0.1,
    )


def records_of(seed: int, count: int) -> list[dict[str, Any]]:
    """Events of two keys in any order, some revised or taken back, and punctuations."""
    pick = random.Random(seed)
    records: list[dict[str, Any]] = []
    for number, event in enumerate(events_of(seed, count)):
        record = {"id": event.id, "key": pick.choice("kkl"), "ts": event.ts, "type": event.type, "data": event.data}
        if pick.random() < 0.5:
            record["seq"] = number
        records.append(record)
        if pick.random() < 0.2:
            records.append(record | {"rev": 1, "data": {"x": pick.randrange(3), "k": 1}})
        elif pick.random() < 0.2:
            records.append({"op": "retract", "id": event.id, "key": record["key"], "ts": event.ts, "rev": 1})
        if pick.random() < 0.3:
            records.append({"op": "punctuation", "ts": event.ts + pick.choice((-6, -4, -2, 0, 1, 3))})
    for _ in range(pick.choice((0, 1, 3, 100))):
        at = pick.randrange(len(records))
        other = max(0, at - pick.randrange(1, 5))
        records[at], records[other] = records[other], records[at]
    return [*records, {"op": "punctuation", "ts": 10**6}]


def lines(records: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


@settings(max_examples=300)
@given(seed=SEEDS, count=st.integers(1, 9), patterns=st.integers(1, 2))
def test_every_record(seed: int, count: int, patterns: int) -> None:
    loaded = [pattern_of(seed + number, f"q{number}") for number in range(patterns)]
    native, reference = Engine(loaded), Engine(loaded, engine="reference")
    for number, line in enumerate(lines(records_of(seed, count))):
        told, expected = native.feed([line]), reference.feed([line])
        assert told.to_records() == expected.to_records(), (number, line)
        assert [value for _, value, _ in told.encoded()] == [value for _, value, _ in expected.encoded()]
        assert told.late == expected.late


@settings(max_examples=150)
@given(seed=SEEDS, count=st.integers(1, 9), size=st.integers(1, 6), patterns=st.integers(1, 2))
def test_every_batch(seed: int, count: int, size: int, patterns: int) -> None:
    loaded = [pattern_of(seed + number, f"q{number}") for number in range(patterns)]
    native, reference = Engine(loaded, net="batch"), Engine(loaded, engine="reference", net="batch")
    fed = lines(records_of(seed, count))
    for begin in range(0, len(fed), size):
        batch = fed[begin : begin + size]
        told, expected = native.feed(batch), reference.feed(batch)
        assert told.to_records() == expected.to_records(), (begin, batch)
        assert told.to_arrow(ids=True).to_pylist() == expected.to_arrow(ids=True).to_pylist()


@settings(max_examples=150)
@given(seed=SEEDS, count=st.integers(1, 12), data=st.data())
def test_a_restored_engine_goes_on_like_the_first(seed: int, count: int, data: st.DataObject) -> None:
    loaded = [pattern_of(seed, "q0"), pattern_of(seed + 1, "q1")]
    records = records_of(seed, count)
    place = data.draw(st.integers(0, len(records)))
    first, second = Engine(loaded), Engine(loaded)
    for line in lines(records[:place]):
        first.feed([line])
    second.feed(lines([record for record in records[:place] if record.get("op") == "punctuation"]))
    keys = first.keys()
    for key in keys:
        second.restore(key, first.snapshot(key))
    # Only now: open candidates of one key hold the punctuation back for all.
    assert [second.snapshot(key) for key in keys] == [first.snapshot(key) for key in keys]
    for line in lines(records[place:]):
        assert second.feed([line]).to_records() == first.feed([line]).to_records(), line
    keys = first.keys()
    assert second.keys() == keys
    assert [second.state_hash(key) for key in keys] == [first.state_hash(key) for key in keys]


def test_a_query_that_explodes_is_bounded_and_marked() -> None:
    """Of n events every subset matches."""
    text = "PATTERN SEQ(A+ a[]) WHERE skip_till_any_match(a[]) { } WITHIN 1 hour"
    engine = Engine([compile_query(parse_query(text), "q")], limits={"max_partial_matches_per_key": 500})
    told = [engine.feed([json.dumps({"key": "k", "ts": ts, "type": "A"}).encode()]) for ts in range(40)]
    assert [len(changes) for changes in told[:6]] == [1, 2, 4, 8, 16, 32]
    assert all(len(changes) <= 500 for changes in told)
    assert len(told[-1]) == 500
    assert engine.stats()["degraded_keys"] == 1
    assert engine.stats()["refused_partial_matches"] > 0
    assert told[-1].to_records()[0]["degraded"] is True


def projected(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """What is told on balance, as one sees it who is not told what matches bind."""
    told: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        op, sign = ("insert", -1) if row["op"] == "retract" else (row["op"], 1)
        told[(op, *(row[name] for name in row if name not in ("op", "bindings", "match")))] += sign
    return Counter({row: count for row, count in told.items() if count})


@settings(max_examples=150)
@given(seed=SEEDS, count=st.integers(1, 9), size=st.integers(1, 6), net=st.sampled_from(("record", "batch")))
def test_without_bindings_there_are_as_many_matches(seed: int, count: int, size: int, net: Any) -> None:
    """What is told is what the reference tells, without bindings; where only they change, nothing is."""
    pattern = pattern_of(seed)
    assert pattern.query is not None
    loaded = [replace(pattern, query=replace(pattern.query, compressed=False))]
    native, reference = Engine(loaded, net=net, bindings=False), Engine(loaded, engine="reference", net=net)
    fed = lines(records_of(seed, count))
    for begin in range(0, len(fed), size):
        batch = fed[begin : begin + size]
        told, expected = (engine.feed(batch).to_arrow().to_pylist() for engine in (native, reference))
        assert projected(told) == projected(expected), (begin, batch)
        assert all(row["bindings"] is None for row in told)
        if net == "batch" or size == 1:
            assert sum(map(abs, projected(told).values())) == len(told), "something comes and goes at once"


def test_without_bindings_nothing_is_told_that_needs_them() -> None:
    query = compile_query(parse_query("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { } WITHIN 1 hour"), "q")
    told = Engine([query], bindings=False).feed(
        [json.dumps({"key": "k", "ts": ts, "type": kind}).encode() for ts, kind in enumerate("AAB")]
    )
    assert [(row["start"], row["end"]) for row in told.to_arrow().to_pylist()] == [(0, 2), (1, 2)]
    for ask in (told.to_records, told.encoded, lambda: told.to_arrow(ids=True)):
        with pytest.raises(ValueError, match="bindings=False"):
            ask()
    assert query.query is not None
    compressed = replace(query, query=replace(query.query, compressed=True))
    with pytest.raises(ValueError, match="compressed"):
        Engine([compressed], bindings=False)
    with pytest.raises(ValueError, match="reference"):
        Engine([query], engine="reference", bindings=False)


LONG_QUERIES = (
    "SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND a[1].x % 2 = 0 AND b.x < 2 } WITHIN 60 ms",
    "SEQ(A+ a[], ANY b) WHERE skip_till_next_match(a[], b) { [k] AND b.x % 3 = 1 } WITHIN 40 ms RETURN a.len AS many",
    "SEQ(A a, B+ b[], A c) WHERE skip_till_next_match(a, b[], c) { [k] AND b[i].x >= b[i-1].x } WITHIN 30 ms",
    "SEQ({A a, B+ b[]}, A c) WHERE skip_till_next_match(a, b[], c) { [k] AND c.x % 2 <> 1 } WITHIN 12 ms",
    "SEQ(ANY+ a[], B b) WHERE partition_contiguity(a[], b) { [k] AND a[i].x > 0 } WITHIN 100 ms",
    "SEQ(~B n, A+ a[], B b) WHERE skip_till_next_match(n, a[], b) { [k] AND n.x = 2 } WITHIN 20 ms",
)


def long_batch(pick: random.Random, begin: int, count: int, late: bool) -> pa.RecordBatch:
    """Events of one key, mostly in order, in columns with and without values; a few of them late."""
    rows = range(begin, begin + count)
    kinds = pick.choice((("A",), ("A", "B"), ("A", "A", "A", "B", "CC"), ("A", "B", None)))
    few = [pick.randrange(begin, begin + count) for _ in range(3)]
    columns = {
        "key": pa.array(["k" for _ in rows]),
        "ts": pa.array([max(0, row - pick.randrange(9)) if late and row in few else row for row in rows], pa.int64()),
        "type": pa.array([pick.choice("ABC") if row in few else pick.choice(kinds) for row in rows], pa.string()),
        "x": pa.array([pick.choice((0, 1, 2, 3, -3, None)) for _ in rows], pa.int64()),
        "k": pa.array([None if row in few else pick.choice((1, 2)) for row in rows], pa.int64()),
    }
    if pick.random() < 0.3:
        columns["x"] = columns["x"].cast(pa.float64())
    return pa.RecordBatch.from_pydict(columns)


@settings(max_examples=12, deadline=None)
@given(seed=SEEDS, text=st.sampled_from(LONG_QUERIES), late=st.booleans(), bindings=st.booleans())
def test_long_batches_of_columns(seed: int, text: str, late: bool, bindings: bool) -> None:
    pick = random.Random(seed)
    loaded = [compile_query(parse_query(f"PATTERN {text}"), "q")]
    native, reference = Engine(loaded, bindings=bindings), Engine(loaded, engine="reference")
    begin = 0
    for count in (1, 33 + pick.randrange(9), pick.randrange(1, 9)):
        batch = long_batch(pick, begin, count, late)
        begin += count
        told, expected = native.feed(batch), reference.feed(batch)
        if bindings:
            assert told.to_arrow(ids=True).to_pylist() == expected.to_arrow(ids=True).to_pylist()
        else:
            assert projected(told.to_arrow().to_pylist()) == projected(expected.to_arrow().to_pylist())
        if pick.random() < 0.5:
            assert native.punctuate(begin - 20).late == reference.punctuate(begin - 20).late


LONG_STREAM_QUERIES = (
    *LONG_QUERIES,
    "SEQ(A+ a[], B b, ~A n) WHERE skip_till_next_match(a[], b, n) { [k] AND b.x = 2 AND n.x = 7 } WITHIN 30 ms",
    "SEQ(A+ a[], A b) WHERE skip_till_next_match(a[], b) { [k] AND a[1].x % 5 = 0 AND b.x < 2 } WITHIN 90 ms",
    "SEQ(A a, B b, A+ c[], B d) WHERE skip_till_next_match(a, b, c[], d) { [k] AND a.x = 1 AND d.x = 2 } WITHIN 70 ms",
    "SEQ(A a, B b) WHERE skip_till_next_match(a, b) { a.x > 1 AND (b.x = 2 OR NOT b.x IN [0, 1]) } WITHIN 50 ms",
    "SEQ(A a, ~B n, A c) WHERE skip_till_next_match(a, n, c) { [k] AND c.x = 3 AND n.x = a.x } WITHIN 80 ms",
)


def long_stream(pick: random.Random, count: int, late: bool) -> list[dict[str, Any]]:
    """Events of one key with few kinds and values, as columns are: for a time hardly any differs from the others."""
    values = [*range(pick.choice((1, 2, 2, 3, 12)))]
    records: list[dict[str, Any]] = []
    while len(records) < count:
        kinds, odd = pick.choice(("A", "AB", "AAB")), pick.choice((0, 0, 0.05))
        for _ in range(pick.randrange(20, 200)):
            number = len(records)
            ts = 3 * number - (pick.randrange(150) if late and pick.random() < 0.02 else 0)
            data = {"x": pick.choice((0, 1, 2, 3, 4, 7)), "k": pick.choice(values)}
            if pick.random() < odd:
                data = {"x": 2} if pick.random() < 0.5 else {"k": 40 + pick.randrange(9)}
            records.append({"key": "k", "ts": ts // 3, "type": pick.choice(kinds), "data": data})
            if pick.random() < 0.01:
                records.append({"op": "punctuation", "ts": ts // 3 - 50})
    return records


def as_columns(records: list[dict[str, Any]]) -> pa.RecordBatch:
    of_data = {name: [record.get("data", {}).get(name) for record in records] for name in ("x", "k")}
    texts = {name: pa.array([record.get(name) for record in records], pa.string()) for name in ("key", "op", "type")}
    ints = {"ts": [record["ts"] for record in records]} | of_data
    return pa.RecordBatch.from_pydict(texts | {name: pa.array(column, pa.int64()) for name, column in ints.items()})


def with_settings(pattern: Pattern, pick: random.Random) -> Pattern:
    """What decides how matches that come last are found: whether output or events wait, and which matches count."""
    assert pattern.query is not None
    has_set = "{A" in pattern.query.text
    return replace(
        pattern,
        hold_output=pick.random() < 0.2,
        speculation=pick.choice((math.inf, math.inf, math.inf, 0, 7)),
        output=pick.choice(("all", "all", "all", "non_overlapping", "earliest_maximal" if has_set else "all")),
    )


@pytest.mark.timeout(300)  # each example is 700 records, one by one
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, text=st.sampled_from(LONG_STREAM_QUERIES), late=st.booleans(), bindings=st.booleans())
def test_long_columns_say_what_single_records_say(seed: int, text: str, late: bool, bindings: bool) -> None:
    """Streams that are too long for the reference: for many events at once is found what is found one by one."""
    pick = random.Random(seed)
    loaded = [with_settings(compile_query(parse_query(f"PATTERN {text}"), "q"), pick)]
    together, alone = Engine(loaded, bindings=bindings), Engine(loaded, bindings=bindings)
    records = long_stream(pick, 700, late)
    while records:
        size = pick.choice((1, 20, 90, 300))
        batch, records = records[:size], records[size:]
        found = together.feed(as_columns(batch))
        expected = [alone.feed([line]) for line in lines(batch)]
        rows = [row for told in expected for row in told.to_arrow(ids=bindings).to_pylist()]
        if bindings:
            assert found.to_arrow(ids=True).to_pylist() == rows
        else:
            # What differs only in an id may be told in any order.
            assert Counter(map(str, found.to_arrow().to_pylist())) == Counter(map(str, rows))
        assert [place for place, _ in found.late] == [place for place, told in enumerate(expected) if told.late]
    assert together.state_hash("k") == alone.state_hash("k")
    assert together.snapshot("k") == alone.snapshot("k")
