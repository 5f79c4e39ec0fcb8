"""What a worker sends: matches and punctuations, records set aside, snapshots, progress; each to the partition number
of its source, and all through one producer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Protocol

from confluent_kafka import KafkaException

from afa.changes import Changes, Encoded
from worker.clock import Clock, utc_text
from worker.cloud_events import CloudEvents
from worker.reactions import producing, raise_for_producer
from worker.records import Header, Message, headers_of
from worker.traces import TRACEPARENT, Traces

Headers = Sequence[Header]
FRAME_BYTES: Final = 1_000  # more than a record and its batch need beside what is in them
# On a compacted topic every record has a key, and only what it takes the place of has the same.
PUNCTUATION_KEY: Final = "!punctuation/"
TIMEOUT_KEY: Final = "!timeout/"


class Producer(Protocol):
    """What is used of a Kafka producer."""

    def produce(self, topic: str, **record: Any) -> None: ...
    def poll(self, timeout: float) -> int: ...
    def flush(self, timeout: float) -> int: ...
    def purge(self) -> None: ...
    def init_transactions(self, timeout: float) -> None: ...
    def begin_transaction(self) -> None: ...
    def send_offsets_to_transaction(self, positions: list[Any], metadata: Any, timeout: float) -> None: ...
    def commit_transaction(self, timeout: float) -> None: ...
    def abort_transaction(self, timeout: float) -> None: ...


@dataclass
class Sent:
    """What was sent between two commits."""

    count: int = 0
    on_their_way: int = 0  # neither delivered yet, nor failed
    late_next: dict[int, int] = field(default_factory=dict)  # by partition: the offset after the last late record


class Publisher:
    """Sends, and remembers what became of it."""

    def __init__(
        self,
        producer: Producer,
        prefix: str,
        clock: Clock,
        *,
        punctuation_interval_s: float,
        upsert: bool,
        room: Mapping[str, int],
        cloud_events: CloudEvents | None = None,
    ) -> None:
        self.producer = producer
        self._topics = {
            suffix: f"{prefix}.{suffix}" for suffix in ("matches", "late", "dead-letter", "state", "progress")
        }
        self._clock = clock
        self._punctuation_interval_s = punctuation_interval_s
        self._upsert = upsert
        self._cloud_events = cloud_events
        self._room = room  # by suffix: how many bytes a record that is set aside may have
        self._waiting: dict[tuple[int, str], Encoded] = {}  # punctuations, by partition and pattern
        self._punctuated_at: dict[tuple[int, str], float] = {}
        self.failure: tuple[Any, str] | None = None  # the first error of a delivery, and of which topic
        self.sent = Sent()  # since the last commit

    def next(self) -> Sent:
        """What was sent since it was called last."""
        before, self.sent = self.sent, Sent()
        return before

    def changes(self, partition: int, changes: Changes, traces: Traces) -> dict[str, dict[str, int]]:
        """Matches, retractions, timeouts and punctuations; how many of each kind there were, by pattern."""
        counts: dict[str, dict[str, int]] = {}
        for encoded in changes.encoded():
            headers = dict(encoded[2])
            op, pattern = headers["op"].decode(), headers["pattern"].decode()
            of_pattern = counts.setdefault(pattern, {})
            of_pattern[op] = of_pattern.get(op, 0) + 1
            if op == "punctuation":
                self._waiting[partition, pattern] = encoded
            else:
                if (trace := traces.of(encoded[1])) is not None:
                    encoded[2].append((TRACEPARENT, trace))
                self._send_change(partition, encoded)
        self.punctuations()
        return counts

    def _send_change(self, partition: int, encoded: Encoded) -> None:
        key, value, told = encoded
        headers = dict(told)
        if self._cloud_events is not None:
            told = [*told, *self._cloud_events.headers(key, headers)]
        if self._upsert and headers["op"] == b"punctuation":
            self._send("matches", partition, f"{PUNCTUATION_KEY}{headers['pattern'].decode()}", value, told)
        elif self._upsert and "match" in headers:
            is_gone = headers["op"] == b"retract"
            self._send("matches", partition, headers["match"], None if is_gone else value, told)
        elif self._upsert:
            self._send("matches", partition, f"{TIMEOUT_KEY}{blake2b(value, digest_size=16).hexdigest()}", value, told)
        else:
            self._send("matches", partition, key, value, told)

    def punctuations(self, *, all_of: int | None = None) -> None:
        """Sends those that wait and whose pattern and partition had none for long enough; of one partition, all."""
        now = self._clock.monotonic()
        for place in list(self._waiting):
            partition, _ = place
            at = self._punctuated_at.get(place)
            if partition == all_of or at is None or now - at >= self._punctuation_interval_s:
                self._punctuated_at[place] = now
                self._send_change(partition, self._waiting.pop(place))

    def waiting(self, partition: int) -> set[str]:
        """Patterns with a punctuation of it that was not sent yet."""
        return {pattern for number, pattern in self._waiting if number == partition}

    def late(self, message: Message, reason: str) -> None:
        """A record that came too late, as it was."""
        self._aside("late", message, reason, "", delivered=self._late_delivered)

    def dead_letter(self, message: Message, reason: str, error: str = "RecordError") -> None:
        """A record that is no event, as it was."""
        self._aside("dead-letter", message, reason, error, delivered=self._delivered)

    def _aside(self, where: str, message: Message, reason: str, error: str, delivered: Any) -> None:
        about = {
            "arcfleet.topic": message.topic(),
            "arcfleet.partition": str(message.partition()),
            "arcfleet.offset": str(message.offset()),
            "arcfleet.reason": reason,
            "arcfleet.error": error,
            "arcfleet.time": utc_text(self._clock.wall()),
        }
        key, value, own = message.key(), message.value(), headers_of(message)
        if (size := _bytes_of(key, value, own)) > self._room[where]:
            about["arcfleet.reason"] += f"; not kept here, where {size} bytes do not fit (max.message.bytes)"
            key, value, own = None, None, []
        told = [(name, text.encode()) for name, text in about.items()]
        headers = [*(header for header in own if header[0] not in about), *told]
        self._send(where, message.partition(), key, value, headers, delivered=delivered)

    def snapshot(
        self, partition: int, key: bytes, value: bytes | None, held: bytes, traces: bytes | None, *, sent: Sent
    ) -> None:
        """A key's state; none: it is back at the start. `held` says which offsets it holds, `sent` with what else it
        belongs."""
        headers = [("held", held), *([("traces", traces)] if traces else [])]
        self._send("state", partition, key, value, headers, sent=sent)

    def progress(self, topic: str, partition: int, record: Mapping[str, Any]) -> None:
        """How far a source's partition is."""
        value = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        self._send("progress", 0, f"{topic}/{partition}", value, [("content-type", b"application/json")])

    def _send(
        self,
        where: str,
        partition: int,
        key: Any,
        value: bytes | None,
        headers: Any,
        *,
        delivered: Any = None,
        sent: Sent | None = None,
    ) -> None:
        record = {"key": key, "value": value, "partition": partition, "headers": list(headers)}
        sent = sent or self.sent
        record["on_delivery"] = partial(delivered or self._delivered, sent)
        sent.count += 1
        sent.on_their_way += 1
        while True:
            try:
                self.producer.produce(self._topics[where], **record)
            except BufferError:  # the queue is full: that is the back-pressure
                self.serve(0.1)
            except (KafkaException, SystemError) as error:
                raise_for_producer(error, f"producing to {self._topics[where]}")
            else:
                return

    def serve(self, timeout: float = 0.0) -> None:
        """Lets the producer report what became of earlier records. Raises ResetError, WorkerError."""
        with producing("serving the producer"):
            self.producer.poll(timeout)

    def flush(self, timeout: float) -> int:
        """Waits until all is delivered, or has failed; how many records are left. Raises ResetError, WorkerError."""
        try:
            return self.producer.flush(timeout)
        except (KafkaException, SystemError) as error:
            raise_for_producer(error, "flush")

    def _delivered(self, sent: Sent, error: Any, message: Any) -> None:
        sent.on_their_way -= 1
        if error is not None and self.failure is None:
            self.failure = error, message.topic()

    def _late_delivered(self, sent: Sent, error: Any, message: Any) -> None:
        self._delivered(sent, error, message)
        if error is None:
            sent.late_next[message.partition()] = message.offset() + 1

    def forget(self, partition: int) -> None:
        """Of a partition that is not ours any more nothing waits."""
        for place in [place for place in self._waiting if place[0] == partition]:
            del self._waiting[place]
        self.sent.late_next.pop(partition, None)


def _bytes_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Of a record, at most."""
    of_headers = sum(len(name.encode()) + len(told or b"") for name, told in headers)
    return FRAME_BYTES + len(key or b"") + len(value or b"") + of_headers
