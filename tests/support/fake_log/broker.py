"""The broker: topics, the two coordinators, and everything that goes on while nobody calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from support.fake_log.clock import VirtualClock
from support.fake_log.consumer import FakeConsumer
from support.fake_log.faults import Faults, no_faults
from support.fake_log.groups import Group
from support.fake_log.log import PartitionLog, Place
from support.fake_log.producer import FakeProducer
from support.fake_log.transactions import Coordinator


@dataclass
class Host:
    """The process that clients live in."""

    name: str = "here"
    silent_since: float | None = None  # stopped, or gone
    latency_s: float = 0.0  # of each of its calls that waits for an answer


class FakeLog:
    """A broker, and the clock by which it and its clients live."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = VirtualClock()
        self.random = Random(seed)
        self.partitions: dict[str, int] = {}
        self.logs: dict[Place, PartitionLog] = {}
        self.groups: dict[str, Group] = {}
        self.transactions = Coordinator(self.logs, self.clock, self.random)
        self.faults: Faults = no_faults
        self._clients: list[Any] = []
        self.clock.watchers.append(self._tick)

    def create_topic(self, name: str, partitions: int = 1) -> str:
        self.partitions[name] = partitions
        self.logs.update({(name, number): PartitionLog() for number in range(partitions)})
        return name

    def consumer(self, settings: Mapping[str, Any], host: Host | None = None) -> FakeConsumer:
        """With the settings of librdkafka; those that mean nothing here are passed over."""
        return self._known(FakeConsumer(self, settings, host or Host()))

    def producer(self, settings: Mapping[str, Any], host: Host | None = None) -> FakeProducer:
        return self._known(FakeProducer(self, settings, host or Host()))

    def stop(self, host: Host) -> None:
        """Its process gets no time any more, and sends no heartbeats."""
        host.silent_since = self.clock.monotonic()

    def go_on(self, host: Host) -> None:
        """A stopped process wakes up, and knows of nothing."""
        host.silent_since = None
        for client in self._clients:
            if client.host is host:
                client.woken()

    def crash(self, host: Host) -> None:
        """Its process is gone: nothing is closed, left or aborted; what was not delivered never will be."""
        host.silent_since = self.clock.monotonic()
        self._clients = [client for client in self._clients if client.host is not host]

    def group(self, name: str) -> Group:
        if name not in self.groups:
            self.groups[name] = Group(name, self.clock, self.random, self.partitions)
        return self.groups[name]

    def log(self, place: Place) -> PartitionLog:
        """Raises KafkaException if there is no such partition."""
        if place not in self.logs:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION, f"{place[0]}/{place[1]}"))
        return self.logs[place]

    def compact(self, topic: str, *, tombstones_too: bool = False) -> None:
        for number in range(self.partitions[topic]):
            self.logs[topic, number].compact(tombstones_too=tombstones_too)

    def forget(self, client: Any) -> None:
        """A client was closed."""
        self._clients = [known for known in self._clients if known is not client]

    def _known(self, client: Any) -> Any:
        self._clients.append(client)
        return client

    def _tick(self) -> None:
        self.transactions.tick()
        for group in self.groups.values():
            group.tick()
        for client in list(self._clients):
            if client.host.silent_since is None:
                client.tick()
