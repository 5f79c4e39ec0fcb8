"""Two topics of different shape on a real Kafka: whoever has partition n of the first takes partition n of the second,
also when a worker is killed and when one leaves; and nothing is lost or doubled."""

import json
import random
import signal
import time

import msgpack
import pytest
import yaml
from support.disorder import CLIMB, disordered_events
from support.fleets import audit, fleet_run, until

from afa import Engine
from afa.document import build_pattern
from arcfleet.fleet.document import load_fleet

PARTITIONS = 6


def told_by(run):
    """By topic and partition, who told of it last."""
    progress = {}
    for message in run.read("progress"):
        record = json.loads(message.value())
        progress[record["topic"], record["partition"]] = record["instance"]
    return progress


def are_together(run):
    told, (first, second) = told_by(run), run.topics
    owners = [(told.get((first, n)), told.get((second, n))) for n in range(PARTITIONS)]
    return all(one == other is not None for one, other in owners)


def publish(producer, topics, records):
    for record, source in records:
        value = msgpack.packb(record) if source else json.dumps(record).encode()
        producer.produce(topics[source], key=record["key"], value=value)
        producer.poll(0)
        time.sleep(0.005)
    producer.flush(30)


def expected(sources, patterns, records):
    engine = Engine([build_pattern(document) for document in patterns], "reference", "batch", sources=sources)
    values = [msgpack.packb(record) if source else json.dumps(record).encode() for record, source in records]
    keys = [record["key"].encode() for record, _ in records]
    partitions = [(sources[source].topic, 0) for _, source in records]
    return audit(engine.feed(values, keys=keys, partitions=partitions).to_records()).net


@pytest.mark.timeout(240)
def test_the_owner_of_a_partition_has_it_of_both_topics(kafka, tmp_path):
    rnd = random.Random(3)
    records = [(record, rnd.randrange(2)) for record in disordered_events(3)]
    with fleet_run(kafka, tmp_path, PARTITIONS, (kafka.unique("clicks"), kafka.unique("orders"))) as run:
        path = run.write({"snapshot_interval": "1s"})
        document = yaml.safe_load(path.read_text())
        document["sources"][1] |= {"codec": "msgpack", "key": "key"}
        path.write_text(yaml.safe_dump(document))
        patterns = [CLIMB, CLIMB | {"pattern": "orders-only", "sources": [run.topics[1]]}]
        folder = str(run.write_patterns(*patterns))
        for name in ("w1", "w2", "w3"):
            run.start(name, "--patterns", folder, ready=False)
        for worker in run.workers.values():
            worker.await_listening().await_ready()
        producer, third = run.producer(), len(records) // 3
        publish(producer, run.topics, records[:third])
        run.workers["w1"].kill()
        run.start("w1", ready=False).await_listening()
        publish(producer, run.topics, records[third : 2 * third])
        assert run.workers["w2"].end(signal.SIGUSR1) == 0
        publish(producer, run.topics, records[2 * third :])
        run.await_processed(90)
        until(lambda: are_together(run), "partitions of the two topics are apart")
        changes = audit(run.changes())
        sources = load_fleet(path, {}, {}).sources
    assert (changes.doubles, changes.orphans) == ([], [])
    assert changes.net.keys() == expected(sources, patterns, records).keys() != set()
