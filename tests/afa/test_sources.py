"""Sources with mappings of their own in one engine, and patterns that see some of them: native equals reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgpack
import pytest
from support.automata import arc, automaton

from afa import Engine, PatternError
from afa.changes import Changes
from afa.document import build_pattern
from afa.pattern import Pattern
from afa.source import Source, SourcePunctuation

Record = dict[str, Any]
Raw = dict[str, Any]  # value, key, timestamp, headers

SOURCES = [
    Source("trades", time="header:at", unit="us", data=".", id="no", op="what"),
    Source("orders", codec="msgpack", time="record", key="user.name", id="header:ce_id", type="header:ce_type",
           data="user.said", tombstone="bad"),
    Source("quotes", time="header:ce_time", key="header:k", id="header:ce_id", type="header:ce_type", data="payload",
           unit="iso8601", tombstone="retract", rev="header:rev", seq="header:seq"),
]  # fmt: skip


def iso(ts: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ts)).isoformat()


def trade(record: Record) -> Raw:
    value = record.get("data", {}) | {name: record[name] for name in ("type", "seq", "rev") if name in record}
    value |= {"no": record["id"], "what": record.get("op", "insert")}
    headers = [("at", str(record["ts"] * 1000 + 999).encode()), ("other", None), ("at", None)]
    return {"value": json.dumps(value).encode(), "key": record["key"].encode(), "headers": headers}


def order(record: Record) -> Raw:
    value = {"user": {"name": record["key"]} | ({"said": record["data"]} if "data" in record else {})}
    value |= {name: record[name] for name in ("op", "seq", "rev") if name in record}
    headers = [("ce_id", record["id"].encode()), ("ce_type", record["type"].encode())]
    return {"value": msgpack.packb(value), "timestamp": record["ts"], "headers": headers}


def quote(record: Record) -> Raw:
    head = {"ce_time": iso(record["ts"]), "k": record["key"], "ce_id": record["id"], "ce_type": record["type"]}
    head |= {name: str(record[name]) for name in ("rev", "seq") if name in record}
    value = None if record.get("op") == "retract" else json.dumps({"payload": record["data"]}).encode()
    missing = [(name, None) for name in ("rev", "seq") if name not in head]
    return {"value": value, "headers": [*missing, *((name, text.encode()) for name, text in head.items())]}


WRITERS: dict[str, Callable[[Record], Raw]] = {"trades": trade, "orders": order, "quotes": quote}
CLIMB = automaton(
    arc("down", "a", "b", "e.x < 3"),
    arc("up", "b", "b", "e.x > 4 and r.n < 3 and (e.list == null or len(e.list) > 1)", set={"n": "r.n + 1"}),
    arc("end", "b", "z", "e.x == 3"),
    registers={"n": 0},
    within=40,
)
COUNTED = automaton(arc("low", "a", "b", "e.x < 3"), arc("high", "b", "z", "e.x > 3"), within="4 events")
ABSENT = "PATTERN SEQ(A a, B b, ~A c) WHERE skip_till_next_match(a, b, c) { a.x < b.x } WITHIN 30 milliseconds"


def patterns(*sources: list[str] | None) -> list[Pattern]:
    """A pattern of each kind for each set of sources."""
    made = []
    for number, named in enumerate(sources):
        more = {} if named is None else {"sources": named}
        documents = [CLIMB | more, COUNTED | more, {"query": ABSENT} | more]
        kinds = ("climb", "counted", "absent")
        made += [
            build_pattern({"pattern": f"{kind}{number}"} | {k: v for k, v in document.items() if k != "pattern"})
            for kind, document in zip(kinds, documents, strict=True)
        ]
    return made


def stream(rng: Random, length: int) -> list[tuple[str, Record]]:
    """Records of few keys from all sources, some of one identity from several of them, revised, retracted, late."""
    records: list[tuple[str, Record]] = []
    for number in range(length):
        ts = max(0, 2 * number - rng.choice([0, 0, 1, 9, 30]))
        record: Record = {"key": rng.choice("kl"), "ts": ts, "id": f"i{number % 40}", "type": rng.choice("AB")}
        if records and rng.random() < 0.25:
            old = rng.choice(records[-30:])[1]
            record = {name: old[name] for name in ("key", "ts", "id", "type")} | {"rev": rng.randint(0, 2)}
        if rng.random() < 0.15:
            record["op"] = "retract"
        else:
            record["data"] = {"x": rng.randint(0, 6)} | ({"list": [1, "é"]} if rng.random() < 0.3 else {})
        if rng.random() < 0.2:
            record["seq"] = rng.randint(0, 2)
        records.append((rng.choice(list(WRITERS)), record))
    return records


def columns(records: list[tuple[str, Record]], first: int = 0) -> dict[str, Any]:
    """What `feed` takes."""
    raws = [WRITERS[topic](record) for topic, record in records]
    beside = {f"{name}s": [raw.get(name) for raw in raws] for name in ("key", "timestamp")}
    positions = {"partitions": [(topic, 0) for topic, _ in records], "offsets": range(first, first + len(records))}
    headers = {"headers": [raw.get("headers") for raw in raws]}
    return {"batch": [raw["value"] for raw in raws]} | beside | headers | positions


def promising(*slacks: str | None) -> list[Source]:
    return [
        replace(source, punctuation=SourcePunctuation(slack=slack))
        for source, slack in zip(SOURCES, slacks, strict=True)
    ]


def shown(changes: Changes) -> tuple[Any, ...]:
    told = [record | {"registers": str(record.get("registers"))} for record in changes.to_records()]
    return told, [index for index, _ in changes.bad], changes.late


GROUPS = [
    [None],
    [None, ["trades"]],
    [["trades", "orders"], ["quotes"]],
    [None, ["orders", "quotes", "trades"], ["quotes", "orders"], ["trades"]],
]


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("named", GROUPS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_sources_of_any_mapping_are_read_as_the_reference_reads_them(seed: int, named: Any, net: Any) -> None:
    rng = Random(seed)
    records = stream(rng, 120)
    sources = promising(*rng.choice([(None, None, None), ("20ms", "5ms", "8ms"), ("9ms", None, "9ms")]))
    native, reference = (Engine(patterns(*named), kind, net, sources=sources) for kind in ("native", "reference"))
    begin, total = 0, 0
    while begin < len(records):
        part = records[begin : begin + rng.choice([1, 7, 30])]
        told = native.feed(**columns(part, begin))
        assert shown(told) == shown(reference.feed(**columns(part, begin))), begin
        assert [json.loads(value) for _, value, _ in told.encoded()] == told.to_records()
        assert len(told.partitions) == len(told)
        begin, total = begin + len(part), total + len(told)
        if rng.random() < 0.2:
            topic, ts = rng.choice([*WRITERS]), 2 * begin - 30
            when = rng.choice([None, "e.x > 3"])
            ways = [engine.punctuate(ts, when, partition=(topic, 0)) for engine in (native, reference)]
            assert shown(ways[0]) == shown(ways[1])
    assert total > 10
    assert native.keys() == reference.keys()


@pytest.mark.parametrize("seed", range(5))
def test_a_pattern_behaves_as_if_other_sources_did_not_exist(seed: int) -> None:
    """Its own definition: what it tells is what an engine tells that was given the records of its sources alone."""
    rng = Random(seed)
    records, sources = stream(rng, 150), promising("20ms", "9ms", "9ms")
    seen = rng.sample(list(WRITERS), rng.choice([1, 2]))
    together = Engine(patterns(None, seen), net="batch", sources=sources)
    alone = Engine(patterns(None), net="batch", sources=[source for source in sources if source.topic in seen])
    for begin in range(0, len(records), 10):
        part = records[begin : begin + 10]
        told = [record for record in together.feed(**columns(part, begin)).to_records() if record["pattern"][-1] == "1"]
        own = [(at, record) for at, record in enumerate(part, begin) if record[0] in seen]
        kept = columns([record for _, record in own]) | {"offsets": [at for at, _ in own]}
        expected = alone.feed(**kept).to_records()
        for record in [*told, *expected]:
            record["pattern"] = record["pattern"][:-1]
            record.pop("match", None)
        assert sorted(map(str, told)) == sorted(map(str, expected))


@pytest.mark.parametrize("named", GROUPS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_replay_makes_all_groups_what_they_were(seed: int, named: Any) -> None:
    rng = Random(seed)
    records, sources = stream(rng, 150), promising("40ms", "9ms", "20ms")
    first = Engine(patterns(*named), net="batch", sources=sources)
    kept: dict[str, tuple[bytes | None, int]] = {}
    late: set[int] = set()
    for begin in range(0, len(records), 15):
        part = records[begin : begin + 15]
        late |= {begin + index for index, _ in first.feed(**columns(part, begin), stamp=begin).late}
        dirty = first.dirty_keys(0)
        taken = first.take_dirty(0, begin + 1, rng.randrange(3))
        assert len(taken) <= dirty
        assert (first.oldest_dirty(0) is None) == (first.dirty_keys(0) == 0)
        for key, snapshot in taken:
            kept[key] = (snapshot, begin + 15)
    second = Engine(patterns(*named), net="batch", sources=sources)
    second.feed([], stamp=0)
    held = {key: [(topic, offset) for topic in WRITERS] for key, (_, offset) in kept.items()}
    second.restore_keys(0, [(key, snapshot, held[key]) for key, (snapshot, _) in kept.items()])
    for begin in range(0, len(records), 20):
        part = [(at, record) for at, record in enumerate(records[begin : begin + 20], begin) if at not in late]
        again = columns([record for _, record in part]) | {"offsets": [at for at, _ in part]}
        second.feed(**again, replay=True, stamp=0)
    for (topic, partition), ts in first.punctuations().items():
        second.punctuate(ts, partition=(topic, partition))
    second.end_replay(0)
    keys = first.keys()
    assert keys == second.keys() != []
    assert [first.state_hash(key) for key in keys] == [second.state_hash(key) for key in keys]
    assert second.stats()["skipped"] > 0
    assert (first.punctuations(), first.largest()) == (second.punctuations(), second.largest())


def test_no_partition_comes_further_than_the_topic_that_nothing_came_from_yet() -> None:
    for kind in ("native", "reference"):
        engine = Engine(patterns(None, ["trades"]), kind, "batch", sources=promising("1ms", "1ms", None))  # type: ignore[arg-type]
        event = {"key": "k", "ts": 1000, "id": "i", "type": "A", "data": {"x": 1}}
        told = engine.feed(**columns([("trades", event)])).to_records()
        assert {(record["pattern"], record["ts"]) for record in told} == {
            (f"{kind}1", 999) for kind in ("absent", "climb", "counted")
        }
        engine.feed(**columns([("orders", event)]))
        told = engine.punctuate(500, partition=("quotes", 0)).to_records()
        assert {(record["pattern"], record["ts"]) for record in told} == {
            (f"{kind}0", 500) for kind in ("absent", "climb", "counted")
        }


def test_snapshots_of_groups_fit_other_groups() -> None:
    records = stream(Random(4), 60)
    narrow = Engine(patterns(["trades"]), sources=SOURCES)
    both = Engine(patterns(["trades"], None), sources=SOURCES)
    plain = Engine(patterns(None), sources=SOURCES)
    for engine in (narrow, both, plain):
        engine.feed(**columns(records))
    keys = both.keys()
    for key in keys:
        made = {}
        for name, named in {"narrow": (["trades"],), "both": (["trades"], None), "plain": (None,)}.items():
            made[name] = Engine(patterns(*named), sources=SOURCES)
            made[name].restore(key, both.snapshot(key))
        assert made["both"].state_hash(key) == both.state_hash(key)
        assert made["narrow"].snapshot(key) == narrow.snapshot(key)
        assert made["plain"].keys() == [key]
        widened = Engine(patterns(["trades"], None), sources=SOURCES)
        widened.restore(key, plain.snapshot(key))
        assert set(widened.keys()) == {key}


def test_a_topic_or_a_pattern_that_fits_no_source_is_refused() -> None:
    with pytest.raises(PatternError, match="`absent0` names the source `trade`, which is none of the fleet's"):
        Engine(patterns(["trade"]), sources=SOURCES)
    engine = Engine(patterns(None), sources=SOURCES)
    with pytest.raises(ValueError, match="no source has the topic 'news'"):
        engine.feed([b"{}"], partitions=[("news", 0)])
    with pytest.raises(ValueError, match="which of the sources a record is of"):
        engine.feed([b"{}"])
    with pytest.raises(ValueError, match="different sources are told with bindings"):
        Engine(patterns(None, ["trades"]), sources=SOURCES, bindings=False)


@pytest.mark.parametrize("kind", ["native", "reference"])
def test_a_header_without_a_value_is_a_missing_one(kind: Any) -> None:
    engine = Engine(patterns(None), kind, source=Source("t", time="header:at", key="header:k", data="."))
    headers: list[list[tuple[str, bytes | None]]] = [
        [("at", b"5"), ("k", b"k"), ("at", None), ("other", None)],
        [("at", None), ("k", b"k")],
        [("at", b"5"), ("k", None)],
    ]
    told = engine.feed([b"{}"] * 3, headers=headers)
    assert told.bad == [(1, "a record needs `ts`"), (2, "a record needs `key`")]
    assert (engine.keys(), engine.stats()["events"]) == (["k"], 1)


def test_replay_of_a_tape_ignores_the_sources_of_a_pattern() -> None:
    engine = Engine(patterns(["trades"]))
    event = {"key": "k", "ts": 1, "id": "i", "data": {"x": 1}}
    engine.feed([json.dumps(event).encode(), json.dumps(event | {"ts": 2, "data": {"x": 3}}).encode()])
    assert engine.stats()["events"] == 2


def read_alike(source: Source, values: list[bytes], **beside: Any) -> list[Changes]:
    told = [
        Engine(patterns(None), engine, source=source).feed(values, **beside)  # type: ignore[arg-type]
        for engine in ("native", "reference")
    ]
    assert told[0].to_records() == told[1].to_records()
    assert [index for index, _ in told[0].bad] == [index for index, _ in told[1].bad]
    assert told[0].late == told[1].late
    return told


@pytest.mark.parametrize("name", ["key", "id", "seq", "rev", "type"])
def test_nothing_but_its_time_and_condition_is_read_of_a_punctuation(name: str) -> None:
    source = replace(Source("t", key="header:key"), **{name: f"header:{name}"})
    values = [b'{"op":"punctuation","ts":5}', b'{"ts":4,"data":{}}']
    headers = [[(name, b"\xff")], [("key", b"k")]]
    told = read_alike(source, values, headers=headers)
    assert told[0].late == [(1, "ts 4 is below the punctuation 5")]


def test_slack_at_the_least_instant() -> None:
    source = replace(Source("t"), punctuation=SourcePunctuation(slack="5ms"))
    values = [b'{"ts":%d,"data":{"x":1}}' % (ts - 2**63) for ts in (1, 0, 7, 1)]
    told = read_alike(source, values, keys=[b"k"] * 4)
    assert [index for index, _ in told[0].late] == [3]


def test_a_late_record_is_told_the_punctuation_in_force() -> None:
    """Two may be: that of the slack, and one that was said."""
    source = replace(Source("t"), punctuation=SourcePunctuation(slack="5ms", in_band=True))
    values = [b'{"ts":10}', b'{"op":"punctuation","ts":8}', b'{"ts":3}', b'{"ts":7}', b'{"ts":20}', b'{"ts":3}']
    told = read_alike(source, values, keys=[b"k"] * 6)
    assert [reason for _, reason in told[0].late] == [
        "ts 3 is below the punctuation 8",
        "ts 7 is below the punctuation 8",
        "ts 3 is below the punctuation 15",
    ]
