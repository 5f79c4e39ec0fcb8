"""The second reference: the matches of a query, enumerated straight from its tree. Slow, obvious, short.

It shares nothing with the compiler: no automaton, no registers. From every event a run is followed along every choice
that section 5 of the semantics allows; conditions are evaluated over the events that are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from afa.expression.tree import INT_MAX, Node, Value
from afa.pattern import Time
from afa.query.bindings import Bindings, field_of, value_in
from afa.query.tree import (
    Aggregate,
    At,
    Component,
    CountWindow,
    EventValue,
    Kleene,
    Length,
    Negated,
    Over,
    Query,
    Single,
    Strategy,
    TimeWindow,
    leading_negations,
    members,
    references,
)
from afa.records import Event

Partition: TypeAlias = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Run:
    """Events bound so far, in order of binding, each with its variable; the last one belongs to component `at`."""

    at: int
    bound: tuple[tuple[str, Event], ...]

    @cached_property
    def bindings(self) -> Bindings:
        variables = dict.fromkeys(variable for variable, _ in self.bound)
        return {name: tuple(event for variable, event in self.bound if variable == name) for name in variables}

    @property
    def first(self) -> Event:
        return self.bound[0][1]

    @property
    def last(self) -> Event:
        return self.bound[-1][1]

    def count(self, variable: str) -> int:
        return len(self.bindings.get(variable, ()))

    def then(self, at: int, variable: str, event: Event) -> Run:
        return Run(at, (*self.bound, (variable, event)))


@dataclass(frozen=True)
class Placed:
    """A condition, and the component at which it sits."""

    expression: Node
    at: int
    whole: bool  # tested when the component is left, or at the yield
    indexed: str | None  # the variable whose `a[i]` it names
    from_index: int  # the first i that it applies to


@dataclass(frozen=True)
class QueryMatch:
    """A run that completed, with the values of RETURN."""

    partition: Partition
    run: Run
    returned: tuple[tuple[str, Value], ...]

    @property
    def bindings(self) -> Bindings:
        return self.run.bindings


class Enumeration:
    """All runs of a query over the events of one key, which are in order and all alive."""

    def __init__(
        self,
        query: Query,
        events: Sequence[Event],
        punctuation: Time,
        absence: Literal["window_end", "speculative"] = "window_end",
    ) -> None:
        self.query = query
        self.events = events
        self.punctuation = punctuation
        self.absence = absence
        self.components = query.positive
        self.placed = [placed for condition in query.conditions if (placed := self._place(condition.expression))]

    def matches(self) -> list[QueryMatch]:
        """The matches, `output: all`."""
        found = []
        partitions = map(self.partition_of, self.events)
        for partition in dict.fromkeys(partition for partition in partitions if partition is not None):
            for run in self.runs(partition):
                if self.completes(run) and self._is_free_of_negations(run):
                    returned = tuple(
                        (item.name, value_in(item.expression, run.bindings)) for item in self.query.returns
                    )
                    found.append(QueryMatch(partition, run, returned))
        return found

    def runs(self, partition: Partition) -> Iterator[Run]:
        """Every run in a partition, after every event that it binds."""
        strict = self.query.strategy is Strategy.STRICT_CONTIGUITY
        path = [event for event in self.events if strict or self.partition_of(event) == partition]
        for start, event in enumerate(path):
            if self.partition_of(event) == partition:
                for run in self._begin(None, event):
                    yield run
                    yield from self._follow(run, path[start + 1 :], partition)

    def partition_of(self, event: Event) -> Partition | None:
        """The values of `[attr]`, 1 and 1.0 being one; None: in no partition."""
        values: list[tuple[str, Value]] = []
        for equivalence in self.query.equivalences:
            value = field_of(event, equivalence.path)
            if not isinstance(value, bool | int | float | str):
                return None
            kind = "number" if type(value) in (int, float) else type(value).__name__
            values.append((kind, value))
        return tuple(values)

    def _follow(self, run: Run, path: Sequence[Event], partition: Partition) -> Iterator[Run]:
        """What a run leads to over the events after its last one."""
        for place, event in enumerate(path):
            if not self._in_window(run, event):
                return
            own = self.partition_of(event) == partition
            taken = list(self._take(run, event)) if own else []
            begun = list(self._begin(run, event)) if own else []
            for after in (*taken, *begun):
                yield after
                yield from self._follow(after, path[place + 1 :], partition)
            if not self._may_ignore(run, bool(taken), bool(begun)):
                return

    def _in_window(self, run: Run, event: Event) -> bool:
        match self.query.window:
            case TimeWindow(length=length):
                return event.ts < min(run.first.ts + length, INT_MAX)
            case CountWindow(events=most):
                partition = self.partition_of(run.first)
                between = [
                    other
                    for other in self.events
                    if run.first.order <= other.order < event.order and self.partition_of(other) == partition
                ]
                return len(between) < most
            case None:
                return True

    def _may_ignore(self, run: Run, taken: bool, begun: bool) -> bool:
        match self.query.strategy:
            case Strategy.SKIP_TILL_ANY_MATCH:
                return True
            case Strategy.SKIP_TILL_NEXT_MATCH:
                return not begun if self._is_full(run) else not taken
            case _:
                return False

    def _take(self, run: Run, event: Event) -> Iterator[Run]:
        """The current component binds the event, if it has room."""
        for variable in members(self.components[run.at]):
            if _has_room(variable, run):
                yield from self._bound(run, run.at, variable, event)

    def _begin(self, run: Run | None, event: Event) -> Iterator[Run]:
        """The next component binds its first event."""
        at = 0 if run is None else run.at + 1
        if at == len(self.components):
            return
        if run is not None and not (self._completes_component(run) and self._may_leave(run, event)):
            return
        for variable in members(self.components[at]):
            yield from self._bound(run, at, variable, event)

    def _bound(self, run: Run | None, at: int, variable: Single | Kleene, event: Event) -> Iterator[Run]:
        if variable.event_type not in (None, event.type):
            return
        after = Run(at, ((variable.variable, event),)) if run is None else run.then(at, variable.variable, event)
        if all(self._holds(placed, after) for placed in self.placed if placed.at == at and not placed.whole):
            yield after

    def _is_full(self, run: Run) -> bool:
        return not any(_has_room(variable, run) for variable in members(self.components[run.at]))

    def _completes_component(self, run: Run) -> bool:
        """Whether the current component has what it needs, and its conditions over all of it hold."""
        own = members(self.components[run.at])
        enough = all(run.count(member.variable) >= getattr(member, "least", 1) for member in own)
        return enough and all(
            self._holds(placed, run) for placed in self.placed if placed.at == run.at and placed.whole
        )

    def completes(self, run: Run) -> bool:
        """Whether a run is a match, but for negations before and after it."""
        return run.at == len(self.components) - 1 and self._completes_component(run)

    def _may_leave(self, run: Run, event: Event) -> bool:
        """No occurrence of a negation lies between the current component's last event and this one."""
        between = [other for other in self.events if run.last.order < other.order < event.order]
        component = self.components[run.at]
        after = self.query.components.index(component) + 1
        return not any(
            self._occurs(negation, between, run) for negation in leading_negations(self.query.components[after:])
        )

    def _occurs(self, negation: Negated, events: Sequence[Event], run: Run) -> bool:
        conditions = [
            condition.expression
            for condition in self.query.conditions
            if negation.variable in {reference.variable for reference in references(condition.expression)}
        ]
        partition = self.partition_of(run.first)
        return any(
            negation.event_type in (None, event.type)
            and self.partition_of(event) == partition
            and all(
                value_in(condition, {**run.bindings, negation.variable: (event,)}) is True for condition in conditions
            )
            for event in events
        )

    def _is_free_of_negations(self, run: Run) -> bool:
        """Those before the first component and after the last one."""
        leading = leading_negations(self.query.components)
        trailing = leading_negations(self.query.components[::-1])
        if not leading and not trailing:
            return True
        assert isinstance(self.query.window, TimeWindow)
        length = self.query.window.length
        closes = min(run.first.ts + length, INT_MAX)
        if trailing and self.absence == "window_end" and self.punctuation < closes:
            return False
        before = [
            event
            for event in self.events
            if event.order < run.first.order and min(event.ts + length, INT_MAX) > run.last.ts
        ]
        after = [event for event in self.events if event.order > run.last.order and event.ts < closes]
        return not any(self._occurs(negation, before, run) for negation in leading) and not any(
            self._occurs(negation, after, run) for negation in trailing
        )

    def _place(self, expression: Node) -> Placed | None:
        """Where a condition sits; None if it belongs to a negation."""
        found = references(expression)
        named = {reference.variable for reference in found}
        negated = {component.variable for component in self.query.components if isinstance(component, Negated)}
        if named & negated:
            return None
        places = [index for index, component in enumerate(self.components) if named & _names(component)]
        at = max(places, default=0)
        own = [reference for reference in found if reference.variable in _names(self.components[at])]
        kleene = {member.variable for member in members(self.components[at]) if isinstance(member, Kleene)}
        whole = any(
            isinstance(reference, Length)
            or (isinstance(reference, Aggregate) and reference.over is Over.ALL)
            or (isinstance(reference, EventValue) and reference.at is At.LAST)
            for reference in own
            if reference.variable in kleene
        )
        indexed = [reference for reference in own if _is_indexed(reference)]
        later = any(
            not isinstance(reference, EventValue) or reference.at is At.PREVIOUS for reference in indexed
        ) or any(isinstance(reference, EventValue) and reference.at is At.FIRST for reference in own)
        return Placed(expression, at, whole, indexed[0].variable if indexed else None, 2 if later else 1)

    def _holds(self, placed: Placed, run: Run) -> bool:
        """Whether a condition is true wherever it can be told; what was told before cannot change."""
        named = {reference.variable for reference in references(placed.expression)}
        if not all(run.count(variable) for variable in named):
            return True  # a variable of the set is not bound yet: it is tested then
        if placed.indexed is None:
            return value_in(placed.expression, run.bindings) is True
        indices = range(placed.from_index, run.count(placed.indexed) + 1)
        return all(value_in(placed.expression, run.bindings, index) is True for index in indices)


def _names(component: Component) -> set[str]:
    return {member.variable for member in members(component)}


def _has_room(variable: Single | Kleene, run: Run) -> bool:
    most = 1 if isinstance(variable, Single) else variable.most
    return most is None or run.count(variable.variable) < most


def _is_indexed(reference: EventValue | Aggregate | Length) -> bool:
    if isinstance(reference, Aggregate):
        return reference.over is Over.BEFORE
    return isinstance(reference, EventValue) and reference.at in (At.CURRENT, At.PREVIOUS)


def non_overlapping(matches: Sequence[QueryMatch], identity: Callable[[QueryMatch], str]) -> list[QueryMatch]:
    """Per partition, by end, start and id: a match counts iff it starts after the end of the last one counted."""
    counted: dict[Partition, QueryMatch] = {}
    kept = []
    for match in sorted(matches, key=lambda one: (one.run.last.order, one.run.first.order, identity(one))):
        last = counted.get(match.partition)
        if last is None or match.run.first.order > last.run.last.order:
            counted[match.partition] = match
            kept.append(match)
    return kept


def earliest_maximal(matches: Sequence[QueryMatch]) -> list[QueryMatch]:
    """Of those with one first event the ones that none dominates, and of these the ones that none extends."""
    kept = []
    for match in matches:
        rivals = [other for other in matches if other.run.first.order == match.run.first.order]
        if not any(_dominates(other, match) or _extends(other, match) for other in rivals):
            kept.append(match)
    return kept


def _dominates(one: QueryMatch, other: QueryMatch) -> bool:
    begins = [(one.bindings[name][0].order, events[0].order) for name, events in other.bindings.items()]
    return all(a <= b for a, b in begins) and any(a < b for a, b in begins)


def _extends(one: QueryMatch, other: QueryMatch) -> bool:
    """Whether it differs in one variable alone, and binds all of the other's events to it and more."""
    events = [
        ({event.order for event in one.bindings[name]}, {event.order for event in bound})
        for name, bound in other.bindings.items()
    ]
    different = [(more, fewer) for more, fewer in events if more != fewer]
    return len(different) == 1 and different[0][0] > different[0][1]
