"""First steps of the layered drawing: which arcs run backwards, which layer a state is in, and a node for every bend.

States are in even layers and labels in odd ones, so that a label is a node like any other and gets a place of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

# Above this, long edges are drawn straight across instead of around things: a picture of that size is for searching.
MAX_WAYPOINTS: Final = 20_000
WAYPOINT_REACH: Final = 4.0  # half the height that an edge passing by keeps free


@dataclass(slots=True)
class Edge:
    """One curve between two different states, and the nodes it passes, from left to right."""

    source: int
    target: int
    label_reach: float  # half the label's height
    chain: list[int] = field(default_factory=list)
    label: int = -1
    backwards: bool = False  # the chain's last node is the source


@dataclass(slots=True)
class Layered:
    """Nodes in layers; links only between neighbouring layers. Nodes below `state_count` are the states."""

    state_count: int
    layer: list[int]
    above: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)
    before: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    layers: list[list[int]] = field(default_factory=list)  # in order from top to bottom
    routed: bool = True  # every edge has a node in every layer that it crosses

    def add(self, layer: int, reach: float) -> int:
        self.layer.append(layer)
        self.above.append(reach)
        self.below.append(reach)
        self.before.append([])
        self.after.append([])
        return len(self.layer) - 1

    def link(self, left: int, right: int) -> None:
        self.after[left].append(right)
        self.before[right].append(left)

    def positions(self) -> list[int]:
        position = [0] * len(self.layer)
        for nodes in self.layers:
            for place, node in enumerate(nodes):
                position[node] = place
        return position


def build(state_count: int, finals: frozenset[int], edges: Sequence[Edge]) -> Layered:
    """Layers and chains of nodes; state 0 is the start. Sets `chain`, `label` and `backwards` of the edges."""
    ranks = _rank(state_count, finals, edges)
    graph = Layered(state_count, [])
    for state in range(state_count):
        graph.add(2 * ranks[state], 0.0)
    graph.routed = sum(2 * abs(ranks[edge.target] - ranks[edge.source]) - 1 for edge in edges) <= MAX_WAYPOINTS
    load: dict[int, float] = {}
    for edge in sorted(edges, key=lambda edge: abs(ranks[edge.target] - ranks[edge.source])):
        left, right = (edge.target, edge.source) if edge.backwards else (edge.source, edge.target)
        if graph.routed:
            spot = _label_layer(2 * ranks[left] + 1, 2 * ranks[right] - 1, load)
            places = range(2 * ranks[left] + 1, 2 * ranks[right])
        else:
            spot = 2 * ranks[left] + 1
            places = range(spot, spot + 1)
        load[spot] = load.get(spot, 0.0) + 2 * edge.label_reach
        inner = [graph.add(place, edge.label_reach if place == spot else WAYPOINT_REACH) for place in places]
        edge.chain = [left, *inner, right]
        edge.label = inner[spot - places.start]
    for edge in sorted(edges, key=lambda edge: edge.backwards):  # forward arcs first: they get the upper places
        for one, other in pairwise(edge.chain):
            if graph.layer[other] == graph.layer[one] + 1:
                graph.link(one, other)
    _first_order(graph)
    return graph


def _label_layer(first: int, last: int, load: dict[int, float]) -> int:
    """The emptiest label layer on the way, and of those the one nearest the middle."""
    middle = (first + last) / 2
    return min(range(first, last + 1, 2), key=lambda layer: (load.get(layer, 0.0), abs(layer - middle), layer))


def _rank(state_count: int, finals: frozenset[int], edges: Sequence[Edge]) -> list[int]:
    """Longest path from the start, once the arcs that close a cycle or lead back to the start are turned round."""
    following: list[list[int]] = [[] for _ in range(state_count)]
    for edge in edges:
        following[edge.source].append(edge.target)
    for targets in following:  # final states last: the long way to a final state is the story of the pattern
        targets.sort(key=lambda state: (state in finals, state))
    finished = _finishing_order(following)
    when = {state: number for number, state in enumerate(finished)}
    for edge in edges:
        edge.backwards = edge.target == 0 or when[edge.target] > when[edge.source]
    arriving: list[list[int]] = [[] for _ in range(state_count)]
    leaving: list[list[int]] = [[] for _ in range(state_count)]
    for edge in edges:
        left, right = (edge.target, edge.source) if edge.backwards else (edge.source, edge.target)
        arriving[right].append(left)
        leaving[left].append(right)
    return _longest_paths(arriving, leaving)


def _longest_paths(arriving: list[list[int]], leaving: list[list[int]]) -> list[int]:
    waiting = [len(sources) for sources in arriving]
    ready = [state for state, count in enumerate(waiting) if count == 0]
    ranks = [0] * len(arriving)
    for state in ready:
        for target in leaving[state]:
            ranks[target] = max(ranks[target], ranks[state] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    for state in range(1, len(arriving)):  # what nothing leads to stands close to where it leads
        if not arriving[state] and leaving[state]:
            ranks[state] = min(ranks[target] for target in leaving[state]) - 1
    return ranks


def _finishing_order(following: list[list[int]]) -> list[int]:
    """States as a depth-first walk leaves them; an arc to a state that is left later closes a cycle."""
    finished: list[int] = []
    seen = [False] * len(following)
    for root in range(len(following)):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, iter(following[root]))]
        while path:
            state, targets = path[-1]
            target = next((target for target in targets if not seen[target]), None)
            if target is None:
                finished.append(state)
                path.pop()
            else:
                seen[target] = True
                path.append((target, iter(following[target])))
    return finished


def _first_order(graph: Layered) -> None:
    """Every layer in the order of a depth-first walk: free of crossings if the graph is a tree."""
    graph.layers = [[] for _ in range(max(graph.layer) + 1)]
    seen = [False] * len(graph.layer)
    for root in range(len(graph.layer)):
        stack = [root]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                graph.layers[graph.layer[node]].append(node)
                stack.extend(reversed(graph.after[node]))
