"""What a worker leaves behind when partitions go, and when it begins again, on the fake log: no more and no less than
what was done."""

import pytest
from confluent_kafka import KafkaError
from support.changing_fleet import PAIR
from support.simulation import Chances, Simulation, Slot

from arcfleet.fleet.document import load_fleet
from worker.binding import Binding

COUNT = 60


def simulated(workers=1, **settings):
    """In calm, until a test says otherwise."""
    fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "60s"} | settings)
    simulation = Simulation(1, fleet, [PAIR], workers=workers, chances=Chances.none())
    simulation._is_calm = True
    turn_until(simulation, lambda: live(simulation, 0) == {0, 1, 2})
    return simulation


def turn_until(simulation, holds):
    until = simulation.clock.monotonic() + 120
    while not holds():
        assert simulation.clock.monotonic() < until
        simulation._turn()


def live(simulation, slot):
    """The partitions of a worker that match."""
    process = simulation.slots[slot].process
    loop = None if process is None else process.loop
    return set() if loop is None else {n for n, each in loop.partitions.items() if each.phase.name == "LIVE"}


def publish(simulation):
    """Each key has a match."""
    for number in range(COUNT):
        for x in (1, 2):
            key = {"key": f"k{number}", "id": f"e{number}-{x}"}
            simulation.publish(key | {"ts": 1000 * number + x, "type": "t", "data": {"x": x}})


def done(simulation):
    partitions = simulation.slots[0].process.loop.partitions
    return {("events", number): partition.mark.positions["events"] for number, partition in partitions.items()}


def ends(simulation):
    return {("events", number): simulation.broker.logs["events", number].end for number in range(3)}


def test_partitions_go_with_all_that_was_done_with_them():
    """Else what was told of them would be committed with the others, and be told once more by whoever takes them."""
    simulation = simulated(commit_interval="5s")
    group = simulation.broker.group("local")
    publish(simulation)
    turn_until(simulation, lambda: done(simulation) == ends(simulation))
    taken_over = {}

    def look(point, client):
        if point == "committed" and client.host.name == "second":
            taken_over.update({place: told for place, told in group.offsets.items() if place not in taken_over})

    before = {place: offset for place, (offset, _) in group.offsets.items()}
    assert all(before.get(place, 0) < end for place, end in ends(simulation).items())
    simulation.broker.faults = look
    simulation.slots.append(Slot("second", is_static=True))
    turn_until(simulation, lambda: live(simulation, 1))
    for number in live(simulation, 1):
        offset, metadata = taken_over["events", number]
        binding = Binding.read(metadata)
        assert offset == ends(simulation)["events", number]
        assert binding.restore == binding.committed, "nothing is left to replay"
    simulation.rest(10)
    inserts = [change["match"] for change in simulation.changes() if change["op"] == "insert"]
    assert len(inserts) == len(set(inserts)) == COUNT


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_what_was_not_sent_before_a_reset_is_never_sent(delivery):
    """A retraction of the new producer might else come before the insert that it takes back."""
    simulation = simulated(delivery=delivery)
    publish(simulation)
    given_up, sent_later = [], []

    def fails_once(point, client):
        if point == "flush" and not given_up and len(client):
            given_up.append(client)
            return KafkaError(KafkaError._TIMED_OUT, "simulated: no answer", retriable=True)
        if point == "deliver" and client in given_up:
            sent_later.append(client)
        return None

    simulation.broker.faults = fails_once
    turn_until(simulation, lambda: given_up)
    simulation.rest(20)
    assert not sent_later
    assert any("reset" in line for line in simulation.trace)
    told = [change["match"] for change in simulation.changes() if change["op"] == "insert"]
    assert len(set(told)) == COUNT
    assert len(told) == COUNT or delivery == "at_least_once"
