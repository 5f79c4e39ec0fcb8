"""Which matches of a key are told where a pattern does not ask for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from afa.expression import Value
from afa.pattern import Pattern
from afa.records import Event, Match

Order: TypeAlias = tuple[int, int, bytes]
Partition: TypeAlias = tuple[tuple[str, Value], ...]


def partition_of(values: Iterable[Value]) -> Partition:
    """The values of `[attr]` as one name of a partition: 1 and 1.0 are one, "1" and true are others."""
    return tuple(("number" if type(value) in (int, float) else type(value).__name__, value) for value in values)


@dataclass
class Selection:
    """Chooses among the matches of one key; `ends` are those of matches counted before, whose events are gone."""

    pattern: Pattern
    events: Iterable[Event]
    ends: Mapping[Partition, Order] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.orders = {(event.ts, event.id): event.order for event in self.events}

    def of(self, matches: set[Match]) -> set[Match]:
        match self.pattern.output:
            case "all":
                return matches
            case "non_overlapping":
                return self._non_overlapping(matches)
            case "earliest_maximal":
                return self._earliest_maximal(matches)

    def first(self, match: Match) -> Order:
        return self.orders[match.start, match.first]

    def last(self, match: Match) -> Order:
        return self.orders[match.end, match.last]

    def _non_overlapping(self, matches: set[Match]) -> set[Match]:
        """By end, start and id: a match counts iff it starts after the end of the last one counted."""
        ends = dict(self.ends)
        counted = set()
        for match in sorted(matches, key=lambda match: (self.last(match), self.first(match), match.id)):
            end = ends.get(match.partition)
            if end is None or self.first(match) > end:
                ends[match.partition] = self.last(match)
                counted.add(match)
        return counted

    def _earliest_maximal(self, matches: set[Match]) -> set[Match]:
        """Of those with one first event the ones that none dominates, and of these the ones that none extends."""
        by_start: dict[Order, list[Match]] = {}
        for match in matches:
            by_start.setdefault(self.first(match), []).append(match)
        return {
            match
            for rivals in by_start.values()
            for match in rivals
            if not any(self._dominates(other, match) or _extends(other, match) for other in rivals)
        }

    def _dominates(self, one: Match, other: Match) -> bool:
        """Whether it begins every variable no later and one earlier."""
        pairs = zip(one.bindings or (), other.bindings or (), strict=True)
        begins = [(self.orders[mine[0]], self.orders[theirs[0]]) for (_, mine), (_, theirs) in pairs]
        return all(mine <= theirs for mine, theirs in begins) and any(mine < theirs for mine, theirs in begins)


def _extends(one: Match, other: Match) -> bool:
    """Whether it differs in one variable alone, and binds all of the other's events to it and more."""
    pairs = zip(one.bindings or (), other.bindings or (), strict=True)
    different = [({*mine}, {*theirs}) for (_, mine), (_, theirs) in pairs if mine != theirs]
    return len(different) == 1 and different[0][0] > different[0][1]
