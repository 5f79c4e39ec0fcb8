"""Topics and partitions: punctuations, and what is late, are those of a record's own; slack moves them by records."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgpack
import pyarrow as pa
import pytest
from support.automata import SPAN, arc, automaton

from afa import Engine, RecordError
from afa.document import build_pattern
from afa.source import Source, SourcePunctuation

PATTERNS = [
    build_pattern(SPAN),
    build_pattern(
        automaton(
            arc("down", "a", "b", "e.x < 3"),
            arc("up", "b", "b", "e.x > 4 and r.n < 3", set={"n": "r.n + 1"}),
            arc("end", "b", "z", "e.x == 3"),
            name="counting",
            registers={"n": 0},
            within=40,
        )
    ),
]
Origin = tuple[str, int]


def topic(name: str, **punctuation: Any) -> Source:
    """A topic with records in the shape of a tape's."""
    return Source(name, key="key", punctuation=SourcePunctuation(**punctuation))


def value(ts: int, x: int, key: str = "k", **more: Any) -> bytes:
    return json.dumps({"key": key, "ts": ts, "data": {"x": x}} | more).encode()


def stream(rng: Random, length: int, partitions: int = 3) -> tuple[list[dict[str, Any]], list[Origin]]:
    """Records of few keys, each partition at its own pace; some retracted, some late."""
    paces = [rng.choice([1, 2, 5]) for _ in range(partitions)]
    records, origins = [], []
    for number in range(length):
        partition = rng.randrange(partitions)
        ts = number * paces[partition] - rng.choice([0, 0, 3, 20])
        record = {"key": f"{partition}{rng.randrange(2)}", "ts": ts, "id": f"i{number % 50}", "type": rng.choice("AB")}
        if rng.random() < 0.1:
            record["op"] = "retract"
        else:
            record["data"] = {"x": rng.randint(0, 6)}
        records.append(record)
        origins.append((rng.choice("tu"), partition))
    return records, origins


def raw(records: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def record_batch(records: list[dict[str, Any]], *, dictionary: bool) -> pa.RecordBatch:
    names = {"op": pa.string(), "key": pa.string(), "ts": pa.int64(), "id": pa.string(), "type": pa.string()}
    columns = {name: pa.array([record.get(name) for record in records], kind) for name, kind in names.items()}
    if dictionary:
        columns["key"] = columns["key"].dictionary_encode()
    columns["x"] = pa.array([record.get("data", {}).get("x") for record in records], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def state_hashes(engine: Engine) -> dict[str, str]:
    keys = engine.keys()
    return {key: engine.state_hash(key) for key in keys}


def reached(records: list[dict[str, Any]], origins: list[Origin]) -> tuple[list[int], dict[Origin, int]]:
    """The places of records that are more than 8 behind, and the greatest times, by definition."""
    late: list[int] = []
    newest: dict[Origin, int] = {}
    for place, (record, origin) in enumerate(zip(records, origins, strict=True)):
        if record["ts"] < newest.get(origin, record["ts"]) - 8:
            late.append(place)
        newest[origin] = max(newest.get(origin, record["ts"]), record["ts"])
    return late, newest


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("seed", range(4))
def test_slack_moves_with_every_record(seed: int, net: Any) -> None:
    """Whatever the batches: what is late is so by the records before it, of its own topic and partition."""
    records, origins = stream(Random(seed), 300)
    expected, newest = reached(records, origins)
    hashes = []
    for size in (1, 13, len(records)):
        engine, late = Engine(PATTERNS, net=net, sources=[topic("t", slack="8ms"), topic("u", slack="8ms")]), []
        for begin in range(0, len(records), size):
            part = slice(begin, begin + size)
            changes = engine.feed(raw(records[part]), partitions=origins[part])
            late += [begin + index for index, _ in changes.late]
        assert late == expected
        assert len(late) > 10
        assert engine.stats()["late"] == len(late)
        assert engine.largest() == newest
        assert engine.punctuations() == {origin: ts - 8 for origin, ts in newest.items()}
        hashes.append(state_hashes(engine))
    assert hashes[0] == hashes[1] == hashes[2]


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_record_batches_mix_partitions(seed: int, dictionary: bool, net: Any) -> None:
    rng = Random(seed)
    records, origins = stream(rng, 300)
    sources = [topic("t", slack="8ms"), topic("u", slack="8ms")]
    values, rows = Engine(PATTERNS, net=net, sources=sources), Engine(PATTERNS, net=net, sources=sources)
    begin = 0
    while begin < len(records):
        part = slice(begin, begin + rng.choice([1, 7, 60]))
        expected = values.feed(raw(records[part]), partitions=origins[part])
        told = rows.feed(record_batch(records[part], dictionary=dictionary), partitions=origins[part])
        assert told.to_records() == expected.to_records()
        assert (told.partitions, told.late) == (expected.partitions, expected.late)
        begin = part.stop
    assert state_hashes(rows) == state_hashes(values)
    assert (rows.punctuations(), rows.largest()) == (values.punctuations(), values.largest())


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("origin", [("u", 0), ("t", 1)])
def test_nothing_comes_below_what_a_partition_has_passed(origin: Origin, net: Any) -> None:
    """Not from a topic that it did not have before, nor from another partition than the key's."""
    engine = Engine(PATTERNS, net=net)
    engine.feed([value(ts, 1, id=f"e{ts}") for ts in (10, 20, 30, 60)], partitions=[("t", 0)] * 4)
    engine.punctuate(50, partition=("t", 0))
    before = engine.state_hash("k")
    retraction = json.dumps({"op": "retract", "key": "k", "ts": 20, "id": "e20", "rev": 1}).encode()
    told = engine.feed([value(15, 1), value(25, 2), retraction], partitions=[origin] * 3)
    assert told.late == [(index, f"ts {ts} is below the punctuation 50") for index, ts in enumerate((15, 25, 20))]
    assert len(told) == 0
    if origin == ("t", 1):
        assert engine.state_hash("k") == before
        assert not engine.feed([value(15, 1, key="other")], partitions=[origin]).late
    rows = pa.RecordBatch.from_pydict({"key": ["k"] * 3, "ts": [15, 70, 16], "x": [1, 1, 2]})
    assert [index for index, _ in engine.feed(rows, partitions=[origin]).late] == [0, 2]


def test_partitions_of_a_record_batch_are_those_of_its_rows() -> None:
    engine = Engine(PATTERNS)
    batch = pa.RecordBatch.from_pydict({"key": ["k"] * 3, "ts": [1, 2, 3]})
    with pytest.raises(RecordError, match="partitions: 2 entries for 3 rows"):
        engine.feed(batch, partitions=[("t", 0)] * 2)
    engine.feed(batch, partitions=[("t", 5)])
    assert engine.largest() == {("t", 5): 3}


@pytest.mark.parametrize("seed", range(4))
def test_one_entry_stands_for_all_records(seed: int) -> None:
    records, _ = stream(Random(seed), 60, partitions=1)
    told = []
    for partitions in ([("t", 3)], [("t", 3)] * len(records)):
        engine = Engine(PATTERNS, source=topic("t", slack="10ms"))
        changes = engine.feed(raw(records), partitions=partitions, offsets=range(len(records)))
        told.append((changes.to_records(), changes.late, changes.bad, changes.partitions, engine.punctuations()))
    assert told[0] == told[1]
    assert told[0][4]
    with pytest.raises(ValueError, match="partitions: 2 entries for 60 records"):
        Engine(PATTERNS).feed(raw(records), partitions=[("t", 3)] * 2)


@pytest.mark.parametrize("sources", [None, [topic("t")]])
def test_largest_without_slack(sources: list[Source] | None) -> None:
    records, origins = stream(Random(1), 100)
    engine = Engine(PATTERNS, net="batch", sources=sources)
    assert engine.feed(raw(records), partitions=origins).late == []
    assert engine.largest() == reached(records, origins)[1]
    assert engine.punctuations() == {}
    engine.punctuate(7, partition=("t", 1))
    assert engine.punctuations() == {("t", 1): 7}


@pytest.mark.parametrize("seed", range(6))
def test_what_a_replay_skips_moves_the_punctuation_as_the_first_time(seed: int) -> None:
    rng = Random(seed)
    records, _ = stream(rng, 300, partitions=1)
    values, positions = raw(records), [("t", 0)] * len(records)
    sources = [topic("t", slack="8ms")]
    first = Engine(PATTERNS, net="batch", sources=sources)
    kept: dict[str, tuple[bytes | None, int]] = {}
    for begin in range(0, len(records), 30):
        part = slice(begin, begin + 30)
        first.feed(values[part], partitions=positions[part], offsets=range(begin, begin + 30), stamp=begin)
        for key, snapshot in first.take_dirty(0, begin + 1, rng.randrange(3)):
            kept[key] = (snapshot, begin + 30)
    second, late = Engine(PATTERNS, net="batch", sources=sources), []
    second.feed([], stamp=0)
    second.restore_keys(0, [(key, snapshot, [("t", offset)]) for key, (snapshot, offset) in kept.items()])
    size = rng.choice([1, 7, 300])
    for begin in range(0, len(records), size):
        part = slice(begin, begin + size)
        offsets = range(len(records))[part]
        told = second.feed(values[part], partitions=positions[part], offsets=offsets, replay=True, stamp=0)
        late += [begin + index for index, _ in told.late]
    second.end_replay(0)
    assert second.stats()["skipped"] > 0
    assert set(late) <= set(reached(records, positions)[0])
    assert (second.punctuations(), second.largest()) == (first.punctuations(), first.largest())
    assert state_hashes(second) == state_hashes(first)


def test_a_wild_clock_moves_no_punctuation() -> None:
    values = [value(50, 1), value(10**12, 1), value(45, 5), value(39, 5)]
    late = [(3, "ts 39 is below the punctuation 40")]
    for trusted, source in (
        ({"trusted_until": 1_000}, topic("t", slack="10ms")),
        ({"now": 0}, topic("t", slack="10ms")),
        ({"now": 45}, topic("t", slack="10ms", max_ahead="5ms")),
    ):
        engine = Engine(PATTERNS, net="batch", sources=[source])
        told = engine.feed(values, partitions=[("t", 0)] * 4, **trusted)
        assert told.late == late
        emitted = [(record["pattern"], record["ts"]) for record in told.to_records() if record["op"] == "punctuation"]
        assert emitted == [("counting", 40), ("p", 40)]
        assert (engine.punctuations(), engine.largest()) == ({("t", 0): 40}, {("t", 0): 50})


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("columnar", [False, True])
def test_a_punctuation_that_is_too_far_ahead_of_the_clock_is_a_bad_record(net: Any, columnar: bool) -> None:
    """Also one with a condition; whoever replays believes none, and tells none bad."""
    promises: list[dict[str, Any]] = [{"op": "punctuation", "ts": ts} for ts in (40, 51, 51, 45)]
    promises[2]["when"] = "e.x > 1"
    refused = "the punctuation 51 is further ahead of the clock than `max_ahead`"
    for source in (topic("t", in_band=True, max_ahead="5ms"), topic("t", slack="1h", max_ahead="5ms")):
        for trust, told_bad, come_to in (
            ({"now": 45}, [(1, refused), (2, refused)], {("t", 0): 45}),
            ({"now": 46}, [], {("t", 0): 51}),
            ({}, [], {("t", 0): 51}),
            ({"trusted_until": -(2**63)}, [], {}),
        ):
            engine = Engine(PATTERNS, net=net, sources=[source])
            batch: Any = [json.dumps(promise).encode() for promise in promises]
            if columnar:
                batch = pa.RecordBatch.from_pylist(
                    [{"key": None, "when": None} | promise for promise in promises],
                    pa.schema({"key": pa.string(), "ts": pa.int64(), "op": pa.string(), "when": pa.string()}),
                )
            told = engine.feed(batch, partitions=[("t", 0)], **trust)
            assert (told.bad, told.late, engine.punctuations()) == (told_bad, [], come_to)
            conditions = engine.conditions()
            assert conditions == ({} if told_bad or not come_to else {("t", 0): [(51, "e.x > 1")]})


def test_a_wild_clock_is_not_believed_without_slack_either() -> None:
    values = [value(50, 1), value(10**12, 1), value(45, 5)]
    for source, largest in (
        (topic("t", max_ahead="5ms"), 50),
        (topic("t", idle="5ms"), 50),
        (topic("t", in_band=True), 10**12),
    ):
        engine = Engine(PATTERNS, net="batch", sources=[source])
        engine.feed(values, partitions=[("t", 0)], now=45)
        assert engine.largest() == {("t", 0): largest}


def test_lengths_are_told_in_the_unit_of_the_fleet() -> None:
    engine = Engine(PATTERNS, net="batch", sources=[topic("t", slack="10ms")], unit="us")
    engine.feed([value(50, 1)], partitions=[("t", 0)])
    assert engine.punctuations() == {("t", 0): 40_000}
    assert engine.feed([value(39, 1), value(40, 1)], partitions=[("t", 0)] * 2).late


def test_one_source_is_that_of_records_without_a_partition() -> None:
    engine = Engine(PATTERNS, source=topic("t", slack="10ms"))
    assert engine.feed([value(50, 1), value(39, 5)]).late


@pytest.mark.parametrize(
    "source", [{"codec": "msgpack"}, {"time": "header:t", "data": "."}, {"op": "kind", "unit": "s"}, {"key": "a.b"}]
)
def test_punctuations_and_arc_changes_do_not_depend_on_the_source(source: dict[str, Any]) -> None:
    engine = Engine(PATTERNS, source=source)
    change = {"op": "arc", "pattern": "p", "arc": {"id": "new", "from": "a", "to": "z"}, "valid": [2000, None]}
    assert engine.change_arc(change).to_records() == []
    told = engine.punctuate(1000, partition=("t", 0)).to_records()
    assert [(record["pattern"], record["ts"]) for record in told] == [("counting", 1000), ("p", 1000)]
    engine.punctuate(1500, "e.x > 1", partition=("t", 0))
    assert engine.punctuations() == {("t", 0): 1000}
    engine.change_arc({"op": "arc-punctuation", "ts": 3000})
    assert engine.change_arc(change | {"valid": [2500, None]}).late
    with pytest.raises(RecordError, match="not an expression"):
        engine.punctuate(1, "e.x >")
    with pytest.raises(RecordError, match="has no arc `other`"):
        engine.change_arc({"op": "arc-retract", "pattern": "p", "arc": {"id": "other"}})
    with pytest.raises(RecordError, match="an event is no change"):
        engine.change_arc({"op": "insert", "key": "k", "ts": 1})


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_source_brings_no_arc_changes(codec: str) -> None:
    arc_change = {"op": "arc", "pattern": "p", "arc": {"id": "x", "from": "a", "to": "z"}}
    changes = [arc_change, {"op": "arc-punctuation", "ts": 5}, {"op": "punctuation", "ts": 5}]
    records: list[bytes] = [msgpack.packb(change) for change in changes] if codec == "msgpack" else raw(changes)
    told = Engine(PATTERNS, source={"key": "key", "codec": codec}).feed(records)
    assert told.bad == [(index, "a source brings events, no changes of patterns") for index in (0, 1)]
    silent = topic("u", in_band=False)
    sources = [Source("t", codec=codec, key="key"), Source("u", codec, key="key", punctuation=silent.punctuation)]
    engine = Engine(PATTERNS, sources=sources)
    told = engine.feed([records[2]] * 2, partitions=[("t", 0), ("u", 0)])
    assert told.bad == [(1, "this source has no punctuations (`in_band`)")]
    assert engine.punctuations() == {("t", 0): 5}


def test_what_sources_may_not_be() -> None:
    with pytest.raises(ValueError, match="leave out one"):
        Engine(PATTERNS, source={"key": "key"}, sources=[topic("t")])
    with pytest.raises(ValueError, match="unit: 'h'"):
        Engine(PATTERNS, unit="h")  # type: ignore[arg-type]
    reference = Engine(PATTERNS, "reference", sources=[topic("t")])
    with pytest.raises(ValueError, match="the reference engine has no clock"):
        reference.feed([], now=5)
    with pytest.raises(ValueError, match="records of one partition only"):
        reference.feed([value(1, 1)] * 2, partitions=[("t", 0), ("t", 1)])


def test_conditions_are_told_until_they_are_passed() -> None:
    engine = Engine(PATTERNS, sources=[topic("t"), topic("u")])
    engine.punctuate(50, "e.x > 1", partition=("t", 0))
    engine.punctuate(60, "e.x > 2", partition=("t", 0))
    engine.punctuate(50, "e.x > 1", partition=("u", 1))
    assert engine.conditions() == {("t", 0): [(50, "e.x > 1"), (60, "e.x > 2")], ("u", 1): [(50, "e.x > 1")]}
    engine.punctuate(55, partition=("t", 0))
    assert engine.conditions() == {("t", 0): [(60, "e.x > 2")], ("u", 1): [(50, "e.x > 1")]}


@pytest.mark.parametrize("before", [None, -5])
def test_conditions_outlive_what_is_restored(before: int | None) -> None:
    """Also where they are all that an engine knows: no punctuation for all events came, and no key."""
    first, second = Engine(PATTERNS), Engine(PATTERNS)
    first.feed([value(0, 1)])
    if before is not None:
        second.punctuate(before)
    second.punctuate(4, "e.x < -3")
    (key,) = first.keys()
    second.restore(key, first.snapshot(key))
    assert second.conditions() == {("", 0): [(4, "e.x < -3")]}
    assert [reason for _, reason in second.feed([value(2, -6)]).late] == [
        "ts 2 is below the punctuation 4 when e.x < -3"
    ]
