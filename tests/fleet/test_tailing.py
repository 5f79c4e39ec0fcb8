"""What the records of a matches topic say, and where its partitions end."""

import json
from pathlib import Path

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from afa.errors import RecordError
from arcfleet.cli.match_table import ChangeTable, print_matches
from arcfleet.fleet.errors import KafkaError
from arcfleet.fleet.tailing import Ends, Tail, follow, read_change
from arcfleet.net_matches import NetMatches

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
SCHEMAS = ("match", "match-graph", "match-punctuation", "timeout")


def told(value, key=None, headers=()):
    return read_change(value, key, list(headers))


def change(op, identity="m1", **more):
    record = {"op": op, "match": identity, "pattern": "p", "key": "k", "start": 1, "end": 2, **more}
    return told(json.dumps(record).encode())


@pytest.mark.parametrize("file", [file for name in SCHEMAS for file in (EXAMPLES / name).glob("*.jsonl")], ids=str)
def test_whatever_the_schemas_allow_is_read_as_it_stands(file):
    for text in file.read_text().splitlines():
        read = told(text.encode())
        assert (read.text, read.record) == (text, json.loads(text))


def test_a_value_of_several_lines_is_shown_on_one():
    read = told(b'{\n  "op": "punctuation",\r\n  "pattern": "p", "ts": 5\n}')
    assert json.loads(read.text) == read.record
    assert not {"\n", "\r"} & set(read.text)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\xff", "not JSON: 'utf-8' codec"),
        (b"nonsense", "not JSON: Expecting value"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"pattern":"p"}', "no `op`"),
        (b'{"op":"insert","pattern":"p","key":"k","end":1}', "no `match`"),
        (b'{"op":"insert","pattern":"p","key":"k","end":"1","match":"m"}', "`end` is '1'"),
        (b'{"op":"insert","pattern":"p","key":"k","end":1,"match":"m","graph":{}}', "not a compressed record"),
        (None, "neither key nor value"),
    ],
)
def test_what_no_worker_writes_is_refused(value, said):
    with pytest.raises(RecordError, match=said):
        told(value)


def test_a_tombstone_is_a_retraction_of_the_match_that_is_its_key():
    read = told(None, b"m1", [("op", b"retract"), ("pattern", b"p")])
    assert json.loads(read.text) == read.record == {"op": "retract", "match": "m1", "pattern": "p"}


def net_of(*changes):
    net = NetMatches()
    for one in changes:
        follow(net, one)
    return sorted(net.standing), net.doubled, net.orphans


def test_inserts_minus_retractions():
    assert net_of(change("insert"), change("insert", "m2"), change("retract")) == (["m2"], 0, 0)
    assert net_of(change("insert"), change("retract"), change("insert")) == (["m1"], 0, 0)


def test_what_does_not_fit_is_counted():
    assert net_of(change("insert"), change("insert"), change("retract"), change("retract")) == ([], 1, 1)


def test_other_records_are_no_matches():
    punctuation = told(b'{"op":"punctuation","pattern":"p","ts":5}')
    timeout = told(b'{"op":"timeout","pattern":"p","key":"k","start":1,"until":2,"reached":"a","bindings":{"a":["e"]}}')
    assert net_of(change("insert"), punctuation, timeout) == (["m1"], 0, 0)


def test_a_compressed_record_replaces_the_one_before():
    texts = (EXAMPLES / "match-graph" / "query.jsonl").read_text().splitlines()
    first, second, gone, again = (told(text.encode()) for text in texts)
    net = NetMatches()
    follow(net, first)
    follow(net, second)
    assert list(net.standing.values()) == [second]
    follow(net, gone)
    follow(net, again)
    assert (list(net.standing.values()), net.doubled, net.orphans) == ([again], 0, 0)


def test_a_tombstone_alone_is_what_compaction_leaves():
    tombstone = told(None, b"m1", [("pattern", b"p")])
    assert net_of(tombstone, change("insert", "m2")) == (["m2"], 0, 0)
    assert net_of(change("insert"), tombstone, tombstone) == ([], 0, 0)


def test_net_matches_are_listed_as_replay_does():
    unsorted = [change("insert", "b"), change("insert", "a"), change("insert", "c", start=0)]
    graph = told((EXAMPLES / "match-graph" / "query.jsonl").read_text().splitlines()[0].encode())
    listed = sorted([*unsorted, graph], key=lambda one: one.order)
    assert [one.record["match"] for one in listed][:3] == ["c", "a", "b"]
    assert listed[3].order == ("k", 9, 9, graph.record["match"])


def test_partitions_end_where_they_ended_at_the_start():
    ends = Ends({0: 0, 1: 5, 2: 3})
    assert ends.left == {1, 2}
    ends.reached(1, 4)  # the end as far as it was committed
    assert ends.left == {1, 2}
    ends.reached(1, 5)
    ends.reached(2, 9)  # a marker, an aborted record: what comes is from behind the end
    assert ends.left == set()
    assert (ends.holds(2, 2), ends.holds(2, 3)) == (True, False)


class Silent:
    """A consumer to which nothing comes, and brokers that `answer` or not."""

    def __init__(self, answer=False):
        self.answer = answer
        self.asked = 0

    def poll(self, timeout_s):
        return None

    def list_topics(self, timeout):
        self.asked += 1
        if not self.answer:
            raise KafkaException(ClientError(ClientError._TRANSPORT))


def test_brokers_that_stay_out_of_reach_end_it():
    now = [0.0]
    tail, consumer = Tail(None, 60.0, lambda: now[0]), Silent()
    batches = tail.batches(consumer, lambda: False)
    assert next(batches) == []
    tail.heard(ClientError(ClientError._ALL_BROKERS_DOWN))
    now[0] = 59.0
    tail.heard(ClientError(ClientError._ALL_BROKERS_DOWN))
    assert (next(batches), consumer.asked) == ([], 0)
    now[0] = 60.0
    with pytest.raises(KafkaError, match="no broker has answered for 60 s"):
        next(batches)


def test_brokers_that_came_back_are_not_asked_again():
    now = [0.0]
    tail, consumer = Tail(None, 60.0, lambda: now[0]), Silent(answer=True)
    tail.heard(ClientError(ClientError._TRANSPORT))
    tail.heard(ClientError(ClientError._ALL_BROKERS_DOWN))
    batches = tail.batches(consumer, lambda: False)
    for now[0] in (60.0, 61.0, 1000.0):
        assert next(batches) == []
    assert consumer.asked == 1


class Refusing(Silent):
    def poll(self, timeout_s):
        return self

    def consume(self, count, timeout_s):
        return []

    def error(self):
        return ClientError(ClientError.TOPIC_AUTHORIZATION_FAILED)

    def topic(self):
        return "demo.matches"

    def partition(self):
        return 3

    def offset(self):
        return -1001


def test_what_the_brokers_refuse_is_said():
    with pytest.raises(KafkaError, match=r"demo\.matches/3 cannot be read: Broker: Topic authorization failed"):
        list(Tail(None, 60.0, lambda: 0.0).batches(Refusing(), lambda: False))


def test_a_table_goes_on_in_columns_as_wide_as_before(capsys):
    values = {"registers": {"n": 1, "x": None}, "events": {"first": "e1", "last": "e2"}}
    narrow = change("insert", until=None, state="q", **values).record
    texts = [
        (EXAMPLES / "timeout" / "contract.jsonl").read_text(),
        '{"op":"punctuation","pattern":"p","ts":5000}',
        (EXAMPLES / "match-graph" / "query.jsonl").read_text().splitlines()[1],
        (EXAMPLES / "match" / "query.jsonl").read_text().splitlines()[0],
    ]
    table = ChangeTable()
    table.print([told(text.encode()).record for text in texts] + [told(None, b"m").record])
    table.print([narrow])
    head, timeout, punctuation, graph, query, tombstone, insert = capsys.readouterr().out.splitlines()
    at = head.index("key")
    assert (insert[at], graph[at], query[at : at + 2]) == ("k", "k", "t1")
    assert insert.split() == ["insert", "p", "k", "1", "2", "q", "n=1,", "x=None", "e1", "e2"]
    assert timeout.split() == ["timeout", "shoplifting", "t1", "1000", "43201000", "a:", "a=e1"]
    assert punctuation.split() == ["punctuation", "p", "5000"]
    assert graph.split() == ["insert", "any", "k", "9", "3", "matches", "b"]
    assert "a=e1, c=e4" in query
    assert tombstone.split() == ["retract"]


def test_a_table_of_matches(capsys):
    print_matches(
        [told(text.encode()).record for text in (EXAMPLES / "match" / "query.jsonl").read_text().splitlines()]
    )
    assert len(capsys.readouterr().out.splitlines()) == 3
