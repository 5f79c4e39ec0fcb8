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
def worker(names, tmp_path):
    """Starts the application; whatever still runs at the end is killed."""
    started = []

    def start():
        command = [sys.executable, APP, "worker", "--without-web", "--loglevel", "info"]
        with (tmp_path / "worker.log").open("ab") as log:
            environment = {**os.environ, **names}
            started.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    print((tmp_path / "worker.log").read_text())  # shown if the test fails


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
    mine = client(kafka.bootstrap)
    mine.produce(names["WORDS"], ["to", "be", "or", "not", "to", "be"])
    first = worker()
    wait_until_done(6)
    first.kill()
    first.wait()

    mine.produce(names["WORDS"], ["to", "be", "that"])
    second = worker()
    wait_until_done(9)
    assert mine.read(names["COUNTED"]) == ["1", "1", "1", "1", "2", "2", "3", "3", "1"]
    second.terminate()
    assert second.wait(30) == 0
