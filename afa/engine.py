"""The engines behind one door: `Engine` takes records and tells changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import wraps
from itertools import pairwise
from threading import Lock
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar

from afa.changes import Changes
from afa.durations import FLEET_UNITS, FleetUnit
from afa.errors import PatternError, RecordError, SnapshotError
from afa.expression.tree import INT_MAX
from afa.native_engine import NativeEngine, native_profile, native_version
from afa.pattern import Pattern
from afa.reading import Fault
from afa.records import Change, EmittedPunctuation, Event
from afa.reference import ReferenceEngine
from afa.reference_batches import feed_reference
from afa.reference_sources import ReferenceGroups
from afa.source import Source, read_source
from afa.source_groups import NativeGroups, Topics, group_patterns, of_all_sources, restore_part
from afa.tape import TapeLine

Known = TypeVar("Known")
Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Native: TypeAlias = NativeEngine | NativeGroups
Backend: TypeAlias = Native | ReferenceEngine | ReferenceGroups
# Tuples, because a union in `isinstance` is made anew with each call.
_NATIVE: Final = (NativeEngine, NativeGroups)
_REFERENCE: Final = (ReferenceEngine, ReferenceGroups)
EngineName = Literal["native", "reference"]
Net = Literal["record", "batch"]
ENGINES: Final[tuple[EngineName, ...]] = ("native", "reference")
NETS: Final[tuple[Net, ...]] = ("record", "batch")

MAX_PROGRAM_ARCS = 100_000
LIMITS = (
    "max_partial_matches_per_key",
    "max_bytes_per_key",
    "max_events_per_key",
    "max_keys",
    "max_program_arcs",
)


def _alone(
    method: Callable[Concatenate[Engine, Given], Answer],
) -> Callable[Concatenate[Engine, Given], Answer]:
    """One call at a time: a batch may come back midway to be checked, and no other must come between."""

    @wraps(method)
    def waits(self: Engine, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        with self._lock:
            return method(self, *args, **kwargs)

    return waits


class Engine:
    """Patterns and the state of all keys. The result is a function of the sets of events and arcs.

    `net` says whether the law holds after every record or after every batch. `source` maps the fields of raw records as
    a source of the fleet document does; without one they have the shape of a tape's line. `sources` are those of
    several topics; times of events and lengths of time are in `unit`. `limits` are bounds by name.
    Without `bindings` the matches of queries are told, but not what they have bound, nor their ids, which say it.
    Threads may share an engine: it does one thing at a time, and lets other threads run meanwhile.
    """

    def __init__(
        self,
        patterns: Iterable[Pattern],
        engine: EngineName = "native",
        net: Net = "record",
        source: Source | Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | None = None,
        *,
        sources: Sequence[Source] | None = None,
        unit: FleetUnit = "ms",
        bindings: bool = True,
    ) -> None:
        loaded = sorted(patterns, key=lambda pattern: pattern.name)
        _check_choice("engine", engine, ENGINES)
        _check_choice("net", net, NETS)
        _check_names(loaded)
        limits = dict(limits or {})
        for name, value in limits.items():
            if name not in LIMITS or type(value) is not int or not 1 <= value <= INT_MAX:
                expected = f"they are positive integers of 64 bits by name: {', '.join(LIMITS)}"
                raise ValueError(f"limits: {name}={value!r}; {expected}")
        most = limits.get("max_program_arcs", MAX_PROGRAM_ARCS)
        if sum(len(pattern.arcs) for pattern in loaded) > most:
            raise PatternError(
                f"more than {most} arcs in all (max_program_arcs)", fix="split the patterns, or raise it"
            )
        read = _read_sources(source, sources, unit)
        groups: dict[Topics, list[Pattern]] = {None: loaded} if not sources else group_patterns(loaded, read)
        if not bindings:
            _check_without_bindings(engine, loaded, groups)
        self._net: Net = net
        self._topics = frozenset(source.topic for source in read) if len(read) > 1 else frozenset[str]()
        self._engine: Backend
        if engine == "reference":
            self._engine = ReferenceGroups(groups, read, unit) if read else ReferenceEngine(loaded)
        else:
            made = {
                topics: NativeEngine(of_topics, read, limits, unit=unit, bindings=bindings, topics=topics)
                for topics, of_topics in groups.items()
            }
            self._engine = made[None] if list(made) == [None] else NativeGroups(made)
        self._fed = 0
        self._lock = Lock()

    @_alone
    def feed(
        self,
        batch: Any,
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int | None] | None = None,
        headers: Sequence[Sequence[tuple[str, bytes | None]] | None] | None = None,
        partitions: Sequence[tuple[str, int]] | None = None,
        offsets: Sequence[int] | None = None,
        stamp: int | None = None,
        replay: bool = False,
        now: int | None = None,
        trusted_until: int | None = None,
    ) -> Changes:
        """Takes a record batch (anything with `__arrow_c_array__`) or raw values; one bad record stops nothing.

        Beside raw values may stand what Kafka keeps beside them, as sequences of the same length; beside a record
        batch `partitions`. Of these there may be one for all records. With a `stamp`, a number never smaller than the
        one before, keys that the batch changes become dirty: see `take_dirty`. Without one it has that of the batch
        before.
        With `replay` raw records, with partitions and offsets, are skipped that their keys hold: see `restore_keys`.
        Of sources with `slack` every record moves the punctuation of its topic and partition, unless its time is after
        `trusted_until`, or more than `max_ahead` after `now`.
        """
        if isinstance(self._engine, _NATIVE):
            self._engine.trust_times(trusted_until, now)
        elif now is not None or trusted_until is not None:
            raise ValueError("the reference engine has no clock; leave out `now` and `trusted_until`")
        if stamp is not None:
            self._snapshots().set_stamp(stamp)
        if hasattr(batch, "__arrow_c_array__"):
            if replay:
                raise ValueError("replay: only raw records can be replayed")
            _refuse_beside_columns(keys=keys, timestamps=timestamps, headers=headers, offsets=offsets)
            self._check_topics(partitions)
            return self._feed_arrow(batch, partitions)
        if replay and (partitions is None or offsets is None):
            raise ValueError("replay: records need partitions and offsets")
        batch = batch if isinstance(batch, list) else list(batch)
        if batch:
            self._check_topics(partitions)
        beside = _beside(
            len(batch), keys=keys, timestamps=timestamps, headers=headers, partitions=partitions, offsets=offsets
        )
        return self._feed_raw(batch, beside | ({"replays": True} if replay else {}))

    def _feed_raw(self, batch: list[Any], beside: dict[str, Any]) -> Changes:
        first = self._fed
        self._fed += len(batch)
        if isinstance(self._engine, _NATIVE):
            return self._engine.feed_raw(batch, beside, first, self._net == "batch")
        if isinstance(self._engine, ReferenceEngine):
            return feed_reference(self._engine, batch, first, self._net)
        return self._engine.feed(batch, beside, first, self._net)

    def _feed_arrow(self, batch: Any, partitions: Sequence[tuple[str, int]] | None) -> Changes:
        if isinstance(self._engine, _NATIVE):
            changes, rows = self._engine.feed_arrow(batch, self._fed, partitions, self._net == "batch")
        elif isinstance(self._engine, ReferenceEngine):
            changes, rows = feed_reference(self._engine, batch, self._fed, self._net), batch.num_rows
        else:
            beside = {} if partitions is None else {"partitions": partitions}
            changes, rows = self._engine.feed(batch, beside, self._fed, self._net), batch.num_rows
        self._fed += rows
        return changes

    def _check_topics(self, partitions: Sequence[tuple[str, int]] | None) -> None:
        """Of several sources each has its mapping, its punctuation and its patterns."""
        if self._topics:
            if partitions is None:
                raise ValueError("partitions: which of the sources a record is of decides how it is read")
            if unknown := {topic for topic, _ in partitions} - self._topics:
                raise ValueError(f"partitions: no source has the topic {min(unknown)!r}")

    @_alone
    def feed_lines(self, lines: Sequence[TapeLine], *, stops_at_bad: bool = False) -> Changes:
        """Takes lines of a tape, whose numbers make the ids of events without one; `bad` says what is wrong."""
        if isinstance(self._engine, ReferenceEngine):
            return feed_reference(self._engine, lines, 0, self._net, stops_at_bad=stops_at_bad)
        if self._topics or not isinstance(self._engine, NativeEngine):
            raise ValueError("a tape does not say which topic its records are of; leave out `sources`")
        return self._engine.feed_lines(lines, self._net == "batch", stops_at_bad=stops_at_bad)

    def punctuate(self, ts: int, when: str | None = None, partition: tuple[str, int] | None = None) -> Changes:
        """As the tape's line; raises RecordError if the condition is not acceptable."""
        record = {"op": "punctuation", "ts": ts} | ({} if when is None else {"when": when})
        return self._feed_one(record, partition)

    def change_arc(self, record: Mapping[str, Any]) -> Changes:
        """As the tape's line (`op` arc, arc-retract or arc-punctuation); raises RecordError if it is bad."""
        return self._feed_one(record)

    @_alone
    def _feed_one(self, record: Mapping[str, Any], partition: tuple[str, int] | None = None) -> Changes:
        line = TapeLine("<record>", self._fed, json.dumps(record).encode())
        read = line.read()
        if isinstance(read, Event):
            raise RecordError("an event is no change of this kind", fix="`feed` takes events")
        if isinstance(self._engine, _NATIVE):
            return self._engine.change(read, line.raw, self._net == "batch", partition)
        if isinstance(self._engine, ReferenceGroups):
            told = self._engine.change(read, self._net, partition)
        else:
            told = feed_reference(self._engine, [line], 0, self._net)
        if told.bad:
            raise RecordError(told.bad[0][1])
        return told

    @_alone
    def patterns(self) -> list[Pattern]:
        """The patterns with their arcs as they are now, in order of names."""
        tables = self._engine.tables.values()
        return [
            replace(table.pattern, arcs=tuple(table.arcs.values()), finals=frozenset(table.finals)) for table in tables
        ]

    @_alone
    def keys(self) -> list[str]:
        """The keys that have state, in order."""
        return self._engine.keys()

    @_alone
    def snapshot(self, key: str) -> bytes:
        """All that is known of a key: what `restore` makes it again, here or elsewhere. Equal states give equal bytes.

        Conditions of punctuations (`when`) belong to no key and are not in it. Raises SnapshotError if nothing is known
        of the key.
        """
        return _known(self._snapshots().snapshot(key), key)

    @_alone
    def restore(self, key: str, data: bytes) -> None:
        """Makes a key what it was when its snapshot was taken; what is known of it now is forgotten, nothing is told.

        The engine has to have the same arcs. Patterns that only the snapshot has are left out; those that only the
        engine has begin with the stored events. Punctuations rise to those of the snapshot. Raises SnapshotError, and
        changes nothing, if the bytes are damaged, of a newer version, of another key, or do not fit the patterns.
        """
        engine = self._snapshots()
        if isinstance(engine, NativeGroups):
            engine.restore(key, bytes(data))
        else:
            restore_part(engine, key, of_all_sources(bytes(data)))

    @_alone
    def take_dirty(self, partition: int, before: int, most: int) -> list[tuple[str, bytes | None]]:
        """Snapshots of keys of a partition that are dirty since a stamp smaller than `before`, the longest dirty first.

        They are clean then. None stands for a key that is back at the start: a snapshot of it that was taken before
        says too much, and a replay from the midst of its records would begin what had ended.
        """
        return self._snapshots().take_dirty(partition, before, most)

    @_alone
    def oldest_dirty(self, partition: int) -> int | None:
        """The smallest stamp since which a key of a partition is dirty."""
        return self._snapshots().oldest_dirty(partition)

    @_alone
    def dirty_keys(self, partition: int) -> int:
        """How many keys of a partition are dirty, at most: some that need no snapshot any more may be among them."""
        return self._snapshots().dirty_keys(partition)

    @_alone
    def restore_keys(
        self,
        partition: int,
        snapshots: Sequence[tuple[str, bytes | None, Sequence[tuple[str, int]]]],
        *,
        tells: bool = False,
    ) -> Changes:
        """As `restore`, for many keys of one partition: key, snapshot, and by topic the first offset it does not hold.

        None instead of a snapshot is what `take_dirty` said of a key that is back at the start. Punctuations stay what
        they are. The keys are clean. The first fault is raised as SnapshotError that names its key: the keys before it
        are restored, it and those after it are not.
        With `tells` the matches that stand of the stored events are told, as an engine has to whose patterns are new.
        """
        engine = self._snapshots()
        if isinstance(engine, NativeEngine):
            snapshots = [(key, None if data is None else of_all_sources(data), held) for key, data, held in snapshots]
        return engine.restore_keys(partition, snapshots, tells)

    @_alone
    def end_replay(self, partition: int) -> None:
        """Forgets which offsets the keys of a partition hold."""
        self._snapshots().end_replay(partition)

    @_alone
    def drop_partition(self, partition: int) -> None:
        """Forgets all that is known of a partition, as if its records had never been fed; it may come back."""
        self._snapshots().drop_partition(partition)

    @_alone
    def state_hash(self, key: str) -> str:
        """Of all that is known of a key: equal for equal sets of records, whatever the order they came in."""
        return _known(self._snapshots().state_hash(key), key)

    @_alone
    def punctuations(self) -> dict[tuple[str, int], int]:
        """What each topic and partition has reached, as far as it has a punctuation."""
        reached = self._snapshots().reached()
        return {(topic, number): ts for topic, number, ts, _ in reached if ts is not None}

    @_alone
    def emitted(self, partition: int, patterns: Collection[str]) -> Changes:
        """The punctuations that these patterns have emitted of a partition, each as if it was told now."""
        known = [(name, ts) for name, number, ts in self._snapshots().emitted() if number == partition]
        return Changes([(0, EmittedPunctuation(name, ts)) for name, ts in known if name in patterns], [], [])

    @_alone
    def places(self) -> list[tuple[str, int]]:
        """The topics and partitions that are known, of snapshots too, whether they have a punctuation or not."""
        return [(topic, number) for topic, number, *_ in self._snapshots().reached() if topic]

    @_alone
    def conditions(self) -> dict[tuple[str, int], list[tuple[int, str]]]:
        """The conditional punctuations (`when`) of each topic and partition that hold: time and condition."""
        found: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for topic, number, ts, when in self._snapshots().conditions():
            found.setdefault((topic, number), []).append((ts, when))
        return found

    @_alone
    def largest(self) -> dict[tuple[str, int], int]:
        """The greatest time of each topic and partition's records, as far as times are believed: see `feed`."""
        return {(topic, number): ts for topic, number, _, ts in self._snapshots().reached() if ts is not None}

    def _snapshots(self) -> Native:
        if isinstance(self._engine, _REFERENCE):
            raise SnapshotError("the reference engine has no snapshots", fix='take engine="native"')
        return self._engine

    @_alone
    def gauges(self) -> dict[str, Any]:
        """What there is now: keys, degraded keys, partial matches by pattern, stored events, bytes; and by partition.

        `state_bytes` is an estimate. A look walks over 65,536 keys at most, the first over all: where there are more,
        what is told by partition and pattern, and of degraded keys, is from the last walk that came to its end.
        """
        return self._snapshots().gauges()

    @_alone
    def stats(self) -> dict[str, Any]:
        """What has been counted since the engine began, and the plan that ran."""
        if isinstance(self._engine, _REFERENCE):
            return asdict(self._engine.counters) | {"degraded_keys": 0, "plan": "reference"}
        return self._engine.counters() | {"plan": "eager"}


def _check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: {value!r}; it is one of {', '.join(allowed)}")


def _check_names(patterns: Sequence[Pattern]) -> None:
    """They are in order of names: changes and arc records say which pattern they are of by its name."""
    for one, other in pairwise(patterns):
        if one.name == other.name:
            raise PatternError(f"two patterns are named `{one.name}`", fix="give one of them another name")


def _refuse_beside_columns(**columns: Sequence[Any] | None) -> None:
    for name, column in columns.items():
        if column is not None:
            raise ValueError(f"{name}: a record batch has columns for that; only `partitions` may stand beside it")


def _read_sources(
    source: Source | Mapping[str, Any] | None, sources: Sequence[Source] | None, unit: FleetUnit
) -> list[Source]:
    _check_choice("unit", unit, FLEET_UNITS)
    if source is not None and sources is not None:
        raise ValueError("`source` is for one, `sources` for several; leave out one of them")
    if isinstance(source, Mapping):
        try:
            source = read_source(dict(source), topic="records")
        except Fault as fault:
            place = ".".join(["source", *map(str, fault.path)])
            raise ValueError(f"{place}: {fault.what}" + (f"; {fault.fix}" if fault.fix else "")) from None
    return list(sources or []) if source is None else [source]


def _beside(records: int, **columns: Sequence[Any] | None) -> dict[str, Any]:
    """The columns beside raw values that there are."""
    beside = {name: column for name, column in columns.items() if column is not None}
    for name, column in beside.items():
        if len(column) != records and not (name == "partitions" and len(column) == 1):
            raise ValueError(f"{name}: {len(column)} entries for {records} records")
    return beside


def _check_without_bindings(engine: EngineName, patterns: Sequence[Pattern], groups: Mapping[Topics, Any]) -> None:
    if len(groups) > 1:
        raise ValueError("patterns that see different sources are told with bindings; leave out `bindings=False`")
    if engine == "reference":
        raise ValueError("the reference engine always finds what matches bind; leave out `bindings=False`")
    for pattern in patterns:
        if pattern.query is not None and pattern.query.compressed:
            raise ValueError(
                f"the compressed query `{pattern.name}` tells graphs of bindings; leave out `bindings=False`"
            )


def _known(found: Known | None, key: str) -> Known:
    if found is None:
        raise SnapshotError(f"nothing is known of the key {key!r}", fix="`keys()` lists those with state")
    return found


__all__ = ["Change", "Changes", "Engine", "native_profile", "native_version"]
