"""Promises P1, P3 to P7, P13 and P23 on the fake log: real workers from many seeds, with crashes, stops, errors and a
slow broker at every point, while disordered events, revisions and live arc changes come."""

import json
import os
import random

import pytest
from support.fleets import audit
from support.simulation import Chances, Simulation

from afa import Engine
from afa.document import build_pattern
from arcfleet.fleet.arcs import StampedArc
from arcfleet.fleet.document import load_fleet

EVENTS, KEYS, SECONDS = 400, 12, 40.0
FIRST_SEED = int(os.environ.get("ARCFLEET_SEED", "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + 6)
MIDDLE = EVENTS * 10 // 2
CLIMB = {
    "pattern": "climb",
    "within": 400,
    "start": "s",
    "final": ["f"],
    "registers": {"n": 0},
    "arcs": [
        {"id": "low", "from": "s", "to": "m", "when": "e.x < 3", "set": {"n": "1"}},
        {"id": "more", "from": "m", "to": "m", "when": "e.x >= 3", "set": {"n": "r.n + 1"}},
        {"id": "high", "from": "m", "to": "f", "when": "e.x > 8"},
    ],
}
CHANGES = [
    StampedArc("climb", 100, CLIMB["arcs"][2], (None, MIDDLE)),
    StampedArc("climb", 101, {"id": "higher", "from": "m", "to": "f", "when": "e.x > 8 and r.n >= 3"}, (MIDDLE, None)),
]


def disordered_events(seed):
    rnd = random.Random(seed)
    records = []
    for number in range(EVENTS):
        late = rnd.choice([0, 0, 0, 0, 300, 1500])
        record = {"id": f"e{number}", "key": f"k{rnd.randrange(KEYS)}", "ts": max(0, 10 * number - late), "type": "t"}
        records.append(record | {"data": {"x": rnd.randrange(10)}})
        if rnd.random() < 0.05:
            old = rnd.choice(records[-50:])
            if "op" not in old:
                again = {"rev": old.get("rev", 0) + 1}
                gone = {"op": "retract", "id": old["id"], "key": old["key"], "ts": old["ts"]}
                records.append(gone | again if rnd.random() < 0.4 else old | again | {"data": {"x": rnd.randrange(10)}})
    return records


def expected(records, changes):
    engine = Engine([build_pattern(CLIMB)], engine="reference", net="batch")
    arcs = [change.as_change() for change in changes]
    return audit(engine.feed([json.dumps(record).encode() for record in [*arcs, *records]]).to_records()).net


def simulated(seed, **settings):
    fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "2s"})
    simulation = Simulation(seed, fleet, [CLIMB], **settings)
    records = disordered_events(seed)
    simulation.run(records, SECONDS, middle=lambda: simulation.publish_arcs(CHANGES))
    return simulation, records


def assert_exact(simulation, records):
    found = audit(simulation.changes())
    told = f"seed {simulation.seed}: {dict(simulation.happened)}"
    assert not found.doubles, (told, found.doubles[:3])
    assert not found.orphans, (told, found.orphans[:3])
    wanted = expected(records, CHANGES)
    assert found.net.keys() == wanted.keys() != set(), told


def test_a_fleet_in_calm():
    simulation, records = simulated(1, chances=Chances.none())
    assert_exact(simulation, records)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_whatever_goes_wrong(seed):
    simulation, records = simulated(seed, static=bool(seed % 3))
    assert_exact(simulation, records)


def test_the_same_seed_plays_the_same_run():
    first, second = (simulated(5)[0] for _ in range(2))
    assert first.trace == second.trace != []
    assert first.changes() == second.changes()
