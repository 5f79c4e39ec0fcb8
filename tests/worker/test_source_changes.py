"""Sources that come into the fleet document, or go from it, between two starts of its workers, on the fake log."""

import pytest
from support.changing_fleet import PAIR, ChangingFleet, event
from support.fleets import audit

from afa.source import Source, SourcePunctuation
from arcfleet.fleet.arcs import stamp
from worker.errors import WorkerError

SLACK = SourcePunctuation(slack="0ms")
IDLE = SourcePunctuation(slack="0ms", idle="1s")
OF_A = PAIR | {"pattern": "of-a", "sources": ["a"]}


def test_an_added_source_is_read_from_its_start_once():
    fleet = ChangingFleet(Source("a"))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"), Source("b", start="latest"))
    fleet.publish("b", event("before", 1500, 2))
    fleet.settle()
    assert fleet.committed("a").positions == {"a": 1, "b": 1}
    fleet.change(Source("a"), Source("b", start="latest"))
    fleet.publish("b", event("b1", 2000, 2))
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "b1")]
    assert len(fleet.said("source added")) == 1


def test_an_added_source_that_is_silent_holds_nothing_up():
    fleet = ChangingFleet(Source("a"))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a", punctuation=SLACK), Source("b", punctuation=IDLE))
    fleet.publish("a", event("a2", 2000, 2))
    fleet.settle(5.0)
    assert fleet.net() == [("pair", "a1", "a2")]
    assert fleet.committed("a").punctuations == {"a": 2000, "b": 2000}


def test_what_punctuations_have_promised_stays_true_of_an_added_source():
    fleet = ChangingFleet(Source("a", punctuation=SLACK))
    fleet.publish("a", event("a1", 1000, 1), event("a2", 5000, 3))
    fleet.settle()
    fleet.change(Source("a", punctuation=SLACK), Source("b", punctuation=SLACK))
    fleet.publish("b", event("late", 2000, 2), event("b1", 5000, 2))
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "b1")]
    assert len(fleet.simulation.committed("late", 0)) == 1


def test_a_removed_source_is_neither_read_nor_waited_for():
    fleet = ChangingFleet(Source("a", punctuation=SLACK), Source("b", punctuation=SLACK))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.publish("b", event("b1", 1000, 3))
    fleet.settle()
    fleet.publish("b", event("b2", 2000, 2))
    fleet.change(Source("a", punctuation=SLACK), removed=["b"])
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "a2")]
    assert fleet.committed("a").punctuations == {"a": 3000}
    assert [change["ts"] for change in fleet.simulation.changes() if change["op"] == "punctuation"][-1] == 3000
    assert "'topic': 'b'" in fleet.said("source removed")[0]


def test_what_a_removed_source_held_back_is_told_once():
    """Also after more restarts: snapshots go on telling of it."""
    query = "PATTERN SEQ(t x, ~u y) WHERE skip_till_next_match(x, y) { x.x >= 0 } WITHIN 1 s"
    alone = {"pattern": "alone", "query": query}
    fleet = ChangingFleet(Source("a", punctuation=SLACK), Source("b", punctuation=SLACK), documents=[alone])
    fleet.publish("a", event("a1", 1000, 1), event("a2", 6000, 1), event("a3", 9000, 1))
    fleet.publish("b", event("b1", 4000, 1))
    fleet.settle()
    assert fleet.net() == [("alone", "a1", "a1")]
    for _ in range(3):
        fleet.change(Source("a", punctuation=SLACK), removed=["b"])
        fleet.settle()
        assert fleet.net() == [("alone", f"{name}", f"{name}") for name in ("a1", "a2", "b1")]
        assert not audit(fleet.simulation.changes()).doubles
    fleet.simulation.publish_arcs(stamp([alone | {"pattern": "new"}], fleet_table(fleet)))
    fleet.settle()
    fleet.publish("a", event("a4", 20_000, 1))
    fleet.settle()
    assert fleet.net()[-3:] == [("alone", "a3", "a3"), ("alone", "b1", "b1"), ("new", "a3", "a3")]


def test_a_source_is_removed_after_all_that_came_of_it_is_in_snapshots():
    fleet = ChangingFleet(Source("a"), Source("b"))
    fleet.publish("b", *(event(f"b{number}", 1000 + number, 1) for number in range(3)))
    for number in range(60):  # which are no reason to write snapshots yet
        fleet.simulation.clock.advance(0.02)
        fleet.simulation._turn()
        fleet.publish("a", event(f"a{number}", 10, 3))
    fleet.change(Source("a"), removed=["b"], crash=True)
    with pytest.raises(WorkerError, match="the source b was removed, but partition 0 has up to 3") as caught:
        fleet.settle()
    assert "SIGTERM" in caught.value.fix


@pytest.mark.parametrize("sources", [[Source("b")], [Source("b"), Source("a")], [Source("c"), Source("a")]])
def test_the_first_source_cannot_change(sources):
    fleet = ChangingFleet(Source("a"), Source("b"))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(*sources)
    with pytest.raises(WorkerError, match=f"the first source is {sources[0].topic}, and was a when") as caught:
        fleet.settle()
    assert "put a first in the fleet document" in caught.value.fix


def test_a_pattern_that_names_all_sources_goes_on_when_another_one_comes():
    """Until now it shared its engine with patterns that name none."""
    fleet = ChangingFleet(Source("a"), documents=[PAIR, OF_A])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"), Source("b"))
    fleet.publish("b", event("b1", 2000, 2))
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    assert fleet.net() == [("of-a", "a1", "a2"), ("pair", "a1", "b1")]


def test_a_pattern_that_names_all_that_are_left_goes_on_when_another_source_goes():
    fleet = ChangingFleet(Source("a"), Source("b"), documents=[OF_A])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"), removed=["b"])
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    assert fleet.net() == [("of-a", "a1", "a2")]


def test_patterns_whose_engines_would_become_one_are_named():
    fleet = ChangingFleet(Source("a"), Source("b"), documents=[PAIR, OF_A])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"), removed=["b"])
    with pytest.raises(WorkerError, match="`of-a` names all sources that are left, and `pair` none"):
        fleet.settle()


def test_a_pattern_of_a_removed_source_is_named():
    fleet = ChangingFleet(Source("a"), Source("b"))
    fleet.simulation.publish_arcs(stamp([OF_A | {"sources": ["b"]}], fleet_table(fleet)))
    fleet.settle()
    fleet.change(Source("a"), removed=["b"])
    with pytest.raises(Exception, match="`of-a` names the source `b`, which the fleet does not have"):
        fleet.settle()


def fleet_table(fleet):
    fleet.settle()
    return fleet.slot.process.loop.parts.arcs.table
