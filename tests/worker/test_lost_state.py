"""State that is damaged is refused by name, and given up where that is accepted: by its partition, and for good."""

import pytest
from support.changing_fleet import ChangingFleet, event

from afa.source import Source, SourcePunctuation
from worker.errors import WorkerError
from worker.partition import ARC_TABLE_KEY

SLACK = SourcePunctuation(slack="0ms")


def stored(fleet, key):
    return [record for record in fleet.simulation.committed("state", 0) if record.key == key][-1]


def flipped_byte(fleet):
    record = stored(fleet, b"k")
    record.value = record.value[:-1] + bytes([record.value[-1] ^ 1])


def garbage_of_a_stranger(fleet):
    producer = fleet.simulation.broker.producer({})
    producer.produce("local.state", b"AFASgarbage", key=b"\xff\xfe", partition=0)
    producer.flush()


def deleted_state(fleet):
    fleet.simulation.broker.create_topic("local.state")


def garbage_for_an_arc_table(fleet):
    stored(fleet, ARC_TABLE_KEY).value = b"{}"


def garbage_beside_a_snapshot(fleet):
    """Of which the checksum says nothing."""
    stored(fleet, b"k").headers = [("held", b"no json")]


def offsets_of_a_stranger(fleet):
    fleet.simulation.broker.group("local").offsets["a", 0] = (2, "")


def offsets_of_a_newer_release(fleet):
    offset, told = fleet.simulation.broker.group("local").offsets["a", 0]
    fleet.simulation.broker.group("local").offsets["a", 0] = offset, told.replace('"v":1', '"v":2')


def forgotten_offsets(fleet):
    """A fleet that has none begins at its start, which is told to be the end."""
    del fleet.simulation.broker.group("local").offsets["a", 0]


DAMAGES = [
    flipped_byte,
    garbage_of_a_stranger,
    deleted_state,
    garbage_for_an_arc_table,
    garbage_beside_a_snapshot,
    offsets_of_a_stranger,
    offsets_of_a_newer_release,
    forgotten_offsets,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_refused_or_given_up(damage):
    fleet = ChangingFleet(Source("a", start="latest", punctuation=SLACK))
    fleet.settle()
    fleet.publish("a", event("a1", 1000, 1), event("a2", 2000, 1, key="z"))
    fleet.settle()
    fleet.end()
    damage(fleet)
    with pytest.raises(WorkerError, match=r"partition 0|state/0"):
        fleet.settle()
    fleet.simulation.accepts_lost_state = True
    fleet.end(crash=True)
    partition = fleet.settle()
    assert partition.engine.keys() == []
    assert len(fleet.said("state given up")) == 1
    metrics = fleet.slot.process.metrics.registry
    assert metrics.get_sample_value("arcfleet_lost_partitions_total") == 1
    fleet.simulation.accepts_lost_state = False
    for _ in range(2):  # what was given up does not come back
        fleet.end(crash=True)
        fleet.settle()
    fleet.publish("a", event("a3", 3000, 2), event("a4", 4000, 1), event("a5", 5000, 2))
    fleet.settle()
    assert fleet.net() == [("pair", "a4", "a5")]


def test_who_accepts_lost_state_keeps_what_is_whole():
    fleet = ChangingFleet(Source("a"))
    fleet.publish("a", event("a1", 1000, 1))
    fleet.settle()
    fleet.simulation.accepts_lost_state = True
    fleet.end()
    fleet.settle()
    fleet.publish("a", event("a2", 2000, 2))
    fleet.settle()
    assert fleet.net() == [("pair", "a1", "a2")]
    assert not fleet.said("state given up")


def test_punctuations_stay_what_they_were():
    """What was promised of matches holds without the state, too."""
    fleet = ChangingFleet(Source("a", punctuation=SLACK))
    fleet.publish("a", event("a1", 5000, 1))
    fleet.settle()
    fleet.end()
    flipped_byte(fleet)
    fleet.simulation.accepts_lost_state = True
    fleet.settle()
    fleet.publish("a", event("late", 4000, 1), event("a2", 6000, 2))
    fleet.settle()
    assert fleet.net() == []
    assert len(fleet.simulation.committed("late", 0)) == 1


def test_a_strange_record_on_the_late_topic_stops_no_restore():
    fleet = ChangingFleet(Source("a"))
    fleet.publish("a", event("a1", 5000, 1))
    fleet.settle()
    fleet.end()
    producer = fleet.simulation.broker.producer({})
    producer.produce("local.late", b"junk", partition=0)
    producer.flush()
    fleet.settle()
