"""A reader that checks order (promise P4): what is told of each key is what one process would tell that is fed the
partition's log from its beginning, in some batches, with the arc changes at some moments.

A batch tells the difference between what stands before and after it. So what is told of a key has to be a walk through
what stands after each record: forwards only, each step a difference, its retractions before its inserts. Whoever tells
something of an earlier moment after something of a later one, tells twice, or leaves out, leaves that walk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from afa import Engine
from afa.pattern import Pattern
from afa.source import Source
from arcfleet.fleet.arcs import StampedArc

Net: TypeAlias = frozenset[str]  # ids of the matches that stand
Change: TypeAlias = Mapping[str, Any]


class Logged(NamedTuple):
    """A record of a source's partition."""

    offset: int
    key: bytes | None
    value: bytes


class Moment(NamedTuple):
    """So many records were processed, and so many arc changes."""

    record: int
    arc: int

    def is_not_after(self, other: Moment) -> bool:
        return self.record <= other.record and self.arc <= other.arc


class History:
    """What stands of each key of a partition after each record, with each number of arc changes."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        place: tuple[str, int],
        log: Sequence[Logged],
        arcs: Sequence[StampedArc] = (),
    ) -> None:
        self._arcs = len(arcs)
        self._after: list[dict[str, list[tuple[int, Net]]]] = []
        for count in range(len(arcs) + 1):
            engine = Engine(patterns, sources=[Source(place[0])])
            for change in arcs[:count]:
                engine.change_arc(change.as_change())
            self._after.append(_run(engine, place, log))

    def moments(self, key: str) -> dict[Net, list[Moment]]:
        """When what stood of a key; of each stretch in which nothing changed its beginning."""
        begins = sorted({0, *(at for after in self._after for at, _ in after.get(key, ()))})
        found: dict[Net, list[Moment]] = defaultdict(list)
        for arc, after in enumerate(self._after):
            nets = after.get(key, [])
            for begin in begins:
                before = bisect_right(nets, begin, key=lambda one: one[0])
                found[nets[before - 1][1] if before else frozenset()].append(Moment(begin, arc))
        return found


def _run(engine: Engine, place: tuple[str, int], log: Sequence[Logged]) -> dict[str, list[tuple[int, Net]]]:
    after: dict[str, list[tuple[int, Net]]] = defaultdict(list)
    for number, record in enumerate(log, 1):
        told = engine.feed([record.value], keys=[record.key], partitions=[place], offsets=[record.offset])
        for key, changes in by_key(told.to_records()).items():
            net = after[key][-1][1] if after[key] else frozenset()
            after[key].append((number, _applied(net, changes)))
    return after


def by_key(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Inserts and retractions, in their order."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change["op"] in ("insert", "retract"):
            found[change["key"]].append(change)
    return found


def _applied(net: Net, changes: Iterable[Change]) -> Net:
    for change in changes:
        net = net | {change["match"]} if change["op"] == "insert" else net - {change["match"]}
    return net


def inversions(told: Iterable[Change], history: History) -> list[str]:
    """What is told of a partition against its history: the keys of which it is out of order, each with the place."""
    return [
        f"key {key}: out of order from change {at} on: {changes[at:][:3]}"
        for key, changes in by_key(told).items()
        if (at := _first_out_of_order(changes, history.moments(key))) is not None
    ]


def _first_out_of_order(changes: Sequence[Change], moments: Mapping[Net, Sequence[Moment]]) -> int | None:
    """The walk may take any way; so all moments are kept at which so many changes can have been told."""
    nets = [_applied(frozenset(), changes[:count]) for count in range(len(changes) + 1)]
    reached: list[list[Moment]] = [[] for _ in nets]
    reached[0] = list(moments.get(nets[0], ()))
    furthest = 0
    for count, before in enumerate(reached):
        if not before:
            continue
        furthest = count
        for end in _ends_of_steps(changes, count, nets[count]):
            after = (to for to in moments.get(nets[end], ()) if any(one.is_not_after(to) for one in before))
            reached[end] += [to for to in after if to not in reached[end]]
    return None if reached[-1] else furthest


def _ends_of_steps(changes: Sequence[Change], begin: int, net: Net) -> Iterable[int]:
    """Where a step that begins here may end: it takes back what stands, tells what does not, and no match twice."""
    seen: set[str] = set()
    inserts = False
    for at in range(begin, len(changes)):
        change = changes[at]
        if change["match"] in seen or (inserts and change["op"] == "retract"):
            return
        if (change["match"] in net) != (change["op"] == "retract"):
            return
        inserts |= change["op"] == "insert"
        seen.add(change["match"])
        yield at + 1
