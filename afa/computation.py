"""The matches of one pattern over the records of one key, computed from nothing but their set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from afa.arc_table import ArcTable
from afa.evaluate import evaluate, holds, read_field, type_of
from afa.expression import Type, Value
from afa.expression.check import EVENT_ATTRIBUTES
from afa.expression.tree import INT_MAX
from afa.outputs import Order, Partition, Selection, partition_of
from afa.pattern import Arc, CountWindow, Pattern, Register, Time, TimeWindow
from afa.records import Bindings, Event, Match, Timeout

# Of a query: variable, `ts` and id of each event that was bound, in order.
Bound: TypeAlias = tuple[tuple[str, int, str], ...]
# State, register values in order of names, and what was bound.
Configuration: TypeAlias = tuple[str, tuple[Value, ...], Bound]


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
class Computation:
    """The matches of one pattern over the records of one key: sections 1, 2 and 4 of the semantics, and what section 5
    asks of an automaton that was made from a query."""

    table: ArcTable
    key: str
    records: dict[tuple[int, str], list[Event]]
    punctuation: Time
    counters: Counters
    emitted: Time
    counted_ends: Mapping[Partition, Order] = field(default_factory=dict)
    closed: Time = -math.inf  # what starts no later has been told for good
    partial_matches: int = 0

    def matches(self) -> set[Match]:
        """What is to be told."""
        alive = [start for start, first in enumerate(self.events) if first.ts > self.closed]
        found = {match for start in alive for match in self._matches_from(start)}
        found = Selection(self.pattern, self.events, self.counted_ends).of(found)
        return {match for match in found if match.end < self.emitted} if self.pattern.hold_output else found

    def open_ends(self) -> list[int]:
        """Where candidates end that a later record may yet change."""
        query = self.pattern.query
        if query is None or not (query.trailing or self.pattern.output == "earliest_maximal"):
            return []
        return [
            event.ts
            for first in range(len(self.events))
            for event, configurations in self._steps(first)
            if self._closes(self.events[first]) > self.punctuation and self._final(configurations)
        ]

    def timeouts(self, before: Time) -> list[Timeout]:
        """Start events whose window has closed since a punctuation, none of whose runs completed."""
        query = self.pattern.query
        if query is None or not query.timeouts:
            return []
        found = []
        for start, first in enumerate(self.events):
            reached = [configurations for _, configurations in self._steps(start)]
            bound = {configuration[2] for configurations in reached for configuration in configurations}
            completed = any(self._final(configurations) for configurations in reached)
            if bound and not completed and before < self._closes(first) <= self.punctuation:
                found.append(self._timeout(first, bound))
        return found

    def _timeout(self, first: Event, runs: set[Bound]) -> Timeout:
        query = self.pattern.query
        assert query is not None

        def reach(run: Bound) -> tuple[int, int, list[str], list[tuple[int, int]]]:
            named = {variable for variable, _, _ in run}
            begun = sum(bool(named & {*component}) for component in query.components)
            # A set may bind the same events to other variables: those that are declared first come first.
            places = [(query.variables.index(variable), ts) for variable, ts, _ in run]
            return (-begun, -len(run), [id_ for _, _, id_ in run], places)

        furthest = min(runs, key=reach)
        closes = int(self._closes(first))
        bindings = tuple((name, events) for name, events in _bindings(query.variables, furthest) if events)
        return Timeout(self.pattern.name, self.key, first.ts, closes, furthest[-1][0], bindings)

    @property
    def pattern(self) -> Pattern:
        return self.table.pattern

    @cached_property
    def events(self) -> list[Event]:
        """Those that the pattern sees, in order."""
        winners = [max(same, key=lambda record: record.rank) for same in self.records.values()]
        events = sorted((winner for winner in winners if winner.op == "insert"), key=lambda event: event.order)
        released = self.punctuation + self.pattern.speculation if self.pattern.speculation < math.inf else math.inf
        return [event for event in events if event.ts < released and is_seen(self.pattern, event)]

    def _matches_from(self, start: int) -> Iterator[Match]:
        """Those that begin with one of the events."""
        first = self.events[start]
        configurations: set[Configuration] = set()
        for event, configurations in self._steps(start):
            for state, values, bound in self._final(configurations):
                if self._is_free_of_negations(first, event, values):
                    yield self._match(first, event, state, values, bound)
        self.partial_matches += len(configurations)

    def _final(self, configurations: set[Configuration]) -> list[Configuration]:
        return [configuration for configuration in configurations if configuration[0] in self.table.finals]

    def _steps(self, start: int) -> Iterator[tuple[Event, set[Configuration]]]:
        """A computation starts at an event and consumes those from there on contiguously."""
        first = self.events[start]
        initial: Configuration = (self.pattern.start, tuple(register.initial for register in self._registers), ())
        configurations = self._closure({initial}, first)
        for position, event in enumerate(self.events[start:]):
            crosses = position == 0 or self._may_cross(self.events[start + position - 1], event)
            if not configurations or not crosses or not self._in_window(first, position, event):
                yield event, set()
                return
            stepped = {
                after
                for configuration in configurations
                for arc in self.table.arcs.values()
                if not arc.epsilon and (after := self._take(arc, configuration, event, event.ts))
            }
            configurations = self._closure(stepped, event)
            yield event, configurations

    def _closes(self, first: Event) -> Time:
        """When a window closes that begins with this event."""
        window = self.pattern.window
        return min(first.ts + window.length, INT_MAX) if isinstance(window, TimeWindow) else math.inf

    def _in_window(self, first: Event, position: int, event: Event) -> bool:
        window = self.pattern.window
        if isinstance(window, CountWindow):
            return position < window.events
        return event.ts < self._closes(first)

    def _may_cross(self, before: Event, event: Event) -> bool:
        """AFA+O: no transition over a gap in `seq` until the punctuation has passed the event after it."""
        if not self.pattern.gap_free or event.ts < self.punctuation:
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
            if winner.op == "retract" or not is_seen(self.pattern, winner):
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
        return self.pattern.registers

    def _is_free_of_negations(self, first: Event, last: Event, values: tuple[Value, ...]) -> bool:
        """Nothing that a query forbids before its first event or after its last one lies within the window."""
        query, window = self.pattern.query, self.pattern.window
        if query is None or not (query.leading or query.trailing):
            return True
        assert isinstance(window, TimeWindow)
        if query.trailing and query.absence == "window_end" and self.punctuation < self._closes(first):
            return False
        registers = {register.name: value for register, value in zip(self._registers, values, strict=True)}
        before = [event for event in self.events if event.order < first.order and self._closes(event) > last.ts]
        after = [event for event in self.events if event.order > last.order and event.ts < self._closes(first)]
        occurrences = [(occurs, event) for occurs in query.leading for event in before]
        occurrences += [(occurs, event) for occurs in query.trailing for event in after]
        return not any(holds(occurs.root, event, registers) for occurs, event in occurrences)

    def _match(self, first: Event, last: Event, state: str, values: tuple[Value, ...], bound: Bound) -> Match:
        closes, query = self._closes(first), self.pattern.query
        span = (first.ts, last.ts, None if closes == math.inf else int(closes))
        registers: Any = tuple((register.name, value) for register, value in zip(self._registers, values, strict=True))
        if query is None:
            return Match(self.pattern.name, self.key, *span, state, registers, first.id, last.id)
        held = dict(registers)
        returned: Any = tuple((name, evaluate(item.root, None, held)) for name, item in query.returns)
        return Match(
            self.pattern.name,
            self.key,
            *span,
            "",
            returned,
            first.id,
            last.id,
            _bindings(query.variables, bound),
            partition_of(held[name] for name in query.partition),
        )


def _bindings(variables: Iterable[str], bound: Bound) -> Bindings:
    return tuple((name, tuple((ts, id_) for variable, ts, id_ in bound if variable == name)) for name in variables)


def is_seen(pattern: Pattern, event: Event) -> bool:
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
