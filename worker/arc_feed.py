"""The arcs topic as a worker reads it: to its end before the first event, later records at batch boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, TopicPartition

from afa.errors import RecordError
from arcfleet.fleet.arcs import ArcPromise, ArcRecord, ArcTable, read_arc_record
from worker.errors import WorkerError
from worker.reactions import raise_for, reaction_of_consumer

READ_MAX: Final = 5_000
WAIT_S: Final = 0.05


class ArcFeed:
    """Every record since the start of the topic, in order; partitions take them up where they are."""

    def __init__(self, reader: Any, topic: str, complain: Callable[[str], None]) -> None:
        self._reader = reader
        self._topic = topic
        self._complain = complain
        self.records: list[tuple[int, ArcRecord]] = []  # with the offset after each
        self.table = ArcTable()  # of all records

    def read_to_end(self, query: Any, deadline_s: float, monotonic: Callable[[], float]) -> None:
        """Blocks until the end as of now is reached, which `query` tells without regard to open transactions: patterns
        that were committed a moment ago may still lie behind it. Raises WorkerError after the deadline."""
        _, end = query.get_watermark_offsets(TopicPartition(self._topic, 0), timeout=deadline_s)
        self._reader.assign([TopicPartition(self._topic, 0, 0)])
        until = monotonic() + deadline_s
        while self.table.offset < end:
            if not self.poll(WAIT_S) and monotonic() > until:
                what = (
                    f"{self._topic} could not be read to its end ({self.table.offset} of {end}) within {deadline_s:g} s"
                )
                raise WorkerError(
                    what, fix="a transaction may be open on it: look for a process that publishes patterns"
                )

    def poll(self, timeout: float = 0.0) -> bool:
        """Reads what has come; whether something had."""
        came = False
        for message in self._reader.consume(READ_MAX, timeout):
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    self.table.offset = max(self.table.offset, message.offset())
                    continue
                raise_for(reaction_of_consumer(error), error, f"reading {self._topic}")
                continue
            came = True
            self._take(message)
        return came

    def _take(self, message: Any) -> None:
        self.table.offset = message.offset() + 1
        try:
            record = read_arc_record(message.value())
            if self.table.apply(record):
                self._keep(record)
        except RecordError as error:
            self._complain(f"{self._topic}, offset {message.offset()}: {error}")

    def _keep(self, record: ArcRecord) -> None:
        """Arc punctuations come all the time, and of several in a row the last says all."""
        if self.records and isinstance(record, ArcPromise) and isinstance(self.records[-1][1], ArcPromise):
            self.records.pop()
        self.records.append((self.table.offset, record))

    def since(self, offset: int) -> list[ArcRecord]:
        """The records from an offset on."""
        return [record for after, record in self.records if after > offset]
