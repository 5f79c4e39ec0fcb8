"""`encoding: compressed`: all matches of a pattern and key that share an end event as one graph.

The graph is the shared buffer of SASE+ (section 5.1) without its version numbers: where following a pointer of another
run would make a match that is none, there are two nodes in the place of one. It is the smallest such graph, and a
function of the set of matches alone, whichever engine found them: the native one makes it without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeAlias

from afa.records import Graph, Match

# `ts` and id of an event, and the place of the variable that it is bound to.
_Bound: TypeAlias = tuple[tuple[int, str], int]


def graph_of(matches: Iterable[Match]) -> Graph:
    """The graph of these matches of a query, which end with the same event."""
    # What is added last is merged first: nodes are numbered depth first, in the order of their events.
    listed = sorted(((_returned(match), _path(match)[::-1], match) for match in matches), key=_order, reverse=True)
    if not listed:
        return Graph()
    events = sorted({event for _, path, _ in listed for event, _ in path})
    places = {event: place for place, event in enumerate(events)}
    until = {(match.start, match.first): match.until for _, _, match in listed}
    tree = _Tree()
    for returned, path, _ in listed:
        tree.add(returned, path)
    nodes = tree.merged()
    registers = {returned: match.registers for returned, _, match in listed}
    return Graph(
        variables=tuple(name for name, _ in listed[0][2].bindings or ()),
        events=tuple(events),
        nodes=tuple((variable, places[event], before) for (event, variable), before, _ in nodes),
        starts=tuple((number, until[event]) for number, ((event, _), _, starts) in enumerate(nodes) if starts),
        ends=tuple((node, registers[returned]) for returned, node in reversed(tree.ends)),
    )


def _order(listed: tuple[str, list[_Bound], Match]) -> tuple[str, list[_Bound]]:
    return listed[:2]


def _returned(match: Match) -> str:
    """What it returns, as text: 1, 1.0 and true are three values."""
    return json.dumps(dict(match.registers), ensure_ascii=False, separators=(",", ":"))


def _path(match: Match) -> list[_Bound]:
    """What it binds, as one sequence from the first event to the last.

    Of events with one `ts` a match does not say which comes first, but for its own first and last event and those of
    one variable, whose order stays. Of the others any order stands for the same match.
    """
    bound = [(event, place) for place, (_, events) in enumerate(match.bindings or ()) for event in events]
    first, last = (match.start, match.first), (match.end, match.last)
    return sorted(bound, key=lambda one: (one[0][0], one[0] == last, one[0] != first, one[1]))


class _Tree:
    """The paths from their ends back. Equal branches become one node when all are there."""

    def __init__(self) -> None:
        self.bound: list[_Bound] = []
        self.before: list[dict[_Bound, int]] = []
        self.starts: list[bool] = []
        self.roots: dict[str, dict[_Bound, int]] = {}  # by what is returned
        self.ends: list[tuple[str, int]] = []  # the same, once merged

    def add(self, returned: str, path: list[_Bound]) -> None:
        """A path, the last event first."""
        branches = self.roots.setdefault(returned, {})
        for bound in path:
            if bound not in branches:
                branches[bound] = len(self.bound)
                self.bound.append(bound)
                self.before.append({})
                self.starts.append(False)
            at = branches[bound]
            branches = self.before[at]
        self.starts[at] = True

    def merged(self) -> list[tuple[_Bound, tuple[int, ...], bool]]:
        """The nodes, each after those before it."""
        numbers: dict[tuple[_Bound, tuple[int, ...], bool], int] = {}
        node_of = [0] * len(self.bound)
        for at in reversed(range(len(self.bound))):  # a branch was added after the one that it hangs on
            before = tuple(sorted(node_of[branch] for branch in self.before[at].values()))
            node_of[at] = numbers.setdefault((self.bound[at], before, self.starts[at]), len(numbers))
        self.ends = [(returned, node_of[at]) for returned, found in self.roots.items() for at in found.values()]
        return list(numbers)
