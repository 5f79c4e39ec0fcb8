"""Patterns that a fleet cannot run: refused before anything is published; and if one is on the arcs topic all the same,
workers that run go on without it, and take it once they can."""

import json
from dataclasses import replace

import pytest
from support.disorder import CLIMB, disordered_events
from support.fake_log.broker import FakeLog
from support.fake_log.clients import FakeClients
from support.fleets import audit
from support.simulation import Chances, Simulation

from afa import PatternError
from arcfleet.fleet.arc_writer import publish_patterns, read_table, write
from arcfleet.fleet.arcs import MAX_ARC_RECORD_BYTES, ArcPromise, ArcTable, StampedArc, stamp
from arcfleet.fleet.document import load_fleet
from worker.cluster import AMPLE_ROOM, Cluster
from worker.process import Options, Process

FLEET = load_fleet(None, {"bootstrap": "fake:9092"}, {})
OTHER = CLIMB | {"pattern": "other"}
TYPO = CLIMB | {"pattern": "typo", "sources": ["evnts"]}
KEYED = CLIMB | {"pattern": "keyed", "key": "symbol"}


class Topic:
    """The arcs topic of a fleet, and a process that reads it."""

    def __init__(self, fleet=FLEET):
        self.broker, self.fleet, self.said = FakeLog(), fleet, []
        for suffix in ("arcs", "arcs.log"):
            self.broker.create_topic(fleet.topic(suffix))
        self.process = self.new_process()

    def new_process(self):
        clients = FakeClients(self.broker, self.fleet, "w", None)
        say = lambda what, **told: self.said.append(f"{what} {told}")  # noqa: E731
        return Process(self.fleet, Options("w", False), say, clients=clients, cluster=Cluster(1, AMPLE_ROOM))

    def publish(self, *documents):
        return publish_patterns(documents, self.fleet.name, self.process.clients, self.process.make_engine)

    def write(self, *records):
        """As somebody who does not look."""
        producer = self.broker.producer({"transactional.id": "stranger"})
        producer.init_transactions(10)
        producer.begin_transaction()
        write(records, self.fleet.name, producer)
        producer.commit_transaction(10)

    def raw(self, key, value):
        producer = self.broker.producer({})
        producer.produce(self.fleet.topic("arcs"), value, key=key, partition=0)
        producer.flush()

    def feed(self):
        feed, clients = self.process._arc_feed(), self.process.clients
        feed.read_to_end(clients.query(), 10.0, self.broker.clock.monotonic)
        return feed

    def poll(self, feed):
        for _ in range(5):
            feed.poll(0.1)

    def table(self):
        return read_table(self.process.clients.reader(), self.fleet.topic("arcs"))

    def left_out(self):
        return self.process.metrics.registry.get_sample_value("arcfleet_refused_patterns")


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        (TYPO, "`typo` names the source `evnts`"),
        (KEYED, "`keyed` is keyed by `symbol`"),
        (OTHER, "`other`: more than 5 arcs"),
    ],
)
def test_what_the_fleet_cannot_run_is_not_published(refused, named):
    source = replace(FLEET.sources[0], key="data.id")
    topic = Topic(replace(FLEET, sources=(source,), limits={"max_program_arcs": 5}))
    topic.publish(CLIMB)
    with pytest.raises(PatternError, match=named):
        topic.publish(CLIMB, refused)
    assert topic.table().heads.keys() == {"climb"}
    assert topic.feed().refused == {}


def test_a_record_that_no_worker_reads_is_not_published():
    topic, text = Topic(), "x" * MAX_ARC_RECORD_BYTES
    with pytest.raises(PatternError, match="`climb` has a part of"):
        topic.publish(CLIMB | {"registers": {"n": 0, "t": text}})
    assert topic.table().heads == {}


def test_a_start_refuses_what_is_there_and_says_how_it_goes_away():
    topic = Topic()
    topic.write(*stamp([CLIMB, TYPO], ArcTable()))
    assert topic.feed().refused.keys() == {"typo"}
    for start in (topic.process.start, lambda: topic.publish(OTHER)):
        with pytest.raises(PatternError, match=r"`evnts`.*; it is on local\.arcs") as caught:
            start()
        assert "tombstone: its key is `typo`, its topic local.arcs" in caught.value.fix
    topic.raw(b"typo", None)
    assert topic.publish(OTHER, TYPO | {"sources": ["events"]}) == ["other", "typo"]
    feed = topic.feed()
    assert (feed.table.heads.keys(), feed.refused) == ({"climb", "other", "typo"}, {})
    assert feed.table.document("typo") == TYPO | {"sources": ["events"]}


def test_who_runs_goes_on_and_takes_the_pattern_once_it_can():
    topic = Topic()
    topic.publish(CLIMB)
    feed = topic.feed()
    partition_table = feed.table.copy()
    topic.write(*stamp([TYPO, OTHER], topic.table()))
    topic.poll(feed)
    assert feed.table.heads.keys() == {"climb", "other"}
    assert topic.left_out() == 1
    assert "`typo` names the source `evnts`" in topic.said[-1]
    assert {record.pattern for record in feed.news_for(partition_table)} == {"other"}
    topic.raw(b"typo", None)
    topic.poll(feed)
    assert (topic.left_out(), feed.refused) == (0, {})
    topic.publish(TYPO | {"sources": ["events"]})
    topic.poll(feed)
    assert feed.table.heads.keys() == {"climb", "other", "typo"}


def test_a_partition_takes_up_what_was_left_out_where_it_was_before():
    """There its table has come past the pattern, of which it has nothing."""
    topic = Topic()
    topic.write(*stamp([CLIMB, OTHER], ArcTable()))
    feed = topic.feed()
    table = feed.table.without({"other"})
    assert feed.has_news_for(table, taken_up=-1)
    assert [type(record).__name__ for record in feed.news_for(table)] == ["Head", *["StampedArc"] * 3]
    assert feed.news_for(feed.table) == []


def test_an_arc_that_no_engine_takes_is_left_out():
    topic = Topic()
    topic.publish(CLIMB)
    feed = topic.feed()
    body = CLIMB["arcs"][2]
    topic.write(StampedArc("climb", 50, body | {"when": "e.x >"}, (None, None)))
    topic.write(ArcPromise(5), StampedArc("climb", 51, body | {"id": "later"}, (10, None)))
    topic.poll(feed)
    assert feed.table.arcs["climb", "high"].version < 50
    assert [type(record) for record in feed.news_for(ArcTable(feed.table.heads, offset=4))] == [ArcPromise, StampedArc]
    assert topic.left_out() == 1
    topic.write(StampedArc("climb", 52, body, (None, 90)))
    topic.poll(feed)
    assert feed.table.arcs["climb", "high"].valid == (None, 90)
    assert topic.left_out() == 0


@pytest.mark.parametrize("junk", [(b"p", b"garbage"), (b"climb/low", None), (None, None), (b"climb", None)])
def test_junk_stops_neither_workers_nor_writers(junk):
    topic = Topic()
    topic.publish(CLIMB)
    feed = topic.feed()
    topic.raw(*junk)
    topic.poll(feed)
    assert "bad arc record" in topic.said[-1]
    assert topic.publish(CLIMB, OTHER) == ["other"]
    assert topic.feed().table.heads.keys() == {"climb", "other"}


def test_a_fleet_goes_on_beside_a_pattern_that_it_cannot_run():
    records = disordered_events(1)
    calm = [Simulation(1, FLEET, [CLIMB], chances=Chances.none()) for _ in range(2)]
    calm[0].run(records, 20.0)
    calm[1].run(records, 20.0, middle=lambda: calm[1].publish_arcs(stamp([TYPO], ArcTable())))
    nets = [audit(simulation.changes()).net for simulation in calm]
    assert nets[0].keys() == nets[1].keys() != set()
    assert any("left out" in json.dumps(line) for line in calm[1].trace)
