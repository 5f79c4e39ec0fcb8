"""Batches on their way in: consumed messages, sorted by partition, as the columns that the engine takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, TypeAlias

from afa.source import Source

Header: TypeAlias = tuple[str, bytes | None]  # Kafka has headers without a value


class Message(Protocol):
    """What is used of a consumed record."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> list[Header] | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def error(self) -> Any: ...


@dataclass(frozen=True)
class Needed:
    """What beside the values the sources read: what nobody reads is not asked for."""

    keys: bool
    timestamps: bool
    headers: bool

    @classmethod
    def by(cls, sources: Iterable[Source]) -> Needed:
        """What these sources read."""
        places = [(source, place) for source in sources for place in _places(source)]
        retracts = any(source.tombstone == "retract" for source, _ in places)
        return cls(
            keys=any(source.key == "record" for source, _ in places),
            timestamps=retracts or any(source.time == "record" for source, _ in places),
            headers=retracts or any(place.startswith("header:") for _, place in places),
        )


def _places(source: Source) -> tuple[str, ...]:
    return source.time, source.type, source.key, source.id, source.seq, source.rev, source.op


@dataclass(frozen=True)
class Taken:
    """Records of one partition number, in the order in which they came.

    What is asked of every record is asked once and kept as a column: where they are many, each question costs.
    """

    number: int
    messages: list[Message]
    topics: list[str]  # of each record, or one for all
    offsets: list[int]

    def positions(self) -> dict[str, int]:
        """By topic, the offset after the last record; a partition's records come in order."""
        if len(self.topics) == 1:
            return {self.topics[0]: self.offsets[-1] + 1} if self.offsets else {}
        return {topic: offset + 1 for topic, offset in dict(zip(self.topics, self.offsets, strict=True)).items()}

    def last(self) -> dict[str, Message]:
        """By topic, the last record."""
        if len(self.topics) == 1:
            return {self.topics[0]: self.messages[-1]} if self.messages else {}
        return dict(zip(self.topics, self.messages, strict=True))

    def counts(self) -> Mapping[str, int]:
        """How many records came from each topic."""
        if len(self.topics) == 1 and self.messages:
            return {self.topics[0]: len(self.messages)}
        return Counter(self.topics[: len(self.messages)])

    def pick(self, wanted: Callable[[str, int], bool]) -> Taken:
        """Those whose topic and offset are wanted."""
        topics = self.topics * len(self.offsets) if len(self.topics) == 1 else self.topics
        places = [at for at, place in enumerate(zip(topics, self.offsets, strict=True)) if wanted(*place)]
        if len(places) == len(self.offsets):
            return self
        columns = (self.messages, topics, self.offsets)
        return Taken(self.number, *([column[at] for at in places] for column in columns))  # type: ignore[arg-type]

    def since(self, positions: Mapping[str, int]) -> Taken:
        """Those that were not processed yet, if each topic was up to these offsets."""
        if len(self.topics) == 1 and self.offsets and self.offsets[0] >= positions[self.topics[0]]:
            return self
        return self.pick(lambda topic, offset: offset >= positions[topic])

    def until(self, positions: Mapping[str, int]) -> Taken:
        """Those that were processed, if each topic was up to these offsets."""
        if len(self.topics) == 1 and self.offsets and self.offsets[-1] < positions[self.topics[0]]:
            return self
        return self.pick(lambda topic, offset: offset < positions[topic])

    def of_topic(self, topic: str) -> Taken:
        """Those of one topic."""
        return self.pick(lambda other, _: other == topic)

    def columns(self, needed: Needed) -> dict[str, Any]:
        """As the engine takes them."""
        messages = self.messages
        told: dict[str, Any] = {
            "batch": [message.value() for message in messages],
            "partitions": [(topic, self.number) for topic in self.topics],
            "offsets": self.offsets,
        }
        if needed.keys:
            told["keys"] = [message.key() for message in messages]
        if needed.timestamps:
            told["timestamps"] = [message.timestamp()[1] for message in messages]
        if needed.headers:
            told["headers"] = [headers_of(message) for message in messages]
        return told


def headers_of(message: Message) -> list[Header]:
    """Those of a record. No broker makes sure that their names are texts: what the client cannot read is not there."""
    try:
        return message.headers() or []
    except (UnicodeDecodeError, SystemError):  # the latter is what Python makes of the former within the client
        return []


def by_partition(messages: Sequence[Message], topics: Sequence[str]) -> dict[int, Taken]:
    """Messages of these topics by partition number, each in the order in which they came."""
    sorted_out: dict[int, Taken] = {}
    numbers = [message.partition() for message in messages]
    offsets = [message.offset() for message in messages]
    alone = topics[0] if len(topics) == 1 else None
    end = 0
    for number, run in groupby(numbers):  # a fetch brings many records of a partition side by side
        begin, end = end, end + len(list(run))
        new = messages[begin:end]
        taken = sorted_out.setdefault(number, Taken(number, [], [], []))
        taken.messages.extend(new)
        taken.offsets.extend(offsets[begin:end])
        if alone is None:
            taken.topics.extend([message.topic() for message in new])
        elif not taken.topics:
            taken.topics.append(alone)
    return sorted_out
