"""Partitions that fall silent: after a while, and with nothing left to read, the clock moves their punctuation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from afa.expression.tree import INT_MAX, INT_MIN
from worker.partition import Partition
from worker.records import Taken


@dataclass(frozen=True)
class IdleRule:
    """Of one source, in the fleet's unit."""

    idle_s: float
    slack: int
    units_per_s: int


class Idle:
    """Knows when each partition of a source had its last record."""

    def __init__(self, rules: Mapping[str, IdleRule], lag: Callable[[Partition, str], int]) -> None:
        """`lag`: how many records of a topic there may be that were not processed yet, also behind a transaction that
        is still open: what the clock passes would be late when that is committed."""
        self._rules = rules
        self._lag = lag
        self._last: dict[tuple[str, int], float] = {}
        # What was reached when a partition was taken up of which nothing has come since.
        self._taken_up_at: dict[tuple[str, int], int | None] = {}

    def note(self, taken: Taken, now: float) -> None:
        """Records came."""
        if self._rules:
            self._last.update({(topic, taken.number): now for topic in taken.counts()})

    def forget(self, partition: int) -> None:
        """A partition went elsewhere; records that it has there are not seen here."""
        for topic in self._rules:
            self._last.pop((topic, partition), None)
            self._taken_up_at.pop((topic, partition), None)

    def due(self, partition: Partition, now: float) -> Iterator[tuple[str, int]]:
        """Topics whose punctuation the clock moves now, and to where."""
        for topic, rule in self._rules.items():
            place = (topic, partition.number)
            silent_s = now - self._last.setdefault(place, now)
            taken_up_at = self._taken_up_at.setdefault(place, partition.mark.punctuations.get(topic))
            if silent_s < rule.idle_s or not self._is_read(partition, topic):
                continue
            elapsed = int(silent_s * rule.units_per_s)
            if (largest := partition.largest_ts(topic)) is not None:
                yield topic, _within_64_bits(largest + elapsed - rule.slack)
            elif taken_up_at is not None:
                yield topic, _within_64_bits(taken_up_at + elapsed)
            elif (others := _least_of_others(partition, topic)) is not None:
                yield topic, others

    def _is_read(self, partition: Partition, topic: str) -> bool:
        return partition.ends.get(topic, -1) >= partition.mark.positions[topic] and not self._lag(partition, topic)


def _within_64_bits(ts: int) -> int:
    """A record at the end of time must not end the worker."""
    return max(INT_MIN, min(ts, INT_MAX))


def _least_of_others(partition: Partition, topic: str) -> int | None:
    """A source that never had a record holds up no other: it comes as far as they do."""
    reached = [ts for other, ts in partition.mark.punctuations.items() if other != topic and ts is not None]
    return min(reached, default=None)
