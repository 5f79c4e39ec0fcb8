"""What a worker tells of itself must be true of now: also of partitions that are silent, or went elsewhere."""

from types import SimpleNamespace

from confluent_kafka import Message
from prometheus_client import generate_latest

from afa import Engine
from afa.source import Source
from arcfleet.fleet.arcs import ArcTable
from worker.binding import Mark
from worker.metrics import METRICS, OTHER, PATTERNS_MAX, Metrics
from worker.observing import LOOK_EVERY_S, Observer
from worker.partition import Partition, Phase
from worker.records import by_partition
from worker.traces import Traces

SOURCES = [Source("a", key="key"), Source("b", key="key")]
NOTHING = SimpleNamespace(late=[], bad=[])


class Observed:
    """An observer, the clock that it goes by, and what was told to the progress topic."""

    def __init__(self):
        self.now, self.lag, self.records = 0.0, 0, []
        clock = SimpleNamespace(monotonic=lambda: self.now, wall=lambda: 1_000.0 + self.now)
        self.metrics = Metrics()
        self.observer = Observer(self.metrics, clock, "w", SimpleNamespace(lag=lambda *_: self.lag), 1_000)

    def look(self, *partitions):
        self.now += LOOK_EVERY_S
        self.observer.look(partitions, 0, joined=True)

    def commit(self, *partitions):
        self.now += LOOK_EVERY_S
        before = len(self.records)
        told = SimpleNamespace(progress=lambda _, __, record: self.records.append(record))
        self.observer.progress(partitions, told)
        return self.records[before:]

    def value(self, name, **labels):
        return self.metrics.registry.get_sample_value(name, labels)


def partition_of(number=0, topics=("a",), **partial_matches):
    engine = Engine([], sources=SOURCES, net="batch")
    gauges = {"keys": 1, "degraded_keys": 0, "state_bytes": 9, "partial_matches": partial_matches}
    engine.gauges = lambda: gauges
    mark = Mark(dict.fromkeys(topics, 7), dict.fromkeys(topics), 0)
    partition = Partition(number, engine, ArcTable(), mark, Traces(SOURCES))
    partition.move(Phase.LIVE)
    return partition


def test_partial_matches_of_partitions_that_went_elsewhere_are_not_told_any_more():
    seen = Observed()
    seen.look(partition_of(0, p=3), partition_of(1, p=4, q=5))
    assert seen.value("arcfleet_partial_matches", pattern="p") == 7
    seen.look(partition_of(0, p=3))
    assert seen.value("arcfleet_partial_matches", pattern="p") == 3
    seen.look()
    assert [seen.value("arcfleet_partial_matches", pattern=name) for name in "pq"] == [None, None]


def test_the_last_progress_record_of_a_silent_partition_is_right():
    """Partial matches and lag are known a moment after the records that led to them."""
    seen, partition = Observed(), partition_of(p=0)
    seen.lag = 3
    seen.look(partition)
    first = seen.commit(partition)
    assert [(told["partial_matches"], told["lag"]) for told in first] == [({"p": 0}, 3)]
    seen.lag = 0
    partition.engine.gauges = partition_of(p=2).engine.gauges
    seen.look(partition)
    assert [(told["partial_matches"], told["lag"]) for told in seen.commit(partition)] == [({"p": 2}, 0)]
    seen.look(partition)
    assert seen.commit(partition) == [], "nothing new"


def test_each_source_has_the_age_of_its_own_last_record():
    seen, partition = Observed(), partition_of(topics=("a", "b"))
    seen.lag = 1
    told = [Message(topic=topic, partition=0, offset=7, timestamp=(1, at)) for topic, at in (("a", 900_000), ("b", 0))]
    seen.observer.batch(by_partition(told, ["a", "b"])[0], {}, NOTHING, 0.1)
    seen.look(partition)
    ages = [seen.value("arcfleet_lag_seconds", topic=topic, partition="0") for topic in "ab"]
    assert ages == [100 + LOOK_EVERY_S, 1_000 + LOOK_EVERY_S]
    seen.observer.forget(["a", "b"], 0)
    seen.look(partition)
    ages = [seen.value("arcfleet_lag_seconds", topic=topic, partition="0") for topic in "ab"]
    assert ages == [0, 0], "it was elsewhere meanwhile"


def test_only_names_of_the_list_are_shown():
    seen = Observed()
    seen.metrics.add("arcfleet_events_total", 1, topic="a")
    names = {
        line.split()[2] for line in generate_latest(seen.metrics.registry).decode().splitlines() if "# TYPE" in line
    }
    assert names == {metric.name for metric in METRICS}


def test_the_busiest_patterns_have_labels_whoever_came_first():
    seen = Observed()
    names = [f"p{number:03}" for number in range(PATTERNS_MAX + 20)]
    partition = partition_of(**dict.fromkeys(names, 1))
    seen.look(partition)
    assert seen.value("arcfleet_partial_matches", pattern=OTHER) == 20
    busy, quiet = names[-20:], names[PATTERNS_MAX - 20 : PATTERNS_MAX]
    seen.observer.changes({name: {"insert": 2} for name in busy})
    assert seen.value("arcfleet_matches_total", pattern=OTHER) == 40
    seen.look(partition)
    seen.observer.changes({name: {"insert": 1, "retract": 1} for name in [*busy, *quiet]})
    told = [seen.value("arcfleet_matches_total", pattern=name) for name in [*busy, *quiet, OTHER]]
    assert told == [1] * 20 + [None] * 20 + [60]
    seen.observer.changes({name: {"insert": 2} for name in quiet})
    seen.look(partition)
    seen.observer.changes({name: {"insert": 1} for name in busy})
    assert seen.value("arcfleet_matches_total", pattern=busy[0]) == 2, "a little busier is not enough to take its place"
    assert seen.value("arcfleet_partial_matches", pattern=OTHER) == 20
    shown = generate_latest(seen.metrics.registry).decode()
    assert shown.count("arcfleet_partial_matches{") == PATTERNS_MAX + 1
