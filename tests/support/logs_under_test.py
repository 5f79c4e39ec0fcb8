"""The two logs that the contract suite runs on, under one face."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from support.fake_log.broker import FakeLog

DEADLINE_S = 45.0
CALL_S = 20.0
CONSUMER = {"enable.auto.commit": False, "auto.offset.reset": "error", "session.timeout.ms": 6000}


class LogUnderTest:
    """Makes clients, which it closes; settings are given with underscores."""

    def __init__(self, open_consumer: Callable[[Any], Any], open_producer: Callable[[Any], Any]) -> None:
        self._open_consumer = open_consumer
        self._open_producer = open_producer
        self._consumers: list[Any] = []

    def consumer(self, **settings: Any) -> Any:
        consumer = self._open_consumer(CONSUMER | {"group.id": self.unique("group")} | _dotted(settings))
        self._consumers.append(consumer)
        return consumer

    def member(self, group: str, **settings: Any) -> Any:
        """A consumer that is fit for a group."""
        own = {"partition_assignment_strategy": "cooperative-sticky", "heartbeat_interval_ms": 500}
        return self.consumer(**own | {"group_id": group} | settings)

    def producer(self, **settings: Any) -> Any:
        return self._open_producer({"linger.ms": 0} | _dotted(settings))

    def transactional(self, transactional_id: str | None = None) -> Any:
        """A producer that is ready to begin."""
        producer = self.producer(transactional_id=transactional_id or self.unique("txn"))
        producer.init_transactions(DEADLINE_S)
        return producer

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()

    def until(self, holds: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
        """Waits for a condition, which is returned."""
        end = self.now() + deadline_s
        while not (found := holds()):
            assert self.now() < end, what
            self.wait(0.02)
        return found

    def read(self, topic: str, isolation: str = "read_committed") -> tuple[list[tuple[int, bytes]], int]:
        """Offset and value of all that a reader is given of partition 0, and where it is told that this ends."""
        reader = self.consumer(isolation_level=isolation, enable_partition_eof=True, fetch_wait_max_ms=20)
        reader.assign([TopicPartition(topic, 0, 0)])
        return self.to_end(reader)

    def to_end(self, reader: Any) -> tuple[list[tuple[int, bytes]], int]:
        """The same, from where a reader is."""
        found, end_s = [], self.now() + DEADLINE_S
        while self.now() < end_s:
            message = reader.poll(0.1)
            if message is None:
                continue
            if message.error() is None:
                found.append((message.offset(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return found, message.offset()
        raise AssertionError(f"no end, after {found}")

    def end(self, topic: str, isolation: str = "read_uncommitted") -> int:
        asker = self.consumer(isolation_level=isolation)
        return int(asker.get_watermark_offsets(TopicPartition(topic, 0), timeout=DEADLINE_S)[1])

    def unique(self, stem: str) -> str: ...
    def topic(self, partitions: int = 1) -> str: ...
    def evict(self, group: str, member: str) -> None:
        """The coordinator forgets a member, as after its session; the member does not know."""

    def now(self) -> float: ...
    def wait(self, seconds: float) -> None: ...


class FakeUnderTest(LogUnderTest):
    def __init__(self) -> None:
        self.broker = FakeLog(seed=1)
        self._numbers = count()
        super().__init__(self.broker.consumer, self.broker.producer)

    def unique(self, stem: str) -> str:
        return f"{stem}-{next(self._numbers)}"

    def topic(self, partitions: int = 1) -> str:
        return self.broker.create_topic(self.unique("topic"), partitions)

    def evict(self, group: str, member: str) -> None:
        self.broker.group(group).remove(member)

    def now(self) -> float:
        return self.broker.clock.monotonic()

    def wait(self, seconds: float) -> None:
        self.broker.clock.advance(seconds)


class KafkaUnderTest(LogUnderTest):
    def __init__(self, kafka: Any) -> None:
        self._kafka = kafka
        own = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
        super().__init__(lambda settings: Consumer(own | settings), lambda settings: Producer(own | settings))

    def unique(self, stem: str) -> str:
        return str(self._kafka.unique(stem))

    def topic(self, partitions: int = 1) -> str:
        return str(self._kafka.create_topic(partitions=partitions))

    def evict(self, group: str, member: str) -> None:
        """The client has no call for this request (LeaveGroup, version 3)."""
        head = struct.pack(">hhi", 13, 3, 1) + _text("test")
        body = _text(group) + struct.pack(">i", 1) + _text(member) + struct.pack(">h", -1)  # no instance
        host, port = self._kafka.bootstrap.split(":")
        with socket.create_connection((host, int(port)), DEADLINE_S) as connection:
            connection.sendall(struct.pack(">i", len(head + body)) + head + body)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            answer = connection.recv(size, socket.MSG_WAITALL)
        assert answer.endswith(b"\0\0"), f"{member} was not evicted: {answer!r}"

    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def error_of(call: Callable[[], Any]) -> KafkaError:
    """The error that a call raises."""
    try:
        call()
    except KafkaException as error:
        return error.args[0]
    raise AssertionError("no error was raised")


def arrived(log: LogUnderTest, reader: Any) -> Any:
    """The next message; one without a value counts as false."""
    return log.until(lambda: [message for message in [reader.poll(0.1)] if message is not None], "nothing comes")[0]


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}
