"""What operations.md says of things that go wrong, on a real Kafka: each is named, with what to do about it."""

import json
import random
import signal
import socket
import subprocess
import zlib

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from support.fleets import FleetRun, fleet_run, until
from support.logins import GUESSED, login

from arcfleet.local.admin import create_topic
from arcfleet.local.ports import free_port
from worker.binding import Binding

GUESS = [login(1, "ann", 1000, False), login(2, "ann", 4000, False), login(3, "ann", 4200, True)]
BIG_BYTES = 20_000_000


@pytest.fixture
def run(kafka, tmp_path):
    with fleet_run(kafka, tmp_path) as run:
        run.write_patterns(GUESSED)
        run.write({"snapshot_interval": "1s"})
        yield run


def started(run, *more, ready=True):
    return run.start("w1", "--patterns", str(run.folder / "patterns"), *more, ready=ready)


def refused(run, *more):
    """How a worker ends that cannot run, and what it says, as one line."""
    worker = started(run, *more, ready=False)
    return worker.process.wait(60), " ".join(worker.said().split())


def inserts(run):
    return [change["events"] for change in run.changes() if change["op"] == "insert"]


# The machine ---------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_named_before_anything_else(tmp_path):
    """No broker is asked, though none is there."""
    run = FleetRun(f"127.0.0.1:{free_port()}", "nobody", tmp_path, topics=("events",))
    run.write()
    run.write_patterns(GUESSED)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = refused(run, "--port", str(port))
    assert status == 3
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said
    assert "--port (0: any free one)" in said
    run.close()


def test_the_name_of_who_publishes_patterns_is_no_instance(tmp_path):
    run = FleetRun("127.0.0.1:1", "shop", tmp_path, topics=("events",))
    run.write()
    worker = run.start("patterns", ready=False)
    assert worker.process.wait(60) == 2
    assert "`shop-patterns` is the transactional id of workers that publish patterns" in " ".join(
        worker.said().replace("│", " ").split()
    )
    run.close()


# Brokers and topics --------------------------------------------------------------------------------------------------


def test_a_broker_that_stamps_the_event_time_is_warned_of(kafka, tmp_path):
    """Events would happen when they arrive: who means that is told once, at each start."""
    with fleet_run(kafka, tmp_path, source_config={"message.timestamp.type": "LogAppendTime"}) as run:
        run.write_patterns(GUESSED)
        run.write(time="record")
        assert started(run).end() == 0
        (warning,) = (
            line for line in map(json.loads, run.workers["w1"].said().splitlines()) if line["event"] == "topics"
        )
        assert warning["level"] == "warning"
        assert f"the source topic {run.source} has message.timestamp.type=LogAppendTime" in warning["what"]
        assert warning["fix"].startswith("set message.timestamp.type=CreateTime on the topic, or take `time` from")
        run.write(time="ts")
        assert started(run).end() == 0
        assert run.workers["w1"].said().count("LogAppendTime") == 1


def test_no_broker_within_the_deadline(tmp_path):
    run = FleetRun(f"127.0.0.1:{free_port()}", "nobody", tmp_path, topics=("events",))
    run.write({"start_deadline": "2s"})
    run.write_patterns(GUESSED)
    status, said = refused(run)
    assert status == 3
    assert f"no broker answered at {run.bootstrap} within 2 s" in said
    assert "Connection refused" in said
    run.close()


def test_a_broker_that_comes_within_the_deadline(kafka_broker, tmp_path):
    broker = kafka_broker()
    run = FleetRun(broker.bootstrap, "patient", tmp_path)
    run.make_topics()
    run.write()
    run.write_patterns(GUESSED)
    broker.stop()
    worker = started(run, ready=False)
    with pytest.raises(subprocess.TimeoutExpired):  # it tries again and again
        worker.process.wait(3)
    broker.start()
    worker.await_listening().await_ready()
    run.close()


def test_a_setting_that_the_client_does_not_take_is_bad_input(run):
    """No restart would help."""
    status, said = refused(run, "-X", "security.protocol=SSL", "-X", "ssl.ca.location=/nowhere")
    assert status == 1
    assert "ssl.ca.location failed" in said
    assert "fix: correct `kafka` in the fleet document, or -X" in said
    status, said = refused(run, "-X", "session.timeout.ms=1")
    assert status == 3
    assert "fix: set session.timeout.ms between the brokers' group.min.session.timeout.ms" in said


def test_a_missing_topic_is_named_with_what_makes_it(run):
    delete(run, "state")
    status, said = refused(run)
    assert status == 3
    assert f"the topic {run.prefix}.state is missing" in said
    assert "arcfleet topics apply" in said
    assert "--accept-lost-state" in said


def delete(run, suffix):
    admin = AdminClient({"bootstrap.servers": run.bootstrap})
    topic = f"{run.prefix}.{suffix}"
    admin.delete_topics([topic])[topic].result(30)
    until(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} is still there")


def test_a_state_topic_that_was_deleted_and_made_again(run):
    worker = started(run)
    run.publish(GUESS[:2])
    run.await_processed()
    assert worker.end() == 0
    delete(run, "state")
    create_topic(run.bootstrap, f"{run.prefix}.state", 1, {"cleanup.policy": "compact"})
    status, said = refused(run)
    assert status == 3
    assert f"{run.prefix}.state/0 is damaged: 0 snapshots" in said
    assert "--accept-lost-state: partial matches of this partition begin anew" in said
    started(run, "--accept-lost-state")
    run.publish([GUESS[2], *(record | {"key": "bob", "id": f"b{record['id']}"} for record in GUESS)])
    run.await_processed()
    assert inserts(run) == [{"first": "be1", "last": "be3"}], "what began before is lost, and all else goes on"


def test_a_changed_partition_count(run):
    """Of the source alone; then of all topics, which hides it from who only compares them."""
    worker = started(run)
    run.publish(GUESS[:2])
    run.await_processed()
    assert worker.end() == 0
    grow(run, run.source)
    status, said = refused(run)
    assert status == 3
    assert f"the topic {run.prefix}.state has 1 partition, and should have 2" in said
    assert "--accept-lost-state" in said
    grow(run, *(f"{run.prefix}.{suffix}" for suffix in ("state", "matches", "late", "dead-letter")))
    status, said = refused(run)
    assert status == 3
    assert "the sources have 2 partitions, and had 1 when the fleet committed last" in said
    assert "--accept-lost-state" in said
    assert started(run, "--accept-lost-state").end() == 0
    assert started(run).end() == 0, "it has committed with the new number"


def grow(run, *topics):
    admin = AdminClient({"bootstrap.servers": run.bootstrap})
    for done in admin.create_partitions([NewPartitions(topic, 2) for topic in topics]).values():
        done.result(30)
    until(lambda: all(len(admin.list_topics(timeout=10).topics[topic].partitions) == 2 for topic in topics), "no more")


# State ---------------------------------------------------------------------------------------------------------------


def test_a_snapshot_of_a_newer_release_is_refused_by_its_version(run):
    worker = started(run)
    run.publish(GUESS[:2])
    run.await_processed()
    assert worker.end(signal.SIGUSR1) == 0, "so that the group is empty"
    pretend_newer_snapshots(run)
    status, said = refused(run)
    assert status == 3
    assert f"{run.prefix}.state/0: " in said
    assert "format version 9; this build reads up to 1" in said


def pretend_newer_snapshots(run):
    """The fleet's state and offsets as a newer release would have written them."""
    newest = {message.key(): message.value() for message in run.read("state")}
    newer = {
        key: value[:4] + (9).to_bytes(2, "little") + value[6:]
        for key, value in newest.items()
        if value is not None and value.startswith(b"AFAS")
    }
    assert newer
    producer = Producer({"bootstrap.servers": run.bootstrap})
    for key, value in newer.items():
        producer.produce(f"{run.prefix}.state", value, key=key, partition=0, headers=[("held", b"{}")])
    assert producer.flush(30) == 0
    member = run.member()
    (committed,) = member.committed([TopicPartition(run.source, 0)], 10)
    told = json.loads(committed.metadata)
    states = [(key, value) for key, value in (newest | newer).items() if value is not None]
    told["checksum"] = sum(zlib.crc32(value, zlib.crc32(key)) for key, value in states)
    assert Binding.read(committed.metadata).snapshots == len(states)
    offset = TopicPartition(run.source, 0, committed.offset, json.dumps(told))
    member.commit(offsets=[offset], asynchronous=False)
    member.close()


# Records -------------------------------------------------------------------------------------------------------------


def publish_raw(run, *values):
    producer = Producer({"bootstrap.servers": run.bootstrap, "message.max.bytes": 2 * BIG_BYTES})
    for value in values:
        producer.produce(run.source, value, key=b"ann", headers=[("own", b"1")])
    assert producer.flush(60) == 0


@pytest.mark.parametrize("room", ["as they are made", "too small"])
def test_a_record_of_20_mb(kafka, tmp_path, room):
    """As an event it is one like any other. If it is none, it goes to the dead letters, if that topic takes it."""
    with fleet_run(kafka, tmp_path, source_config={"max.message.bytes": str(2 * BIG_BYTES)}) as run:
        run.write_patterns(GUESSED)
        run.write({"snapshot_interval": "1s"})
        if room == "too small":
            delete(run, "dead-letter")
            create_topic(run.bootstrap, f"{run.prefix}.dead-letter", 1, {})
        started(run)
        text = random.Random(1).randbytes(BIG_BYTES // 2).hex()
        big = GUESS[1] | {"data": {"ok": False, "text": text}}
        nonsense = text.encode()
        publish_raw(run, *(json.dumps(record).encode() for record in (GUESS[0], big)), nonsense)
        run.publish(GUESS[2:])
        run.await_processed()
        assert inserts(run) == [{"first": "e1", "last": "e3"}]
        (letter,) = run.read("dead-letter")
        about = dict(letter.headers())
        assert (about["arcfleet.partition"], about["arcfleet.offset"]) == (b"0", b"2")
        if room == "too small":
            assert letter.value() is None
            assert b"bytes do not fit (max.message.bytes)" in about["arcfleet.reason"]
        else:
            assert (letter.key(), letter.value(), about["own"]) == (b"ann", nonsense, b"1")


def test_a_flood_of_bad_records_stops_it_unready_and_loud(run):
    worker = started(run)
    rnd = random.Random(2)
    publish_raw(run, *(rnd.randbytes(20) for _ in range(200)))
    until(lambda: worker.get("/readyz")[0] == 503, "it goes on")
    assert worker.get("/livez")[0] == 200
    assert "records are bad" in worker.get("/readyz")[1]
    assert "stopped consuming" in worker.said()
    assert worker.process.poll() is None
    assert len(run.read("dead-letter")) <= 200
    assert worker.end() == 0
