"""The commit without a transaction: the loop goes on while its records are on their way, and no offset comes before
them."""

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from support.changing_fleet import ChangingFleet, event

from afa import Engine
from afa.source import Source
from arcfleet.fleet.arcs import ArcTable
from worker.binding import Binding, Mark
from worker.checkpoint import Checkpoint, CommitSettings
from worker.errors import ResetError
from worker.partition import Partition, Phase
from worker.publishing import Publisher
from worker.records import Needed, by_partition
from worker.traces import Traces
from worker.watchdog import Watchdog

SOURCES = [Source("events", key="key")]
INTERVAL_S = 0.1
ROOM = {"late": 10_000, "dead-letter": 10_000}
UNDELIVERED = KafkaError(KafkaError._MSG_TIMED_OUT, "not delivered")


class Wire:
    """A producer whose records are delivered when the test says so, and a consumer that commits at once."""

    def __init__(self):
        self.on_their_way, self.reports, self.flushes, self.committed = [], [], 0, []
        self.offset, self.refuses = 100, 0

    def produce(self, topic, on_delivery, **record):
        self.on_their_way.append((topic, record["partition"], on_delivery))

    def topics(self):
        return [topic for topic, _, _ in self.on_their_way]

    def deliver(self, count, error=None):
        for topic, partition, on_delivery in self.on_their_way[:count]:
            self.offset += 1
            message = Message(topic=topic, partition=partition, offset=self.offset, error=error)
            self.reports.append((on_delivery, error, message))
        del self.on_their_way[:count]

    def poll(self, _=0.0):
        while self.reports:
            on_delivery, error, message = self.reports.pop(0)
            on_delivery(error, message)

    def flush(self, _):
        self.flushes += 1
        self.deliver(len(self.on_their_way))
        self.poll()
        return 0

    def commit(self, offsets, asynchronous):
        assert offsets
        if self.refuses:
            self.refuses -= 1
            raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS, retriable=True))
        self.committed.append({place.partition: (place.offset, Binding.read(place.metadata)) for place in offsets})


class Worker:
    """One with two partitions, at least once."""

    def __init__(self):
        self.wire, self.clock, self.took = Wire(), SimpleNamespace(now=0.0, wall=lambda: 0.0), []
        self.clock.monotonic = lambda: self.clock.now
        self.publisher = Publisher(self.wire, "fleet", self.clock, punctuation_interval_s=1.0, upsert=False, room=ROOM)
        settings = CommitSettings("w", False, INTERVAL_S, 10.0, 2)
        observer = SimpleNamespace(committed=self.took.append)
        watchdog = Watchdog(self.clock.monotonic, lambda _: None)
        self.checkpoint = Checkpoint(settings, self.wire, self.publisher, self.clock, watchdog, observer=observer)
        self.partitions = {number: self._partition(number) for number in (0, 1)}

    def _partition(self, number):
        engine = Engine([], sources=SOURCES, net="batch")
        mark = Mark({"events": 0}, {"events": None}, 0)
        partition = Partition(number, engine, ArcTable(), mark, Traces(SOURCES))
        partition.move(Phase.LIVE)
        partition.begin(self.checkpoint.stamp)
        return partition

    def take(self, number, sends=0, sets_aside=0):
        """An event of a partition, and records that come of it."""
        partition = self.partitions[number]
        offset = partition.mark.positions["events"]
        value = json.dumps({"key": "k", "ts": offset, "id": f"e{offset}", "data": {}}).encode()
        message = Message(topic="events", partition=number, offset=offset, key=b"k", value=value, timestamp=(1, 0))
        taken = by_partition([message], ["events"])[number]
        partition.feed(taken, Needed.by(SOURCES), self.checkpoint.stamp, 0)
        for _ in range(sends):
            self.publisher.dead_letter(message, "a test")
        for _ in range(sets_aside):
            self.publisher.late(message, "a test")

    def commit(self, **how):
        self.clock.now += 1.01 * INTERVAL_S
        assert self.checkpoint.is_due()
        self.checkpoint.commit(self.partitions.values(), **how)

    def offsets(self):
        """Of each commit, how far it says that partitions are."""
        return [{number: offset for number, (offset, _) in commit.items()} for commit in self.wire.committed]


@pytest.fixture
def worker():
    """Beyond its first commit, with which the tables of arcs are written."""
    worker = Worker()
    worker.commit(waits=True)
    worker.wire.committed.clear()
    worker.wire.flushes = 0
    worker.took.clear()
    return worker


def test_the_loop_goes_on_until_all_is_delivered_and_only_then_are_the_offsets_committed(worker):
    worker.take(0, sends=2)
    worker.commit()
    worker.take(0, sends=3)
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert (worker.offsets(), worker.wire.flushes) == ([], 0)
    worker.clock.now += 0.02
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert (worker.offsets(), worker.wire.flushes) == ([{0: 1, 1: 0}], 0), "what came after its beginning is not in it"
    assert worker.took == [pytest.approx(0.02)]
    worker.checkpoint.settle()
    assert len(worker.offsets()) == 1
    worker.wire.deliver(3)
    worker.commit()
    worker.checkpoint.settle()
    assert worker.offsets()[1:] == [{0: 2, 1: 0}]


def test_what_was_delivered_later_does_not_stand_for_what_was_not(worker):
    """Partitions answer in any order."""
    worker.take(0, sends=1)
    worker.commit()
    worker.take(1, sends=5)
    worker.wire.on_their_way.append(worker.wire.on_their_way.pop(0))
    worker.wire.deliver(5)
    worker.checkpoint.settle()
    assert worker.offsets() == []
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert worker.offsets() == [{0: 1, 1: 0}]


def test_the_next_commit_waits_for_the_one_before(worker):
    worker.take(0, sends=1)
    worker.commit()
    worker.take(0, sends=1)
    worker.commit()
    assert (worker.offsets(), worker.wire.flushes) == ([{0: 1, 1: 0}], 1)
    worker.checkpoint.settle()
    assert worker.offsets()[1:] == [{0: 2, 1: 0}]


@pytest.mark.parametrize("how", [{"leaving": frozenset({0})}, {"waits": True}])
def test_who_leaves_waits_for_all(worker, how):
    worker.take(0, sends=1)
    worker.commit()
    worker.take(0, sends=1)
    worker.commit(**how)
    assert worker.offsets() == [{0: 1, 1: 0}, {0: 2, 1: 0}]
    assert worker.wire.on_their_way == []


def test_what_was_not_delivered_commits_nothing(worker):
    worker.take(0, sends=1)
    worker.commit()
    worker.wire.deliver(1, UNDELIVERED)
    with pytest.raises(ResetError, match=r"not delivered to fleet\.dead-letter"):
        worker.checkpoint.settle()
    assert worker.offsets() == []


def test_what_was_not_delivered_is_not_committed_when_the_client_closes_either(worker):
    """The last commit fails, the worker ends all the same, and the client that closes gives the partitions up."""
    worker.take(0, sends=1)
    worker.wire.deliver(1, UNDELIVERED)
    for _ in range(2):
        with pytest.raises(ResetError, match=r"not delivered to fleet\.dead-letter"):
            worker.commit(leaving=frozenset({0, 1}), waits=True)
    assert worker.offsets() == []


def test_a_partition_that_went_elsewhere_meanwhile_is_not_committed(worker):
    for number in (0, 1):
        worker.take(number, sends=1)
    worker.commit()
    worker.checkpoint.forget(1)
    worker.wire.deliver(2)
    worker.checkpoint.settle()
    assert worker.offsets() == [{0: 1}]
    worker.take(0, sends=1)
    worker.commit()
    for number in (0, 1):
        worker.checkpoint.forget(number)
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert worker.offsets() == [{0: 1}], "nothing was left of it"


def test_a_commit_says_where_the_late_records_of_before_it_end(worker):
    """A replay leaves out what is in the late topic from the restore point on: what came later is not among it."""
    worker.take(0, sets_aside=1)
    worker.commit()
    worker.take(0, sets_aside=2)
    worker.wire.deliver(3)
    worker.checkpoint.settle()
    first = worker.wire.offset - 2
    ((_, binding),) = [commit[0] for commit in worker.wire.committed]
    assert (binding.committed.late, worker.partitions[0].mark.late) == (first + 1, first + 1)
    worker.commit()
    worker.checkpoint.settle()
    assert worker.wire.committed[1][0][1].committed.late == first + 3


def test_snapshots_come_after_what_their_records_led_to(worker):
    """Else a crash between the two would keep the next owner from telling it: it has those records already."""
    worker.take(0, sends=2)
    worker.partitions[0].given_up = [b"k"]
    worker.commit()
    assert worker.wire.topics() == ["fleet.dead-letter"] * 2
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert worker.wire.topics() == ["fleet.dead-letter"]
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert (worker.wire.topics(), worker.offsets()) == (["fleet.state"], [])
    worker.wire.deliver(1)
    worker.checkpoint.settle()
    assert worker.offsets() == [{0: 1, 1: 0}]


def test_of_a_partition_that_went_elsewhere_meanwhile_no_snapshot_comes(worker):
    for number in (0, 1):
        worker.take(number, sends=1)
        worker.partitions[number].given_up = [b"k"]
    worker.commit()
    worker.checkpoint.forget(1)
    worker.wire.deliver(2)
    worker.checkpoint.settle()
    assert [(topic, number) for topic, number, _ in worker.wire.on_their_way] == [("fleet.state", 0)]


def test_offsets_that_were_not_committed_are_committed_the_next_time(worker):
    """Also if nothing was read, but something was written that they say more of."""
    worker.partitions[0].given_up = [b"k"]
    worker.wire.refuses = 1
    worker.commit(waits=True)
    assert worker.offsets() == []
    worker.commit(waits=True)
    assert worker.offsets() == [{0: 0, 1: 0}]
    worker.commit(waits=True)
    assert len(worker.offsets()) == 1


def test_what_was_not_delivered_is_told_again_though_a_snapshot_was_due_in_the_same_commit():
    fleet = ChangingFleet(Source("events"), delivery="at_least_once", snapshot_interval="1ms")
    fleet.settle()
    fleet.publish("events", event("a1", 1000, 1))
    fleet.settle()
    fleet.publish("events", event("a2", 2000, 2))
    undelivered = [UNDELIVERED]
    # Records of a worker are delivered in the order in which they were sent: the match is the first.
    fleet.simulation.broker.faults = lambda point, _: undelivered.pop() if point == "deliver" and undelivered else None
    fleet.settle()
    assert len(fleet.said("local.matches: _MSG_TIMED_OUT")) == 1
    assert fleet.net() == [("pair", "a1", "a2")]


def test_without_an_interval_each_commit_has_all_snapshots():
    fleet = ChangingFleet(Source("events"), snapshot_interval="0s")
    fleet.settle()
    fleet.publish("events", *(event(f"e{key}", 1000, 1, f"k{key}") for key in range(50)))
    fleet.settle()
    assert {record.key for record in fleet.simulation.committed("state", 0)} >= {
        f"k{key}".encode() for key in range(50)
    }
