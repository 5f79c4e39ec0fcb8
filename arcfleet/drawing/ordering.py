"""Fewer crossings: nodes of a layer ordered by the barycentre of their neighbours, then by exchanging neighbours."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from arcfleet.drawing.layers import Layered

MAX_SWEEPS: Final = 24
WORK: Final = 120_000  # nodes looked at by all sweeps together
MAX_EXCHANGE_NODES: Final = 1_500
MAX_EXCHANGE_ROUNDS: Final = 8


def reduce_crossings(graph: Layered) -> None:
    """Reorders `graph.layers`. Deterministic, and bounded by the size of the graph."""
    best = [list(nodes) for nodes in graph.layers]
    fewest = crossings(graph)
    sweeps = max(2, min(MAX_SWEEPS, WORK // max(1, len(graph.layer))))
    for sweep in range(sweeps):
        if fewest == 0:
            break
        _sweep(graph, rightwards=sweep % 2 == 0)
        if len(graph.layer) <= MAX_EXCHANGE_NODES:
            _exchange(graph)
        count = crossings(graph)
        if count < fewest:
            fewest = count
            best = [list(nodes) for nodes in graph.layers]
    graph.layers = best


def _sweep(graph: Layered, *, rightwards: bool) -> None:
    neighbours = graph.before if rightwards else graph.after
    place = [0.0] * len(graph.layer)
    for nodes in graph.layers if rightwards else reversed(graph.layers):
        for index, node in enumerate(nodes):
            place[node] = (index + 0.5) / len(nodes)
        wish = {
            node: sum(place[other] for other in neighbours[node]) / len(neighbours[node])
            if neighbours[node]
            else place[node]
            for node in nodes
        }
        nodes.sort(key=wish.__getitem__)
        for index, node in enumerate(nodes):
            place[node] = (index + 0.5) / len(nodes)


def _exchange(graph: Layered) -> None:
    """Swaps nodes next to each other while that saves crossings."""
    position = graph.positions()
    for _ in range(MAX_EXCHANGE_ROUNDS):
        improved = False
        for nodes in graph.layers:
            for index in range(len(nodes) - 1):
                upper, lower = nodes[index], nodes[index + 1]
                saved = 0
                for neighbours in (graph.before, graph.after):
                    one = [position[node] for node in neighbours[upper]]
                    other = [position[node] for node in neighbours[lower]]
                    saved += _inversions(one, other) - _inversions(other, one)
                if saved > 0:
                    nodes[index], nodes[index + 1] = lower, upper
                    position[upper], position[lower] = index + 1, index
                    improved = True
        if not improved:
            return


def _inversions(upper: list[int], lower: list[int]) -> int:
    return sum(1 for one in upper for other in lower if one > other)


def crossings(graph: Layered) -> int:
    """Pairs of links that cross, counted with a Fenwick tree per pair of layers."""
    position = graph.positions()
    total = 0
    for nodes, right in pairwise(graph.layers):
        tree = [0] * (len(right) + 1)
        passed = 0
        for node in nodes:
            ends = [position[other] for other in graph.after[node]]
            for end in ends:
                total += passed - _prefix(tree, end + 1)
            for end in ends:
                index = end + 1
                while index < len(tree):
                    tree[index] += 1
                    index += index & -index
            passed += len(ends)
    return total


def _prefix(tree: list[int], index: int) -> int:
    total = 0
    while index > 0:
        total += tree[index]
        index -= index & -index
    return total
