"""Who has which partitions, as the group tells it."""

import struct
import time
from types import SimpleNamespace

import pytest

from arcfleet.fleet.document import load_fleet
from arcfleet.local.admin import create_topic
from worker.clients import ASK_S, KafkaClients, assigned, owners_of


def packed(**topics):
    told = struct.pack(">hi", 3, len(topics))
    for name, numbers in topics.items():
        told += struct.pack(f">h{len(name)}si{len(numbers)}i", len(name), name.encode(), len(numbers), *numbers)
    return told + struct.pack(">i", 2) + b"{}"


def group(state="Stable", error=None, **members):
    known = [SimpleNamespace(id=name, assignment=assignment) for name, assignment in members.items()]
    return SimpleNamespace(state=state, error=error, members=known)


def test_assignments_are_read():
    told = packed(other=[7], events=[0, 2], none=[])
    assert (assigned(told, "events"), assigned(told, "none"), assigned(told, "unknown")) == ({0, 2}, set(), set())
    assert assigned(b"", "events") == assigned(None, "events") == set()
    with pytest.raises(struct.error):
        assigned(told[:20], "events")


def test_nobody_is_told_of_a_group_that_is_about_to_change():
    members = {"a": packed(events=[1]), "b": b""}
    assert owners_of(group(**members), "events") == {"a": {1}, "b": set()}
    assert owners_of(group("PreparingRebalance", **members), "events") == {}
    assert owners_of(group(error="no", **members), "events") == {}


def test_who_asks_in_vain_is_answered_when_a_broker_is_back(kafka_broker):
    broker = kafka_broker()
    create_topic(broker.bootstrap, "events", 2, {})
    clients = KafkaClients(load_fleet(None, {"bootstrap": broker.bootstrap}), "w1")
    member, view = clients.group_consumer(), clients.group_view()
    member.subscribe(["events"])

    def answer(seconds):
        until = time.monotonic() + seconds
        view.ask()
        while (told := view.answer()) is None and time.monotonic() < until:
            member.poll(0.1)
        return told

    def owners():
        until = time.monotonic() + 60
        while not (told := answer(2 * ASK_S)) or not all(told.values()):
            assert time.monotonic() < until
        return told

    assert owners() == {member.memberid(): {0, 1}}
    broker.kill()
    for _ in range(3):
        assert answer(2 * ASK_S) == {}
    broker.start()
    assert owners() == {member.memberid(): {0, 1}}
    member.close()
