"""How high every node stands: Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment", turned by 90°.

Four extreme placements, each with as many straight edges as its direction allows, then for every node the mean of the
two in the middle. A part of a long edge between two bends is straight in each of the four, hence in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from arcfleet.drawing.layers import Layered

GAP: Final = 14.0  # between the outlines of two neighbours in a layer


def heights(graph: Layered, layers: Sequence[list[int]]) -> dict[int, float]:
    """The y of the centre line of every node in these layers: neighbours in a layer keep their order and the gap."""
    position = {node: place for nodes in layers for place, node in enumerate(nodes)}
    conflicts = _conflicts(graph, layers, position)
    placements: list[dict[int, float]] = []
    for rightwards in (True, False):
        for downwards in (True, False):
            sign = 1 if downwards else -1
            turned = [nodes[::sign] for nodes in (layers if rightwards else reversed(layers))]
            neighbours = graph.before if rightwards else graph.after
            places = {node: sign * place for node, place in position.items()}
            placed = _compact(graph, turned, _align(turned, neighbours, places, conflicts), downwards)
            placements.append({node: sign * y for node, y in placed.items()})
    narrowest = min(placements, key=lambda placed: max(placed.values()) - min(placed.values()))
    shifts = []
    for number, placed in enumerate(placements):
        edge = min if number % 2 == 0 else max
        shifts.append(edge(narrowest.values()) - edge(placed.values()))
    ys = {node: sorted(p[node] + shift for p, shift in zip(placements, shifts, strict=True)) for node in position}
    return {node: (second + third) / 2 for node, (_, second, third, _) in ys.items()}


def _conflicts(graph: Layered, layers: Sequence[list[int]], position: dict[int, int]) -> set[tuple[int, int]]:
    """Links at a state that cross a link inside a long edge: these may not be made straight."""
    found: set[tuple[int, int]] = set()
    for left, right in pairwise(layers):
        low, scanned = 0, 0
        for index, node in enumerate(right):
            inner = _inner_neighbour(graph, node)
            if inner is None and index < len(right) - 1:
                continue
            high = position[inner] if inner is not None else len(left) - 1
            for other in right[scanned : index + 1]:
                for end in graph.before[other]:
                    is_inner = end >= graph.state_count and other >= graph.state_count
                    if not is_inner and not low <= position[end] <= high:
                        found |= {(end, other), (other, end)}
            scanned, low = index + 1, high
    return found


def _inner_neighbour(graph: Layered, node: int) -> int | None:
    if node < graph.state_count:
        return None
    return next((other for other in graph.before[node] if other >= graph.state_count), None)


def _align(
    layers: Sequence[list[int]],
    neighbours: list[list[int]],
    position: dict[int, int],
    conflicts: set[tuple[int, int]],
) -> dict[int, int]:
    """Blocks of nodes that stand at one height: for every node the representative of its block."""
    root = {node: node for nodes in layers for node in nodes}
    for nodes in layers[1:]:
        limit = -len(root)
        for node in nodes:
            others = sorted(neighbours[node], key=position.__getitem__)
            middle = others[(len(others) - 1) // 2 : len(others) // 2 + 1]
            for other in middle:
                if (node, other) not in conflicts and limit < position[other]:
                    root[node] = root[other]
                    limit = position[other]
                    break
    return root


def _compact(graph: Layered, layers: Sequence[list[int]], root: dict[int, int], downwards: bool) -> dict[int, float]:
    """Blocks as high up as they can be, then each one lowered as far as the block below it leaves room."""
    below: dict[int, dict[int, float]] = {block: {} for block in root.values()}
    above: dict[int, int] = dict.fromkeys(below, 0)
    for nodes in layers:
        for one, other in pairwise(nodes):
            upper, lower = root[one], root[other]
            if lower not in below[upper]:
                above[lower] += 1
            below[upper][lower] = max(below[upper].get(lower, 0.0), _distance(graph, one, other, downwards))
    order = _topological(below, above)
    y = dict.fromkeys(order, 0.0)
    for block in order:
        for lower, distance in below[block].items():
            y[lower] = max(y[lower], y[block] + distance)
    for block in reversed(order):
        if below[block]:
            y[block] = max(y[block], min(y[lower] - distance for lower, distance in below[block].items()))
    return {node: y[block] for node, block in root.items()}


def _distance(graph: Layered, one: int, other: int, downwards: bool) -> float:
    return GAP + (graph.below[one] + graph.above[other] if downwards else graph.above[one] + graph.below[other])


def _topological(below: dict[int, dict[int, float]], above: dict[int, int]) -> list[int]:
    order = [block for block in below if above[block] == 0]
    for block in order:
        for lower in below[block]:
            above[lower] -= 1
            if above[lower] == 0:
                order.append(lower)
    assert len(order) == len(below)  # blocks never cross
    return order
