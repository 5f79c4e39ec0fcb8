"""Single bad records go to the dead letters; a flood of them stops the worker."""

import pytest
from support.disorder import CLIMB
from support.simulation import Chances, Simulation

from afa.changes import Changes
from arcfleet.fleet.document import load_fleet
from worker.sides import BAD_WINDOW_RECORDS, Sides, TooManyBadError


class Recorder:
    def __init__(self):
        self.aside = []

    def late(self, message, reason):
        self.aside.append(("late", message, reason))

    def dead_letter(self, message, reason):
        self.aside.append(("bad", message, reason))


def feed(sides, records, bad):
    sides.set_aside(list(range(records)), Changes([], [(index, "broken") for index in range(bad)], []))
    sides.check()


def test_what_is_set_aside_keeps_its_record_and_reason():
    recorder = Recorder()
    Sides(lambda: recorder).set_aside(["m0", "m1"], Changes([], [(1, "no JSON")], [(0, "ts 5 is below 7")]))
    assert recorder.aside == [("late", "m0", "ts 5 is below 7"), ("bad", "m1", "no JSON")]


@pytest.mark.parametrize("batch", [1, 7, 100, 5000])
def test_one_bad_record_of_a_thousand_stops_nothing(batch):
    sides = Sides(Recorder)
    for number in range(max(1, 20_000 // batch)):
        feed(sides, batch, 1 if batch >= 1000 or number % (1000 // batch) == 0 else 0)


def test_too_many_of_the_last_thousand_stop_it_after_they_are_set_aside():
    recorder = Recorder()
    sides = Sides(lambda: recorder)
    for _ in range(20):
        feed(sides, 100, 0)
    with pytest.raises(TooManyBadError, match="51 of the last"):
        feed(sides, BAD_WINDOW_RECORDS, 51)
    assert len(recorder.aside) == 51


def test_a_small_topic_of_nonsense_stops_it_too():
    sides = Sides(Recorder)
    for _ in range(50):
        feed(sides, 1, 1)
    with pytest.raises(TooManyBadError):
        feed(sides, 1, 1)


def test_old_bad_records_are_forgotten():
    sides = Sides(Recorder)
    for _ in range(10):
        feed(sides, 1000, 45)
        feed(sides, 1000, 0)


def test_the_flood_that_stops_a_worker_is_counted_and_its_backlog_grows():
    fleet = load_fleet(None, {"bootstrap": "fake:9092"})
    simulation = Simulation(1, fleet, [CLIMB], partitions=1, workers=1, chances=Chances.none())
    simulation.run([], 1.0)
    for number in range(200):
        simulation.publish(b"{no json %d" % number)
    simulation.rest(5)
    (slot,) = simulation.slots
    value = slot.process.metrics.registry.get_sample_value
    bad, taken = (value(f"arcfleet_{name}_total", {"topic": "events"}) for name in ("bad", "events"))
    assert bad == taken == len(simulation.committed("dead-letter", 0)) > 50
    observer = slot.process._parts.observer
    assert observer.is_ready() == (False, {"ready": False, "stopped": observer.stopped})
    assert "records are bad; the last one: " in observer.stopped
    assert observer.alive()[0]
    for more in (0, 300):
        for number in range(more):
            simulation.publish(b"{no json %d" % number)
        simulation.rest(5)
        backlog = simulation.broker.logs["events", 0].end - bad
        assert value("arcfleet_lag_records", {"topic": "events", "partition": "0"}) == backlog
