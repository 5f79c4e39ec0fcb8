"""Where trace contexts are found, whatever the shape of a source, and how many are kept."""

import json

import msgpack
import pytest
from confluent_kafka import Message

from afa import Engine
from afa.document import build_pattern
from afa.source import Source
from arcfleet.fleet.arcs import ArcTable
from worker.binding import Mark
from worker.partition import Partition
from worker.records import Needed, by_partition
from worker.traces import TRACE_BYTES_MAX, TRACES_PER_KEY_MAX, Traces

MARK = Mark({"t": 0}, {"t": None}, 0)
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def message(value, key=b"k", offset=0, **headers):
    return Message(topic="t", partition=3, offset=offset, key=key, value=value, headers=list(headers.items()))


def match(key, last):
    return json.dumps({"op": "insert", "key": key, "events": {"first": "e0", "last": last}}).encode()


def noted(source, *messages):
    traces = Traces([source])
    traces.note(messages)
    return traces


@pytest.mark.parametrize(
    ("source", "value", "headers", "last"),
    [
        (Source("t"), json.dumps({"id": "e1"}), {}, "e1"),
        (Source("t", codec="msgpack", key="who.name"), msgpack.packb({"id": "e1", "who": {"name": "k"}}), {}, "e1"),
        (Source("t", id="header:ce_id", data="."), b"{}", {"ce_id": b"e7"}, "e7"),
        (Source("t", id="header:ce_id", data="."), b"{}", {"ce_id": None}, "t/00003/0000000000000000042"),
        (Source("t", id="record"), b"{}", {}, "t/00003/0000000000000000042"),
        (Source("t"), b"{}", {}, "t/00003/0000000000000000042"),
        (Source("t", op="kind"), json.dumps({"id": "e1", "kind": "insert"}), {}, "e1"),
    ],
)
def test_key_and_id_are_found_as_the_engine_finds_them(source, value, headers, last):
    traces = noted(source, message(value, offset=42, traceparent=TRACE, **headers))
    assert traces.of(match("k", last)) == TRACE
    assert traces.of(match("k", "other")) is None
    assert traces.of(match("other", last)) is None


@pytest.mark.parametrize("value", [b"{no json", b'{"id":7}', b'{"op":"retract","id":"e1"}', None])
def test_what_is_no_event_has_no_trace(value):
    assert noted(Source("t"), message(value, traceparent=TRACE)).packed("k") is None


def test_a_graph_of_matches_has_the_trace_of_the_event_that_all_end_with():
    query = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) {} WITHIN 1 hour"
    pattern = build_pattern({"pattern": "p", "query": query, "encoding": "compressed"})
    partition = Partition(
        3, Engine([pattern], sources=[Source("t")], net="batch"), ArcTable(), MARK, Traces([Source("t")])
    )
    events = [{"id": f"e{ts}", "ts": ts, "type": kind} for ts, kind in enumerate("AAB")]
    events.append({"op": "retract", "id": "e2", "ts": 2, "rev": 1})
    told = []
    for offset, event in enumerate(events):
        one = message(json.dumps(event).encode(), offset=offset, traceparent=b"of " + event["id"].encode())
        changes = partition.feed(by_partition([one], ["t"])[3], Needed.by([Source("t")]), 1, 0)
        told += [(headers[0][1], partition.traces.of(value)) for _, value, headers in changes.encoded()]
    assert told == [(b"insert", b"of e2"), (b"retract", None)]


def test_records_without_the_header_leave_nothing():
    traces = noted(Source("t"), message(b'{"id":"e1"}'), message(b'{"id":"e2"}', other=b"x"))
    assert traces.of(match("k", "e1")) is None
    assert traces.packed("k") is None


def test_they_go_with_the_key_s_snapshot_and_come_back():
    traces = noted(Source("t"), message(b'{"id":"e1"}', traceparent=TRACE))
    again = Traces([Source("t")])
    again.restore("k", traces.packed("k"))
    assert again.of(match("k", "e1")) == TRACE
    again.forget("k")
    assert again.of(match("k", "e1")) is None


def test_of_a_key_the_last_ones_are_kept():
    values = [json.dumps({"id": f"e{number}"}).encode() for number in range(TRACES_PER_KEY_MAX + 1)]
    traces = noted(Source("t"), *(message(value, traceparent=TRACE) for value in values))
    assert traces.of(match("k", "e0")) == TRACE, "until what the batch told is published"
    again = Traces([Source("t")])
    again.restore("k", traces.packed("k"))
    traces.note([])
    for left in (traces, again):
        assert left.of(match("k", "e0")) is None
        assert left.of(match("k", "e1")) == left.of(match("k", f"e{TRACES_PER_KEY_MAX}")) == TRACE


def test_a_hostile_record_is_no_event_and_a_long_header_no_trace():
    deep, event = b"[" * 100_000, b'{"id":"e1"}'
    traces = noted(
        Source("t"), message(deep, traceparent=TRACE), message(event, traceparent=b"0" * TRACE_BYTES_MAX * 2)
    )
    assert traces.packed("k") is None


def test_what_is_bad_or_late_leaves_nothing_behind():
    source = Source("t", key="key")
    engine = Engine([], sources=[source], net="batch")
    partition = Partition(3, engine, ArcTable(), MARK, Traces([source]))
    engine.punctuate(100, partition=("t", 3))
    values = [
        {"key": "bad", "id": "\ud800", "ts": 200, "data": {}},
        {"key": "late", "id": "e1", "ts": 1, "data": {}},
        {"key": "k", "id": "e2", "ts": 200, "data": {}},
    ]
    messages = [message(json.dumps(value).encode(), offset=at, traceparent=TRACE) for at, value in enumerate(values)]
    changes = partition.feed(by_partition(messages, ["t"])[3], Needed.by([source]), 1, 0)
    assert ([index for index, _ in changes.bad], [index for index, _ in changes.late]) == ([0], [1])
    assert [partition.traces.packed(key) is None for key in ("bad", "late", "k")] == [True, True, False]
