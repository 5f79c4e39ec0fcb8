"""The native engine's half of the facade: patterns packed for it, and what it asks about checked here.

Only this module imports `afa._native`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgpack

from afa import _native
from afa.arc_table import ArcTable, table_of
from afa.arcs import read_expression
from afa.changes import Changes, ChangesWithoutBindings, NativeChanges
from afa.durations import FleetUnit, parse_duration
from afa.errors import RecordError, SnapshotError
from afa.expression import Scope, Type, pack
from afa.expression.tree import INT_MAX, INT_MIN
from afa.pattern import Arc, CompiledQuery, CountWindow, Lifetime, Pattern, Time, TimeWindow
from afa.reading import Fault
from afa.records import ArcChange, ArcPunctuation, ArcRetraction, Punctuation, Record
from afa.source import Source, SourcePunctuation, pack_source
from afa.tape import TapeLine


def native_version() -> str:
    """The version that the native engine was built as; equal to the wheel's."""
    return _native.version()


def native_profile() -> str:
    """`release`, or `debug` for a build that no benchmark should measure."""
    return _native.build_profile()


@dataclass
class _Beside:
    """What stands beside raw values; the native module reads these attributes."""

    keys: Sequence[bytes | None] | None = None
    timestamps: Sequence[int | None] | None = None
    headers: Sequence[Sequence[tuple[str, bytes | None]] | None] | None = None
    partitions: Sequence[tuple[str, int]] | None = None
    offsets: Sequence[int] | None = None
    numbers: Sequence[int] | None = None
    replays: bool = False


class NativeEngine:
    """Feeds the native engine. Arc changes and conditions whose texts it has not seen come back to be checked."""

    def __init__(
        self,
        patterns: list[Pattern],
        sources: Sequence[Source],
        limits: dict[str, int],
        *,
        unit: FleetUnit = "ms",
        bindings: bool = True,
        topics: Collection[str] | None = None,
    ) -> None:
        """Of several sources only those of these topics are read."""
        self.patterns = patterns
        self.sources = sources
        packed = [_packed_pattern(pattern, bindings) for pattern in patterns]
        has_queries = any(pattern.query for pattern in patterns)
        self._kind = ChangesWithoutBindings if has_queries and not bindings else NativeChanges
        self.native = _native.NativeEngine(packed, _mapping(sources, unit), list(limits.items()))
        self._name_topics(unit, topics)
        self._trusted: tuple[int, int | None] = (INT_MAX, None)
        self._promise(unit)
        self._finals = {pattern.name: set(pattern.finals) for pattern in patterns}
        self._registers = {pattern.name: _told_names(pattern) for pattern in patterns}
        # Arcs whose text is all that there is to say of them, by the number of their body; and those that have more to
        # them (epsilon, final, the least time), by their id.
        self._bodies: dict[tuple[int, int], Arc] = {}
        self._faults: dict[int, Fault] = {}  # of the batch that is being fed
        self._special: dict[tuple[int, str], Arc] = {}
        for number, pattern in enumerate(patterns):
            bodies = {arc_id: body for arc_id, body, _, _ in self.native.arcs(number)}
            for arc in pattern.arcs:
                self._learn(number, bodies[arc.id], arc)

    def _name_topics(self, unit: FleetUnit, topics: Collection[str] | None) -> None:
        """One source is that of all records, whatever their topic; of several each has its own."""
        for source in self.sources if len(self.sources) > 1 else ():
            is_read = topics is None or source.topic in topics
            self.native.name_topic(source.topic, pack_source(source, unit) if is_read else None)

    def _promise(self, unit: FleetUnit) -> None:
        if self.sources:
            self.native.take_only_events()
        for source in self.sources:
            slack, ahead = _lengths(source.punctuation, unit)
            # Records without a partition come from the one source that there is.
            for topic in [source.topic, ""] if len(self.sources) == 1 else [source.topic]:
                self.native.promise(topic, slack, ahead, source.punctuation.in_band is False)

    def trust_times(self, until: int | None, now: int | None) -> None:
        trusted = (INT_MAX if until is None else until, now)
        if trusted != self._trusted:
            self.native.trust_times(*trusted)
            self._trusted = trusted

    def reached(self) -> list[tuple[str, int, int | None, int | None]]:
        return self.native.reached()

    def emitted(self) -> list[tuple[str, int, int]]:
        return self.native.emitted()

    def conditions(self) -> list[tuple[str, int, int, str]]:
        return self.native.conditions()

    def _learn(self, pattern: int, body: int, arc: Arc) -> None:
        self._special.pop((pattern, arc.id), None)
        if arc.epsilon or arc.final or INT_MIN in arc.lifetime.as_pair():
            self._special[pattern, arc.id] = arc
        self._bodies[pattern, body] = arc  # a number that no arc used any more may be that of another body now

    @property
    def tables(self) -> dict[str, ArcTable]:
        """The arcs of all patterns as they are now."""
        return {pattern.name: self._table(number) for number, pattern in enumerate(self.patterns)}

    def _table(self, number: int) -> ArcTable:
        table = ArcTable(self.patterns[number])
        table.finals = self._finals[table.pattern.name]
        table.arcs = {}
        for arc_id, body, le, re in self.native.arcs(number):
            lifetime = Lifetime(-math.inf if le == INT_MIN else le, math.inf if re is None else re)
            known = self._special.get((number, arc_id))
            if known is None:
                known = self._bodies[number, body]
                if known.id != arc_id or known.lifetime != lifetime or known.final or known.epsilon:
                    known = replace(known, id=arc_id, lifetime=lifetime, final=False, epsilon=False)
            table.arcs[arc_id] = known
        return table

    def feed_arrow(
        self, batch: Any, first: int, partitions: Sequence[tuple[str, int]] | None, net_per_batch: bool
    ) -> tuple[Changes, int]:
        """What a record batch leads to, and the number of its rows."""
        native = self.native
        try:
            rows, told = native.feed_arrow(batch, first, partitions, net_per_batch)
        except (TypeError, ValueError) as error:
            raise RecordError(str(error), fix="see the columns in the engine page") from None
        while isinstance(told, int):
            text = native.arrow_arc(told)
            self._answer(told, TapeLine("<batch>", told, (text or "{}").encode()))
            told = native.feed_arrow_from(told + 1)
        return self._changes(told), rows

    def feed_raw(self, values: list[bytes | None], beside: dict[str, Any], first: int, net_per_batch: bool) -> Changes:
        """Raw values, with what stands beside them."""
        lines = _Values(values, first)
        told = self._feed(lines, values, _Beside(**beside) if beside else None, first, net_per_batch)
        if not self.sources and told.bad:
            told.bad = [(index, _reason(lines.line(index), reason)) for index, reason in told.bad]
        return told

    def feed_lines(self, lines: Sequence[TapeLine], net_per_batch: bool, *, stops_at_bad: bool = False) -> Changes:
        """Lines of a tape, in the tape's shape."""
        beside = _Beside(numbers=[line.number for line in lines])
        told = self._feed(
            _Lines(lines), [line.raw for line in lines], beside, 0, net_per_batch, stops_at_bad=stops_at_bad
        )
        told.bad = [(index, _reason(lines[index], reason)) for index, reason in told.bad]
        return told

    def change(self, record: Record, raw: bytes, net_per_batch: bool, partition: tuple[str, int] | None) -> Changes:
        """A punctuation or an arc change, whatever records look like. Raises RecordError if it is bad."""
        native = self.native
        native.begin(net_per_batch, isinstance(record, Punctuation | ArcPunctuation))
        try:
            if isinstance(record, ArcPunctuation):
                native.punctuate_arcs(record.ts)
            elif isinstance(record, Punctuation):
                native.punctuate(record.ts, partition, None if record.when is None else _condition(record.when))
            elif not native.change_arc(raw) and (late := self._answer_arc(record, raw)):
                native.note_late(0, late)
        except Fault as fault:
            native.finish()
            raise RecordError(fault.what, fix=fault.fix) from None
        except RecordError:
            native.finish()
            raise
        return self._changes(native.finish())

    def _feed(
        self,
        lines: _Lines | _Values,
        values: list[Any],
        beside: _Beside | None,
        first: int,
        net_per_batch: bool,
        *,
        stops_at_bad: bool = False,
    ) -> Changes:
        told = self.native.feed_raw(values, first, beside, net_per_batch, stops_at_bad)
        while isinstance(told, int):
            self._answer(told, lines.line(told))
            told = self.native.feed_raw_from(told + 1)
        return self._changes(told)

    def _changes(self, told: _native.NativeChanges) -> Changes:
        changes: Changes = self._kind(told, self._registers)
        if self._faults:
            changes.faults, self._faults = self._faults, {}
        return changes

    def _answer(self, index: int, line: TapeLine) -> None:
        """Checks a record that names texts the native engine has not seen."""
        try:
            condition = self.native.condition()
            if condition is not None:
                self.native.punctuate_when(_condition(condition)[0])
            elif late := self._answer_arc(line.read(), line.raw):
                self.native.note_late(index, late)
        except Fault as fault:
            self._faults[index] = fault
            self.native.note_bad(index, fault.what)
        except RecordError as error:
            self.native.note_bad(index, error.what)

    def _answer_arc(self, record: Record, raw: bytes) -> str | None:
        """Applies an arc change, or says why it comes too late. Raises Fault if it is bad."""
        if not isinstance(record, ArcChange | ArcRetraction):
            raise Fault(("op",), "an arc change needs `op` arc or arc-retract in its JSON", "")
        names = {pattern.name: number for number, pattern in enumerate(self.patterns)}
        table = self._table(names[record.pattern]) if record.pattern in names else table_of(self.tables, record)
        number = names[record.pattern]
        bound = self.native.arc_bound()
        limit = -math.inf if bound is None else bound
        if isinstance(record, ArcRetraction):
            late = table.retract(record, limit)
            if late is None:
                self.native.remove_arc(number, record.arc["id"])
                self._special.pop((number, record.arc["id"]), None)
            return late
        is_new = record.arc.get("id") not in table.arcs
        late = table.change(record, limit)
        if late is not None:
            return late
        if is_new and self.native.too_many_arcs():
            raise Fault(
                ("arc",), "too many arcs (max_program_arcs)", "end arcs that are not needed, or raise the limit"
            )
        arc = table.arcs[record.arc["id"]]
        self._learn(number, self.native.set_arc(number, _pack(_arc_fields(arc)), raw), arc)
        return None

    def keys(self) -> list[str]:
        return self.native.keys()

    def snapshot(self, key: str) -> bytes | None:
        try:
            return self.native.snapshot(key)
        except ValueError as error:
            raise SnapshotError(str(error)) from None

    def restore(self, key: str, data: bytes) -> None:
        try:
            self.native.restore(key, data)
        except ValueError as error:
            raise SnapshotError(str(error)) from None

    def restore_keys(
        self, partition: int, snapshots: Sequence[tuple[str, bytes | None, Sequence[tuple[str, int]]]], tells: bool
    ) -> Changes:
        try:
            told = self.native.restore_keys(partition, snapshots, tells)
        except ValueError as error:
            raise SnapshotError(str(error)) from None
        return self._changes(told)

    def set_stamp(self, stamp: int) -> None:
        self.native.set_stamp(stamp)

    def end_replay(self, partition: int) -> None:
        self.native.end_replay(partition)

    def drop_partition(self, partition: int) -> None:
        self.native.drop_partition(partition)

    def take_dirty(self, partition: int, before: int, most: int) -> list[tuple[str, bytes | None]]:
        return self.native.take_dirty(partition, before, most)

    def oldest_dirty(self, partition: int) -> int | None:
        return self.native.oldest_dirty(partition)

    def dirty_keys(self, partition: int) -> int:
        return self.native.dirty_keys(partition)

    def state_hash(self, key: str) -> str | None:
        return self.native.state_hash(key)

    def gauges(self) -> dict[str, Any]:
        keys, events, state_bytes, found = self.native.gauges()
        names = [pattern.name for pattern in self.patterns]
        partitions: dict[int, dict[str, Any]] = {
            number: {
                "keys": known,
                "degraded_keys": degraded,
                "partial_matches": dict(zip(names, counts, strict=True)),
            }
            for number, known, degraded, counts in found
        }
        counts = [of_partition["partial_matches"] for of_partition in partitions.values()]
        return {
            "keys": keys,
            "degraded_keys": sum(of_partition["degraded_keys"] for of_partition in partitions.values()),
            "partial_matches": {name: sum(count[name] for count in counts) for name in names},
            "events": events,
            "state_bytes": state_bytes,
            "partitions": partitions,
        }

    def counters(self) -> dict[str, int]:
        return self.native.counters()


def _mapping(sources: Sequence[Source], unit: FleetUnit) -> bytes:
    return pack_source(sources[0] if sources else None, unit)


def _lengths(punctuation: SourcePunctuation, unit: FleetUnit) -> tuple[int | None, int | None]:
    """Slack, and how far ahead of the clock times are believed."""
    return _length(punctuation.slack, unit), _length(punctuation.trusted_ahead, unit)


def _length(text: str | None, unit: FleetUnit) -> int | None:
    return None if text is None else parse_duration(text, unit)


def _condition(text: str) -> tuple[bytes, str]:
    return pack(read_expression(text, ("when",), Scope(), Type.BOOL)), text


def _told_names(pattern: Pattern) -> list[str]:
    """The names of what a match tells: registers, or what a query returns."""
    if pattern.query is not None:
        return [name for name, _ in pattern.query.returns]
    return [register.name for register in pattern.registers]


class _Lines:
    def __init__(self, lines: Sequence[TapeLine]) -> None:
        self.lines = lines

    def line(self, index: int) -> TapeLine:
        return self.lines[index]


class _Values:
    def __init__(self, values: Sequence[bytes | None], first: int) -> None:
        self.values = values
        self.first = first

    def line(self, index: int) -> TapeLine:
        return TapeLine("<records>", self.first + index, bytes(self.values[index] or b""))


def _reason(line: TapeLine, reason: str) -> str:
    """Python's own words for what is wrong with a record, where it finds something."""
    try:
        line.read()
    except RecordError as error:
        return error.what
    return reason


def _bound(time: Time) -> int | None:
    return None if isinstance(time, float) else time


def _packed_pattern(pattern: Pattern, bindings: bool) -> bytes:
    """As `afa/native/python/src/pattern.rs` reads it."""
    match pattern.window:
        case TimeWindow(length=length):
            window: list[Any] | None = ["time", length]
        case CountWindow(events=events):
            window = ["events", events]
        case None:
            window = None
    return _pack(
        [
            pattern.name,
            window,
            [[register.name, int(register.type), register.initial] for register in pattern.registers],
            pattern.start,
            sorted(pattern.finals),
            pattern.key_field,
            _bound(pattern.speculation),
            pattern.hold_output,
            pattern.gap_free,
            pattern.output,
            _query_fields(pattern.query, bindings),
            [_arc_fields(arc) for arc in pattern.arcs],
        ]
    )


def _arc_fields(arc: Arc) -> list[Any]:
    transfer = [[name, pack(expression)] for name, expression in arc.transfer]
    ends = (_bound(arc.lifetime.le), _bound(arc.lifetime.re))
    flags = (arc.epsilon, arc.final, arc.binds)
    return [arc.id, arc.source, arc.target, pack(arc.fence), transfer, *flags, *ends, arc.fence.text]


def _query_fields(query: CompiledQuery | None, bindings: bool) -> list[Any] | None:
    if query is None:
        return None
    return [
        query.variables,
        query.partition,
        [[name, pack(expression)] for name, expression in query.returns],
        [pack(occurs) for occurs in query.leading],
        [pack(occurs) for occurs in query.trailing],
        query.absence == "speculative",
        query.timeouts,
        query.compressed,
        query.components,
        bindings,
    ]


def _pack(value: Any) -> bytes:
    packed = msgpack.packb(value)
    assert isinstance(packed, bytes)
    return packed
