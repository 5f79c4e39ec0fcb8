"""A fleet on a real Kafka to which much happens: what it is fed, who looks on, and what must come of it."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from afa.document import build_pattern
from afa.records import read_record
from afa.reference import ReferenceEngine
from arcfleet.fleet.arc_writer import read_table, write
from arcfleet.fleet.arcs import ArcRecord, StampedArc
from arcfleet.fleet.document import load_fleet
from support.disorder import CLIMB
from support.fleets import FleetRun, audit
from support.order import History, Logged, inversions
from worker.clients import KafkaClients


class Once(ReferenceEngine):
    """Computes the matches when all records are there, not after each of them."""

    all_there = False

    def _differences(self, patterns: Any, keys: Any) -> Any:
        return super()._differences(patterns, keys) if self.all_there else []

    def matches_of_all(self) -> list[dict[str, Any]]:
        self.all_there = True
        return [change.as_json() for change in self._differences(self.tables, self.keys())]


def expected(records: Sequence[dict[str, Any]], changes: Sequence[StampedArc]) -> dict[str, dict[str, Any]]:
    """Net matches by id, as the reference engine has them."""
    engine = Once([build_pattern(CLIMB)])
    for number, record in enumerate([*(change.as_change() for change in changes), *records]):
        engine.feed(read_record(record, f"{number:012d}"))
    return audit(engine.matches_of_all()).net


class Tape(threading.Thread):
    """Publishes at a pace that leaves time for everything to happen in between."""

    def __init__(self, run: FleetRun, records: Sequence[dict[str, Any]], seconds: float) -> None:
        super().__init__(daemon=True)
        self.run_, self.records, self.seconds = run, records, seconds
        self.published = 0

    def run(self) -> None:
        producer = self.run_.producer()
        began = time.monotonic()
        for number, record in enumerate(self.records):
            producer.produce(self.run_.source, key=record["key"], value=json.dumps(record).encode())
            self.published = number + 1
            if number % 100 == 0:
                producer.poll(0)
                ahead = number / len(self.records) * self.seconds - (time.monotonic() - began)
                time.sleep(max(0, ahead))
        assert producer.flush(60) == 0

    def await_share(self, share: float) -> None:
        while self.published < share * len(self.records):
            time.sleep(0.02)


class Onlooker(threading.Thread):
    """Reads the matches as they are committed, partition by partition."""

    def __init__(self, run: FleetRun) -> None:
        super().__init__(daemon=True)
        self._run, self._ending = run, threading.Event()
        self.seen: dict[int, list[bytes]] = defaultdict(list)
        self.came_at: dict[int, list[float]] = defaultdict(list)

    def run(self) -> None:
        reader = Consumer(
            {
                "bootstrap.servers": self._run.bootstrap,
                "group.id": "onlooker",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        topic = f"{self._run.prefix}.matches"
        reader.assign([TopicPartition(topic, number, 0) for number in range(self._run.partitions)])
        while not self._ending.is_set():
            for message in reader.consume(100, 0.02):
                if message.error() is None:
                    self.seen[message.partition()].append(message.value())
                    self.came_at[message.partition()].append(time.monotonic())
        reader.close()

    def end(self) -> dict[int, list[bytes]]:
        self._ending.set()
        self.join()
        return self.seen


class Supervisor(threading.Thread):
    """Starts a worker again that has ended, as whoever runs a fleet does."""

    def __init__(self, run: FleetRun) -> None:
        super().__init__(daemon=True)
        self._run, self._ending = run, threading.Event()
        self.restarts = 0

    def run(self) -> None:
        while not self._ending.wait(0.1):
            for name, worker in list(self._run.workers.items()):
                if worker.process.poll() is not None:
                    self.restarts += 1
                    self._run.start(name, ready=False)

    def end(self) -> int:
        """From here on nobody is started; how often somebody was."""
        self._ending.set()
        self.join()
        return self.restarts


def publish_arcs(run: FleetRun, file: Any, changes: Sequence[ArcRecord]) -> None:
    clients = KafkaClients(load_fleet(file, {}, {}), None)
    producer = clients.transactional_producer(f"{run.prefix}-test")
    producer.init_transactions(10)
    producer.begin_transaction()
    write(changes, run.prefix, producer)
    producer.commit_transaction(10)
    reader = clients.reader()
    assert read_table(reader, f"{run.prefix}.arcs").version == 101
    reader.close()


def assert_exact(
    run: FleetRun, onlooker: Onlooker, records: Sequence[dict[str, Any]], arcs: Sequence[StampedArc]
) -> None:
    """Nothing lost, doubled, orphaned or out of order, whoever reads and when."""
    wanted = expected(records, arcs)
    found: dict[int, list[bytes]] = defaultdict(list)
    for message in run.read("matches"):
        found[message.partition()].append(message.value())
    assert onlooker.end() == found, "who read all the time saw something else"
    changes = audit(json.loads(value) for values in found.values() for value in values)
    assert not changes.doubles, changes.doubles[:3]
    assert not changes.orphans, changes.orphans[:3]
    assert changes.net.keys() == wanted.keys(), (
        f"missing {len(wanted.keys() - changes.net.keys())}, too many {len(changes.net.keys() - wanted.keys())}"
    )
    logs: dict[int, list[Logged]] = defaultdict(list)
    for message in run.read_source():
        logs[message.partition()].append(Logged(message.offset(), message.key(), message.value()))
    for number, log in logs.items():
        history = History([build_pattern(CLIMB)], (run.source, number), log, arcs)
        assert not inversions(map(json.loads, found[number]), history)
