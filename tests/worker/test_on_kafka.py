"""A worker on a real Kafka: matches, retractions, side records, progress, its doors, and how it ends."""

import json
import signal

import pytest
from support.fleets import audit, fleet_run
from support.logins import GUESSED, login

from afa import Engine
from afa.document import build_pattern


@pytest.fixture
def run(kafka, tmp_path):
    with fleet_run(kafka, tmp_path) as run:
        run.write_patterns(GUESSED)
        yield run


def expected(records):
    engine = Engine([build_pattern(GUESSED)], engine="reference")
    return audit(engine.feed([json.dumps(record).encode() for record in records]).to_records()).net


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_match_comes_at_once_and_is_taken_back(run, delivery):
    run.write({"delivery": delivery}, punctuation={"slack": "500ms"})
    worker = run.start("w1", "--patterns", str(run.folder / "patterns"))
    first = [login(1, "ann", 1000, False), login(2, "ann", 4000, False), login(3, "ann", 4200, True)]
    run.publish(first)
    run.await_processed()
    assert [change["op"] for change in run.changes() if change["op"] != "punctuation"] == ["insert"]
    run.publish([login(4, "ann", 3999, True)])
    run.await_processed()
    ops = [change["op"] for change in run.changes() if change["op"] != "punctuation"]
    assert ops == ["insert", "retract"]
    assert worker.get("/livez")[0] == worker.get("/readyz")[0] == 200
    metrics = worker.get("/metrics")[1]
    assert 'arcfleet_matches_total{pattern="guessed-password"} 1.0' in metrics
    assert 'arcfleet_retractions_total{pattern="guessed-password"} 1.0' in metrics
    assert worker.end() == 0
    headers = [dict(message.headers()) for message in run.read("matches")]
    assert {header["content-type"] for header in headers} == {b"application/json"}
    assert {message.key() for message in run.read("matches") if dict(message.headers())["op"] == b"insert"} == {b"ann"}


def test_late_and_bad_records_are_set_aside_as_they_were(run):
    run.write(punctuation={"slack": "500ms"})
    run.start("w1", "--patterns", str(run.folder / "patterns"))
    run.publish([login(1, "ann", 10_000, False), login(2, "ann", 20_000, False), login(3, "ann", 15_000, True)])
    producer = run.producer()
    producer.produce(run.source, key=b"ann", value=b"{no json", headers=[("own", b"1")])
    producer.produce(run.source, key=None, value=json.dumps(login(5, "ann", 21_000, True)).encode())
    producer.produce(run.source, key=b"ann", value=None)
    producer.flush()
    run.await_processed()
    (late,) = run.read("late")
    about = {name: value.decode() for name, value in late.headers()}
    assert (about["arcfleet.topic"], about["arcfleet.partition"], about["arcfleet.offset"]) == (run.source, "0", "2")
    assert "below the punctuation 19500" in about["arcfleet.reason"]
    assert json.loads(late.value())["id"] == "e3"
    broken, keyless, tombstone = run.read("dead-letter")
    assert (broken.key(), broken.value()) == (b"ann", b"{no json")
    assert dict(broken.headers())["own"] == b"1"
    assert keyless.key() is None
    assert tombstone.value() is None
    assert audit(run.changes()).net == {}


def test_a_restart_goes_on_with_half_a_match(run):
    run.write({"snapshot_interval": "1s"})
    worker = run.start("w1", "--patterns", str(run.folder / "patterns"))
    records = [login(1, "ann", 1000, False), login(2, "ann", 4000, False), login(3, "ann", 4200, True)]
    run.publish(records[:2])
    run.await_processed()
    worker.kill()
    worker = run.start("w1", "--patterns", str(run.folder / "patterns"))
    run.publish(records[2:])
    run.await_processed()
    assert audit(run.changes()).net.keys() == expected(records).keys() != set()
    assert worker.end() == 0


def test_leaving_gives_the_partitions_up_at_once(run):
    run.write()
    first = run.start("w1", "--patterns", str(run.folder / "patterns"))
    second = run.start("w2")
    assert first.end(signal.SIGUSR1) == 0
    run.publish([login(1, "ann", 1000, False), login(2, "ann", 4000, False), login(3, "ann", 4200, True)])
    run.await_processed(8.0)  # the session would take ten
    assert len(audit(run.changes()).net) == 1
    assert second.end() == 0


def test_another_content_of_a_pattern_is_refused_with_the_difference(run):
    run.write()
    run.start("w1", "--patterns", str(run.folder / "patterns")).end()
    run.write_patterns(GUESSED | {"within": "6m"})
    refused = run.start("w1", "--patterns", str(run.folder / "patterns"), ready=False)
    assert refused.process.wait(60) == 1
    assert '`within` is "5m" there, "6m" here' in refused.said()
