"""What the native engine tells, held against the reference at chosen places instead of after every record.

The reference computes everything anew each time, which a long tape does not allow. Here it only takes in records, and
computes when asked: what has been told up to there must be the matches of what has arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from afa import Engine
from afa.changes import Changes
from afa.pattern import Pattern
from afa.records import Change, EmittedPunctuation, MatchChange
from afa.reference import ReferenceEngine
from afa.reference_batches import feed_reference

MOST_CHANGES = 2_000  # some patterns find ever more on a long tape; what follows would only take time
NetMatches = dict[str, MatchChange]


class LazyReference(ReferenceEngine):
    """The reference without a memory of what it has told; it forgets nothing."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        super().__init__(patterns)
        self.stale: set[tuple[str, str]] = set()
        self.current: dict[tuple[str, str], set[str]] = {}

    def _differences(self, patterns: Iterable[str], keys: Iterable[str]) -> list[Change]:
        names = list(patterns)
        self.stale |= {(name, key) for key in keys for name in names}
        return []

    def _forget(self) -> None:
        pass

    def match_ids(self) -> set[str]:
        """The ids of all matches of what has arrived."""
        for name, key in self.stale:
            run = self._computation(name, key)
            self.current[name, key] = {match.id for match in run.matches()}
        self.stale.clear()
        return set().union(*self.current.values())


def follow(net: NetMatches, changes: Iterable[Change]) -> None:
    """Applies changes to the net matches, and checks that they can be applied."""
    for change in changes:
        if isinstance(change, MatchChange) and change.op == "insert":
            assert change.id not in net, f"inserted twice: {change}"
            net[change.id] = change
        elif isinstance(change, MatchChange):
            assert change.id in net, f"retracted what was not there: {change}"
            assert net.pop(change.id).match == change.match


def assert_ordered(changes: Iterable[Change]) -> None:
    """Retracts, then inserts, each in the order of the semantics; then punctuations."""
    kinds = ("retract", "insert", "punctuation")
    places = []
    for change in changes:
        if isinstance(change, EmittedPunctuation):
            places.append((2, (change.pattern, 0, 0, "")))
        else:
            places.append((kinds.index(change.op), change.order))
    assert places == sorted(places)


def assert_lawful(patterns: Sequence[Pattern], values: list[bytes], every: int) -> list[Changes]:
    """Feeds record by record and compares each so many; answers with what each led to, while it is not too much."""
    engine, reference = Engine(patterns), LazyReference(patterns)
    net: NetMatches = {}
    told, count = [], 0
    for index, value in enumerate(values):
        changes = engine.feed([value])
        count += len(changes)
        is_last = index == len(values) - 1 or count > MOST_CHANGES
        expected = feed_reference(reference, [value], index, "record")
        assert [place for place, _ in changes.bad] == [place for place, _ in expected.bad], value
        assert _late(changes) == _late(expected), value
        assert [change for change in changes if isinstance(change, EmittedPunctuation)] == expected.changes, value
        assert_ordered(changes)
        follow(net, changes)
        told.append(changes)
        if index % every == every - 1 or is_last:
            assert set(net) == reference.match_ids(), f"after record {index}: {value!r}"
        if is_last:
            break
    return told


def _late(changes: Changes) -> list[tuple[int, str]]:
    """Of several conditions that make a record late, either may be named."""
    return [(index, reason.partition(" is below the punctuation ")[0]) for index, reason in changes.late]


def netted(told: Sequence[Changes]) -> list[dict[str, Any]]:
    """What several feeds led to, as one that tells net changes would say it."""
    balance: dict[str, int] = {}
    last: dict[tuple[str, str], MatchChange] = {}
    punctuations: dict[str, Change] = {}
    for change in (change for changes in told for change in changes):
        if isinstance(change, MatchChange):
            balance[change.id] = balance.get(change.id, 0) + (1 if change.op == "insert" else -1)
            last[change.id, change.op] = change
        else:
            punctuations[change.pattern] = change
    gone = [last[id_, "retract"] for id_, count in balance.items() if count < 0]
    come = [last[id_, "insert"] for id_, count in balance.items() if count > 0]
    ordered = [*sorted(gone, key=lambda change: change.order), *sorted(come, key=lambda change: change.order)]
    return [change.as_json() for change in [*ordered, *(punctuations[name] for name in sorted(punctuations))]]
