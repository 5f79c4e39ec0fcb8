"""The envelopes of the matches topic: as changes, or as a table that compaction keeps short and whole."""

import json
from types import SimpleNamespace

from afa import Engine
from afa.document import build_pattern
from afa.source import Source
from worker.cluster import AMPLE_ROOM
from worker.publishing import Publisher
from worker.traces import Traces

SOURCES = [Source("t", key="key")]
LOW = {
    "pattern": "low",
    "within": 1000,
    "start": "s",
    "final": ["f"],
    "arcs": [{"id": "a", "from": "s", "to": "f", "when": "e.x < 3"}],
}
PAIR = {
    "pattern": "pair",
    "query": "PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { x.x > 5 } WITHIN 10 milliseconds",
    "timeouts": True,
}


def sent(*records, upsert):
    """What is on the matches topic: operation, key, value."""
    told = []
    producer = SimpleNamespace(produce=lambda _, **record: told.append(record), poll=lambda _: 0)
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    publisher = Publisher(producer, "p", clock, punctuation_interval_s=0.0, upsert=upsert, room=AMPLE_ROOM)
    engine = Engine([build_pattern(document, "ms") for document in (LOW, PAIR)], sources=SOURCES, net="batch")
    for record in records:
        changes = engine.feed([json.dumps(record).encode()], partitions=[("t", 0)], offsets=[0])
        publisher.changes(0, changes, Traces(SOURCES))
    return [(dict(each["headers"])["op"].decode(), each["key"], each["value"]) for each in told]


def event(name, ts, x, **more):
    return {"id": name, "key": "k", "ts": ts, "type": "a", "data": {"x": x}} | more


def test_changes_are_keyed_by_their_events():
    records = event("e1", 1, 1), event("e1", 1, 1, op="retract"), {"op": "punctuation", "ts": 9}
    told = sent(*records, upsert=False)
    assert [(op, key) for op, key, _ in told] == [
        ("insert", b"k"),
        ("retract", b"k"),
        ("punctuation", None),
        ("punctuation", None),
    ]
    assert all(value is not None for *_, value in told)


def test_upserts_are_keyed_by_their_matches_and_taken_back_by_tombstones():
    records = event("e1", 1, 1), event("e2", 2, 1), event("e1", 1, 1, op="retract"), {"op": "punctuation", "ts": 9}
    told = sent(*records, upsert=True)
    inserted = {json.loads(value)["events"]["first"]: key for op, key, value in told if op == "insert"}
    assert len({*inserted.values()}) == 2
    assert [(key, value) for op, key, value in told if op == "retract"] == [(inserted["e1"], None)]
    assert [key for op, key, _ in told if op == "punctuation"] == ["!punctuation/low", "!punctuation/pair"]


def test_no_timeout_takes_the_place_of_another_one():
    records = event("e1", 1, 9), event("e2", 2, 9), {"op": "punctuation", "ts": 50}
    keys = [key for op, key, _ in sent(*records, upsert=True) if op == "timeout"]
    assert len(keys) == len({*keys}) == 2
    assert keys == [key for op, key, _ in sent(*records, upsert=True) if op == "timeout"], "told twice, it is one"
