"""Where partitions end, as far as the client knows without asking a broker, or was told when it asked.

Markers of transactions take offsets that nobody is given: whoever was told that a partition ends at some offset has
read it to there, though its last record lies before.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition

from worker.partition import Partition

ASK_S: Final = 1.0


class Ends:
    """Of the partitions that are read."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._asked: dict[tuple[str, int], int] = {}

    def ask(self, partitions: Iterable[Partition]) -> None:
        """Asks where partitions end that are not fetched now; if no broker answers, what is known stays. Blocks, but
        not for long."""
        with suppress(KafkaException):
            for partition in partitions:
                for topic in partition.reads:
                    place = TopicPartition(topic, partition.number)
                    _, end = self._consumer.get_watermark_offsets(place, timeout=ASK_S)
                    self._asked[topic, partition.number] = int(end)

    def lag(self, partition: Partition, topic: str) -> int:
        """How many records of a topic there may be that were not processed yet."""
        end = self._end(topic, partition.number)
        return 0 if partition.ends.get(topic, -1) >= end else max(0, end - partition.mark.positions[topic])

    def _end(self, topic: str, number: int) -> int:
        asked = self._asked.get((topic, number), -1)
        try:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
        except KafkaException:
            return asked
        return max(asked, int(high))
