"""Partitions: records and markers in the order of their offsets, and who may see which."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum

Place = tuple[str, int]  # topic and partition
Header = tuple[str, bytes | None]


class Fate(Enum):
    """What became of the transaction of a record; without one it is committed."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class Record:
    """A record, or the marker that ends a transaction, which nobody is given."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[Header] | None
    fate: Fate = Fate.COMMITTED
    is_marker: bool = False


@dataclass
class PartitionLog:
    """One partition."""

    records: list[Record] = field(default_factory=list)
    end: int = 0  # the offset of the next record
    low: int = 0
    open: dict[int, list[Record]] = field(default_factory=dict)  # by producer id

    @property
    def stable_end(self) -> int:
        """The last stable offset: what lies behind it waits for an open transaction."""
        return min((records[0].offset for records in self.open.values()), default=self.end)

    def append(self, record: Record, producer_id: int | None = None) -> None:
        """Adds a record at the end; with a producer id it belongs to that one's transaction."""
        record.offset = self.end
        self.end += 1
        self.records.append(record)
        if producer_id is not None:
            record.fate = Fate.OPEN
            self.open.setdefault(producer_id, []).append(record)

    def mark(self, producer_id: int, timestamp_ms: int, *, commits: bool) -> None:
        """The marker that ends a transaction; it takes an offset."""
        for record in self.open.pop(producer_id, ()):
            record.fate = Fate.COMMITTED if commits else Fate.ABORTED
        self.append(Record(0, timestamp_ms, None, None, None, is_marker=True))

    def read(self, position: int, most: int, *, committed_only: bool) -> tuple[list[Record], int]:
        """Records from a position on, and the position after them: behind what nobody is given, too."""
        end = self.stable_end if committed_only else self.end
        found: list[Record] = []
        for record in self.records[self._index(position) :]:
            if record.offset >= end or len(found) == most:
                return found, max(position, min(record.offset, end))
            if not record.is_marker and not (committed_only and record.fate is Fate.ABORTED):
                found.append(record)
        return found, max(position, end)

    def first_at(self, timestamp_ms: int) -> int | None:
        """The offset of the first record that is not older."""
        return next(
            (record.offset for record in self.records if not record.is_marker and record.timestamp_ms >= timestamp_ms),
            None,
        )

    def compact(self, *, tombstones_too: bool = False) -> None:
        """Keeps of each key the last committed record; what lies behind the last stable offset stays."""
        stable = self.stable_end
        last = {record.key: record.offset for record in self._settled(stable)}
        kept = []
        for record in self.records:
            is_last = last.get(record.key) == record.offset and not record.is_marker
            is_kept_value = record.value is not None or not tombstones_too
            if record.offset >= stable or record.offset == self.end - 1 or (is_last and is_kept_value):
                kept.append(record)
        self.records = kept

    def delete_before(self, offset: int) -> None:
        """What retention does."""
        self.low = offset
        self.records = self.records[self._index(offset) :]

    def _settled(self, stable: int) -> list[Record]:
        return [
            record
            for record in self.records
            if record.offset < stable and record.fate is Fate.COMMITTED and not record.is_marker
        ]

    def _index(self, offset: int) -> int:
        return bisect_left(self.records, offset, key=lambda record: record.offset)
