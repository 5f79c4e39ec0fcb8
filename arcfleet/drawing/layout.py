"""The layout of one automaton: left to right in layers, and a place for every label that nothing else touches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from afa.pattern import Arc, Pattern
from arcfleet.drawing import layers, ordering, placement, rows, text
from arcfleet.drawing.channels import Link
from arcfleet.drawing.geometry import Box, Curve, Piece, bounds
from arcfleet.drawing.layers import Edge
from arcfleet.drawing.text import Label

RADIUS: Final = 25.0  # of a state
STATE_CHARACTER: Final = 8.6  # width of a character in a state's name
STATE_PADDING: Final = 11.5
CHARACTER: Final = 7.4  # in a label
LINE: Final = 16.0
LABEL_PADDING_X: Final = 9.0
LABEL_PADDING_Y: Final = 5.0
PORT_GAP: Final = 11.0
PORT_MARGIN: Final = 9.0  # no link meets a state closer to its top or bottom
LOOP_LEG: Final = 26.0  # from a state to the label of its loop
LOOP_REACH: Final = 22.0  # half the width of a loop
START_ARROW: Final = 44.0
GAP_AT_STATE: Final = 24.0  # of a link that no channel leads
MAX_CURVES: Final = 3  # of arcs between the same two states; more share one curve


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    label: Label
    box: Box


@dataclass(frozen=True, slots=True)
class PlacedState:
    name: str
    text: str
    box: Box
    final: bool


@dataclass(frozen=True, slots=True)
class PlacedArcs:
    """One curve and the arcs it stands for: more than one only where many arcs join the same two states."""

    labels: tuple[PlacedLabel, ...]
    curve: Curve
    epsilon: bool
    never: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything inside `(0, 0)` to `(width, height)`."""

    states: tuple[PlacedState, ...]
    arcs: tuple[PlacedArcs, ...]
    start: Curve
    width: float
    height: float


class _Bundle:
    """Arcs that share a curve."""

    def __init__(self, arcs: Sequence[Arc]) -> None:
        self.arcs = arcs
        self.labels = [text.label(arc) for arc in arcs]
        self.width = max(label.columns for label in self.labels) * CHARACTER + 2 * LABEL_PADDING_X
        self.height = sum(_label_height(label) for label in self.labels)
        self.edge: Edge | None = None  # None: a loop

    def place(self, x: float, bottom: float) -> tuple[PlacedLabel, ...]:
        """The labels as one stack, centred at x."""
        placed, top = [], bottom - self.height
        for label in self.labels:
            box = Box(x - self.width / 2, top, x + self.width / 2, top + _label_height(label))
            placed.append(PlacedLabel(label, box))
            top = box.bottom
        return tuple(placed)

    def drawn(self, labels: tuple[PlacedLabel, ...], curve: Curve) -> PlacedArcs:
        epsilon = all(arc.epsilon for arc in self.arcs)
        return PlacedArcs(labels, curve, epsilon, never=all(arc.lifetime.is_empty for arc in self.arcs))


def _label_height(label: Label) -> float:
    return len(label.lines) * LINE + 2 * LABEL_PADDING_Y


def lay_out(pattern: Pattern) -> Layout:
    """Deterministic, and in time that is bounded by the size of the pattern: no search without a cap."""
    return _Drawing(pattern).layout()


def _bundles(pattern: Pattern, index: dict[str, int]) -> list[_Bundle]:
    """Which arcs share a curve: those of a loop, and parallel ones where there are too many."""
    groups: dict[tuple[str, str, bool], list[Arc]] = {}
    for arc in pattern.arcs:
        dashed = arc.epsilon and arc.source != arc.target
        groups.setdefault((arc.source, arc.target, dashed), []).append(arc)
    bundles = []
    for (source, target, _), arcs in groups.items():
        together = source == target or len(arcs) > MAX_CURVES
        for group in [arcs] if together else [[arc] for arc in arcs]:
            bundle = _Bundle(group)
            if source != target:
                bundle.edge = Edge(index[source], index[target], bundle.height / 2)
            bundles.append(bundle)
    return bundles


class _Drawing:
    """The steps of `layout`, in order, and what each hands to the next."""

    def __init__(self, pattern: Pattern) -> None:
        self.states = pattern.states
        finals = text.final_states(pattern)
        self.finals = frozenset(number for number, state in enumerate(self.states) if state in finals)
        index = {state: number for number, state in enumerate(self.states)}
        self.bundles = _bundles(pattern, index)
        self.loops = {index[bundle.arcs[0].source]: bundle for bundle in self.bundles if bundle.edge is None}
        self.boxes: list[Box] = []  # of the states, from their centres
        self.y: list[float] = []
        self.links: dict[tuple[int, int], Link] = {}

    def layout(self) -> Layout:
        edges = [bundle.edge for bundle in self.bundles if bundle.edge is not None]
        self.graph = layers.build(len(self.states), self.finals, edges)
        self._size_states()
        ordering.reduce_crossings(self.graph)
        self.position = self.graph.positions()
        self._place([])
        cuts: list[int] = []
        if self.graph.routed:
            cuts = rows.choose_cuts(self.graph.layers, self._shapes(), list(self.links.values()))
        if cuts:
            self._place(cuts)
        self.rows = rows.arrange(self.graph.layers, cuts, self._shapes(), list(self.links.values()))
        self.x = self.rows.x
        self.y = [y + down for y, down in zip(self.y, self.rows.down, strict=True)]
        return self._assemble()

    def _size_states(self) -> None:
        """A state is as wide as its name and as high as the arcs at one of its sides need; its loops stand on it."""
        graph = self.graph
        for state, name in enumerate(self.states):
            half_width = max(RADIUS, text.columns(text.state_text(name)) * STATE_CHARACTER / 2 + STATE_PADDING)
            ports = max(len(graph.before[state]), len(graph.after[state]))
            half_height = max(RADIUS, ((ports - 1) * PORT_GAP) / 2 + PORT_MARGIN)
            self.boxes.append(Box(-half_width, -half_height, half_width, half_height))
            graph.above[state] = half_height + (LOOP_LEG + self.loops[state].height if state in self.loops else 0.0)
            graph.below[state] = half_height

    def _place(self, cuts: Sequence[int]) -> None:
        """The height of every node, each row on its own, and of the ends of every link."""
        graph = self.graph
        self.y = [0.0] * len(graph.layer)
        for begin, end in pairwise([0, *cuts, len(graph.layers)]):
            for node, y in placement.heights(graph, graph.layers[begin:end]).items():
                self.y[node] = y
        self.links = {
            (one, other): Link(one, other, self.y[one], self.y[other])
            for one in range(len(graph.layer))
            for other in graph.after[one]
        }
        for state in range(len(self.states)):
            after = self._ports(state, graph.after[state], is_level=False)
            before = self._ports(state, graph.before[state], is_level=graph.layer[state] in cuts)
            for other, y in after.items():
                self.links[state, other].y_left += y
            for other, y in before.items():
                self.links[other, state].y_right += y

    def _ports(self, state: int, others: Sequence[int], *, is_level: bool) -> dict[int, float]:
        """Where links meet a side of a state: at the height they come from (or all level), but apart."""
        ordered = sorted(others, key=self.position.__getitem__)
        wishes = [0.0 if is_level else self.y[other] - self.y[state] for other in ordered]
        return dict(zip(ordered, _apart(wishes, self.boxes[state].bottom - PORT_MARGIN), strict=True))

    def _shapes(self) -> list[list[Box]]:
        """What must not be drawn over, for every node."""
        shapes: list[list[Box]] = []
        for state, box in enumerate(self.boxes):
            shapes.append([box.moved(0.0, self.y[state])])
            if state in self.loops:
                bottom, loop = self.y[state] + box.top - LOOP_LEG, self.loops[state]
                shapes[-1].append(Box(-loop.width / 2, bottom - loop.height, loop.width / 2, bottom))
                shapes[-1].append(Box(-LOOP_REACH, bottom, LOOP_REACH, bottom + LOOP_LEG))
        shapes += [[Box(0.0, y, 0.0, y)] for y in self.y[len(self.states) :]]
        for bundle in self.bundles:
            if bundle.edge is not None:
                y, width, height = self.y[bundle.edge.label], bundle.width / 2, bundle.height / 2
                shapes[bundle.edge.label] = [Box(-width, y - height, width, y + height)]
        shapes[0].append(Box(self.boxes[0].left - START_ARROW, self.y[0], 0.0, self.y[0]))
        return shapes

    def _assemble(self) -> Layout:
        states = [
            PlacedState(name, text.state_text(name), box.moved(self.x[state], self.y[state]), state in self.finals)
            for state, (name, box) in enumerate(zip(self.states, self.boxes, strict=True))
        ]
        loops = {id(bundle): self._loop(state, bundle) for state, bundle in self.loops.items()}
        arcs = [self._edge(bundle, bundle.edge) if bundle.edge else loops[id(bundle)] for bundle in self.bundles]
        left, middle = states[0].box.left, self.y[0]
        start = Curve((left - START_ARROW, middle), (((left, middle),),))
        return _at_origin(states, arcs, start)

    def _loop(self, state: int, bundle: _Bundle) -> PlacedArcs:
        box = self.boxes[state].moved(self.x[state], self.y[state])
        (x, _), foot, bend = box.centre, LOOP_REACH / 2, 1.6 * LOOP_REACH
        y = box.top + _receded(foot - (box.width / 2 - RADIUS))
        rise = (LOOP_LEG + LINE) / 0.75  # a curve goes three quarters of the way to its control points
        curve = Curve((x - foot, y), (((x - bend, y - rise), (x + bend, y - rise), (x + foot, y)),))
        return bundle.drawn(bundle.place(x, box.top - LOOP_LEG), curve)

    def _edge(self, bundle: _Bundle, edge: Edge) -> PlacedArcs:
        labels = bundle.place(self.x[edge.label], self.y[edge.label] + bundle.height / 2)
        return bundle.drawn(labels, self._edge_curve(edge))

    def _edge_curve(self, edge: Edge) -> Curve:
        first, last = edge.chain[0], edge.chain[-1]
        links = [self.links.get(ends) or self._direct(*ends) for ends in pairwise(edge.chain)]
        y_start, y_end = links[0].y_left, links[-1].y_right
        x_start = self.x[first] + self.boxes[first].right - self._inset(first, y_start)
        x_end = self.x[last] + self.boxes[last].left + self._inset(last, y_end)
        pieces: list[Piece] = [((x_start, y_start),)]
        for link in links:
            pieces += self._link_pieces(link)
        pieces.append(((x_end, y_end),))
        distinct = [piece for before, piece in pairwise(pieces) if math.dist(before[-1], piece[-1]) > 0.05]
        curve = Curve((x_start, y_start), tuple(distinct))
        return curve.reversed() if edge.backwards else curve

    def _link_pieces(self, link: Link) -> list[Piece]:
        if route := self.rows.routes.get((link.left, link.right)):
            return rows.rounded(route)
        begin, end = (link.bend_from, link.y_left), (link.bend_to, link.y_right)
        if abs(link.y_left - link.y_right) < 0.05:
            return [(end,)]
        middle = (link.bend_from + link.bend_to) / 2
        return [(begin,), ((middle, link.y_left), (middle, link.y_right), end)]

    def _direct(self, one: int, other: int) -> Link:
        """Across the layers of an edge that is too long to be led around things."""
        right = self.x[other] + (self.boxes[other].left - GAP_AT_STATE if other < len(self.states) else 0.0)
        return Link(one, other, self.y[one], self.y[other], self.x[one], right)

    def _inset(self, state: int, y: float) -> float:
        return _receded(abs(y - self.y[state]) - (self.boxes[state].bottom - RADIUS))


def _receded(past: float) -> float:
    """How far the outline of a state has receded, this far past the point where its round corner begins."""
    return 0.0 if past <= 0 else RADIUS - math.sqrt(max(0.0, RADIUS**2 - past**2))


def _apart(wishes: Sequence[float], reach: float) -> list[float]:
    """Nearest to the wishes (rising) at a minimum distance within [-reach, reach]: pooling of adjacent violators."""
    if not wishes:
        return []
    gap = min(PORT_GAP, 2 * reach / max(1, len(wishes) - 1))
    pools: list[tuple[float, int]] = []  # mean and size
    for number, wish in enumerate(wishes):
        mean, size = max(-reach, min(reach, wish)) - number * gap, 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        pools.append((mean, size))
    level = [mean for mean, size in pools for _ in range(size)]
    last = reach - (len(wishes) - 1) * gap
    return [max(-reach, min(last, mean)) + number * gap for number, mean in enumerate(level)]


def _at_origin(states: Sequence[PlacedState], arcs: Sequence[PlacedArcs], start: Curve) -> Layout:
    boxes = [state.box for state in states] + [label.box for arc in arcs for label in arc.labels]
    points = [start.start, *(point for arc in arcs for piece in arc.curve.pieces for point in piece[-1:])]
    frame = bounds([*boxes, *(Box(x, y, x, y) for x, y in points)])
    x, y = -frame.left, -frame.top
    return Layout(
        tuple(PlacedState(state.name, state.text, state.box.moved(x, y), state.final) for state in states),
        tuple(
            PlacedArcs(
                tuple(PlacedLabel(placed.label, placed.box.moved(x, y)) for placed in arc.labels),
                arc.curve.moved(x, y),
                arc.epsilon,
                arc.never,
            )
            for arc in arcs
        ),
        start.moved(x, y),
        frame.width,
        frame.height,
    )
