"""Who has which partitions, as the group tells it."""

import os
import signal
import struct
import time
from types import SimpleNamespace

import pytest
from support.second_broker import second_broker

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


class Member:
    """Of a group, with a view of it."""

    def __init__(self, bootstrap):
        create_topic(bootstrap, "events", 2, {})
        clients = KafkaClients(load_fleet(None, {"bootstrap": bootstrap}), "w1")
        self.client, self.view = clients.group_consumer(), clients.group_view()
        self.client.subscribe(["events"])

    def answer(self, seconds=2 * ASK_S):
        until = time.monotonic() + seconds
        self.view.ask()
        while (told := self.view.answer()) is None and time.monotonic() < until:
            self.client.poll(0.1)
        return told

    def owners(self):
        until = time.monotonic() + 60
        while not (told := self.answer()) or not all(told.values()):
            assert time.monotonic() < until
        return told

    def assert_is_seen(self):
        assert self.owners() == {self.client.memberid(): {0, 1}}


def test_who_asks_in_vain_is_answered_when_a_broker_is_back(kafka_broker):
    broker = kafka_broker()
    member = Member(broker.bootstrap)
    member.assert_is_seen()
    broker.kill()
    for _ in range(3):
        assert member.answer() == {}
    broker.start()
    member.assert_is_seen()
    member.client.close()


@pytest.mark.timeout(180)
def test_one_broker_that_hangs_hides_nothing(kafka_broker, tmp_path):
    """All brokers are asked, though one of them would do: one that the cluster has given up has to be forgotten here,
    too, and not in five minutes."""
    broker = kafka_broker()
    with second_broker(broker, tmp_path) as second:
        member = Member(broker.bootstrap)
        member.assert_is_seen()
        until = time.monotonic() + 60
        while len(member.client.list_topics(timeout=10).brokers) < 2 or not member.answer():
            assert time.monotonic() < until
        assert len(member.view._admin.list_topics(timeout=10).brokers) == 2
        os.kill(second, signal.SIGSTOP)
        assert member.answer() == {}
        member.assert_is_seen()
        os.kill(second, signal.SIGCONT)
        member.client.close()
