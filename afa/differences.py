"""How what was told becomes what is there now: as single matches, or as the graphs of a compressed query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from afa.graph import graph_of
from afa.records import GraphChange, Match, MatchChange

_End: TypeAlias = tuple[int, str]


def match_changes(told: Mapping[str, Match], now: Mapping[str, Match]) -> list[MatchChange]:
    """How the matches that were told, by id, become those that are there now."""
    # A query may return something else for the same events.
    same = {id_ for id_ in now if id_ in told and now[id_].content == told[id_].content}
    gone = [MatchChange("retract", told[id_], id_) for id_ in told if id_ not in same]
    return gone + [MatchChange("insert", now[id_], id_) for id_ in now if id_ not in same]


def graph_changes(told: Mapping[str, Match], now: Mapping[str, Match]) -> list[GraphChange]:
    """The same for matches of one pattern and key that are told as graphs: a graph for every end that differs."""
    ends = {(change.match.end, change.match.last): change.match for change in match_changes(told, now)}
    before, after = _by_end(told.values()), _by_end(now.values())
    return [
        GraphChange(
            match.pattern, match.key, *end, graph=graph_of(after.get(end, ())), before=graph_of(before.get(end, ()))
        )
        for end, match in ends.items()
    ]


def in_order(changes: Iterable[MatchChange | GraphChange]) -> list[MatchChange | GraphChange]:
    """As the changes of one record are told: retracts, then inserts, each by key, start, end and id."""
    return sorted(changes, key=lambda change: (change.op == "insert", change.order))


def _by_end(matches: Iterable[Match]) -> dict[_End, list[Match]]:
    ends: dict[_End, list[Match]] = {}
    for match in matches:
        ends.setdefault((match.end, match.last), []).append(match)
    return ends
