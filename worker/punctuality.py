"""Partitions that fall silent: after a while, and with nothing left to read, the clock moves their punctuation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from worker.partition import Partition
from worker.records import Message


@dataclass(frozen=True)
class IdleRule:
    """Of one source, in the fleet's unit."""

    idle_s: float
    slack: int
    units_per_s: int


class Idle:
    """Knows when each partition of a source had its last record."""

    def __init__(self, rules: Mapping[str, IdleRule]) -> None:
        self._rules = rules
        self._last: dict[tuple[str, int], float] = {}

    def note(self, messages: Sequence[Message], now: float) -> None:
        """Records came."""
        if self._rules:
            self._last.update(dict.fromkeys({(message.topic(), message.partition()) for message in messages}, now))

    @staticmethod
    def _largest(partition: Partition, topic: str, rule: IdleRule) -> int | None:
        """The largest time of the source; after a restore the committed punctuation tells it."""
        largest, punctuation = partition.largest_ts(topic), partition.mark.punctuations.get(topic)
        return largest if largest is not None or punctuation is None else punctuation + rule.slack

    def due(self, partition: Partition, ends: Mapping[tuple[str, int], int], now: float) -> Iterator[tuple[str, int]]:
        """Topics whose punctuation the clock moves now, and to where."""
        for topic, rule in self._rules.items():
            place = (topic, partition.number)
            last = self._last.setdefault(place, now)
            silent_s = now - last
            largest = self._largest(partition, topic, rule)
            at_end = ends.get(place, -1) >= partition.mark.positions[topic]
            if silent_s >= rule.idle_s and at_end and largest is not None:
                yield topic, largest + int(silent_s * rule.units_per_s) - rule.slack
