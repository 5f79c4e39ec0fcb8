"""Examples 3 and 5 of the AFA paper, on Q1 (k = 2) with a window of 7."""

from dataclasses import replace
from pathlib import Path

import pytest

from afa import load_patterns
from afa.pattern import TimeWindow
from afa.records import Event, MatchChange
from afa.reference import ReferenceEngine

Q1 = Path(__file__).parents[2] / "examples" / "q1.yaml"
# Figure 2: e8 arrives last, its timestamp is 6
TIMES = {"e1": 1, "e2": 2, "e3": 3, "e4": 4, "e5": 5, "e8": 6, "e6": 7}
CHANGES = {"e1": -0.6, "e2": -0.1, "e3": -0.1, "e4": 0.1, "e5": 0.1, "e8": -0.1, "e6": 0.1}


@pytest.fixture
def engine() -> ReferenceEngine:
    (pattern,) = load_patterns(Q1)
    return ReferenceEngine([replace(pattern, window=TimeWindow(7))])


def feed(engine: ReferenceEngine, *names: str) -> list[MatchChange]:
    changes = []
    for name in names:
        event = Event("YHOO", TIMES[name], name, type="stock", data={"change": CHANGES[name]})
        changes += [change for change in engine.feed(event).changes if isinstance(change, MatchChange)]
    return changes


def test_example_3_the_ordered_sequence_is_accepted(engine: ReferenceEngine) -> None:
    assert not feed(engine, "e1", "e2", "e3", "e4", "e5", "e8")
    (change,) = feed(engine, "e6")
    assert (change.op, change.match.state) == ("insert", "q3")
    assert (change.match.first, change.match.last) == ("e1", "e6")
    assert change.match.registers == (("r1", 0), ("r2", 2))


def test_example_5_a_late_event_brings_the_match(engine: ReferenceEngine) -> None:
    assert not feed(engine, "e1", "e2", "e3", "e4", "e5", "e6")
    (change,) = feed(engine, "e8")
    assert change.op == "insert"
    assert (change.match.first, change.match.last) == ("e1", "e6")
    assert (change.match.start, change.match.end, change.match.until) == (1, 7, 8)
    assert change.match.registers == (("r1", 0), ("r2", 2))


def test_both_orders_give_one_match_id(engine: ReferenceEngine) -> None:
    (pattern,) = [table.pattern for table in engine.tables.values()]
    in_order = feed(engine, "e1", "e2", "e3", "e4", "e5", "e8", "e6")
    late = feed(ReferenceEngine([pattern]), "e1", "e2", "e3", "e4", "e5", "e6", "e8")
    assert [change.id for change in in_order] == [change.id for change in late]


def test_an_event_outside_the_window_does_not_match(engine: ReferenceEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIMES, "e6", 8)
    assert not feed(engine, "e1", "e2", "e3", "e4", "e5", "e6", "e8")
