"""A small Kafka client for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

DEADLINE_S = 30.0


@dataclass
class Client:
    """Speaks to one address with one set of security settings; remembers the errors that the library reports."""

    bootstrap: str
    security: dict[str, Any] = field(default_factory=dict)
    errors: list[KafkaError] = field(default_factory=list)

    def settings(self, **more: Any) -> dict[str, Any]:
        named = {name.replace("_", "."): value for name, value in more.items()}
        own = {"bootstrap.servers": self.bootstrap, "log_level": 0, "error_cb": self.errors.append}
        return {**own, "reconnect.backoff.max.ms": 500, **self.security, **named}

    def produce(self, topic: str, values: Iterable[str]) -> None:
        """Blocks until every value is acknowledged; raises AssertionError with the first error otherwise."""
        failed: list[KafkaError] = []
        producer = Producer(self.settings(message_timeout_ms=10_000))
        for value in values:
            producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
        assert producer.flush(DEADLINE_S) == 0
        assert not failed, failed[0]

    def read(self, topic: str, isolation: str = "read_committed") -> list[str]:
        """All values of partition 0, up to where it ends now (open transactions are waited for)."""
        partition = TopicPartition(topic, 0, 0)
        consumer = Consumer(self.settings(group_id="reader", isolation_level=isolation, enable_auto_commit=False))
        try:
            end = self.end(topic)
            consumer.assign([partition])
            values = []
            end_s = time.monotonic() + DEADLINE_S
            while max(consumer.position([partition])[0].offset, 0) < end:
                assert time.monotonic() < end_s, f"{topic} was not read to its end {end}: {values}"
                message = consumer.poll(0.1)
                if message is not None:
                    assert message.error() is None, message.error()
                    values.append(message.value().decode())
            return values
        finally:
            consumer.close()

    def end(self, topic: str) -> int:
        """The offset behind the last record or transaction marker."""
        consumer = Consumer(self.settings(group_id="reader", isolation_level="read_uncommitted"))
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=DEADLINE_S)[1])
        finally:
            consumer.close()


@pytest.fixture
def client() -> Callable[..., Client]:
    """`client("127.0.0.1:…", {security settings})`"""
    return Client


@pytest.fixture
def wait_for() -> Callable[..., None]:
    """`wait_for(condition)` blocks until it holds; fails when it does not within the deadline."""

    def wait(condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
        end_s = time.monotonic() + deadline_s
        while not condition():
            assert time.monotonic() < end_s, f"not within {deadline_s} s"
            time.sleep(0.05)

    return wait
