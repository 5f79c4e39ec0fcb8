"""Promises P1, P3, P4, P5 and P13 on a real Kafka: workers are killed, and stopped past their session, while disordered
events, revisions and live arc changes come. Nothing may be lost, doubled or orphaned, whoever reads and when."""

import json
import os
import random
import signal
import threading
import time

import pytest
from support.fleets import audit, fleet_run

from afa.document import build_pattern
from afa.records import read_record
from afa.reference import ReferenceEngine
from arcfleet.fleet.arc_writer import read_table, write
from arcfleet.fleet.arcs import StampedArc
from arcfleet.fleet.document import load_fleet
from worker.clients import KafkaClients

EVENTS, KEYS, PARTITIONS = 20_000, 300, 9
SEED = int(os.environ.get("ARCFLEET_SEED", random.randrange(10**6)))
CLIMB = {
    "pattern": "climb",
    "within": 400,
    "start": "s",
    "final": ["f"],
    "registers": {"n": 0},
    "arcs": [
        {"id": "low", "from": "s", "to": "m", "when": "e.x < 3", "set": {"n": "1"}},
        {"id": "more", "from": "m", "to": "m", "when": "e.x >= 3", "set": {"n": "r.n + 1"}},
        {"id": "high", "from": "m", "to": "f", "when": "e.x > 8"},
    ],
}
# From the middle of the stream on a match needs three events on its way; the old arc ends there.
MIDDLE = EVENTS * 10 // 2
CHANGES = [
    StampedArc("climb", 100, CLIMB["arcs"][2], (None, MIDDLE)),
    StampedArc("climb", 101, {"id": "higher", "from": "m", "to": "f", "when": "e.x > 8 and r.n >= 3"}, (MIDDLE, None)),
]


def disordered_events():
    rnd = random.Random(SEED)
    records = []
    for number in range(EVENTS):
        late = rnd.choice([0, 0, 0, 0, 300, 1500])
        record = {"id": f"e{number}", "key": f"k{rnd.randrange(KEYS)}", "ts": max(0, 10 * number - late), "type": "t"}
        records.append(record | {"data": {"x": rnd.randrange(10)}})
        if records and rnd.random() < 0.03:
            old = rnd.choice(records[-200:])
            if "op" not in old:
                again = {"rev": old.get("rev", 0) + 1}
                gone = {"op": "retract", "id": old["id"], "key": old["key"], "ts": old["ts"]}
                records.append(gone | again if rnd.random() < 0.4 else old | again | {"data": {"x": rnd.randrange(10)}})
    return records


class Once(ReferenceEngine):
    """Computes the matches when all records are there, not after each of them."""

    all_there = False

    def _differences(self, patterns, keys):
        return super()._differences(patterns, keys) if self.all_there else []

    def matches_of_all(self):
        self.all_there = True
        return [change.as_json() for change in self._differences(self.tables, self.keys())]


def expected(records):
    engine = Once([build_pattern(CLIMB)])
    for number, record in enumerate([*(change.as_change() for change in CHANGES), *records]):
        engine.feed(read_record(record, f"{number:012d}"))
    return audit(engine.matches_of_all()).net


class Tape(threading.Thread):
    """Publishes at a pace that leaves time for everything to happen in between."""

    def __init__(self, run, records, seconds):
        super().__init__()
        self.run_, self.records, self.seconds = run, records, seconds
        self.published = 0

    def run(self):
        producer = self.run_.producer()
        began = time.monotonic()
        for number, record in enumerate(self.records):
            producer.produce(self.run_.source, key=record["key"], value=json.dumps(record).encode())
            self.published = number + 1
            if number % 100 == 0:
                producer.poll(0)
                ahead = number / len(self.records) * self.seconds - (time.monotonic() - began)
                time.sleep(max(0, ahead))
        producer.flush(30)

    def await_share(self, share):
        while self.published < share * len(self.records):
            time.sleep(0.02)


def publish_arcs(run, file):
    clients = KafkaClients(load_fleet(file, {}, {}), None)
    producer = clients.transactional_producer(f"{run.prefix}-test")
    producer.init_transactions(10)
    producer.begin_transaction()
    write(CHANGES, run.prefix, producer)
    producer.commit_transaction(10)
    reader = clients.reader()
    assert read_table(reader, f"{run.prefix}.arcs").version == 101
    reader.close()


@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_by_kills_and_stops(kafka, tmp_path):
    print(f"ARCFLEET_SEED={SEED}")
    records = disordered_events()
    with fleet_run(kafka, tmp_path, PARTITIONS) as run:
        patterns = str(run.write_patterns(CLIMB))
        file = run.write({"snapshot_interval": "2s"})
        names = ["w1", "w2", "w3"]
        for name in names:
            run.start(name, "--patterns", patterns, ready=False)
        for worker in run.workers.values():
            worker.await_listening().await_ready()
        tape = Tape(run, records, seconds=40)
        tape.start()
        for name, share in zip(names, (0.15, 0.35, 0.55), strict=True):
            tape.await_share(share)
            if share == 0.35:
                publish_arcs(run, file)
            run.workers[name].kill()
            run.start(name, ready=False).await_listening()
        tape.await_share(0.75)
        stopped = run.workers["w3"].process
        os.kill(stopped.pid, signal.SIGSTOP)
        tape.join()
        time.sleep(12)  # past its session of ten seconds: the others take over
        os.kill(stopped.pid, signal.SIGCONT)
        run.await_processed(90)
        time.sleep(2)
        changes = run.changes()
    found = audit(changes)
    assert not found.doubles, found.doubles[:3]
    assert not found.orphans, found.orphans[:3]
    wanted = expected(records)
    assert found.net.keys() == wanted.keys(), (
        f"missing {len(wanted.keys() - found.net.keys())}, too many {len(found.net.keys() - wanted.keys())}"
    )
