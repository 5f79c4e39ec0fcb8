"""A matches topic, read by whoever looks on: committed records only, every partition, no group."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from afa.errors import RecordError
from arcfleet.expansion import check_compressed
from arcfleet.fleet.clients import Settings, reader_settings
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.errors import KafkaError
from arcfleet.net_matches import NetMatches

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message
    from confluent_kafka import KafkaError as KafkaClientError

_BATCH_RECORDS: Final = 1_000
_POLL_S: Final = 0.1
_ANSWER_S: Final = 1.0

# As the library has them.
_Headers: TypeAlias = "Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]"
# What readers of a change take for granted where it is there.
_TYPES: Final[Mapping[str, type]] = {
    "op": str,
    "pattern": str,
    "match": str,
    "key": str,
    "start": int,
    "end": int,
    "events": dict,
    "registers": dict,
    "bindings": dict,
    "graph": dict,
}
_MATCH_NEEDS: Final = ("match", "pattern", "key", "end")


@dataclass(frozen=True, slots=True)
class ToldChange:
    """A record of the matches topic: its text on one line, and what that says."""

    text: str
    record: Mapping[str, Any]
    is_tombstone: bool = False

    @property
    def order(self) -> tuple[str, int, int, str]:
        """In which net matches are listed: as `replay` does it."""
        record = self.record
        return (record["key"], record.get("start", record["end"]), record["end"], record["match"])


def read_change(value: bytes | None, key: bytes | None, headers: _Headers) -> ToldChange:
    """Raises RecordError for what no worker writes."""
    if value is None:
        return _tombstone(key, headers)
    try:
        text = value.decode()
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_told(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise _not_told("not a JSON object")
    needed = _MATCH_NEEDS if record.get("op") in ("insert", "retract") else ("pattern",)
    for name, kind in _TYPES.items():
        if name in record and type(record[name]) is not kind:
            raise _not_told(f"`{name}` is {record[name]!r}")
        if name not in record and name in ("op", *needed):
            raise _not_told(f"no `{name}`")
    if "graph" in record:
        check_compressed(record)
    return ToldChange(text.replace("\n", " ").replace("\r", " "), record)


def _tombstone(key: bytes | None, headers: _Headers) -> ToldChange:
    """`envelope: upsert`: the match whose id is the key is gone."""
    if key is None:
        raise _not_told("neither key nor value")
    said = dict(headers).get("pattern")
    pattern = said.decode(errors="replace") if isinstance(said, bytes) else ""
    record = {"op": "retract", "match": key.decode(errors="replace"), "pattern": pattern}
    return ToldChange(json.dumps(record, ensure_ascii=False, separators=(",", ":")), record, True)


def _not_told(what: str) -> RecordError:
    return RecordError(f"no record of a matches topic: {what}", fix="keep other producers off this topic")


def tail_settings(fleet: Fleet) -> Settings:
    """What was deleted before it was read is not there any more: reading goes on behind it."""
    return reader_settings(fleet) | {"auto.offset.reset": "earliest"}


def assign(consumer: Consumer, topic: str, partitions: int, *, latest: bool) -> None:
    """All partitions, from their beginnings or from what comes next."""
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition  # noqa: PLC0415 - an extra

    begin = OFFSET_END if latest else OFFSET_BEGINNING
    consumer.assign([TopicPartition(topic, number, begin) for number in range(partitions)])


class Ends:
    """Where each partition ended at the start. Offsets before may hold transaction markers or aborted records, which
    are never delivered: the end is reached by what comes from behind it, or by being told of the partition's end."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.ends = dict(ends)
        self.left = {partition for partition, end in ends.items() if end}

    def holds(self, partition: int, offset: int) -> bool:
        """Whether a record counts; a reader may be past the end of one partition while it waits for another."""
        return offset < self.ends[partition]

    def reached(self, partition: int, next_offset: int) -> None:
        if next_offset >= self.ends[partition]:
            self.left.discard(partition)


class Tail:
    """Records in the order of each partition, as they are committed. `Tail.heard` is the consumer's `error_cb`."""

    def __init__(self, ends: Ends | None, deadline_s: float, clock: Callable[[], float]) -> None:
        self.ends = ends
        self.deadline_s = deadline_s
        self.clock = clock
        self._down_since_s: float | None = None

    def heard(self, error: KafkaClientError) -> None:
        if error.name() == "_ALL_BROKERS_DOWN" and self._down_since_s is None:
            self._down_since_s = self.clock()

    def batches(self, consumer: Consumer, stopped: Callable[[], bool]) -> Iterator[list[Message]]:
        """A batch is empty when nothing came for a moment. Without ends it goes on until it is stopped. Raises
        KafkaError when the brokers refuse, or stay out of reach."""
        while not stopped() and (self.ends is None or self.ends.left):
            first = consumer.poll(_POLL_S)
            if first is None:
                self._check_brokers(consumer)
            more = consumer.consume(_BATCH_RECORDS - 1, 0) if first else []
            yield [message for message in ([first, *more] if first else []) if self._counts(message)]

    def _check_brokers(self, consumer: Consumer) -> None:
        """That they are back is not told, so after the deadline they are asked."""
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra: the consumer has it

        if self._down_since_s is None or self.clock() - self._down_since_s < self.deadline_s:
            return
        try:
            consumer.list_topics(timeout=_ANSWER_S)
        except KafkaException as error:
            what = f"no broker has answered for {self.deadline_s:g} s: {error.args[0].str()}"
            raise KafkaError(what) from None
        self._down_since_s = None

    def _counts(self, message: Message) -> bool:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None and error.name() != "_PARTITION_EOF":
            raise KafkaError(f"{message.topic()}/{partition} cannot be read: {error.str()}")
        assert partition is not None
        assert offset is not None
        if self.ends is None:
            return error is None
        self.ends.reached(partition, offset if error else offset + 1)
        return error is None and self.ends.holds(partition, offset)


def follow(net: NetMatches[ToldChange], told: ToldChange) -> None:
    """Takes a change into the net matches; what is no change of a match changes nothing."""
    op, identity = told.record["op"], told.record.get("match", "")
    if op == "insert":
        net.insert(identity, told, replaces="graph" in told.record)
    elif op == "retract" and (identity in net.standing or not told.is_tombstone):
        # Compaction keeps a tombstone longer than the insert before it: alone it is no orphan.
        net.retract(identity)
