"""The graphs of compressed queries on the native engine, which tells single matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

from afa.changes import Changes, Told
from afa.differences import graph_changes, in_order
from afa.records import Change, EmittedPunctuation, GraphChange, Match, MatchChange

_Part: TypeAlias = tuple[str, int]  # a pattern and a partition, which are punctuated together
_End: TypeAlias = tuple[int, str]  # `ts` and id of the event that matches end with


class PartitionedChanges(Changes):
    """Changes that know their partitions."""

    def __init__(self, told: list[Told], partitions: list[int], changes: Changes) -> None:
        super().__init__(told, changes.bad, changes.late)
        self._partitions = partitions

    @property
    def partitions(self) -> list[int]:
        return self._partitions


class ToldGraphs:
    """Keeps the matches whose end may still change: a graph that changes is told whole."""

    def __init__(self, patterns: set[str]) -> None:
        self.patterns = patterns
        self.told: dict[_Part, dict[str, dict[_End, dict[str, Match]]]] = {}  # then by key, end and id

    def follow(self, changes: Changes) -> Changes:
        """The same changes, those of compressed queries as graphs."""
        told: list[Told] = []
        partitions: list[int] = []
        rows = zip(changes.told, changes.partitions, strict=True)
        for record, group in groupby(rows, key=lambda row: row[0][0]):
            for change, partition in self._of_record([(change, partition) for (_, change), partition in group]):
                told.append((record, change))
                partitions.append(partition)
        return PartitionedChanges(told, partitions, changes)

    def restore(self, restored: Iterable[str], told: Changes) -> None:
        """Takes what the engine has told of keys that were restored."""
        for key in restored:
            for keys in self.told.values():
                keys.pop(key, None)
        for (_, change), partition in zip(told.told, told.partitions, strict=True):
            if isinstance(change, MatchChange) and change.match.pattern in self.patterns:
                self._matches(change.match, partition)[change.id] = change.match

    def drop(self, partition: int) -> None:
        """Forgets a partition."""
        self.told = {part: keys for part, keys in self.told.items() if part[1] != partition}

    def _of_record(self, changes: list[tuple[Change, int]]) -> Iterator[tuple[Change, int]]:
        """What one record led to, in order."""
        matches = [(change, partition) for change, partition in changes if isinstance(change, MatchChange)]
        told: list[tuple[MatchChange | GraphChange, int]] = []
        told += [(one, partition) for one, partition in matches if one.match.pattern not in self.patterns]
        told += self._graphs((one, partition) for one, partition in matches if one.match.pattern in self.patterns)
        partition_of = {id(change): partition for change, partition in told}
        yield from ((change, partition_of[id(change)]) for change in in_order(change for change, _ in told))
        for other, partition in changes:
            if not isinstance(other, MatchChange):
                yield other, partition
            if isinstance(other, EmittedPunctuation):
                self._forget((other.pattern, partition), other.ts)

    def _graphs(self, changes: Iterable[tuple[MatchChange, int]]) -> list[tuple[GraphChange, int]]:
        before: dict[tuple[str, str, _End], tuple[dict[str, Match], dict[str, Match], int, bool]] = {}
        for change, partition in changes:
            match = change.match
            now = self._matches(match, partition)
            where = (match.pattern, match.key, (match.end, match.last))
            before.setdefault(where, (dict(now), now, partition, change.degraded))
            if change.op == "insert":
                now[change.id] = match
            else:
                now.pop(change.id, None)
        found = []
        for told, now, partition, degraded in before.values():
            found += [(replace(graph, degraded=degraded), partition) for graph in graph_changes(told, now)]
        return found

    def _matches(self, match: Match, partition: int) -> dict[str, Match]:
        keys = self.told.setdefault((match.pattern, partition), {})
        return keys.setdefault(match.key, {}).setdefault((match.end, match.last), {})

    def _forget(self, part: _Part, bound: int) -> None:
        """Nothing that ends before a punctuation changes any more."""
        kept = {}
        for key, ends in self.told.get(part, {}).items():
            left = {end: matches for end, matches in ends.items() if end[0] >= bound and matches}
            if left:
                kept[key] = left
        self.told[part] = kept
