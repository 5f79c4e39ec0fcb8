"""Writes patterns and arcs to the fleet's topics, in one transaction: `worker --patterns` and the coordinator alike.

All writers of one role share a transactional id: whoever begins last fences the others, which look again. So of several
that start at once one writes, and the others find it written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias

from afa.errors import AfaError, PatternError, RecordError
from arcfleet.fleet.arcs import MAX_ARC_RECORD_BYTES, ArcPromise, ArcRecord, ArcTable, admit, read_arc_record, stamp
from arcfleet.fleet.rights import REFUSED

PATTERNS_WRITER: Final = "patterns"  # with the fleet's name the transactional id of who publishes patterns
CALL_S: Final = 15.0
READ_S: Final = 0.1
TRIES_MAX: Final = 20
BETWEEN_TRIES_S: Final = 0.2


Check: TypeAlias = Callable[[ArcTable], object]


class Opens(Protocol):
    """Makes the clients that are needed."""

    def transactional_producer(self, transactional_id: str) -> Any: ...
    def reader(self) -> Any: ...


def read_table(reader: Any, topic: str, deadline_s: float = 30.0) -> ArcTable:
    """The table of all committed records of the arcs topic; those that are none count for nothing, as in a worker.
    Raises KafkaException without the right to the group, by which readers are known; OSError after the deadline."""
    from confluent_kafka import KafkaError, KafkaException, TopicPartition  # noqa: PLC0415 - an extra

    _, end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=deadline_s)
    reader.assign([TopicPartition(topic, 0, 0)])
    table, until = ArcTable(), time.monotonic() + deadline_s
    while table.offset < end:
        for message in reader.consume(1000, READ_S):
            error = message.error()
            if error is None:
                with suppress(RecordError):
                    table.apply(read_arc_record(message.value(), message.key()))
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


def publish_patterns(
    documents: Sequence[dict[str, Any]], prefix: str, opens: Opens, check: Check = lambda _: None
) -> list[str]:
    """Brings in the patterns that the arcs topic does not hold; their names.

    Nothing is published unless the table that comes of it passes the check, which raises AfaError: what is on the topic
    stays there, and no worker could run. Raises PatternError if a pattern is refused, or is there with another content;
    KafkaException without the right to the group or to transactional ids, else OSError.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

    for left in reversed(range(TRIES_MAX)):
        try:
            return _publish_once(documents, prefix, opens, check)
        except KafkaException as error:
            if error.args[0].name() in REFUSED:
                raise
            if not left:
                raise OSError(f"patterns could not be published: {error.args[0].str()}") from None
            time.sleep(BETWEEN_TRIES_S)
    raise AssertionError("the last try returns or raises")


def _publish_once(documents: Sequence[dict[str, Any]], prefix: str, opens: Opens, check: Check) -> list[str]:
    producer = opens.transactional_producer(f"{prefix}-{PATTERNS_WRITER}")
    producer.init_transactions(CALL_S)  # ends what an earlier writer left open, and fences it
    reader = opens.reader()
    try:
        table = read_table(reader, f"{prefix}.arcs")
    finally:
        reader.close()
    if table.removed:
        _, refused = admit(table.without(table.removed), table, sorted(table.removed), check)
        table = table.without(refused)
    records = stamp(documents, table)
    if records:
        check_records(records, table, f"{prefix}.arcs", check)
        producer.begin_transaction()
        write(records, prefix, producer)
        producer.commit_transaction(CALL_S)
    return [document["pattern"] for document in documents if document["pattern"] not in table.heads]


def check_records(records: Sequence[ArcRecord], table: ArcTable, topic: str, check: Check) -> None:
    """Raises PatternError if these must not be published beside what the table has: it names the pattern."""
    after = table.copy()
    for record in records:
        after.apply(record)
        size = len(record.written()[1])
        if size > MAX_ARC_RECORD_BYTES and not isinstance(record, ArcPromise):
            what = f"the pattern `{record.pattern}` has a part of {size:,} bytes"
            raise PatternError(
                f"{what}; {MAX_ARC_RECORD_BYTES:,} are the most (max_arc_record_bytes)", fix="split the pattern"
            )
    try:
        check(after)
    except AfaError:
        names = [*table.heads, *(name for name in after.heads if name not in table.heads)]
        _, refused = admit(ArcTable(), after, names, check)
        for name, error in refused.items():
            raise refusal(name, error, topic if name in table.heads else None) from None
        raise


def refusal(name: str, error: AfaError, topic: str | None) -> PatternError:
    """Names a pattern that cannot run, and why; if it is on the topic already, also how it goes away."""
    what = error.what if f"`{name}`" in error.what else f"the pattern `{name}`: {error.what}"
    if topic is None:
        return PatternError(what, fix=error.fix)
    away = f"take the pattern away with a tombstone: its key is `{name}`, its topic {topic} (docs/operations.md)"
    return PatternError(f"{what}; it is on {topic}", fix=f"{error.fix}; or {away}" if error.fix else away)


def write(records: Iterable[ArcRecord], prefix: str, producer: Any) -> None:
    """Appends stamped records to both topics, within the producer's transaction."""
    for record in records:
        key, value = record.written()
        for suffix in ("arcs", "arcs.log"):
            producer.produce(f"{prefix}.{suffix}", key=key, value=value, partition=0)
