"""Produce, consume and transactions on the Kafka that the fixture picked."""

import pytest
from confluent_kafka import Producer


def test_produced_records_are_consumed_in_order(kafka, client):
    topic = kafka.create_topic()
    values = [f"value {number}" for number in range(1000)]
    client(kafka.bootstrap).produce(topic, values)
    assert client(kafka.bootstrap).read(topic) == values


def test_a_mistyped_topic_is_an_error(kafka, client):
    if kafka.source == "environment":
        pytest.skip("a Kafka of somebody else may make topics by itself")
    mistyped = kafka.unique("mistyped")
    answer = Producer(client(kafka.bootstrap).settings()).list_topics(mistyped, timeout=30)
    assert answer.topics[mistyped].error.name() == "UNKNOWN_TOPIC_OR_PART"


def test_aborted_records_are_hidden_from_read_committed(kafka, client):
    topic = kafka.create_topic()
    producer = Producer(client(kafka.bootstrap).settings(transactional_id=kafka.unique("txn")))
    producer.init_transactions(30)
    for values, is_committed in ((["a", "b"], True), (["wrong"], False), (["c"], True)):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.flush(30)
        if is_committed:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert client(kafka.bootstrap).read(topic, "read_committed") == ["a", "b", "c"]
    assert client(kafka.bootstrap).read(topic, "read_uncommitted") == ["a", "b", "wrong", "c"]


def test_unique_names_differ_and_keep_their_stem(kafka):
    names = {kafka.unique("orders") for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith("orders-") for name in names)
