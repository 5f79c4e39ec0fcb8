"""Promises P1, P3 to P7, P13 and P23 on the fake log: real workers from many seeds, with crashes, stops, errors and a
slow broker at every point, while disordered events, revisions and live arc changes come."""

import json
import os
import random
from dataclasses import replace

import pytest
from support.disorder import CHANGES, CLIMB, assert_promises_are_kept, disordered_events, punctuated
from support.fleets import audit
from support.order import History, Logged, inversions
from support.simulation import Chances, Simulation, trace_of

from afa import Engine
from afa.document import build_pattern
from arcfleet.fleet.arcs import ArcTable, stamp
from arcfleet.fleet.document import load_fleet

SECONDS = 40.0
FIRST_SEED = int(os.environ.get("ARCFLEET_SEED", "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + 6)
FALL = CLIMB | {"pattern": "fall", "arcs": [*CLIMB["arcs"][:2], CLIMB["arcs"][2] | {"when": "e.x == 7"}]}


def expected(records, changes, *others):
    engine = Engine(map(build_pattern, [CLIMB, *others]), engine="reference", net="batch")
    arcs = [change.as_change() for change in changes]
    return audit(engine.feed([json.dumps(record).encode() for record in [*arcs, *records]]).to_records()).net


def fleet(seed):
    """With short replays or long ones."""
    return load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "10s" if seed % 2 else "2s"})


def simulated(seed, **settings):
    simulation = Simulation(seed, fleet(seed), [CLIMB], traced=True, **settings)
    records = disordered_events(seed)
    simulation.run(records, SECONDS, middle=lambda: simulation.publish_arcs(CHANGES))
    return simulation, records


def assert_ordered(simulation, *others, changes=()):
    """P4."""
    topic = simulation.fleet.sources[0].topic
    told = simulation.changes()
    for number in range(simulation.partitions):
        log = [Logged(each.offset, each.key, each.value) for each in simulation.committed_of(topic, number)]
        history = History([*map(build_pattern, [CLIMB, *others])], (topic, number), log, changes)
        assert not inversions([change for change in told if change["partition"] == number], history), simulation.seed


def assert_exact(simulation, records, *others):
    found = audit(simulation.changes())
    told = f"seed {simulation.seed}: {dict(simulation.happened)}"
    assert not found.doubles, (told, found.doubles[:3])
    assert not found.orphans, (told, found.orphans[:3])
    wanted = expected(records, CHANGES, *others)
    assert found.net.keys() == wanted.keys() != set(), told
    if simulation.traced:
        assert_traced(simulation)
    if not others:
        assert_ordered(simulation, changes=CHANGES)


def assert_traced(simulation):
    """Each match has the trace of its last event, also if it was told after a restore."""
    for number in range(simulation.partitions):
        for record in simulation.committed("matches", number):
            headers, told = dict(record.headers), json.loads(record.value)
            assert headers.get("traceparent") == trace_of(told["events"]["last"]), simulation.seed


# With punctuations a record's fate depends on where it is in its partition: the oracle is an engine that reads each
# partition once, in order, undisturbed.


def undisturbed(simulation):
    """Net matches, and the positions of late records."""
    process = simulation.slots[0].process
    topic = simulation.fleet.sources[0].topic
    changes, late = [], set()
    for number in range(simulation.partitions):
        engine = process.make_engine(process.loop.parts.arcs.table)
        records = simulation.committed_of(topic, number)
        for record in records:
            place = [(topic, number)]
            told = engine.feed([record.value], keys=[record.key], partitions=place, offsets=[record.offset])
            changes += told.to_records()
            late |= {(number, record.offset) for _ in told.late}
    return audit(changes).net, late


@pytest.mark.parametrize("when", [None, "e.x > 7"])
@pytest.mark.parametrize("seed", SEEDS)
def test_punctuations_and_late_records_survive_whatever_goes_wrong(seed, when):
    """A condition holds for longer than what a restore replays."""
    simulation = Simulation(seed, fleet(seed), [CLIMB], static=bool(seed % 3))
    simulation.run(punctuated(disordered_events(seed), when), SECONDS)
    told = f"seed {seed}: {dict(simulation.happened)}"
    found = audit(simulation.changes())
    assert (found.doubles, found.orphans) == ([], []), told
    net, late = undisturbed(simulation)
    assert found.net.keys() == net.keys() != set(), told
    headers = [
        dict(record.headers)
        for number in range(simulation.partitions)
        for record in simulation.committed("late", number)
    ]
    positions = [(int(told["arcfleet.partition"]), int(told["arcfleet.offset"])) for told in headers]
    assert sorted(positions) == sorted(late) != [], told
    assert_promises_are_kept(simulation)
    assert_ordered(simulation)


def test_a_fleet_in_calm():
    simulation, records = simulated(1, chances=Chances.none())
    assert_exact(simulation, records)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_whatever_goes_wrong(seed):
    simulation, records = simulated(seed, static=bool(seed % 3))
    assert_exact(simulation, records)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_pattern_tells_what_it_finds_among_stored_events(seed):
    """It comes in one go with changes of one that runs, and what it has told it can take back."""
    simulation = Simulation(seed, fleet(seed), [CLIMB], static=bool(seed % 3))
    records = disordered_events(seed)
    head, *arcs = stamp([FALL], ArcTable())
    simulation.run(records, SECONDS, middle=lambda: simulation.publish_arcs([CHANGES[0], head, *arcs, CHANGES[1]]))
    assert_exact(simulation, records, FALL)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bad_record_now_and_then_stops_nothing_and_is_set_aside_once(seed):
    """P16: bytes of any kind, whatever else goes wrong."""
    simulation = Simulation(seed, fleet(seed), [CLIMB], static=bool(seed % 3))
    rnd = random.Random(seed)
    nonsense = [rnd.randbytes(rnd.randrange(1, 60)) for _ in range(8)]
    records = disordered_events(seed)
    for number, value in enumerate(nonsense):
        records.insert((number + 1) * len(records) // 10, value)
    simulation.run(records, SECONDS, middle=lambda: simulation.publish_arcs(CHANGES))
    assert_exact(simulation, [record for record in records if isinstance(record, dict)])
    letters = [
        each.value for number in range(simulation.partitions) for each in simulation.committed("dead-letter", number)
    ]
    assert sorted(letters) == sorted(nonsense)


@pytest.mark.parametrize("seed", SEEDS)
def test_at_least_once_loses_nothing(seed):
    """It may tell a match twice, and leave one that nobody takes back; what stands in the end has been told."""
    simulation = Simulation(seed, replace(fleet(seed), delivery="at_least_once"), [CLIMB], static=bool(seed % 3))
    records = disordered_events(seed)
    simulation.run(records, SECONDS)
    told = {change["match"] for change in simulation.changes() if change["op"] == "insert"}
    assert told >= expected(records, []).keys() != set(), f"seed {seed}: {dict(simulation.happened)}"


def test_the_same_seed_plays_the_same_run():
    first, second = (simulated(5)[0] for _ in range(2))
    assert first.trace == second.trace != []
    assert first.changes() == second.changes()
