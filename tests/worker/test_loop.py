"""Steps of the loop that the fake log seldom leads to: what comes in one batch is chosen here."""

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Message

from afa import Engine
from afa.source import Source
from arcfleet.fleet.arcs import ArcTable
from worker.binding import Mark
from worker.errors import WorkerError
from worker.loop import BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Loop
from worker.metrics import Metrics
from worker.observing import WAITING_S, Observer
from worker.orphans import LOOK_EVERY_S, REST_S, Orphans
from worker.partition import Partition, Phase
from worker.records import Needed
from worker.traces import Traces

SOURCES = [Source("a", key="key"), Source("b", key="key")]
NOBODY = {"a": None, "b": None}
END = KafkaError(KafkaError._PARTITION_EOF)


def record(topic, offset, error=None):
    value = json.dumps({"key": "k", "ts": offset, "id": f"{topic}{offset}", "data": {}}).encode()
    return Message(topic=topic, partition=0, offset=offset, key=b"k", value=value, timestamp=(1, 0), error=error)


class Silent:
    """Takes every call, and says nothing."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class Batches(Silent):
    """A consumer that brings these."""

    def __init__(self, *batches):
        self.left = list(batches)

    def poll(self, _):
        self.now = self.left.pop(0) if self.left else []
        return self.now[0] if self.now else None

    def consume(self, *_):
        return self.now[1:]


class Seconds:
    """Each look at the clock takes half of one."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 0.5
        return self.now


def loop_of(partition, consumer, **parts):
    known = {
        "consumer": consumer,
        "checkpoint": SimpleNamespace(stamp=1, settle=lambda: None, is_due=lambda: False),
        "restorer": SimpleNamespace(left_out=lambda _: set(), step=lambda *_: None),
        "arcs": SimpleNamespace(poll=lambda: None, table=SimpleNamespace(offset=0), has_news_for=lambda *_: False),
        "orphans": SimpleNamespace(found=lambda _: set()),
        "clock": Seconds(),
        "topics": ["a", "b"],
        "needed": Needed.by(SOURCES),
        "wall_units": lambda: 0,
        "me": lambda: None,
    }
    silent = dict.fromkeys(("publisher", "sides", "observer", "idle"), Silent())
    loop = Loop(SimpleNamespace(**known | silent | {"say": lambda *_, **__: None} | parts))
    loop.partitions[0] = partition
    return loop


def partition_at(**positions):
    fed = []
    engine = Engine([], sources=SOURCES, net="batch")
    feed = engine.feed

    def noting(batch, **beside):
        fed.extend(json.loads(value)["id"] for value in batch)
        return feed(batch, **beside)

    engine.feed = noting
    return Partition(0, engine, ArcTable(), Mark(positions, NOBODY, 0), Traces(SOURCES)), fed


def test_an_end_behind_records_that_are_fetched_again_is_not_read_yet():
    """Of topic b all was committed that there was then; topic a is still replayed when more of b comes."""
    partition, fed = partition_at(a=0, b=0)
    partition.replay_to = Mark({"a": 3, "b": 2}, NOBODY, 0)
    partition.move(Phase.RESTORING)
    partition.move(Phase.REPLAYING)
    more = [*(record("b", offset) for offset in range(2, 5)), record("b", 5, END)]
    first = [record("a", 0), record("b", 0), record("b", 1), *more]
    loop = loop_of(partition, Batches(first, [record("a", 1), record("a", 2)], more))
    loop.step()
    assert (partition.phase, partition.mark.positions, partition.ends) == (Phase.REPLAYING, {"a": 1, "b": 2}, {})
    loop.step()
    loop.step()
    assert (partition.phase, partition.mark.positions, partition.ends) == (Phase.LIVE, {"a": 3, "b": 5}, {"b": 5})
    assert fed == ["a0", "b0", "b1", "a1", "a2", "b2", "b3", "b4"]


def test_batches_are_bounded_in_bytes():
    """Engines keep what they read for a while: 5,000 large records at once would grow the process by half."""
    asked = []

    class Endless(Silent):
        def poll(self, _):
            return Message(topic="a", partition=0, offset=0, value=b"x" * 20_000)

        def consume(self, most, _):
            asked.append(most)
            return [self.poll(0)] * most

    partition, _ = partition_at(a=0, b=0)
    loop = loop_of(partition, Endless(), clock=SimpleNamespace(monotonic=lambda: 0.0))
    for _ in range(20):
        loop.step()
    assert asked[0] < BATCH_RECORDS_MAX // 5  # nothing is known of them
    assert (asked[-1] + 1) * 20_000 == BATCH_BYTES_MAX


def test_who_cannot_give_up_what_it_has_ends_instead_of_leaving_records_out():
    partition, fed = partition_at(a=0, b=0)
    partition.move(Phase.LIVE)
    orphans = SimpleNamespace(found=lambda _: {1})
    loop = loop_of(partition, Batches(*([record("a", offset)] for offset in range(20))), orphans=orphans)
    with pytest.raises(WorkerError, match="not given up within 5 s"):
        loop.step()
    assert fed == ["a0"]


def test_bad_news_while_joining_again_is_not_lost():
    partition, _ = partition_at(a=0, b=0)
    partition.move(Phase.LIVE)
    orphans = SimpleNamespace(found=lambda _: {1})
    fatal = record("a", 1, KafkaError(KafkaError._FATAL, "fenced"))
    loop = loop_of(partition, Batches([record("a", 0)], [fatal]), orphans=orphans)
    with pytest.raises(Exception, match="fenced"):
        loop.step()


def test_an_orphan_is_one_that_nobody_had_twice_in_a_row_and_then_there_is_rest():
    clock, answers = SimpleNamespace(now=0.0), []
    clock.monotonic = lambda: clock.now
    view = SimpleNamespace(ask=lambda: None, answer=lambda: answers.pop(0) if answers else None)
    orphans, asked = Orphans(view, clock, 3), []

    def me():
        asked.append(clock.now)
        return "w1"

    def look(owners):
        clock.now += LOOK_EVERY_S
        answers.append(owners)
        return orphans.found(me)

    free = {"w1": {0}, "w2": {1}}
    assert [look(owners) for owners in (free, {}, free)] == [set()] * 3, "between them the group changed"
    assert not asked, "the client takes its time to say who it is"
    assert look(free) == {2}
    assert [look(free) for _ in range(int(REST_S / LOOK_EVERY_S) - 1)] == [set()] * 11
    assert look(free) == {2}


def test_unknown_values_are_counted_on_when_an_engine_begins_anew():
    metrics = Metrics()
    observer = Observer(metrics, Seconds(), "w", SimpleNamespace(lag=lambda *_: 0), 1_000)
    partition, _ = partition_at(a=0)
    counted = iter([50, 0, 3])
    partition.engine.stats = lambda: {"errors": next(counted)}
    observer._clock = SimpleNamespace(monotonic=lambda: 0.0, wall=lambda: 0.0)
    for _ in range(3):
        observer._look_at(partition)
    assert metrics.registry.get_sample_value("arcfleet_unknown_values_total") == 53


def test_ready_is_who_belongs_to_the_group_and_does_not_wait():
    """Whoever lost its partitions has none that are not restored, and yet nothing is ready."""
    metrics, clock = Metrics(), SimpleNamespace(now=0.0, wall=lambda: 0.0)
    clock.monotonic = lambda: clock.now
    observer = Observer(metrics, clock, "w", SimpleNamespace(lag=lambda *_: 0), 1_000)
    partition, _ = partition_at(a=0, b=0)
    partition.move(Phase.LIVE)
    silent = SimpleNamespace(abandon=lambda _: None)
    parts = {"observer": observer, "restorer": silent, "checkpoint": SimpleNamespace(forget=lambda _: None)}
    loop = loop_of(partition, Silent(), **parts)

    def looked():
        clock.now += LOOK_EVERY_S
        loop.look()
        return observer.is_ready()[0], metrics.registry.get_sample_value("arcfleet_restore_ratio")

    assert looked() == (False, 1.0)
    loop._on_assign(Silent(), [])
    assert looked() == (True, 1.0)
    clock.now += WAITING_S
    assert observer.is_ready() == (False, {"ready": False})
    assert looked() == (True, 1.0)
    loop._on_lost(None, [SimpleNamespace(partition=0)])
    assert looked() == (False, 0.0)
    loop._on_assign(Silent(), [])
    assert looked() == (True, 1.0), "others have all that there is"
    loop._on_assign(Silent(), [SimpleNamespace(partition=number) for number in (0, 1)])
    assert looked() == (False, 0.0)
    for number, expected in ((0, (False, 0.0)), (1, (False, 0.0))):
        loop._on_revoke(None, [SimpleNamespace(partition=number)])
        assert (looked(), loop.joined) == (expected, number == 0)
