"""A tape onto a source's topic: events by their keys, punctuations to every partition, in the tape's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from afa.reading import Fault
from afa.records import ArcPunctuation, Event, Punctuation
from afa.source import Source
from afa.tape import MAX_RECORD_BYTES, TapeLine
from arcfleet.fleet.clients import Settings, producer_settings
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.errors import FleetError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

MAX_BATCH_BYTES: Final = 1_000_000
MIN_DELIVERY_MS: Final = 1_000
_CATCH_UP_S: Final = 0.1
_POLL_S: Final = 0.1  # the longest wait in one call: Ctrl-C is heard in between


@dataclass(frozen=True, slots=True)
class Publication:
    """What a line of a tape becomes; without a key it goes to every partition."""

    key: bytes | None
    value: bytes


def publication(line: TapeLine) -> Publication:
    """The line as it stands, under its event's key. Raises RecordError."""
    if line.too_long:
        fault = Fault((), f"a line of more than {line.too_long:,} bytes (max_record_bytes)", "split the record")
        raise line.error(fault)
    record = line.read()
    if isinstance(record, Event):
        return Publication(record.key.encode(), line.raw)
    if isinstance(record, Punctuation):
        return Publication(None, line.raw)
    what = "arc-punctuation" if isinstance(record, ArcPunctuation) else "arc change"
    fix = "take the line out; patterns reach a fleet by `arcfleet worker --patterns DIR`"
    raise line.error(Fault(("op",), f"an {what} cannot be published: a source's topic is for events", fix))


def check_source(source: Source) -> list[str]:
    """What the source takes from elsewhere than a tape's lines have it. Raises FleetError if it could not read them."""
    for name, readable, fix in (
        ("codec", ("json",), "`codec: json`"),
        ("time", ("ts", "record"), "`time: ts`"),
        ("key", ("record", "key"), "`key: record`"),
        ("op", ("op",), "`op: op`"),
        ("unit", ("ms", "us", "ns", "s"), "`unit: ms`"),
    ):
        said = getattr(source, name)
        if said not in readable:
            what = f"the source {source.topic} cannot read a tape's lines: it says `{name}: {said}`"
            raise FleetError(what, fix=f"publish to a source with {fix}, or produce in this source's own shape")
    usual = Source(source.topic)
    others = (
        name for name in ("time", "type", "id", "seq", "rev", "data") if getattr(source, name) != getattr(usual, name)
    )
    return [f"{name}: {getattr(source, name)}" for name in others]


def publisher_settings(fleet: Fleet, topic_config: Mapping[str, str]) -> Settings:
    """Of a producer that places keys as Java's do, and whose queue is bounded."""
    # A batch that is too long for the topic is refused whole, though each of its records would be taken.
    batch_bytes = min(int(topic_config.get("max.message.bytes", MAX_BATCH_BYTES)), MAX_BATCH_BYTES)
    own: Settings = {
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 65_536,
        "message.max.bytes": 2 * MAX_RECORD_BYTES,  # what is too long for the topic, the broker says
        "batch.size": max(batch_bytes, 1),
        "message.timeout.ms": max(round(fleet.start_deadline_s * 1000), MIN_DELIVERY_MS),
    }
    return {**own, **producer_settings(fleet)}


class Pace:
    """Evenly spaced moments. A short delay is caught up with, a long one (of whoever writes the pipe) is not."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self.interval_s = 1 / per_second
        self.clock = clock
        self.due_s = clock() - self.interval_s

    def next(self) -> None:
        """The next record's moment is `wait_s` from now."""
        self.due_s = max(self.due_s + self.interval_s, self.clock() - _CATCH_UP_S)

    @property
    def wait_s(self) -> float:
        return max(self.due_s - self.clock(), 0.0)


_FIXES: Final = {
    "MSG_SIZE_TOO_LARGE": "split the record, or raise the topic's max.message.bytes",
    "TOPIC_AUTHORIZATION_FAILED": "allow this user to write to the topic",
    "_MSG_TIMED_OUT": "look after the brokers, then publish again from this line on",
}


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """The line that was not delivered, and why."""

    line: int
    reason: str
    fix: str


class Publisher:
    """Produces a tape's lines in order and counts what the brokers acknowledged. Not one line more after a failure."""

    def __init__(self, producer: Producer, topic: str, partitions: int) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra: whoever has a producer has it

        self._refusal = KafkaException
        self.producer = producer
        self.topic = topic
        self.partitions = partitions
        self.records = 0
        self._punctuation_copies = 0
        self.failure: DeliveryFailure | None = None

    @property
    def punctuations(self) -> int:
        return self._punctuation_copies // self.partitions

    def publish(self, lines: Iterable[TapeLine], pace: Pace | None = None) -> None:
        """All lines, up to a failure. Raises RecordError for a bad one, when those before it are delivered."""
        try:
            for line in lines:
                published = publication(line)
                if pace:
                    self._wait(pace)
                self._send(line.number, published)
                if self.failure:
                    return
        finally:
            self._finish()

    def _wait(self, pace: Pace) -> None:
        pace.next()
        while (left_s := pace.wait_s) > 0 and not self.failure:
            self.producer.poll(min(left_s, _POLL_S))

    def _send(self, line: int, published: Publication) -> None:
        if published.key is not None:
            self._produce(published.value, partial(self._delivered, line, True), key=published.key)
        else:
            for number in range(self.partitions):
                self._produce(published.value, partial(self._delivered, line, False), partition=number)
        self.producer.poll(0)

    def _produce(self, value: bytes, delivered: Callable[..., None], **where: Any) -> None:
        while not self.failure:
            try:
                self.producer.produce(self.topic, value, on_delivery=delivered, **where)
                return
            except BufferError:  # the queue is full
                self.producer.poll(_POLL_S)
            except self._refusal as error:
                delivered(error.args[0], None)

    def _delivered(self, line: int, is_event: bool, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            # Partitions answer in any order: the first line that is missing is what one begins again with.
            if self.failure is None or line < self.failure.line:
                self.failure = DeliveryFailure(line, error.str(), _FIXES.get(error.name(), ""))
        elif is_event:
            self.records += 1
        else:
            self._punctuation_copies += 1

    def _finish(self) -> None:
        """Every record is delivered or has failed: each has a time-out of its own, so this ends."""
        while self.producer.flush(_POLL_S):
            pass
