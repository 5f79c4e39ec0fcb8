"""The reference engine: the semantics page, executable. Slow, obvious, short.

It keeps the *set* of records, computes from it what the matches are, and reports the difference to what they were
before. Nothing is incremental, so arrival order cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from afa.arc_table import ArcTable, table_of
from afa.arcs import read_expression
from afa.computation import Computation, Counters, is_seen
from afa.differences import graph_changes, in_order, match_changes
from afa.evaluate import holds
from afa.expression import Expression, Scope, Type
from afa.expression.tree import INT_MIN
from afa.outputs import Order, Partition, Selection
from afa.pattern import Pattern, Time, TimeWindow
from afa.records import (
    ArcChange,
    ArcPunctuation,
    ArcRetraction,
    Change,
    EmittedPunctuation,
    Event,
    GraphChange,
    Match,
    MatchChange,
    Punctuation,
    Record,
    Timeout,
)


@dataclass
class Step:
    """What one record led to: changes, or the reason why it came too late."""

    changes: list[Change] = field(default_factory=list)
    late: str | None = None


@dataclass
class Topic:
    """One input topic: how far it has come, and how far behind its newest record others may be."""

    slack: int | None = None
    punctuation: Time = -math.inf
    newest: Time = -math.inf
    predicated: dict[Expression, int] = field(default_factory=dict)

    @property
    def promised(self) -> Time:
        """Where the newest record puts the punctuation."""
        if self.slack is None or self.newest == -math.inf:
            return -math.inf
        return max(INT_MIN, self.newest - self.slack)

    def why_late(self, event: Event) -> str | None:
        """Why a record of the topic comes too late, if it does."""
        bound = max(self.punctuation, self.promised)
        self.newest = max(self.newest, event.ts)
        if event.ts < bound:
            return f"ts {event.ts} is below the punctuation {bound}"
        for condition, ts in self.predicated.items():
            if event.ts < ts:
                unconditional = event.op == "retract" or event.rev > 0
                if unconditional or holds(condition.root, event, {}):
                    return f"ts {event.ts} is below the punctuation {ts} when {condition.text}"
        return None


class ReferenceEngine:
    """`slacks` are the topics that records come from, by name."""

    def __init__(self, patterns: Iterable[Pattern], slacks: Mapping[str, int | None] | None = None) -> None:
        self.tables = {pattern.name: ArcTable(pattern) for pattern in sorted(patterns, key=lambda p: p.name)}
        self.records: dict[str, dict[tuple[int, str], list[Event]]] = {}  # by key, then by identity
        self.topics = {name: Topic(slack) for name, slack in (slacks or {"": None}).items()}
        self.arc_punctuation: Time | None = None  # ta; None: none was seen
        self.effective_punctuation: Time = -math.inf  # tp
        self.matches: dict[tuple[str, str], dict[str, Match]] = {}  # by pattern and key: what has been told
        self.partial_matches: dict[tuple[str, str], int] = {}
        self.emitted: dict[str, Time] = dict.fromkeys(self.tables, -math.inf)  # by pattern
        # By pattern and key: where matches ended that count and whose events are forgotten.
        self.counted_ends: dict[tuple[str, str], dict[Partition, Order]] = {}
        self.closed: Time = -math.inf  # matches that start no later are decided and forgotten
        self.counters = Counters()

    def feed(self, record: Record, topic: str = "") -> Step:
        """Takes one record. Raises Fault if it is bad; then nothing has changed."""
        match record:
            case Event():
                return self._feed_event(record, self.topics[topic])
            case Punctuation(when=None):
                self.topics[topic].punctuation = max(self.topics[topic].punctuation, record.ts)
                return self._advance()
            case Punctuation():
                return self._feed_predicated(record, self.topics[topic])
            case ArcPunctuation():
                known = -math.inf if self.arc_punctuation is None else self.arc_punctuation
                self.arc_punctuation = max(known, record.ts)
                return self._advance()
            case ArcChange() | ArcRetraction():
                return self._feed_arc(record)

    def settle(self) -> Step:
        """At the end of a batch punctuations come to where its records have moved them."""
        for topic in self.topics.values():
            topic.punctuation = max(topic.punctuation, topic.promised)
        return self._advance()

    def keys(self) -> list[str]:
        return sorted(self.records)

    def _feed_event(self, event: Event, topic: Topic) -> Step:
        self.counters.events += 1
        if reason := topic.why_late(event):
            self.counters.late += 1
            return Step(late=reason)
        same = self.records.setdefault(event.key, {}).setdefault((event.ts, event.id), [])
        self._count_odd(event, same)
        same.append(event)
        if event.op == "insert":
            self.counters.unseen += sum(not is_seen(table.pattern, event) for table in self.tables.values())
        return Step(self._differences(self.tables, [event.key]))

    def _count_odd(self, event: Event, same: list[Event]) -> None:
        inserts = [other for other in same if other.op == "insert"]
        if event.op == "retract":
            self.counters.idle_retractions += any(other.rev > event.rev for other in inserts)
        else:
            equal_rev = [other for other in inserts if other.rev == event.rev]
            self.counters.conflicts += any(other.rank != event.rank for other in equal_rev)

    def _feed_predicated(self, record: Punctuation, topic: Topic) -> Step:
        condition = read_expression(str(record.when), ("when",), Scope(), Type.BOOL)
        topic.predicated[condition] = max(record.ts, topic.predicated.get(condition, record.ts))
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
        events = min(topic.punctuation for topic in self.topics.values())
        bounds = (events, math.inf if self.arc_punctuation is None else self.arc_punctuation)
        if min(bounds) <= self.effective_punctuation:
            return Step()
        before, self.effective_punctuation = self.effective_punctuation, min(bounds)
        risen = {name for name in self.tables if self._raise_emitted(name)}
        changes = self._differences(self.tables, self.records)
        runs = [self._computation(name, key, Counters()) for name in self.tables for key in self.records]
        timeouts: list[Timeout] = [timeout for run in runs for timeout in run.timeouts(before)]
        timeouts.sort(key=lambda timeout: timeout.order)
        changes += timeouts
        self._forget()
        changes += [EmittedPunctuation(name, int(self.emitted[name])) for name in self.tables if name in risen]
        return Step(changes)

    def _raise_emitted(self, name: str) -> bool:
        """Lets the emitted punctuation of a pattern come as far as its open candidates allow; whether it rose."""
        ends = [end for key in self.records for end in self._computation(name, key, Counters()).open_ends()]
        before = self.emitted[name]
        self.emitted[name] = max(before, min([self.effective_punctuation, *ends]))
        return self.emitted[name] > before

    def _computation(self, name: str, key: str, counters: Counters | None = None) -> Computation:
        return Computation(
            self.tables[name],
            key,
            self.records[key],
            self.effective_punctuation,
            counters or self.counters,
            self.emitted[name],
            self.counted_ends.get((name, key), {}),
            self.closed,
        )

    def _differences(self, patterns: Iterable[str], keys: Iterable[str]) -> list[Change]:
        """Computes the matches of these patterns and keys anew: retracts, then inserts, in the order of the page."""
        changes: list[MatchChange | GraphChange] = []
        for name in patterns:
            query = self.tables[name].pattern.query
            for key in keys:
                run = self._computation(name, key)
                told = self.matches.get((name, key), {})
                now = {match.id: match for match in run.matches()}
                changes += graph_changes(told, now) if query and query.compressed else match_changes(told, now)
                self.matches[name, key] = now
                self.partial_matches[name, key] = run.partial_matches
        total = sum(self.partial_matches.values())
        self.counters.peak_partial_matches = max(self.counters.peak_partial_matches, total)
        return list(in_order(changes))

    def _forget(self) -> None:
        """Drops what no later record can touch: events whose window closed before the punctuations, in all patterns.

        A match is decided once the emitted punctuation has passed its end: until then `non_overlapping` may yet prefer
        a candidate that ends earlier. Occurrences of a leading negation stay for the matches that they forbid.
        """
        windows = [table.pattern.window for table in self.tables.values()]
        lengths = [window.length for window in windows if isinstance(window, TimeWindow)]
        if len(lengths) < len(windows):
            return
        longest = max(lengths, default=0)
        closed = min([self.effective_punctuation, *self.emitted.values()]) - longest
        leads = any(table.pattern.query and table.pattern.query.leading for table in self.tables.values())
        for key, identities in list(self.records.items()):
            past = [identity for identity in identities if identity[0] <= closed - (longest if leads else 0)]
            for name in self.tables:
                self._remember_ends(name, key, closed)
            for identity in past:
                del identities[identity]
            for name in self.tables:
                told = self.matches.get((name, key), {})
                self.matches[name, key] = {id_: match for id_, match in told.items() if match.start > closed}
                if not identities:
                    del self.matches[name, key], self.partial_matches[name, key]
            if not identities:
                del self.records[key]
        self.closed = closed

    def _remember_ends(self, name: str, key: str, closed: Time) -> None:
        """What `non_overlapping` has to know of matches whose start is forgotten."""
        if self.tables[name].pattern.output != "non_overlapping":
            return
        selection = Selection(self.tables[name].pattern, self._computation(name, key).events)
        ends = self.counted_ends.setdefault((name, key), {})
        for match in self.matches.get((name, key), {}).values():
            if match.start <= closed:
                end = selection.last(match)
                ends[match.partition] = max(end, ends.get(match.partition, end))
