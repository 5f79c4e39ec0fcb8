"""`encoding: compressed`: all matches of a pattern and key that share an end event as one graph.

The graph is the shared buffer of SASE+ (section 5.1) without its version numbers: where following a pointer of another
run would make a match that is none, there are two nodes in the place of one. It is the smallest such graph, and a
function of the set of matches alone, whichever engine found them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from afa.records import Graph, Match

# A variable by its place, and `ts` and id of an event that is bound to it.
_Bound: TypeAlias = tuple[int, tuple[int, str]]


def graph_of(matches: Iterable[Match]) -> Graph:
    """The graph of these matches of a query, which end with the same event."""
    listed = sorted(((match.content, _path(match), match) for match in matches), key=lambda one: one[:2])
    if not listed:
        return Graph()
    events = sorted({event for _, path, _ in listed for _, event in path})
    places = {event: place for place, event in enumerate(events)}
    until = {(match.start, match.first): match.until for _, _, match in listed}
    tree = _Tree()
    for content, path, _ in listed:
        tree.add(content, path)
    nodes = tree.merged()
    returned = {content: match.registers for content, _, match in listed}
    return Graph(
        variables=tuple(name for name, _ in listed[0][2].bindings or ()),
        events=tuple(events),
        nodes=tuple((variable, places[event], before) for (variable, event), before, _ in nodes),
        starts=tuple((number, until[event]) for number, ((_, event), _, starts) in enumerate(nodes) if starts),
        ends=tuple((node, returned[content]) for content, found in tree.ends.items() for node in found),
    )


def _path(match: Match) -> list[_Bound]:
    """What it binds, as one sequence from the first event to the last.

    Of events with one `ts` a match does not say which comes first, but for its own first and last event and those of
    one variable, whose order stays. Of the others any order stands for the same match.
    """
    bound = [(place, event) for place, (_, events) in enumerate(match.bindings or ()) for event in events]
    first, last = (match.start, match.first), (match.end, match.last)
    return sorted(bound, key=lambda one: (one[1][0], one[1] == last, one[1] != first, one[0]))


class _Tree:
    """The paths from their ends back. Equal branches become one node when all are there."""

    def __init__(self) -> None:
        self.bound: list[_Bound] = []
        self.before: list[dict[_Bound, int]] = []
        self.starts: list[bool] = []
        self.roots: dict[str, dict[_Bound, int]] = {}  # by what is returned
        self.ends: dict[str, list[int]] = {}  # the same, once merged

    def add(self, returned: str, path: list[_Bound]) -> None:
        branches = self.roots.setdefault(returned, {})
        for bound in reversed(path):
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
        self.ends = {returned: [node_of[at] for at in found.values()] for returned, found in self.roots.items()}
        return list(numbers)
