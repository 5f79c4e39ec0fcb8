"""Where partitions end, as far as the client knows without asking a broker.

Markers of transactions take offsets that nobody is given: whoever was told that a partition ends at some offset has
read it to there, though its last record lies before.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from worker.partition import Partition


class Ends:
    """Of the partitions that are read."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def lag(self, partition: Partition, topic: str) -> int:
        """How many records of a topic there may be that were not processed yet."""
        end = self._end(topic, partition.number)
        return 0 if partition.ends.get(topic, -1) >= end else max(0, end - partition.mark.positions[topic])

    def _end(self, topic: str, number: int) -> int:
        try:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
        except KafkaException:
            return -1
        return int(high)
