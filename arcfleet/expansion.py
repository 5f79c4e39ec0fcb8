"""Compressed records back to single matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from afa.errors import RecordError
from afa.records import Match

# Of a match, from its first event on: a node, and the rest.
_Way: TypeAlias = tuple[int, "_Way | None"]
_OF_THE_GRAPH = ("op", "match", "pattern", "key", "end", "graph")

MATCHES_MAX: Final = 100_000  # of one record, unless the caller wants more


def expand(record: Mapping[str, Any], most: int = MATCHES_MAX) -> list[dict[str, Any]]:
    """The verbose matches of a compressed record, ordered by start and id; none for a retraction.

    A record replaces the one with the same `match` id that came before. Raises RecordError if it is none, or damaged,
    or stands for more than `most` matches: a small graph may stand for more than any memory holds.
    """
    check_compressed(record)
    count = number_of_matches(record)
    if count > most:
        raise RecordError(
            f"a graph of {_readable(count)} matches; `expand` makes {most:,} at most",
            fix="read the graph itself, which says what its matches bind, or pass `most`",
        )
    with _damage_told():
        found = list(_matches(record))
    # What else a record says (degraded, origin) holds for each of its matches.
    other = {name: value for name, value in record.items() if name not in _OF_THE_GRAPH}
    told = [match.as_json("insert", match.id) | other for match in found]
    return sorted(told, key=lambda match: (match["start"], match["match"]))


def _readable(count: int) -> str:
    """Python writes no number of more than some thousand digits."""
    return f"{count:,}" if count < 10**18 else f"about 2^{count.bit_length() - 1}"


def number_of_matches(record: Mapping[str, Any]) -> int:
    """How many matches a sound compressed record stands for, which may be far more than it has nodes."""
    graph = record["graph"]
    starts = {node for node, _ in graph["starts"]}
    ways: list[int] = []
    for number, (_, _, before) in enumerate(graph["nodes"]):
        ways.append((number in starts) + sum(ways[node] for node in before))
    return sum(ways[node] for node, _ in graph["ends"])


def check_compressed(record: Mapping[str, Any]) -> None:
    """Raises RecordError if it is damaged."""
    with _damage_told():
        _check(record["graph"])


def last_event(record: Mapping[str, Any]) -> str:
    """The id of the event that all matches of a sound compressed record end with; empty for a retraction."""
    graph = record["graph"]
    return next((str(graph["events"][graph["nodes"][node][1]][1]) for node, _ in graph["ends"]), "")


@contextmanager
def _damage_told() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError) as error:
        fix = "`expand` takes what a query with `encoding: compressed` tells"
        raise RecordError(f"not a compressed record: {error!r}", fix=fix) from None


def _matches(record: Mapping[str, Any]) -> Iterator[Match]:
    graph = record["graph"]
    _check(graph)
    variables, nodes, until = graph["variables"], graph["nodes"], dict(graph["starts"])
    events = [(ts, id_) for ts, id_ in graph["events"]]
    for end, returned in graph["ends"]:
        last = events[nodes[end][1]]
        for node, way in _ways(nodes, until, end):
            first = events[nodes[node][1]]
            bound: dict[int, list[tuple[int, str]]] = {place: [] for place in range(len(variables))}
            for variable, event in way:
                bound[variable].append(events[event])
            yield Match(
                record["pattern"],
                record["key"],
                first[0],
                last[0],
                until[node],
                "",
                tuple(returned.items()),
                first[1],
                last[1],
                tuple((variables[place], tuple(found)) for place, found in bound.items()),
            )


def _ways(nodes: list[Any], starts: Mapping[int, Any], end: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Every way from an end back to a start: that start, and what is bound from there to the end."""
    todo: list[_Way] = [(end, None)]
    while todo:
        way = todo.pop()
        if way[0] in starts:
            yield way[0], _bound(nodes, way)
        todo += [(before, way) for before in nodes[way[0]][2]]


def _bound(nodes: list[Any], way: _Way) -> list[tuple[int, int]]:
    bound = []
    rest: _Way | None = way
    while rest is not None:
        bound.append((nodes[rest[0]][0], nodes[rest[0]][1]))
        rest = rest[1]
    return bound


def _check(graph: Mapping[str, Any]) -> None:
    """A node comes after those before it, so that every way back ends; and all numbers are of something."""
    variables, events, nodes = len(graph["variables"]), len(graph["events"]), len(graph["nodes"])
    named = [(node, nodes) for node, _ in [*graph["starts"], *graph["ends"]]]
    for number, (variable, event, before) in enumerate(graph["nodes"]):
        named += [(variable, variables), (event, events), *((node, number) for node in before)]
    for number, bound in named:
        if type(number) is not int or not 0 <= number < bound:
            raise ValueError(f"{number!r} where a number below {bound} should be")
