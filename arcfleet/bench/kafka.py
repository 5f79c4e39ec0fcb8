"""What the rows of the worker share: a real local Kafka, a fleet on it, and topics full of events.

Everything here needs the extra `worker`, Java and Kafka's jars: `missing` says what is not there.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from arcfleet.bench.ticks import Ticks
from arcfleet.fleet.clients import open_producer, producer_settings
from arcfleet.fleet.document import Fleet, load_fleet
from arcfleet.fleet.topic_admin import connect, create_topics, read_topics
from arcfleet.fleet.topics import plan_topics, topic_names
from arcfleet.local.broker import LocalBroker
from arcfleet.local.errors import LocalKafkaError
from arcfleet.local.jar_cache import ensure
from arcfleet.local.java import find_java

PARTITIONS: Final = 4
SOURCE: Final = "ticks"
_PACKAGES: Final = ("confluent_kafka", "prometheus_client", "structlog")
_FLUSH_S: Final = 120.0
_QUEUE_WAIT_S: Final = 0.05
_CONNECT_S: Final = 20.0


def missing() -> str:
    """Why the rows of the worker cannot be measured here; empty if they can."""
    packages = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if packages:
        return f"{', '.join(packages)} missing: pip install 'arcfleet[worker]'"
    try:
        find_java()
        ensure()
    except LocalKafkaError as error:
        return str(error).splitlines()[0]
    return ""


def throughput_broker() -> LocalBroker:
    """One that may compile and collect as Kafka does in production."""
    return LocalBroker(heap="1g", jvm_options=())


@dataclass(frozen=True)
class Place:
    """A broker, if it is known yet, and a folder for documents."""

    folder: Path
    bootstrap: str = ""

    def document(self, name: str, **more: Any) -> Path:
        """A fleet document; its fleet reads the ticks from their beginning."""
        source = {"topic": SOURCE, "start": "earliest", "punctuation": {"slack": "500ms"}}
        file = self.folder / f"{name}.yaml"
        broker = {"bootstrap": self.bootstrap} if self.bootstrap else {}
        whole = {"fleet": name, **broker, "sources": [source], **more}
        file.write_text(yaml.safe_dump(whole), encoding="utf-8")
        return file

    def fleet(self, name: str, **more: Any) -> Fleet:
        """A fleet with its topics, and the source's."""
        return make_topics(load_fleet(self.document(name, **more)))

    def patterns(self, ticks: Ticks) -> Path:
        """A folder with the pattern of the ticks."""
        folder = self.folder / "patterns"
        folder.mkdir(exist_ok=True)
        (folder / "ticks.yaml").write_text(yaml.safe_dump(ticks.document(), sort_keys=False), encoding="utf-8")
        return folder


@contextmanager
def kafka() -> Iterator[Place]:
    """A Kafka for a row."""
    with throughput_broker() as broker, tempfile.TemporaryDirectory(prefix="arcfleet-bench-") as folder:
        yield Place(Path(folder), broker.bootstrap)


def make_topics(fleet: Fleet) -> Fleet:
    """Makes the topics of a fleet that are not there."""
    admin = connect(fleet, _CONNECT_S)
    plan = plan_topics(fleet, read_topics(admin, topic_names(fleet)), PARTITIONS)
    create_topics(admin, [one.topic for one in plan.create])
    return fleet


def publish(fleet: Fleet, ticks: Ticks, begin: int = 0, end: int | None = None) -> None:
    """Events by their keys, as fast as can be. Raises OSError if one was not delivered."""
    producer = open_producer(
        producer_settings(fleet) | {"partitioner": "murmur2_random", "queue.buffering.max.messages": 500_000}
    )
    for key, value in ticks.records(begin, len(ticks.key) if end is None else end):
        while True:
            try:
                producer.produce(SOURCE, value, key)
            except BufferError:
                producer.poll(_QUEUE_WAIT_S)
            else:
                break
    if left := producer.flush(_FLUSH_S):
        raise OSError(f"{left} events were not delivered in {_FLUSH_S:.0f} s")


def measured(module: str, about: Mapping[str, Any]) -> Any:
    """What a module of ours, run as a process of its own, says: one line of JSON."""
    command = [sys.executable, "-P", "-m", module, json.dumps(about)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        raise OSError(f"{module} failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
