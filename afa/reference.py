"""The reference engine: the semantics page, executable. Slow, obvious, short.

It keeps the *set* of records, computes from it what the matches are, and reports the difference to what they were
before. Nothing is incremental, so arrival order cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from afa.arc_table import ArcTable, table_of
from afa.arcs import read_expression
from afa.evaluate import evaluate, holds, read_field, type_of
from afa.expression import Expression, Scope, Type, Value
from afa.expression.check import EVENT_ATTRIBUTES
from afa.expression.tree import INT_MAX
from afa.pattern import Arc, CountWindow, Pattern, Register, Time, TimeWindow
from afa.records import (
    ArcChange,
    ArcPunctuation,
    ArcRetraction,
    Change,
    EmittedPunctuation,
    Event,
    Match,
    MatchChange,
    Punctuation,
    Record,
)

# State, register values in order of names, and (of a query) what was bound: variable, `ts` and id of each event.
Configuration = tuple[str, tuple[Value, ...], tuple[tuple[str, int, str], ...]]


@dataclass
class Counters:
    events: int = 0
    late: int = 0
    conflicts: int = 0  # two different inserts of one identity at equal rev
    idle_retractions: int = 0  # their rev is lower than the event's
    unseen: int = 0  # the pattern's key field differs from the event's key
    errors: int = 0  # fences that were unknown, transfers that failed
    condition_evaluations: int = 0
    peak_partial_matches: int = 0


@dataclass
class Step:
    """What one record led to: changes, or the reason why it came too late."""

    changes: list[Change] = field(default_factory=list)
    late: str | None = None


class ReferenceEngine:
    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.tables = {pattern.name: ArcTable(pattern) for pattern in sorted(patterns, key=lambda p: p.name)}
        self.records: dict[str, dict[tuple[int, str], list[Event]]] = {}  # by key, then by identity
        self.event_punctuation: Time = -math.inf  # te
        self.arc_punctuation: Time | None = None  # ta; None: none was seen
        self.effective_punctuation: Time = -math.inf  # tp
        self.predicated: dict[Expression, int] = {}
        self.matches: dict[tuple[str, str], dict[str, Match]] = {}  # by pattern and key: what has been told
        self.partial_matches: dict[tuple[str, str], int] = {}
        self.counters = Counters()

    def feed(self, record: Record) -> Step:
        """Takes one record. Raises Fault if it is bad; then nothing has changed."""
        match record:
            case Event():
                return self._feed_event(record)
            case Punctuation(when=None):
                self.event_punctuation = max(self.event_punctuation, record.ts)
                return self._advance()
            case Punctuation():
                return self._feed_predicated(record)
            case ArcPunctuation():
                known = -math.inf if self.arc_punctuation is None else self.arc_punctuation
                self.arc_punctuation = max(known, record.ts)
                return self._advance()
            case ArcChange() | ArcRetraction():
                return self._feed_arc(record)

    def keys(self) -> list[str]:
        return sorted(self.records)

    def _feed_event(self, event: Event) -> Step:
        self.counters.events += 1
        if reason := self._why_late(event):
            self.counters.late += 1
            return Step(late=reason)
        same = self.records.setdefault(event.key, {}).setdefault((event.ts, event.id), [])
        self._count_odd(event, same)
        same.append(event)
        if event.op == "insert":
            self.counters.unseen += sum(not _is_seen(table.pattern, event) for table in self.tables.values())
        return Step(self._differences(self.tables, [event.key]))

    def _why_late(self, event: Event) -> str | None:
        if event.ts < self.event_punctuation:
            return f"ts {event.ts} is below the punctuation {self.event_punctuation}"
        for condition, bound in self.predicated.items():
            if event.ts < bound:
                unconditional = event.op == "retract" or event.rev > 0
                if unconditional or holds(condition.root, event, {}):
                    return f"ts {event.ts} is below the punctuation {bound} when {condition.text}"
        return None

    def _count_odd(self, event: Event, same: list[Event]) -> None:
        inserts = [other for other in same if other.op == "insert"]
        if event.op == "retract":
            self.counters.idle_retractions += any(other.rev > event.rev for other in inserts)
        else:
            equal_rev = [other for other in inserts if other.rev == event.rev]
            self.counters.conflicts += any(other.rank != event.rank for other in equal_rev)

    def _feed_predicated(self, record: Punctuation) -> Step:
        condition = read_expression(str(record.when), ("when",), Scope(), Type.BOOL)
        self.predicated[condition] = max(record.ts, self.predicated.get(condition, record.ts))
        return Step()

    def _feed_arc(self, record: ArcChange | ArcRetraction) -> Step:
        table = table_of(self.tables, record)
        bound = max(-math.inf if self.arc_punctuation is None else self.arc_punctuation, self.effective_punctuation)
        reason = table.change(record, bound) if isinstance(record, ArcChange) else table.retract(record, bound)
        if reason:
            self.counters.late += 1
            return Step(late=reason)
        return Step(self._differences([record.pattern], self.records))

    def _advance(self) -> Step:
        """The effective punctuation after one of its two parts has moved; it never goes back."""
        bounds = (self.event_punctuation, math.inf if self.arc_punctuation is None else self.arc_punctuation)
        if min(bounds) <= self.effective_punctuation:
            return Step()
        self.effective_punctuation = min(bounds)
        changes = self._differences(self.tables, self.records)
        self._forget()
        assert isinstance(self.effective_punctuation, int)
        changes += [EmittedPunctuation(name, self.effective_punctuation) for name in self.tables]
        return Step(changes)

    def _differences(self, patterns: Iterable[str], keys: Iterable[str]) -> list[Change]:
        """Computes the matches of these patterns and keys anew: retracts, then inserts, in the order of the page."""
        gone: list[MatchChange] = []
        come: list[MatchChange] = []
        for name in patterns:
            for key in keys:
                run = Computation(self.tables[name], key, self.records[key], self.effective_punctuation, self.counters)
                told = self.matches.get((name, key), {})
                now = {match.id: match for match in run.matches()}
                # A query may return something else for the same events.
                gone += [MatchChange("retract", told[id_], id_) for id_ in told if now.get(id_) != told[id_]]
                come += [MatchChange("insert", now[id_], id_) for id_ in now if told.get(id_) != now[id_]]
                self.matches[name, key] = now
                self.partial_matches[name, key] = run.partial_matches
        total = sum(self.partial_matches.values())
        self.counters.peak_partial_matches = max(self.counters.peak_partial_matches, total)
        return [*sorted(gone, key=lambda change: change.order), *sorted(come, key=lambda change: change.order)]

    def _forget(self) -> None:
        """Drops what no later record can touch: events whose window closed before the punctuation, in all patterns."""
        windows = [table.pattern.window for table in self.tables.values()]
        lengths = [window.length for window in windows if isinstance(window, TimeWindow)]
        if len(lengths) < len(windows):
            return
        closed = self.effective_punctuation - max(lengths, default=0)
        for key, identities in list(self.records.items()):
            for identity in [identity for identity in identities if identity[0] <= closed]:
                del identities[identity]
            for name in self.tables:
                told = self.matches.get((name, key), {})
                self.matches[name, key] = {id_: match for id_, match in told.items() if match.start > closed}
                if not identities:
                    del self.matches[name, key], self.partial_matches[name, key]
            if not identities:
                del self.records[key]


@dataclass
class Computation:
    """The matches of one pattern over the records of one key: sections 1, 2 and 4 of the semantics."""

    table: ArcTable
    key: str
    records: dict[tuple[int, str], list[Event]]
    punctuation: Time
    counters: Counters
    partial_matches: int = 0
    events: list[Event] = field(default_factory=list)  # those that the pattern sees, in order

    def matches(self) -> set[Match]:
        pattern = self.table.pattern
        winners = [max(same, key=lambda record: record.rank) for same in self.records.values()]
        events = sorted((winner for winner in winners if winner.op == "insert"), key=lambda event: event.order)
        released = self.punctuation + pattern.speculation if pattern.speculation < math.inf else math.inf
        events = [event for event in events if event.ts < released and _is_seen(pattern, event)]
        self.events = events
        found = {match for start in range(len(events)) for match in self._matches_from(events[start:])}
        if pattern.hold_output:
            found = {match for match in found if match.end < self.punctuation}
        return found

    def _matches_from(self, events: list[Event]) -> Iterable[Match]:
        """A computation starts at the first of these events and consumes them contiguously."""
        first = events[0]
        initial: Configuration = (self.table.pattern.start, tuple(r.initial for r in self._registers), ())
        configurations = self._closure({initial}, first)
        for position, event in enumerate(events):
            if not self._in_window(first, position, event):
                return
            if position > 0 and not self._may_cross(events[position - 1], event):
                return
            stepped = {
                after
                for configuration in configurations
                for arc in self.table.arcs.values()
                if not arc.epsilon and (after := self._take(arc, configuration, event, event.ts))
            }
            configurations = self._closure(stepped, event)
            for state, values, bound in configurations:
                if state in self.table.finals and self._is_free_of_negations(first, event, values):
                    yield self._match(first, event, state, values, bound)
            if not configurations:
                return
        self.partial_matches += len(configurations)

    def _in_window(self, first: Event, position: int, event: Event) -> bool:
        window = self.table.pattern.window
        if isinstance(window, CountWindow):
            return position < window.events
        return window is None or event.ts < min(first.ts + window.length, INT_MAX)

    def _may_cross(self, before: Event, event: Event) -> bool:
        """AFA+O: no transition over a gap in `seq` until the punctuation has passed the event after it."""
        if not self.table.pattern.gap_free or event.ts < self.punctuation:
            return True
        if before.seq is None or event.seq is None or event.seq <= before.seq:
            return False
        missing = event.seq - before.seq - 1
        return missing == 0 or len({seq for seq in self._hidden_seqs() if before.seq < seq < event.seq}) == missing

    def _hidden_seqs(self) -> set[int]:
        """The `seq` of a retracted or unseen event counts as present; whichever record of the event told it."""
        hidden = []
        for same in self.records.values():
            winner = max(same, key=lambda record: record.rank)
            if winner.op == "retract" or not _is_seen(self.table.pattern, winner):
                hidden += same
        return {record.seq for record in hidden if record.seq is not None}

    def _closure(self, configurations: set[Configuration], event: Event) -> set[Configuration]:
        """Epsilon arcs are taken right after the event (from the start state: right before the first)."""
        reached = set(configurations)
        todo = list(configurations)
        while todo:
            configuration = todo.pop()
            for arc in self.table.arcs.values():
                if arc.epsilon:
                    after = self._take(arc, configuration, None, event.ts)
                    if after and after not in reached:
                        reached.add(after)
                        todo.append(after)
        return reached

    def _take(self, arc: Arc, configuration: Configuration, event: Event | None, ts: int) -> Configuration | None:
        """Where the arc leads from here, or None if it cannot be taken."""
        state, values, bound = configuration
        if arc.source != state or ts not in arc.lifetime:
            return None
        registers = {register.name: value for register, value in zip(self._registers, values, strict=True)}
        self.counters.condition_evaluations += 1
        fence = holds(arc.fence.root, event, registers)
        self.counters.errors += fence is None
        if not fence:
            return None
        after = registers | {name: evaluate(transfer.root, event, registers) for name, transfer in arc.transfer}
        stored = tuple(_stored(after[register.name], register.type) for register in self._registers)
        pairs = zip(stored, self._registers, strict=True)
        if any(value is None and register.type is not Type.ANY for value, register in pairs):
            self.counters.errors += 1
            return None
        binds = () if arc.binds is None or event is None else ((arc.binds, event.ts, event.id),)
        return (arc.target, stored, (*bound, *binds))

    @property
    def _registers(self) -> tuple[Register, ...]:
        return self.table.pattern.registers

    def _is_free_of_negations(self, first: Event, last: Event, values: tuple[Value, ...]) -> bool:
        """Nothing that a query forbids before its first event or after its last one lies within the window."""
        query = self.table.pattern.query
        if query is None or not (query.leading or query.trailing):
            return True
        window = self.table.pattern.window
        assert isinstance(window, TimeWindow)
        closes = min(first.ts + window.length, INT_MAX)
        if query.trailing and query.absence == "window_end" and self.punctuation < closes:
            return False
        registers = {register.name: value for register, value in zip(self._registers, values, strict=True)}
        before = [e for e in self.events if e.order < first.order and min(e.ts + window.length, INT_MAX) > last.ts]
        after = [e for e in self.events if e.order > last.order and e.ts < closes]
        occurrences = [(occurs, e) for occurs in query.leading for e in before]
        occurrences += [(occurs, e) for occurs in query.trailing for e in after]
        return not any(holds(occurs.root, event, registers) for occurs, event in occurrences)

    def _match(
        self,
        first: Event,
        last: Event,
        state: str,
        values: tuple[Value, ...],
        bound: tuple[tuple[str, int, str], ...],
    ) -> Match:
        window = self.table.pattern.window
        until = min(first.ts + window.length, INT_MAX) if isinstance(window, TimeWindow) else None
        registers: Any = tuple((register.name, value) for register, value in zip(self._registers, values, strict=True))
        bindings = None
        if (query := self.table.pattern.query) is not None:
            returned = {name: evaluate(item.root, None, dict(registers)) for name, item in query.returns}
            registers, state = tuple(returned.items()), ""
            bindings = tuple(
                (name, tuple((ts, id_) for variable, ts, id_ in bound if variable == name)) for name in query.variables
            )
        name, span = self.table.pattern.name, (first.ts, last.ts, until)
        return Match(name, self.key, *span, state, registers, first.id, last.id, bindings)


def _is_seen(pattern: Pattern, event: Event) -> bool:
    """A pattern with a key field sees only events whose field is the key (an integer as its digits)."""
    if pattern.key_field is None:
        return True
    own = pattern.key_field[0] in EVENT_ATTRIBUTES  # hides a field of that name
    value = getattr(event, pattern.key_field[0]) if own else read_field(event.data, pattern.key_field)
    return (str(value) if type(value) is int else value) == event.key


def _stored(value: Value, kind: Type) -> Value:
    """As a register of this type holds it: an int as a float in a float register, no other change of type."""
    if kind is Type.FLOAT and type(value) is int:
        value = float(value)
    if type(value) is float:
        value += 0.0  # minus zero is zero
    return value if kind in (Type.ANY, type_of(value)) else None
