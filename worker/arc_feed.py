"""The arcs topic as a worker reads it: to its end before the first event, later records at batch boundaries.

A pattern that the worker cannot take is refused at its start. Later the worker goes on with the patterns that it has,
says which one it leaves out, and takes it as soon as it can: a topic that others write must not end a fleet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, TopicPartition

from afa import Engine
from afa.errors import AfaError, RecordError
from arcfleet.fleet.arc_writer import refusal
from arcfleet.fleet.arcs import ArcPromise, ArcRecord, ArcTable, Head, Removal, StampedArc, admit, read_arc_record
from worker.errors import WorkerError
from worker.reactions import raise_for, reaction_of_consumer

READ_MAX: Final = 5_000
WAIT_S: Final = 0.05


class ArcFeed:
    """Every record since the start of the topic, in order; partitions take them up where they are."""

    def __init__(
        self,
        reader: Any,
        topic: str,
        judge: Callable[[ArcTable], Engine],
        complain: Callable[[str], None],
        count: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`judge` makes an engine of a table, or raises AfaError; `count` is told how many are left out."""
        self._reader = reader
        self._topic = topic
        self._judge = judge
        self._complain = complain
        self._count = count
        self.records: list[tuple[int, ArcRecord]] = []  # with the offset after each
        self.table = ArcTable()  # of all patterns that this worker can take
        self.refused: dict[str, AfaError] = {}  # by the key of their records: patterns and arcs that are left out
        self.taken_up = 0  # rises when patterns come into the table
        self._waiting = ArcTable()  # of the other patterns
        self._due: set[str] = set()  # those of them of which something came
        # It has the arcs of the table, and never an event: what it does not take no other engine would.
        self._probe: Engine | None = None

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
        self._look()

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
        if self._due and self._probe is not None:
            self._look()
        return came

    def _take(self, message: Any) -> None:
        self.table.offset = message.offset() + 1
        try:
            record = read_arc_record(message.value(), message.key())
            if isinstance(record, ArcPromise) or record.pattern in self.table.heads:
                self._take_up(record)
            elif self._waiting.apply(record):
                self._due.add(record.pattern)
                if not isinstance(record, Removal):
                    self._keep(record)
        except RecordError as error:
            self._complain(f"{self._topic}, offset {message.offset()}: {error}")

    def _take_up(self, record: ArcRecord | Removal) -> None:
        """A record of what runs. Raises RecordError if no engine takes it."""
        if isinstance(record, Removal):
            raise RecordError(f"a tombstone of the pattern `{record.pattern}`, which runs, and goes on running")
        if not self.table.says_new(record):
            return
        if self._probe is not None and not isinstance(record, Head):
            self._try(self._probe, record)
        self.table.apply(record)
        self._keep(record)

    def _try(self, probe: Engine, record: StampedArc | ArcPromise) -> None:
        key = record.written()[0].decode()
        self.refused.pop(key, None)
        try:
            probe.change_arc(record.as_change())
        except RecordError as error:
            self.refused[key] = error
            raise
        finally:
            self._count(len(self.refused))

    def _look(self) -> None:
        """Takes up the patterns that can be taken, of those of which something came."""
        names, engines = sorted(self._due), list[Engine]()
        self._due.clear()
        self.table, refused = admit(self.table, self._waiting, names, lambda table: engines.append(self._judge(table)))
        self._probe = engines[-1] if engines else self._probe
        for name in names:
            self._note(name, refused.get(name))
        self._waiting = self._waiting.without(self.table.heads)
        self.taken_up += len(names) > len(refused)
        self._count(len(self.refused))

    def _note(self, name: str, error: AfaError | None) -> None:
        """What became of a pattern."""
        is_removed = name in self._waiting.removed
        self.refused.pop(name, None)
        if error is None and is_removed:
            self._complain(f"{self._topic}: a tombstone of the pattern `{name}`, which runs, and goes on running")
        elif error is not None and not is_removed:
            self.refused[name] = error
            self._complain(f"left out: {refusal(name, error, self._topic)}")

    def _keep(self, record: ArcRecord) -> None:
        """Arc punctuations come all the time, and of several in a row the last says all."""
        if self.records and isinstance(record, ArcPromise) and isinstance(self.records[-1][1], ArcPromise):
            self.records.pop()
        self.records.append((self.table.offset, record))

    def has_news_for(self, table: ArcTable, taken_up: int) -> bool:
        """Whether a partition with this table, which has looked when so many were taken up, has to look again."""
        return table.offset < self.table.offset or taken_up != self.taken_up

    def news_for(self, table: ArcTable) -> list[ArcRecord]:
        """What a partition with this table has not taken up: whole patterns, also those that were left out when its
        table was here or elsewhere, and then records that came since."""
        missing = [name for name in self.table.heads if name not in table.heads]
        known = self.table.heads.keys() - set(missing)
        later = [
            record
            for after, record in self.records
            if after > table.offset and (isinstance(record, ArcPromise) or record.pattern in known)
        ]
        return [*(record for name in missing for record in self.table.records_of(name)), *later]
