"""The reference engine on raw records of sources: one engine for each set of topics that patterns see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from afa.arc_table import ArcTable
from afa.changes import Changes
from afa.durations import FleetUnit, parse_duration
from afa.errors import RecordError
from afa.pattern import Pattern
from afa.records import ArcChange, ArcPunctuation, ArcRetraction, Punctuation, Record
from afa.reference import ReferenceEngine
from afa.reference_batches import Item, feed_items, rows_of
from afa.source import Source
from afa.source_groups import JoinedChanges, Topics
from afa.source_reading import RawRecord, read_raw

_NO_EVENT: Final = "a source brings events, no changes of patterns"
_BESIDE: Final = {"key": "keys", "timestamp": "timestamps", "headers": "headers"}


class ReferenceGroups:
    """Reference engines side by side, in the place of one. All records are of one partition."""

    def __init__(self, groups: Mapping[Topics, Sequence[Pattern]], sources: Sequence[Source], unit: FleetUnit) -> None:
        self._sources = {source.topic: source for source in sources}
        self._unit = unit
        self._partitions: set[int] = set()
        slacks = {source.topic: _slack(source, unit) for source in sources}
        self._engines = [
            ReferenceEngine(patterns, {topic: slacks[topic] for topic in topics or slacks})
            for topics, patterns in groups.items()
        ]
        self.counters = self._engines[0].counters

    @property
    def tables(self) -> dict[str, ArcTable]:
        tables = {name: table for engine in self._engines for name, table in engine.tables.items()}
        return dict(sorted(tables.items()))

    def keys(self) -> list[str]:
        return sorted(set().union(*(engine.keys() for engine in self._engines)))

    def feed(self, batch: Any, beside: Mapping[str, Sequence[Any]], first: int, net: str) -> Changes:
        """A record batch, or raw values with what stands beside them."""
        items = list(self._items(batch, beside, first))
        last = max(0, len(items) - 1)
        parts = []
        for engine in self._engines:
            read = [item for item in items if item.topic in engine.topics]
            parts.append(feed_items(engine, read, net, settles_at=last))
        return JoinedChanges(parts)

    def change(self, record: Record, net: str, partition: tuple[str, int] | None) -> Changes:
        """A punctuation or an arc change."""
        engines, topic = self._engines, self._topic(partition)
        if isinstance(record, ArcChange | ArcRetraction):
            engines = [engine for engine in engines if record.pattern in engine.tables] or engines[:1]
        elif isinstance(record, Punctuation):
            engines = [engine for engine in engines if topic in engine.topics]
        return JoinedChanges([feed_items(engine, [Item(0, topic, lambda: record)], net) for engine in engines])

    def _topic(self, partition: tuple[str, int] | None) -> str:
        """Records without a partition come from the one source that there is."""
        if partition is not None:
            self._partitions.add(partition[1])
            if len(self._partitions) > 1:
                raise ValueError("the reference engine takes records of one partition only")
        return partition[0] if partition is not None and len(self._sources) > 1 else next(iter(self._sources))

    def _items(self, batch: Any, beside: Mapping[str, Sequence[Any]], first: int) -> Iterator[Item]:
        rows = list(rows_of(batch, first)) if hasattr(batch, "__arrow_c_array__") else batch
        partitions = beside.get("partitions") or [None] * len(rows)
        if len(partitions) == 1:
            partitions = [*partitions] * len(rows)
        for index, row in enumerate(rows):
            topic = self._topic(partitions[index])
            source = self._sources[topic]
            if callable(row):
                yield Item(index, topic, partial(_event, row, source))
                continue
            columns = {name: beside[names][index] for name, names in _BESIDE.items() if names in beside}
            place = partitions[index]
            if place is not None and "offsets" in beside:
                columns["position"] = (*place, beside["offsets"][index])
            record = RawRecord(row, first + index, **columns)
            yield Item(index, topic, partial(_event, partial(read_raw, record, source, self._unit), source))


def _event(read: Callable[[], Record], source: Source) -> Record:
    """What a source may bring. Raises RecordError, Fault."""
    record = read()
    if isinstance(record, ArcChange | ArcRetraction | ArcPunctuation):
        raise RecordError(_NO_EVENT)
    if isinstance(record, Punctuation) and source.punctuation.in_band is False:
        raise RecordError("this source has no punctuations (`in_band`)")
    return record


def _slack(source: Source, unit: FleetUnit) -> int | None:
    slack = source.punctuation.slack
    return None if slack is None else parse_duration(slack, unit)
