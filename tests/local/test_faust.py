"""The coordinator's library on our broker: a Faust worker that is killed finds its table again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

APP = Path(__file__).with_name("counter_app.py")


@pytest.fixture
def names(kafka):
    """Topics exist before the worker starts: it would wait for a missing one without a word."""
    topics = {name: kafka.create_topic(name.lower()) for name in ("WORDS", "COUNTED")}
    return {"BOOTSTRAP": kafka.bootstrap, "GROUP": kafka.unique("counter"), **topics}


@pytest.fixture
def worker(names, tmp_path, wait_for):
    """Starts the application and blocks until it is ready; whatever still runs at the end is killed."""
    started = []
    log = tmp_path / "worker.log"

    def start():
        command = [sys.executable, APP, "worker", "--without-web", "--loglevel", "info"]
        with log.open("ab") as output:
            environment = {**os.environ, **names}
            started.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=output, stderr=output))
        wait_for(lambda: log.read_text().count("Worker ready") == len(started), 60)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    print(log.read_text())  # shown if the test fails


@pytest.fixture
def wait_until_done(kafka, names, client, wait_for):
    """Blocks until the application has committed so many words: killed before that, it would count some twice."""
    consumer = Consumer(client(kafka.bootstrap).settings(group_id=names["GROUP"], enable_auto_commit=False))

    def committed():
        try:
            return consumer.committed([TopicPartition(names["WORDS"], 0)], timeout=10)[0].offset
        except KafkaException:  # the first group of a new broker: its offsets topic is being made
            return None

    yield lambda count: wait_for(lambda: committed() == count, 60)
    consumer.close()


def test_a_table_survives_the_worker_s_crash(kafka, names, worker, wait_until_done, client):
    """Words come only while a worker is ready: Faust 0.15.3 can lose or double records that wait while it recovers a
    table, because it lets the stream flow before it has sought its place. The table is what is tested here."""
    mine = client(kafka.bootstrap)
    first = worker()
    mine.produce(names["WORDS"], ["to", "be", "or", "not", "to", "be"])
    wait_until_done(6)
    first.kill()
    first.wait()

    second = worker()
    mine.produce(names["WORDS"], ["to", "be", "that"])
    wait_until_done(9)
    assert mine.read(names["COUNTED"]) == ["1", "1", "1", "1", "2", "2", "3", "3", "1"]
    second.terminate()
    assert second.wait(30) == 0
