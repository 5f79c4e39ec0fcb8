"""Sources that come into the fleet document, or go from it, between two starts of its workers, on the fake log."""

from dataclasses import replace

import pytest
from support.fleets import audit
from support.simulation import Chances, Simulation

from afa.source import Source, SourcePunctuation
from arcfleet.fleet.arcs import stamp
from arcfleet.fleet.document import load_fleet
from worker.binding import Binding
from worker.errors import WorkerError
from worker.partition import Phase

SLACK = SourcePunctuation(slack="0ms")
IDLE = SourcePunctuation(slack="0ms", idle="1s")
PAIR = {
    "pattern": "pair",
    "within": 100_000,
    "start": "s",
    "final": ["f"],
    "arcs": [
        {"id": "one", "from": "s", "to": "m", "when": "e.x == 1"},
        {"id": "skip", "from": "m", "to": "m", "when": "e.x != 2"},
        {"id": "two", "from": "m", "to": "f", "when": "e.x == 2"},
    ],
}
OF_A = PAIR | {"pattern": "of-a", "sources": ["a"]}


def event(name, ts, x):
    return {"id": name, "key": "k", "ts": ts, "type": "t", "data": {"x": x}}


class Fleet:
    """One worker, one partition, and sources that change."""

    def __init__(self, *sources, documents=(PAIR,), **settings):
        fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "60s"} | settings)
        fleet = replace(fleet, sources=tuple(sources))
        self.simulation = Simulation(1, fleet, documents, partitions=1, workers=1, chances=Chances.none())
        self.simulation._is_calm = True

    @property
    def slot(self):
        return self.simulation.slots[0]

    def publish(self, topic, *records):
        for record in records:
            self.simulation.publish(record, [source.topic for source in self.simulation.fleet.sources].index(topic))

    def settle(self, seconds=2.0):
        until = self.simulation.clock.monotonic() + seconds
        while self.simulation.clock.monotonic() < until:
            self.simulation._turn()
        (partition,) = self.slot.process.loop.partitions.values()
        assert partition.phase is Phase.LIVE
        return partition

    def change(self, *sources, crash=False):
        if not crash:
            self.slot.process.stop("stop")
            self.slot.process.finish(self.slot.process.loop)
        self.simulation._gone(self.slot, "ended")
        self.slot.back_at = 0.0
        for source in sources:
            if source.topic not in self.simulation.broker.partitions:
                self.simulation.broker.create_topic(source.topic)
        self.simulation.fleet = replace(self.simulation.fleet, sources=tuple(sources))

    def net(self):
        return sorted(
            (each["pattern"], *each["events"].values()) for each in audit(self.simulation.changes()).net.values()
        )

    def committed(self, topic):
        return Binding.read(self.simulation.broker.group("local").offsets[topic, 0][1]).committed

    def said(self, what):
        return [line for line in self.simulation.trace if what in line]


def test_an_added_source_is_read_from_its_start_once():
    fleet = Fleet(Source("a"))
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
    fleet = Fleet(Source("a"))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a", punctuation=SLACK), Source("b", punctuation=IDLE))
    fleet.publish("a", event("a2", 2000, 2))
    fleet.settle(5.0)
    assert fleet.net() == [("pair", "a1", "a2")]
    assert fleet.committed("a").punctuations == {"a": 2000, "b": 2000}


def test_what_punctuations_have_promised_stays_true_of_an_added_source():
    fleet = Fleet(Source("a", punctuation=SLACK))
    fleet.publish("a", event("a1", 1000, 1), event("a2", 5000, 3))
    fleet.settle()
    fleet.change(Source("a", punctuation=SLACK), Source("b", punctuation=SLACK))
    fleet.publish("b", event("late", 2000, 2), event("b1", 5000, 2))
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "b1")]
    assert len(fleet.simulation.committed("late", 0)) == 1


def test_a_removed_source_is_neither_read_nor_waited_for():
    fleet = Fleet(Source("a", punctuation=SLACK), Source("b", punctuation=SLACK))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.publish("b", event("b1", 1000, 3))
    fleet.settle()
    fleet.publish("b", event("b2", 2000, 2))
    fleet.change(Source("a", punctuation=SLACK))
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
    fleet = Fleet(Source("a", punctuation=SLACK), Source("b", punctuation=SLACK), documents=[alone])
    fleet.publish("a", event("a1", 1000, 1), event("a2", 6000, 1), event("a3", 9000, 1))
    fleet.publish("b", event("b1", 4000, 1))
    fleet.settle()
    assert fleet.net() == [("alone", "a1", "a1")]
    for _ in range(3):
        fleet.change(Source("a", punctuation=SLACK))
        fleet.settle()
        assert fleet.net() == [("alone", f"{name}", f"{name}") for name in ("a1", "a2", "b1")]
        assert not audit(fleet.simulation.changes()).doubles
    fleet.simulation.publish_arcs(stamp([alone | {"pattern": "new"}], fleet_table(fleet)))
    fleet.settle()
    fleet.publish("a", event("a4", 20_000, 1))
    fleet.settle()
    assert fleet.net()[-3:] == [("alone", "a3", "a3"), ("alone", "b1", "b1"), ("new", "a3", "a3")]


def test_a_source_is_removed_after_all_that_came_of_it_is_in_snapshots():
    fleet = Fleet(Source("a"), Source("b"))
    fleet.publish("b", *(event(f"b{number}", 1000 + number, 1) for number in range(3)))
    for number in range(60):  # which are no reason to write snapshots yet
        fleet.simulation.clock.advance(0.02)
        fleet.simulation._turn()
        fleet.publish("a", event(f"a{number}", 10, 3))
    fleet.change(Source("a"), crash=True)
    with pytest.raises(WorkerError, match="the source b was removed, but partition 0 has up to 3") as caught:
        fleet.settle()
    assert "SIGTERM" in caught.value.fix


@pytest.mark.parametrize("sources", [[Source("b")], [Source("b"), Source("a")], [Source("c"), Source("a")]])
def test_the_first_source_cannot_change(sources):
    fleet = Fleet(Source("a"), Source("b"))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(*sources)
    with pytest.raises(WorkerError, match=f"the first source is {sources[0].topic}, and was a when") as caught:
        fleet.settle()
    assert "put a first in the fleet document" in caught.value.fix


def test_a_pattern_that_names_all_sources_goes_on_when_another_one_comes():
    """Until now it shared its engine with patterns that name none."""
    fleet = Fleet(Source("a"), documents=[PAIR, OF_A])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"), Source("b"))
    fleet.publish("b", event("b1", 2000, 2))
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    assert fleet.net() == [("of-a", "a1", "a2"), ("pair", "a1", "b1")]


def test_a_pattern_that_names_all_that_are_left_goes_on_when_another_source_goes():
    fleet = Fleet(Source("a"), Source("b"), documents=[OF_A])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"))
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    assert fleet.net() == [("of-a", "a1", "a2")]


def test_patterns_whose_engines_would_become_one_are_named():
    fleet = Fleet(Source("a"), Source("b"), documents=[PAIR, OF_A])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.change(Source("a"))
    with pytest.raises(WorkerError, match="`of-a` names all sources that are left, and `pair` none"):
        fleet.settle()


def test_a_pattern_of_a_removed_source_is_named():
    fleet = Fleet(Source("a"), Source("b"))
    fleet.simulation.publish_arcs(stamp([OF_A | {"sources": ["b"]}], fleet_table(fleet)))
    fleet.settle()
    fleet.change(Source("a"))
    with pytest.raises(Exception, match="`of-a` names the source `b`, which the fleet does not have"):
        fleet.settle()


def fleet_table(fleet):
    fleet.settle()
    return fleet.slot.process.loop.parts.arcs.table
