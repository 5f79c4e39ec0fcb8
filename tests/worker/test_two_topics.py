"""Two topics of different shape in one key space, and patterns that see one of them or both: three workers on the fake
log, with everything that may go wrong. Nothing is lost, doubled or orphaned; each pattern behaves as if the topics that
it does not name did not exist."""

import os
import random
from dataclasses import replace

import pytest
from support.disorder import CHANGES, CLIMB, assert_promises_are_kept, disordered_events, punctuated
from support.fleets import audit
from support.simulation import Chances, Simulation, encoded

from afa import Engine
from afa.document import build_pattern
from afa.source import Source
from arcfleet.fleet.document import load_fleet

SECONDS = 40.0
FIRST_SEED = int(os.environ.get("ARCFLEET_SEED", "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + 4)
SOURCES = (Source("left"), Source("right", codec="msgpack", data="data", key="key"))
PATTERNS = [CLIMB, CLIMB | {"pattern": "one", "sources": ["right"]}, CLIMB | {"pattern": "other", "sources": ["left"]}]
ARC_CHANGES = [*CHANGES, *(replace(change, pattern="one") for change in CHANGES)]


def fleet(seed):
    """With short replays or long ones."""
    loaded = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "10s" if seed % 2 else "2s"})
    return replace(loaded, sources=SOURCES)


def spread(seed, records):
    """Each record with its source; a revision may come from the other one than its event."""
    rnd = random.Random(seed)
    return [(record, rnd.randrange(2)) for record in records]


def simulated(seed, records, changes=(), **settings):
    simulation = Simulation(seed, fleet(seed), PATTERNS, static=bool(seed % 3), **settings)
    simulation.run(records, SECONDS, middle=lambda: simulation.publish_arcs(changes))
    return simulation


def expected(records):
    engine = Engine([build_pattern(document) for document in PATTERNS], "reference", "batch", sources=SOURCES)
    for change in ARC_CHANGES:
        engine.change_arc(change.as_change())
    values = [encoded(record, SOURCES[source]) for record, source in records]
    keys = [record["key"].encode() for record, _ in records]
    told = engine.feed(values, keys=keys, partitions=[(SOURCES[source].topic, 0) for _, source in records])
    return audit(told.to_records()).net


def found(simulation):
    told = f"seed {simulation.seed}: {dict(simulation.happened)}"
    audited = audit(simulation.changes())
    assert (audited.doubles, audited.orphans) == ([], []), told
    return audited.net


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_whatever_goes_wrong(seed):
    records = spread(seed, disordered_events(seed))
    simulation = simulated(seed, records, ARC_CHANGES)
    wanted = expected(records)
    assert {match["pattern"] for match in wanted.values()} == {"climb", "one", "other"}
    assert found(simulation).keys() == wanted.keys(), f"seed {seed}: {dict(simulation.happened)}"


def punctuated_apart(events):
    """Each source with its own punctuations, where its events stand."""
    coming = [punctuated([record for record, source in events if source == own]) for own in (0, 1)]
    records = []
    for _, source in events:
        records.append((coming[source].pop(0), source))
        if coming[source] and coming[source][0].get("op") == "punctuation":
            records.append((coming[source].pop(0), source))
    return records


def position(late):
    headers = dict(late.headers)
    text = headers["arcfleet.topic"].decode()
    return text, int(headers["arcfleet.partition"]), int(headers["arcfleet.offset"])


def undisturbed(simulation):
    """Net matches, and the positions of late records, if each partition is read once, one topic after the other."""
    process = simulation.slots[0].process
    changes, late = [], set()
    for number in range(simulation.partitions):
        engine = process.make_engine(process.loop.parts.arcs.table)
        for topic in ("right", "left"):
            for record in simulation.committed_of(topic, number):
                place = [(topic, number)]
                told = engine.feed([record.value], keys=[record.key], partitions=place, offsets=[record.offset])
                changes += told.to_records()
                late |= {(topic, number, record.offset) for _ in told.late}
    return audit(changes).net, late


@pytest.mark.parametrize("seed", SEEDS)
def test_punctuations_and_late_records_are_those_of_their_topic(seed):
    records = punctuated_apart(spread(seed, disordered_events(seed)))
    simulation = simulated(seed, records)
    net, late = undisturbed(simulation)
    assert found(simulation).keys() == net.keys() != set(), f"seed {seed}: {dict(simulation.happened)}"
    told = [record for number in range(simulation.partitions) for record in simulation.committed("late", number)]
    assert sorted(map(position, told)) == sorted(late) != []
    assert_promises_are_kept(simulation)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_source_that_is_added_in_the_middle(seed):
    """All workers start again with it, in the midst of what goes wrong; a pattern that names all sources that there
    were goes on with them."""
    both, patterns = fleet(seed), [CLIMB, PATTERNS[2]]
    simulation = Simulation(seed, replace(both, sources=SOURCES[:1]), patterns, static=bool(seed % 3))
    events = disordered_events(seed)
    records = [
        (record, random.Random(number).randrange(2) if number > len(events) // 2 else 0)
        for number, record in enumerate(events)
    ]

    def add():
        simulation.broker.create_topic("right", simulation.partitions)
        simulation.fleet = both
        for slot in simulation.slots:
            if slot.clients is not None:
                simulation._gone(slot, "another document")

    simulation.run(records, SECONDS, middle=add)
    engine = Engine([build_pattern(document) for document in patterns], "reference", "batch", sources=SOURCES)
    values = [encoded(record, SOURCES[source]) for record, source in records]
    places = [(SOURCES[source].topic, 0) for _, source in records]
    told = engine.feed(values, keys=[record["key"].encode() for record, _ in records], partitions=places)
    wanted = audit(told.to_records()).net
    assert {match["pattern"] for match in wanted.values()} == {"climb", "other"}
    assert found(simulation).keys() == wanted.keys(), f"seed {seed}: {dict(simulation.happened)}"


def test_a_fleet_in_calm():
    records = spread(1, disordered_events(1))
    assert found(simulated(1, records, ARC_CHANGES, chances=Chances.none())).keys() == expected(records).keys()


def test_offsets_of_the_second_topic_may_expire(monkeypatch):
    """They are in the metadata of the first; and a silent fleet commits them now and then."""
    records = spread(2, disordered_events(2))
    simulation = Simulation(2, fleet(2), PATTERNS)
    offsets = simulation.broker.group(simulation.fleet.name).offsets
    places = [("right", number) for number in range(simulation.partitions)]

    def expire():
        simulation.publish_arcs(ARC_CHANGES)
        for place in places:
            offsets.pop(place, None)

    simulation.run(records, SECONDS, middle=expire)
    assert found(simulation).keys() == expected(records).keys()
    for place in places:
        del offsets[place]
    monkeypatch.setattr("worker.checkpoint.RECOMMIT_S", 30.0)
    simulation.rest(40.0)
    assert {offsets[place][0] for place in places} == {simulation.broker.logs[place].end for place in places}
