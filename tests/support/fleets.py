"""A fleet on a real Kafka: its topics, its workers as processes, what is published to it and what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from afa.contracts import contract
from arcfleet.local.admin import create_topic

START_S = 60.0
LOG_CHARACTERS = 4_000


@dataclass
class Worker:
    """One process."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    http: str = ""

    def await_listening(self) -> Worker:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        assert line, f"{self.name} ended with {self.process.wait()}: {self.said()}"
        told = json.loads(line)
        assert told["instance"] == self.name
        self.http = told["http"]
        return self

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.http + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def await_ready(self) -> Worker:
        until(lambda: self.get("/readyz")[0] == 200, f"{self.name} is not ready: {self.said()}")
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, sign: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(sign)
        return self.process.wait(30)

    def said(self) -> str:
        return self.log.read_text()[-LOG_CHARACTERS:]


def until(holds: Any, what: str, deadline_s: float = START_S) -> None:
    """Waits for a condition; fails with the sentence."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@dataclass
class FleetRun:
    """A fleet of its own on a shared broker."""

    bootstrap: str
    prefix: str
    folder: Path
    partitions: int = 1
    topics: tuple[str, ...] = ()
    source_config: Mapping[str, str] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return self.topics[0]

    def make_topics(self) -> None:
        self.topics = self.topics or (f"{self.prefix}-events",)
        for topic in self.topics:
            create_topic(self.bootstrap, topic, self.partitions, self.source_config)
        for topic in contract("topics")["topics"]:
            count = self.partitions if topic["partitions"] == "same as sources" else topic["partitions"]
            create_topic(self.bootstrap, f"{self.prefix}.{topic['suffix']}", count, topic["config"])

    def write(self, document: Mapping[str, Any] | None = None, **source: Any) -> Path:
        """The fleet document; `source` goes into each of its sources."""
        sources = [{"topic": topic} | source for topic in self.topics]
        whole = {"fleet": self.prefix, "bootstrap": self.bootstrap, "sources": sources} | dict(document or {})
        path = self.folder / "fleet.yaml"
        path.write_text(yaml.safe_dump(whole))
        return path

    def write_patterns(self, *documents: Mapping[str, Any]) -> Path:
        folder = self.folder / "patterns"
        folder.mkdir(exist_ok=True)
        for document in documents:
            (folder / f"{document['pattern']}.yaml").write_text(yaml.safe_dump(dict(document), sort_keys=False))
        return folder

    def start(self, name: str, *more: str, ready: bool = True) -> Worker:
        """A worker; a second one of a name takes the place of the first."""
        log = self.folder / f"{name}.log"
        if name in self.workers:
            self.workers.pop(name).process.stdout.close()  # type: ignore[union-attr]
        command = [sys.executable, "-P", "-m", "arcfleet", "worker", "--fleet", str(self.folder / "fleet.yaml")]
        with log.open("ab") as opened:
            process = subprocess.Popen(
                [*command, "--instance", name, "--port", "0", *more], stdout=subprocess.PIPE, stderr=opened
            )
        worker = self.workers[name] = Worker(name, process, log)
        return worker.await_listening().await_ready() if ready else worker

    def publish(self, records: Iterable[Mapping[str, Any]], topic: str | None = None) -> None:
        """Events as a tape has them, keyed by their key."""
        producer = self.producer()
        for record in records:
            producer.produce(topic or self.source, key=record.get("key"), value=json.dumps(record).encode())
            producer.poll(0)
        assert producer.flush(30) == 0

    def producer(self) -> Any:
        settings = {"partitioner": "murmur2_random", "linger.ms": 5, "log_level": 0}
        return Producer({"bootstrap.servers": self.bootstrap} | settings)

    def read(self, suffix: str, isolation: str = "read_committed") -> list[Any]:
        """All messages of one of the fleet's topics, partition by partition."""
        return list(_messages(self.bootstrap, f"{self.prefix}.{suffix}", isolation))

    def read_source(self) -> list[Any]:
        """All messages of the first source, partition by partition."""
        return list(_messages(self.bootstrap, self.source, "read_committed"))

    def changes(self) -> list[dict[str, Any]]:
        """What the matches topic says; each change with its `partition`."""
        return [json.loads(message.value()) | {"partition": message.partition()} for message in self.read("matches")]

    def await_processed(self, deadline_s: float = 60.0) -> None:
        """Waits until the group has committed all that is in the source topics."""
        until(lambda: not self._lag(), f"the fleet does not catch up: {self._said()}", deadline_s)

    def member(self) -> Any:
        """Of the fleet's group, for its offsets."""
        return Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.prefix, "enable.auto.commit": False})

    def _lag(self) -> int:
        group = self.member()
        try:
            places = [TopicPartition(topic, n) for topic in self.topics for n in range(self.partitions)]
            lag = 0
            for committed in group.committed(places, 10):
                low, high = group.get_watermark_offsets(committed, timeout=10)
                lag += high - max(low, committed.offset)
            return lag
        finally:
            group.close()

    def _said(self) -> str:
        return "\n".join(f"{name}: {worker.said()}" for name, worker in self.workers.items())

    def close(self) -> None:
        for worker in self.workers.values():
            if worker.process.poll() is None:
                os.kill(worker.process.pid, signal.SIGCONT)
                worker.kill()
            worker.process.stdout.close()  # type: ignore[union-attr]
        self.workers.clear()


def _messages(bootstrap: str, topic: str, isolation: str) -> Iterator[Any]:
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        partitions = reader.list_topics(topic, timeout=10).topics[topic].partitions
        for number in sorted(partitions):
            end = _end(bootstrap, topic, number)
            reader.assign([TopicPartition(topic, number, 0)])
            at_end = False
            while not at_end:
                for message in reader.consume(1000, 0.1):
                    error = message.error()
                    if error is None:
                        yield message
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        at_end = message.partition() == number and message.offset() >= end
    finally:
        reader.close()


def _end(bootstrap: str, topic: str, number: int) -> int:
    """Also behind transactions that are committed already, whose markers are on their way."""
    asker = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_uncommitted"})
    try:
        return int(asker.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1])
    finally:
        asker.close()


@contextmanager
def fleet_run(
    kafka: Any,
    folder: Path,
    partitions: int = 1,
    topics: tuple[str, ...] = (),
    source_config: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[FleetRun]:
    """A fleet with its topics, whose workers end with the test."""
    run = FleetRun(kafka.bootstrap, kafka.unique("fleet"), folder, partitions, topics, source_config)
    run.make_topics()
    try:
        yield run
    finally:
        run.close()


@dataclass
class Audit:
    """What a log of changes adds up to, and what is wrong with it."""

    net: dict[str, dict[str, Any]]
    doubles: list[dict[str, Any]]
    orphans: list[dict[str, Any]]


def audit(changes: Iterable[Mapping[str, Any]]) -> Audit:
    """Net matches by id; an insert of a match that stands is a double, a retraction of one that does not an orphan."""
    found = Audit({}, [], [])
    for change in changes:
        match = change.get("match")
        if change["op"] == "insert":
            if match in found.net:
                found.doubles.append(dict(change))
            found.net[match] = dict(change)
        elif change["op"] == "retract":
            if match not in found.net:
                found.orphans.append(dict(change))
            found.net.pop(match, None)
    return found
