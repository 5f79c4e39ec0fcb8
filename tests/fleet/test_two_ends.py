"""`events publish` and `matches tail` on a real Kafka."""

import json
import os
import pty
import signal
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from support.commands import COMMAND, arcfleet, environment, together, write_tape

from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.tailing import Ends, Tail, assign, tail_settings
from arcfleet.fleet.topic_admin import connect, read_ends

DEADLINE_S = 30.0
KEYS = ["YHOO", "GOOG", "MSFT", "ÄPFEL", "", "k"]
TAPE = [
    *({"id": f"e{number}", "key": KEYS[number % len(KEYS)], "ts": number, "data": {}} for number in range(30)),
    {"op": "punctuation", "ts": 20},
    '{ "op":"retract", "id":"e7", "key":"GOOG", "ts":7 }',
    {"op": "punctuation", "ts": 40, "when": "e.floor <= 3"},
]


def murmur2(key):
    """As Java's producers hash a key, written down once more to be compared with."""
    length, mixed = len(key), 0x9747B28C ^ len(key)
    for at in range(0, length - length % 4, 4):
        word = int.from_bytes(key[at : at + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        mixed = mixed * 0x5BD1E995 & 0xFFFFFFFF ^ word
    if length % 4:
        mixed = (mixed ^ int.from_bytes(key[length - length % 4 :], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return (mixed ^ mixed >> 15) & 0x7FFFFFFF


def everything(bootstrap, topic, partitions):
    """All records of each partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    found, left = {number: [] for number in range(partitions)}, set(range(partitions))
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        end_s = time.monotonic() + DEADLINE_S
        while left:
            assert time.monotonic() < end_s
            if message := consumer.poll(0.1):
                if message.error():
                    left.discard(message.partition())
                else:
                    found[message.partition()].append(message)
    finally:
        consumer.close()
    return found


@pytest.fixture(scope="module")
def tape(tmp_path_factory):
    return write_tape(tmp_path_factory.mktemp("tape") / "day.jsonl", TAPE)


def fleet_in(file, kafka, sources):
    file.write_text(json.dumps({"fleet": kafka.unique("f"), "bootstrap": kafka.bootstrap, "sources": sources}))
    return file


def out_of_reach(folder):
    file = folder / "far.yaml"
    file.write_text("{fleet: far, bootstrap: 127.0.0.1:1, start_deadline: 200ms, sources: [{topic: events}]}")
    return file


def test_a_tape_is_published_as_it_stands(kafka, tape):
    topic, before_ms = kafka.create_topic(partitions=4), time.time() * 1000
    (ran,) = together([["events", "publish", tape, "--topic", topic, "--bootstrap", kafka.bootstrap]])
    assert (ran.code, ran.err) == (0, "")
    (summary,) = ran.records
    assert summary.pop("seconds") > 0
    assert summary == {"topic": topic, "records": 31, "punctuations": 2, "partitions": 4}

    found = everything(kafka.bootstrap, topic, 4)
    lines = tape.read_bytes().splitlines()
    for number, messages in found.items():
        expected = [line for line in lines if partition_of(line) in (number, None)]
        assert [message.value() for message in messages] == expected, "in the tape's order"
    for message in (message for messages in found.values() for message in messages):
        record = json.loads(message.value())
        assert message.key() == (record["key"].encode() if "key" in record else None)
        assert before_ms - 1000 < message.timestamp()[1] < time.time() * 1000 + 1000


def partition_of(line):
    record = json.loads(line)
    return murmur2(record["key"].encode()) % 4 if "key" in record else None


def test_a_file_with_a_bad_line_is_not_published_at_all(kafka, tmp_path):
    topic = kafka.create_topic()
    arc = {"op": "arc", "pattern": "q1", "arc": {"id": "a1"}, "valid": [None, 5]}
    files = [
        write_tape(tmp_path / f"{name}.jsonl", [*TAPE, bad])
        for name, bad in (("arc", arc), ("broken", "nonsense"), ("op", {"op": "what"}))
    ]
    to = ["--topic", topic, "--bootstrap", kafka.bootstrap]
    arc_line, broken, unknown = together([["events", "publish", file, *to] for file in files])
    assert {ran.code for ran in (arc_line, broken, unknown)} == {1}
    assert f"{files[0]}:34:8: error: an arc change cannot be published" in arc_line.err
    assert "fix: take the line out; patterns reach a fleet by `arcfleet worker --patterns DIR`" in arc_line.err
    assert f"{files[1]}:34:1: error: not JSON" in broken.err
    assert f"{files[2]}:34:8: error: unknown op `what`" in unknown.err
    assert everything(kafka.bootstrap, topic, 1) == {0: []}


def test_a_pipe_is_published_up_to_its_bad_line(kafka):
    topic = kafka.create_topic()
    lines = b'{"key":"k","ts":1}\n\n{"key":"k","ts":2}\nnonsense\n{"key":"k","ts":3}\n'
    ran = arcfleet("events", "publish", "-", "--topic", topic, "--bootstrap", kafka.bootstrap, stdin=lines)
    assert (ran.code, ran.out) == (1, "")
    assert f"delivered to {topic}: 2 records, 0 punctuations" in ran.err
    assert "<stdin>:4:1: error: not JSON" in ran.err
    assert [message.value() for message in everything(kafka.bootstrap, topic, 1)[0]] == lines.split(b"\n")[0:3:2]


def test_a_named_pipe_is_read_once(kafka, tmp_path):
    topic, pipe = kafka.create_topic(), tmp_path / "pipe"
    os.mkfifo(pipe)
    publishing = [COMMAND, "events", "publish", pipe, "--topic", topic, "--bootstrap", kafka.bootstrap]
    with subprocess.Popen(publishing, stdout=subprocess.PIPE, env=environment()) as process:
        pipe.write_text('{"key":"k","ts":1}\n{"op":"punctuation","ts":2}\n')
        summary = json.loads(process.stdout.read())
    assert (summary["records"], summary["punctuations"]) == (1, 1)


def test_what_cannot_be_published_is_explained(kafka, tape, tmp_path):
    topic = kafka.create_topic()
    small = kafka.create_topic(config={"max.message.bytes": "300"})
    long = write_tape(tmp_path / "long.jsonl", [*TAPE[:2], {"key": "k", "ts": 1, "data": {"x": os.urandom(400).hex()}}])
    publish = ["events", "publish", tape]
    missing, nobody, several, packed, absent, too_large = together(
        [
            [*publish, "--fleet", fleet_in(tmp_path / "one.yaml", kafka, [{"topic": "not-there"}])],
            [*publish, "--fleet", out_of_reach(tmp_path)],
            [*publish, "--fleet", fleet_in(tmp_path / "two.yaml", kafka, [{"topic": "a"}, {"topic": "b"}])],
            [*publish, "--fleet", fleet_in(tmp_path / "packed.yaml", kafka, [{"topic": topic, "codec": "msgpack"}])],
            ["events", "publish", tmp_path / "absent.jsonl", "--bootstrap", kafka.bootstrap],
            ["events", "publish", long, "--topic", small, "--bootstrap", kafka.bootstrap],
        ]
    )
    assert missing.code == 1
    assert "the topic not-there is not there" in missing.err
    assert "fix: arcfleet topics apply --sources N makes it" in missing.err
    assert nobody.code == 3
    assert "no broker answered at 127.0.0.1:1 within 0.2 s" in nobody.err
    assert several.code == 2
    assert "a, b" in several.err
    assert packed.code == 1
    assert "cannot read a tape's lines: it says `codec: msgpack`" in packed.err
    assert "fix: publish to a source with `codec: json`" in packed.err
    assert absent.code == 1
    assert f"{tmp_path / 'absent.jsonl'}:1:1: error: cannot be read" in absent.err
    assert (too_large.code, too_large.out) == (3, "")
    assert f"delivered to {small}: 2 records, 0 punctuations" in too_large.err
    assert f"{long}:3: not delivered to {small}: Broker: Message size too large" in too_large.err
    assert "raise the topic's max.message.bytes" in too_large.err


def test_how_the_fleet_reads_is_said(kafka, tape, tmp_path):
    topic, other = kafka.create_topic(), kafka.create_topic()
    usual = fleet_in(tmp_path / "usual.yaml", kafka, [{"topic": topic}])
    without = {"punctuation": {"in_band": False}}
    mapped = fleet_in(tmp_path / "mapped.yaml", kafka, [{"topic": topic, "data": "."} | without])
    quiet, told, foreign = together(
        [
            ["events", "publish", tape, "--fleet", usual],
            ["events", "publish", tape, "--fleet", mapped, "-o", "table"],
            ["events", "publish", tape, "--fleet", mapped, "--topic", other],
        ]
    )
    assert (quiet.code, quiet.err, quiet.records[0]["records"]) == (0, "", 31)
    assert (told.code, told.out.split()[:5]) == (0, ["topic", "records", "punctuations", "partitions", "seconds"])
    assert f"a tape's lines go as they stand, but the source {topic} reads data: ." in told.err
    assert f"the source {topic} expects no punctuations" in told.err
    assert foreign.code == 0
    assert f"{other} is no source of the fleet" in foreign.err


def test_lines_are_paced(kafka, tape):
    topic = kafka.create_topic(partitions=2)
    to = ["--topic", topic, "--bootstrap", kafka.bootstrap]
    (ran,) = together([["events", "publish", tape, *to, "--rate", "100"]])
    assert ran.records[0]["seconds"] >= (len(TAPE) - 1) / 100
    stamps = sorted(
        message.timestamp()[1] for messages in everything(kafka.bootstrap, topic, 2).values() for message in messages
    )
    assert stamps[-1] - stamps[0] >= 1000 * (len(TAPE) - 2) / 100 - 100
    assert together([["events", "publish", tape, *to, "--rate", "0"]])[0].code == 2


# The matches of a tape, as a worker would write them.


@pytest.fixture(scope="module")
def found():
    """Patterns, changes and net matches of an example with retractions, from `replay`."""
    patterns = ["examples/q1.yaml", "examples/q2.yaml"]
    changes, final = together(
        [["replay", *patterns, "--tape", "examples/q2.jsonl", "--emit", emit] for emit in ("changes", "final")]
    )
    assert (changes.code, final.code) == (0, 0)
    assert any(record["op"] == "retract" for record in changes.records)
    return changes.out.splitlines(), final.out


class Transactions:
    """Writes to a matches topic as a worker does."""

    def __init__(self, kafka, topic):
        self.topic = topic
        own = {"transactional.id": kafka.unique("worker"), "transaction.timeout.ms": 60_000, "log_level": 0}
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap, **own})
        self.producer.init_transactions(DEADLINE_S)

    def begin(self, lines, *, upsert=False):
        self.producer.begin_transaction()
        for line in lines:
            record = json.loads(line)
            key, value = record.get("key"), line
            if upsert and record["op"] != "punctuation":
                key, value = record["match"], line if record["op"] == "insert" else None
            headers = [("op", record["op"]), ("pattern", record["pattern"])]
            partition = 0 if "key" not in record else len(record["key"]) % 2
            self.producer.produce(self.topic, value, key, partition, headers=headers)
        assert self.producer.flush(DEADLINE_S) == 0

    def commit(self, lines, **more):
        self.begin(lines, **more)
        self.producer.commit_transaction(DEADLINE_S)

    def abort(self, lines):
        self.begin(lines)
        self.producer.abort_transaction(DEADLINE_S)


@pytest.fixture(scope="module")
def topic(kafka, found):
    """A matches topic with several transactions, an aborted one in the middle and one at the end."""
    changes, _ = found
    name = kafka.create_topic("matches", partitions=3)  # the third is empty
    writer = Transactions(kafka, name)
    writer.commit(changes[:2])
    writer.abort(changes[:3])
    writer.commit(changes[2:])
    writer.abort(changes[:1])
    return name


def tailing(kafka, topic, *more):
    return ["matches", "tail", "--bootstrap", kafka.bootstrap, "--topic", topic, *more]


def test_what_was_committed_is_told_up_to_the_end(kafka, topic, found):
    changes, final = found
    every, some, one, net, table, net_table, nothing = together(
        [
            tailing(kafka, topic, "--until-end"),
            tailing(kafka, topic, "--until-end", "--pattern", "q1"),
            tailing(kafka, topic, "--count", "1", "--pattern", "q2"),
            tailing(kafka, topic, "--until-end", "--net"),
            tailing(kafka, topic, "--until-end", "-o", "table"),
            tailing(kafka, topic, "--until-end", "--net", "-o", "table"),
            tailing(kafka, topic, "--until-end", "--from", "latest"),
        ]
    )
    assert all((ran.code, ran.err) == (0, "") for ran in (every, some, one, net, table, net_table, nothing))
    for remainder in (0, 1):  # of one partition, in its order
        expected = [line for line in changes if len(json.loads(line).get("key", "")) % 2 == remainder]
        assert [line for line in every.out.splitlines() if len(json.loads(line).get("key", "")) % 2 == remainder] == (
            expected
        )
    assert len(every.records) == len(changes)
    assert {record["pattern"] for record in some.records} == {"q1"}
    assert [(len(one.records), record["pattern"]) for record in one.records] == [(1, "q2")]
    assert net.out == final
    assert len(table.out.splitlines()) == 1 + len(changes)
    assert len(net_table.out.splitlines()) == 1 + len(final.splitlines())
    assert nothing.out == ""


def test_an_upsert_topic_is_told_as_retractions(kafka, found):
    changes, final = found
    name = kafka.create_topic("upserts", partitions=2)
    writer = Transactions(kafka, name)
    writer.commit(changes, upsert=True)
    gone = next(record for record in map(json.loads, changes) if record["op"] == "retract")
    writer.commit([json.dumps(gone | {"match": "0" * 32})], upsert=True)  # as compaction leaves it
    net, every = together([tailing(kafka, name, "--until-end", *more) for more in (["--net"], [])])
    assert (net.code, net.err, net.out) == (0, "", final)
    retracted = [record for record in every.records if record["op"] == "retract"]
    assert {"op": "retract", "match": gone["match"], "pattern": gone["pattern"]} in retracted
    assert len(every.records) == len(changes) + 1


def test_doubled_and_orphaned_changes_are_counted(kafka, found):
    changes, final = found
    name = kafka.create_topic("doubled", partitions=2)
    inserts = [line for line in changes if json.loads(line)["op"] == "insert"]
    orphan = json.dumps(json.loads(inserts[0]) | {"op": "retract", "match": "0" * 32})
    Transactions(kafka, name).commit([*changes, final.splitlines()[0], orphan])
    (ran,) = together([tailing(kafka, name, "--until-end", "--net")])
    assert (ran.code, ran.out) == (0, final)
    assert "1 inserts of a match that stood already" in ran.err
    assert "1 retractions of a match that did not stand" in ran.err


def test_records_of_others_are_skipped_and_make_the_exit_code_1(kafka, found):
    changes, _ = found
    name = kafka.create_topic("foreign", partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for value in [*(f"hello {number}" for number in range(30)), changes[0]]:
        producer.produce(name, value, partition=0)
    assert producer.flush(DEADLINE_S) == 0
    (ran,) = together([tailing(kafka, name, "--until-end")])
    assert (ran.code, ran.out.splitlines()) == (1, changes[:1])
    assert f"skipped: {name}/0/0: no record of a matches topic: not JSON" in ran.err
    assert ran.err.count("skipped:") == 10
    assert f"error: 30 records of {name} are none that a worker writes" in ran.err


def test_what_cannot_be_tailed_is_explained(kafka, tmp_path):
    missing, nobody = together(
        [
            tailing(kafka, "not-there"),
            ["matches", "tail", "--fleet", out_of_reach(tmp_path), "--net"],
        ]
    )
    assert (missing.code, missing.out, nobody.code, nobody.out) == (1, "", 3, "")
    assert "the topic not-there is not there" in missing.err
    assert "fix: make the fleet's topics: arcfleet topics apply" in missing.err
    assert "no broker answered at 127.0.0.1:1 within 0.2 s" in nobody.err


@contextmanager
def reader(kafka, topic, *, until_end, deadline_s=DEADLINE_S):
    """The values that are there so far, one batch after the other."""
    told = load_fleet(None, {"bootstrap": kafka.bootstrap})
    ends = Ends(read_ends(connect(told, DEADLINE_S), topic, 1)) if until_end else None
    tail = Tail(ends, deadline_s, time.monotonic)
    consumer = Consumer(tail_settings(told) | {"error_cb": tail.heard})
    stop = threading.Event()
    try:
        assign(consumer, topic, 1, latest=False)
        yield ([message.value().decode() for message in batch] for batch in tail.batches(consumer, stop.is_set))
    finally:
        consumer.close()


@pytest.mark.parametrize("committed", [True, False])
def test_an_open_transaction_is_waited_for(kafka, found, committed):
    changes, _ = found
    name = kafka.create_topic("open")
    first, second = Transactions(kafka, name), Transactions(kafka, name)
    first.topic = second.topic = name
    one_partition = [json.dumps(json.loads(line) | {"key": "YHOO"}) for line in changes]
    first.commit(one_partition[:1])
    second.begin(one_partition[1:2])
    first.commit(one_partition[2:3])  # held back by the one that is open
    with reader(kafka, name, until_end=True) as batches:
        read = next(batch for batch in batches if batch)
        assert read == one_partition[:1]
        for _ in range(8):
            assert next(batches) == []
        (second.producer.commit_transaction if committed else second.producer.abort_transaction)(DEADLINE_S)
        first.commit(one_partition[3:4])  # behind the end
        read += [value for batch in batches for value in batch]
    assert read == (one_partition[:3] if committed else [one_partition[0], one_partition[2]])


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_with_the_net_matches(kafka, topic, found, signal_number):
    command = [COMMAND, *tailing(kafka, topic, "--net")]
    main, side = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=side, env=environment(TERM="xterm")) as process:
        os.close(side)
        shown = b""
        while f"{len(found[1].splitlines())} net matches".encode() not in shown:
            shown += os.read(main, 4096)
        process.send_signal(signal_number)
        out = process.stdout.read().decode()
        assert process.wait(DEADLINE_S) == 0
    os.close(main)
    assert out == found[1]


def test_a_closed_pipe_ends_quietly(kafka, topic):
    command = [COMMAND, *tailing(kafka, topic, "--until-end")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), **pipes) as process:
        process.stdout.close()
        assert (process.wait(DEADLINE_S), process.stderr.read()) == (0, b"")
