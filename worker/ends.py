"""Where partitions end, as far as the client knows without asking a broker.

Markers of transactions take offsets that nobody is given: whoever was told that a partition ends at some offset has
read it to there, though its last record lies before.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException, TopicPartition


class Ends:
    """Of the partitions that are read."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.seen: dict[tuple[str, int], int] = {}  # where the client was told that it ends

    def lag(self, topic: str, number: int, position: int) -> int:
        """How many records from a position on there may be."""
        end = self._end(topic, number)
        return 0 if self.seen.get((topic, number), -1) >= end else max(0, end - position)

    def _end(self, topic: str, number: int) -> int:
        try:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
        except KafkaException:
            return -1
        return int(high)
