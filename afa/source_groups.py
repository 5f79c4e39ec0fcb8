"""Patterns that name `sources`: those that see the same topics share an engine, which never gets records of others.

So a pattern behaves as if what it does not see had never come: revisions, windows in events, punctuations and late
records are those of its own topics. All groups get every batch; records of foreign topics cost nothing there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import msgpack

from afa.arc_table import ArcTable
from afa.changes import Changes, Encoded, Told
from afa.errors import PatternError, SnapshotError, did_you_mean
from afa.native_engine import NativeEngine
from afa.pattern import Pattern
from afa.records import ArcChange, ArcRetraction, EmittedPunctuation, Record, Timeout
from afa.source import Source

Topics: TypeAlias = tuple[str, ...] | None  # None: all of them
MAGIC: Final = b"afa by sources 1\n"  # before the parts of a snapshot


def group_patterns(patterns: Iterable[Pattern], sources: Sequence[Source]) -> dict[Topics, list[Pattern]]:
    """Patterns by the topics that they see. Raises PatternError if one names a topic that is no source."""
    known = sorted(source.topic for source in sources)
    groups: dict[Topics, list[Pattern]] = {}
    for pattern in patterns:
        named = tuple(sorted(pattern.sources or known))
        for topic in named:
            if topic not in known:
                raise PatternError(
                    f"the pattern `{pattern.name}` names the source `{topic}`, which is none of the fleet's",
                    fix=did_you_mean(topic, known, f"write some of {', '.join(known)}"),
                )
        groups.setdefault(None if named == tuple(known) else named, []).append(pattern)
    return dict(sorted(groups.items(), key=lambda group: group[0] or ())) or {None: []}


class JoinedChanges(Changes):
    """What a batch led to in several groups, as one engine would tell it."""

    def __init__(self, parts: Sequence[Changes]) -> None:
        self._telling = [part for part in parts if len(part)]
        self._parts = parts
        bad = sorted({index: reason for part in reversed(parts) for index, reason in part.bad}.items())
        late = sorted({index: reason for part in reversed(parts) for index, reason in part.late}.items())
        self._order: list[tuple[int, int]] | None = None
        super().__init__([], bad, late)
        self.faults = {index: fault for part in parts for index, fault in part.faults.items()}

    @property
    def told(self) -> list[Told]:
        return self._pick([part.told for part in self._telling])

    @told.setter
    def told(self, told: list[Told]) -> None:
        """Nothing of its own."""

    def __len__(self) -> int:
        return sum(len(part) for part in self._telling)

    def encoded(self) -> list[Encoded]:
        return self._pick([part.encoded() for part in self._telling])

    @property
    def partitions(self) -> list[int]:
        return self._pick([part.partitions for part in self._telling])

    def _pick(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Of each part, what it says of its changes, in their order."""
        if len(columns) < 2:
            return list(columns[0]) if columns else []
        if self._order is None:
            keys = [
                (_place(told), part, at)
                for part, changes in enumerate(self._telling)
                for at, told in enumerate(changes.told)
            ]
            self._order = [(part, at) for _, part, at in sorted(keys)]
        return [columns[part][at] for part, at in self._order]


def _place(told: Told) -> tuple[Any, ...]:
    """Where a change stands: by record; retracts, inserts, timeouts, and last the punctuations."""
    index, change = told
    if isinstance(change, EmittedPunctuation):
        return index, 3, (change.pattern,)
    if isinstance(change, Timeout):
        return index, 2, change.order
    return index, int(change.op == "insert"), change.order


class NativeGroups:
    """Native engines side by side, in the place of one."""

    def __init__(self, groups: dict[Topics, NativeEngine]) -> None:
        self.groups = groups

    @property
    def _engines(self) -> list[NativeEngine]:
        return list(self.groups.values())

    def trust_times(self, until: int | None, now: int | None) -> None:
        for engine in self._engines:
            engine.trust_times(until, now)

    def reached(self) -> list[tuple[str, int, int | None, int | None]]:
        return sorted({place[:2]: place for engine in self._engines for place in engine.reached()}.values())

    def emitted(self) -> list[tuple[str, int, int]]:
        return sorted(place for engine in self._engines for place in engine.emitted())

    def conditions(self) -> list[tuple[str, int, int, str]]:
        return sorted(set().union(*(engine.conditions() for engine in self._engines)))

    @property
    def tables(self) -> dict[str, ArcTable]:
        tables = {name: table for engine in self._engines for name, table in engine.tables.items()}
        return dict(sorted(tables.items()))

    def feed_arrow(
        self, batch: Any, first: int, partitions: Sequence[tuple[str, int]] | None, net_per_batch: bool
    ) -> tuple[Changes, int]:
        told = [engine.feed_arrow(batch, first, partitions, net_per_batch) for engine in self._engines]
        return JoinedChanges([changes for changes, _ in told]), told[0][1]

    def feed_raw(self, values: list[bytes | None], beside: dict[str, Any], first: int, net_per_batch: bool) -> Changes:
        return JoinedChanges([engine.feed_raw(values, beside, first, net_per_batch) for engine in self._engines])

    def change(self, record: Record, raw: bytes, net_per_batch: bool, partition: tuple[str, int] | None) -> Changes:
        engines = self._engines
        if isinstance(record, ArcChange | ArcRetraction):
            of_pattern = [engine for engine in engines if record.pattern in engine.tables]
            engines = of_pattern or engines[:1]  # which says that there is no such pattern
        return JoinedChanges([engine.change(record, raw, net_per_batch, partition) for engine in engines])

    # State -----------------------------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        return sorted(set().union(*(engine.keys() for engine in self._engines)))

    def snapshot(self, key: str) -> bytes | None:
        return _joined({topics: engine.snapshot(key) for topics, engine in self.groups.items()})

    def restore(self, key: str, data: bytes) -> None:
        parts = split_snapshot(data)
        for topics, engine in self.groups.items():
            restore_part(engine, key, parts.get(topics))

    def restore_keys(
        self, partition: int, snapshots: Sequence[tuple[str, bytes | None, Sequence[tuple[str, int]]]], tells: bool
    ) -> Changes:
        parts = [(key, {} if data is None else split_snapshot(data), held) for key, data, held in snapshots]
        told = []
        for topics, engine in self.groups.items():
            of_group = [(key, of_key.get(topics), held) for key, of_key, held in parts]
            told.append(engine.restore_keys(partition, of_group, tells))
        return JoinedChanges(told)

    def set_stamp(self, stamp: int) -> None:
        for engine in self._engines:
            engine.set_stamp(stamp)

    def end_replay(self, partition: int) -> None:
        for engine in self._engines:
            engine.end_replay(partition)

    def drop_partition(self, partition: int) -> None:
        for engine in self._engines:
            engine.drop_partition(partition)

    def take_dirty(self, partition: int, before: int, most: int) -> list[tuple[str, bytes | None]]:
        """Of a key that is dirty in one group, what all groups know: a snapshot is of the whole key."""
        parts: dict[str, dict[Topics, bytes | None]] = {}
        for topics, engine in self.groups.items():
            for key, data in engine.take_dirty(partition, before, max(0, most - len(parts))):
                parts.setdefault(key, {})[topics] = data
        for key, of_key in parts.items():
            for topics, engine in self.groups.items():
                if topics not in of_key:
                    of_key[topics] = engine.snapshot(key)
        return [(key, _joined(of_key)) for key, of_key in parts.items()]

    def oldest_dirty(self, partition: int) -> int | None:
        stamps = [engine.oldest_dirty(partition) for engine in self._engines]
        return min((stamp for stamp in stamps if stamp is not None), default=None)

    def dirty_keys(self, partition: int) -> int:
        return sum(engine.dirty_keys(partition) for engine in self._engines)

    def state_hash(self, key: str) -> str | None:
        hashes = [(topics, engine.state_hash(key)) for topics, engine in self.groups.items()]
        if not any(known for _, known in hashes):
            return None
        return blake2b(msgpack.packb(hashes), digest_size=16).hexdigest()

    # Numbers ---------------------------------------------------------------------------------------------------------

    def gauges(self) -> dict[str, Any]:
        return _summed([engine.gauges() for engine in self._engines])

    def counters(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for engine in self._engines:
            total.update(engine.counters())
        return dict(total)


def _joined(parts: dict[Topics, bytes | None]) -> bytes | None:
    """Snapshots of one key by group, as one; those of all sources alone are as they would be without groups."""
    known = [(topics, parts[topics]) for topics in sorted(parts, key=lambda topics: topics or ()) if parts[topics]]
    if not known:
        return None
    if [topics for topics, _ in known] == [None]:
        return known[0][1]
    packed = msgpack.packb(known)
    assert isinstance(packed, bytes)
    return MAGIC + packed


def split_snapshot(data: bytes) -> dict[Topics, bytes]:
    """The snapshots in one, by group. Raises SnapshotError."""
    if not data.startswith(MAGIC):
        return {None: data}
    try:
        parts = msgpack.unpackb(data[len(MAGIC) :])
        return {None if topics is None else tuple(topics): bytes(part) for topics, part in parts}
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise SnapshotError(f"a damaged snapshot: {error}") from None


def regrouped(data: bytes, was: tuple[str, ...], now: tuple[str, ...], of_all: tuple[str, ...]) -> bytes | None:
    """A snapshot of when all topics were `was`, for engines of which all are `now`; the engine of all goes on with the
    part of the topics `of_all`."""
    parts = {was if topics is None else topics: part for topics, part in split_snapshot(data).items()}
    named: dict[Topics, bytes | None] = {topics: part for topics, part in parts.items() if topics != now}
    return _joined(named | {None: parts.get(of_all)})


def restore_part(engine: NativeEngine, key: str, part: bytes | None) -> None:
    """Makes a key of one group what a snapshot says; none: nothing is known of it there."""
    if part is not None:
        engine.restore(key, part)
        return
    for partition in engine.gauges()["partitions"]:
        engine.restore_keys(partition, [(key, None, [])], False)


def of_all_sources(data: bytes) -> bytes | None:
    """What an engine without groups has to know of a snapshot."""
    return split_snapshot(data).get(None) if data.startswith(MAGIC) else data


def _summed(gauges: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Numbers by name added up, also those further inside."""
    total: dict[Any, Any] = {}
    for gauge in gauges:
        for name, value in gauge.items():
            known = total.get(name)
            if known is None:
                total[name] = value
            else:
                total[name] = _summed([known, value]) if isinstance(value, dict) else known + value
    return total
