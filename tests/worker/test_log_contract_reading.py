"""The other half of the contract: what a reader is given."""

import pytest
from confluent_kafka import KafkaError, TopicPartition
from support.logs_under_test import CALL_S, arrived, error_of


def filled(log, count=5):
    topic, producer = log.topic(), log.producer()
    for number in range(count):
        producer.produce(topic, str(number), key="k", partition=0, timestamp=1_700_000_000_000 + 1000 * number)
    assert producer.flush(CALL_S) == 0
    return topic


def test_reading_begins_at_the_offset_that_is_assigned(log):
    topic = filled(log)
    reader = log.consumer(enable_partition_eof=True)
    reader.incremental_assign([TopicPartition(topic, 0, 3)])
    assert log.to_end(reader) == ([(3, b"3"), (4, b"4")], 5)
    reader.incremental_unassign([TopicPartition(topic, 0)])
    reader.incremental_assign([TopicPartition(topic, 0, 4)])
    assert log.to_end(reader) == ([(4, b"4")], 5)


def test_what_was_fetched_before_a_partition_was_assigned_anew_is_not_given(log):
    topic = filled(log)
    reader = log.consumer(enable_partition_eof=True)
    reader.incremental_assign([TopicPartition(topic, 0, 4)])
    assert arrived(log, reader).offset() == 4
    log.wait(1.0)  # by now it has seen the end
    reader.incremental_unassign([TopicPartition(topic, 0)])
    reader.incremental_assign([TopicPartition(topic, 0, 2)])
    assert log.to_end(reader) == ([(2, b"2"), (3, b"3"), (4, b"4")], 5)


def test_a_record_has_all_that_was_given_with_it(log):
    topic, producer = log.topic(), log.producer()
    producer.produce(topic, None, key="k", partition=0, timestamp=1_700_000_000_000, headers=[("a", b"1"), ("a", "2")])
    producer.flush(CALL_S)
    reader = log.consumer()
    reader.assign([TopicPartition(topic, 0, 0)])
    message = arrived(log, reader)
    assert (message.topic(), message.partition(), message.offset()) == (topic, 0, 0)
    assert (message.key(), message.value(), message.timestamp()) == (b"k", None, (1, 1_700_000_000_000))
    assert message.headers() == [("a", b"1"), ("a", b"2")]


@pytest.mark.parametrize("start", [-1001, 17], ids=["nothing committed", "behind the end"])
def test_a_start_that_is_not_there_is_an_error(log, start):
    topic = filled(log)
    reader = log.consumer()
    reader.assign([TopicPartition(topic, 0, start)])
    message = arrived(log, reader)
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    assert reader.poll(0.5) is None


def test_what_is_assigned_cannot_be_assigned_again_nor_else_unassigned(log):
    topic = filled(log)
    reader, place = log.consumer(), [TopicPartition(topic, 0, 0)]
    reader.incremental_assign(place)
    assert error_of(lambda: reader.incremental_assign(place)).code() == KafkaError._CONFLICT
    assert [(found.topic, found.partition) for found in reader.assignment()] == [(topic, 0)]
    reader.incremental_unassign(place)
    assert error_of(lambda: reader.incremental_unassign(place)).code() == KafkaError._INVALID_ARG
    assert reader.assignment() == []


def test_a_paused_partition_is_not_read(log):
    topic = filled(log)
    reader = log.consumer()
    reader.assign([TopicPartition(topic, 0, 0)])
    reader.pause(reader.assignment())
    assert reader.poll(0.5) is None


def test_offsets_are_found_by_time(log):
    topic = filled(log)
    reader = log.consumer()
    reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=CALL_S)  # a new client knows no partitions
    assert reader.offsets_for_times([TopicPartition(topic, 0, 1_700_000_002_500)], CALL_S)[0].offset == 3
    assert reader.offsets_for_times([TopicPartition(topic, 0, 1_700_000_009_000)], CALL_S)[0].offset == -1


def test_consume_gives_what_is_there(log):
    topic = filled(log, 300)
    reader = log.consumer()
    reader.assign([TopicPartition(topic, 0, 0)])
    found = []
    log.until(lambda: found.extend(reader.consume(100, 0.05)) or len(found) == 300, "not all records come")
    assert [message.offset() for message in found] == list(range(300))
    assert reader.consume(100, 0) == []


def test_ends_of_a_partition_that_is_not_read_are_not_known(log):
    topic = filled(log)
    reader = log.consumer()
    unknown = reader.get_watermark_offsets(TopicPartition(topic, 0), cached=True)
    assert unknown == (-1001, -1001)
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=CALL_S) == (0, 5)
