"""A fleet document whose sources change comes to one worker after the other: partitions move between those that have it
and those that do not, to and fro. On the fake log."""

import json
import os
from dataclasses import replace

import pytest
from support.changing_fleet import PAIR, ChangingFleet, event
from support.disorder import CLIMB, disordered_events
from support.fleets import audit
from support.simulation import Simulation

from afa import Engine
from afa.document import build_pattern
from afa.source import Source, SourcePunctuation
from arcfleet.fleet.arcs import stamp
from arcfleet.fleet.document import load_fleet
from worker.errors import WorkerError

FIRST_SEED = int(os.environ.get("ARCFLEET_SEED", "0"))
SLACK = SourcePunctuation(slack="0ms")
OLD = [Source("a")]
NEW = [Source("a"), Source("b", start="latest")]
OLD_SLACK = [Source("a", punctuation=SLACK)]
NEW_SLACK = [Source("a", punctuation=SLACK), Source("b", punctuation=SLACK)]


def fleet_on_b(*sources):
    """It has read the first record of both."""
    fleet = ChangingFleet(Source("a"))
    fleet.settle()
    fleet.change(*sources)
    fleet.settle()
    fleet.publish("a", event("a1", 1000, 1))
    fleet.publish("b", event("b1", 1000, 3))
    fleet.settle()
    return fleet


def table_of(fleet):
    return fleet.slot.process.loop.parts.arcs.table


def publish_to_b(fleet, *records):
    """Whatever document the worker has."""
    for record in records:
        fleet.simulation.fleet, of_now = replace(fleet.simulation.fleet, sources=NEW), fleet.simulation.fleet
        fleet.publish("b", record)
        fleet.simulation.fleet = of_now


def two(round_):
    """A match, each time."""
    return event(f"b{round_}1", 2000 + 10 * round_, 1), event(f"b{round_}2", 2001 + 10 * round_, 2)


def assert_each_pair_was_told_once(fleet):
    pairs = [("pair", "a1", "b02"), *(("pair", f"b{round_}1", f"b{round_}2") for round_ in range(3))]
    assert (fleet.net(), len(fleet.simulation.changes())) == (pairs, len(pairs))


def late(fleet):
    return len(fleet.simulation.committed("late", 0))


def punctuations(fleet):
    return [change["ts"] for change in fleet.simulation.changes() if change["op"] == "punctuation"]


def test_an_added_source_is_read_on_from_where_it_was():
    fleet = fleet_on_b(*NEW)
    for round_ in range(3):
        fleet.change(*OLD)
        publish_to_b(fleet, *two(round_))
        fleet.settle()
        assert fleet.committed("a").positions == {"a": 1, "b": 1 + 2 * round_}
        fleet.change(*NEW)
        fleet.settle()
        assert fleet.committed("a").positions == {"a": 1, "b": 3 + 2 * round_}
    assert_each_pair_was_told_once(fleet)
    assert len(fleet.said("source added")) == 1
    assert "name it in `removed`" in fleet.said("source unread")[0]


@pytest.mark.parametrize("old", [OLD_SLACK, [*OLD_SLACK, Source("c", punctuation=SLACK)]])
def test_punctuations_wait_for_a_source_that_is_not_read_here(old):
    fleet = fleet_on_b(*NEW_SLACK)
    fleet.change(*old)
    publish_to_b(fleet, event("b2", 2000, 2))
    fleet.publish("a", event("a2", 9000, 3))
    fleet.settle()
    assert max(punctuations(fleet)) == 1000
    fleet.change(*NEW_SLACK, *old[1:])
    fleet.settle()
    assert (fleet.net(), late(fleet)) == ([("pair", "a1", "b2")], 0)
    publish_to_b(fleet, event("b3", 9500, 3))
    fleet.settle()
    assert fleet.committed("a").punctuations["b"] == 9500


def test_punctuations_wait_for_one_that_never_had_one():
    """The law: of an event that lies in its topic, and is not late, nothing is over."""
    fleet = fleet_on_b(Source("a"), Source("b"))
    fleet.change(*OLD_SLACK)
    publish_to_b(fleet, event("b2", 2000, 2))
    fleet.publish("a", event("a2", 9000, 3))
    fleet.settle()
    fleet.simulation.publish_arcs(stamp([PAIR | {"pattern": "new"}], table_of(fleet)))
    fleet.settle()
    assert fleet.committed("a").punctuations == {"a": 9000, "b": None}
    fleet.end()
    fleet.settle()
    fleet.change(*NEW_SLACK)
    fleet.settle()
    assert (fleet.net(), late(fleet)) == ([("new", "a1", "b2"), ("pair", "a1", "b2")], 0)
    assert min(punctuations(fleet)) == 2000


def test_conditions_of_a_source_that_is_not_read_here_stay():
    fleet = fleet_on_b(*NEW_SLACK[:1], Source("b"))
    publish_to_b(fleet, {"op": "punctuation", "ts": 5000, "when": "e.x == 2"})
    fleet.settle()
    for document in (OLD_SLACK, OLD_SLACK, [*NEW_SLACK[:1], Source("b")]):
        fleet.change(*document)
        fleet.settle()
    publish_to_b(fleet, event("late", 4000, 2), event("b2", 5000, 2))
    fleet.settle()
    assert (fleet.net(), late(fleet)) == ([("pair", "a1", "b2")], 1)


def test_patterns_that_name_sources_keep_what_they_know():
    """With the older document alone they would see all topics that there are."""
    of_a = PAIR | {"pattern": "of-a", "sources": ["a"]}
    fleet = ChangingFleet(*NEW, documents=[PAIR, of_a])
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    for document in (OLD, OLD, NEW, OLD):
        fleet.change(*document)
        fleet.settle()
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    fleet.change(*NEW)
    publish_to_b(fleet, event("b2", 2000, 2))
    fleet.settle()
    assert fleet.net() == [("of-a", "a1", "a2"), ("pair", "a1", "b2")]
    assert [change["op"] for change in fleet.simulation.changes()] == ["insert", "insert", "retract", "insert"]


def test_a_pattern_of_a_source_that_is_not_read_here_ends_the_worker():
    fleet = fleet_on_b(*NEW)
    fleet.simulation.publish_arcs(stamp([PAIR | {"pattern": "of-b", "sources": ["b"]}], table_of(fleet)))
    fleet.settle()
    fleet.change(*OLD)
    with pytest.raises(Exception, match="`of-b` names the source `b`, which the fleet does not have"):
        fleet.settle()


def fleet_with_b_in_no_snapshot():
    """Its worker has crashed, and the next one has the older document."""
    fleet = fleet_on_b(*NEW)
    publish_to_b(fleet, event("b2", 2000, 2))
    for number in range(60):  # which are no reason to write snapshots yet
        fleet.simulation.clock.advance(0.02)
        fleet.simulation._turn()
        fleet.publish("a", event(f"other{number}", 10, 3))
    fleet.change(*OLD, crash=True)
    return fleet


def test_records_that_only_a_newer_document_can_read_are_not_passed_over():
    """They are in no snapshot yet: the worker ends, until it has that document, too."""
    fleet = fleet_with_b_in_no_snapshot()
    with pytest.raises(
        WorkerError, match="the source b is not in this worker's fleet document, but partition 0"
    ) as told:
        fleet.settle()
    assert "give this worker the document of the others, with b" in told.value.fix
    fleet.change(*NEW)
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "b2")]


def test_records_that_only_a_newer_document_can_read_may_be_given_up():
    fleet = fleet_with_b_in_no_snapshot()
    fleet.simulation.accepts_lost_state = True
    fleet.settle()
    assert fleet.committed("a").positions == {"a": 61, "b": 2}
    fleet.publish("a", event("a2", 3000, 2))
    fleet.settle()
    fleet.change(*NEW)
    fleet.settle()
    # What was told stays; of what is in a snapshot nothing is forgotten.
    assert fleet.net() == [("pair", "a1", "a2"), ("pair", "a1", "b2")]


def test_a_removed_source_that_some_worker_still_has_goes_on_from_where_it_was():
    fleet = fleet_on_b(*NEW)
    for round_ in range(3):
        fleet.change(*OLD, removed=["b"])
        publish_to_b(fleet, *two(round_))
        fleet.settle()
        assert fleet.committed("a").positions == {"a": 1}
        fleet.change(*NEW)
        fleet.settle()
    assert fleet.committed("a").positions == {"a": 1, "b": 7}
    assert_each_pair_was_told_once(fleet)


def test_of_a_removed_source_that_comes_back_what_is_gone_is_not_asked_for():
    fleet = fleet_on_b(*NEW)
    fleet.change(*OLD, removed=["b"])
    publish_to_b(fleet, event("b2", 2000, 2), event("b3", 3000, 2))
    fleet.settle()
    log = fleet.simulation.broker.logs["b", 0]
    log.records[:] = [record for record in log.records if record.offset >= 2]
    fleet.change(*NEW)
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "b3")]


# Whatever else goes wrong --------------------------------------------------------------------------------------------


BOTH = (Source("events"), Source("more"))


class Rollout(Simulation):
    """Again and again the workers are restarted one by one, as whoever rolls out does; those that start have the older
    or the newer document, as it comes, and in the end the newer one."""

    def __post_init__(self):
        self.documents_of_now = [BOTH[:1]]
        self.published = 0
        super().__post_init__()

    def publish(self, record, source=0):
        super().publish(record, source)
        self.published += 1
        if self.published % 15 == 0:
            self.documents_of_now = [BOTH[:1], BOTH] if self.published < 360 else [BOTH]
            self._end(self.slots[self.published // 15 % len(self.slots)])

    def _end(self, slot):
        if slot.has_started and not slot.is_stopped:
            slot.process.stop("leave")
            slot.process.finish(slot.process.loop)
            self._gone(slot, "ended")

    def _step(self, slot):
        of_all = self.fleet
        if slot.process is None:
            self.fleet = replace(self.fleet, sources=self.random.choice(self.documents_of_now))
        try:
            super()._step(slot)
        except WorkerError as error:
            if "is not in this worker's fleet document" not in error.what:
                raise
            self.happened["refused"] += 1
            self._gone(slot, "refused")
        finally:
            self.fleet = of_all


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 6))
def test_a_rollout_loses_and_doubles_nothing_whatever_goes_wrong(seed):
    fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "2s"})
    simulation = Rollout(seed, replace(fleet, sources=BOTH), [CLIMB], static=bool(seed % 2))
    records = disordered_events(seed)
    simulation.run([(record, number % 2) for number, record in enumerate(records)], 150.0)
    found = audit(simulation.changes())
    told = f"seed {seed}: {dict(simulation.happened)}"
    assert (found.doubles, found.orphans) == ([], []), told
    engine = Engine([build_pattern(CLIMB)], engine="reference", net="batch")
    wanted = audit(engine.feed([json.dumps(record).encode() for record in records]).to_records()).net
    assert found.net.keys() == wanted.keys() != set(), told
    assert any("source unread" in line for line in simulation.trace), told
