"""Writes patterns and arcs to the fleet's topics, in one transaction: `worker --patterns` and the coordinator alike.

All writers of one role share a transactional id: whoever begins last fences the others, which look again. So of several
that start at once one writes, and the others find it written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from arcfleet.fleet.arcs import ArcRecord, ArcTable, read_arc_record, stamp
from arcfleet.fleet.rights import REFUSED

CALL_S: Final = 15.0
READ_S: Final = 0.1
TRIES_MAX: Final = 20
BETWEEN_TRIES_S: Final = 0.2


class Opens(Protocol):
    """Makes the clients that are needed."""

    def transactional_producer(self, transactional_id: str) -> Any: ...
    def reader(self) -> Any: ...


def read_table(reader: Any, topic: str, deadline_s: float = 30.0) -> ArcTable:
    """The table of all committed records of the arcs topic. Raises KafkaException without the right to the group, by
    which readers are known; OSError after the deadline."""
    from confluent_kafka import KafkaError, KafkaException, TopicPartition  # noqa: PLC0415 - an extra

    _, end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=deadline_s)
    reader.assign([TopicPartition(topic, 0, 0)])
    table, until = ArcTable(), time.monotonic() + deadline_s
    while table.offset < end:
        for message in reader.consume(1000, READ_S):
            error = message.error()
            if error is None:
                table.apply(read_arc_record(message.value()))
            elif error.name() in REFUSED:
                raise KafkaException(error)
            elif error.code() != KafkaError._PARTITION_EOF:
                raise OSError(f"reading {topic}: {error.str()}")
            table.offset = message.offset() + (error is None)
        if time.monotonic() > until:
            raise OSError(
                f"{topic} could not be read to its end within {deadline_s:g} s; a transaction may be open on it"
            )
    return table


def publish_patterns(documents: Sequence[dict[str, Any]], prefix: str, opens: Opens) -> list[str]:
    """Brings in the patterns that the arcs topic does not hold; their names. Raises PatternError if one is there with
    another content, KafkaException without the right to the group or to transactional ids, else OSError."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

    for left in reversed(range(TRIES_MAX)):
        try:
            return _publish_once(documents, prefix, opens)
        except KafkaException as error:
            if error.args[0].name() in REFUSED:
                raise
            if not left:
                raise OSError(f"patterns could not be published: {error.args[0].str()}") from None
            time.sleep(BETWEEN_TRIES_S)
    raise AssertionError("the last try returns or raises")


def _publish_once(documents: Sequence[dict[str, Any]], prefix: str, opens: Opens) -> list[str]:
    producer = opens.transactional_producer(f"{prefix}-patterns")
    producer.init_transactions(CALL_S)  # ends what an earlier writer left open, and fences it
    reader = opens.reader()
    try:
        table = read_table(reader, f"{prefix}.arcs")
    finally:
        reader.close()
    records = stamp(documents, table)
    if records:
        producer.begin_transaction()
        write(records, prefix, producer)
        producer.commit_transaction(CALL_S)
    return [document["pattern"] for document in documents if document["pattern"] not in table.heads]


def write(records: Iterable[ArcRecord], prefix: str, producer: Any) -> None:
    """Appends stamped records to both topics, within the producer's transaction."""
    for record in records:
        key, value = record.written()
        for suffix in ("arcs", "arcs.log"):
            producer.produce(f"{prefix}.{suffix}", key=key, value=value, partition=0)
