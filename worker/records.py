"""Batches on their way in: consumed messages, sorted by partition, as the columns that the engine takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from afa.source import Source


class Message(Protocol):
    """What is used of a consumed record."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> list[tuple[str, bytes]] | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def error(self) -> Any: ...


@dataclass(frozen=True)
class Needed:
    """What beside the values the sources read: what nobody reads is not asked for."""

    keys: bool
    timestamps: bool
    headers: bool
    topic: str | None  # the only one, if there is just one: no record is asked for it

    @classmethod
    def by(cls, sources: Sequence[Source]) -> Needed:
        """What these sources read."""
        places = [(source, place) for source in sources for place in _places(source)]
        retracts = any(source.tombstone == "retract" for source, _ in places)
        return cls(
            keys=any(source.key == "record" for source, _ in places),
            timestamps=retracts or any(source.time == "record" for source, _ in places),
            headers=retracts or any(place.startswith("header:") for _, place in places),
            topic=sources[0].topic if len(sources) == 1 else None,
        )


def _places(source: Source) -> tuple[str, ...]:
    return source.time, source.type, source.key, source.id, source.seq, source.rev, source.op


@dataclass(frozen=True)
class Batch:
    """Records of one partition, as columns."""

    messages: Sequence[Message]
    topics: Mapping[str, int]  # how many records are of each
    values: list[bytes | None]
    partitions: list[tuple[str, int]]
    offsets: list[int]
    keys: list[bytes | None] | None
    timestamps: list[int | None] | None
    headers: list[Any] | None

    @classmethod
    def of(cls, messages: Sequence[Message], needed: Needed) -> Batch:
        """The columns of some messages."""
        if needed.topic is None:
            partitions = [(message.topic(), message.partition()) for message in messages]
            topics: Mapping[str, int] = Counter(topic for topic, _ in partitions)
        else:
            partitions = [(needed.topic, messages[0].partition())] * len(messages)
            topics = {needed.topic: len(messages)}
        return cls(
            messages=messages,
            topics=topics,
            values=[message.value() for message in messages],
            partitions=partitions,
            offsets=[message.offset() for message in messages],
            keys=[message.key() for message in messages] if needed.keys else None,
            timestamps=[message.timestamp()[1] for message in messages] if needed.timestamps else None,
            headers=[message.headers() for message in messages] if needed.headers else None,
        )

    def next_offsets(self) -> dict[str, int]:
        """By topic, the offset after the last record; a partition's records come in order."""
        if len(self.topics) == 1:
            return dict.fromkeys(self.topics, self.offsets[-1] + 1)
        return {topic: offset + 1 for (topic, _), offset in zip(self.partitions, self.offsets, strict=True)}


def by_partition(messages: Iterable[Message]) -> dict[int, list[Message]]:
    """Messages by partition number, each in the order in which they came."""
    sorted_out: dict[int, list[Message]] = {}
    for message in messages:
        sorted_out.setdefault(message.partition(), []).append(message)
    return sorted_out
