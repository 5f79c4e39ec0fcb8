"""What a worker tells of itself: metrics, health and progress records, from what the loop notes once per batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from afa.changes import Changes
from worker.clock import Clock, utc_text
from worker.ends import Ends
from worker.metrics import Metrics
from worker.partition import Partition, Phase
from worker.publishing import Publisher
from worker.records import Taken

LOOK_EVERY_S: Final = 1.0
STALLED_S: Final = 60.0  # without a step the process counts as dead
WAITING_S: Final = 5.0  # without a step it waits for a broker, and matches nothing

_OPS: Final = {"insert": "arcfleet_matches_total", "retract": "arcfleet_retractions_total"}


class Observer:
    """Called by the loop; the HTTP door reads from another thread what was noted last."""

    def __init__(self, metrics: Metrics, clock: Clock, instance: str, ends: Ends, units_per_s: int) -> None:
        self._metrics = metrics
        self._clock = clock
        self._instance = instance
        self._ends = ends
        self._units_per_s = units_per_s
        self._looked_at = -LOOK_EVERY_S
        self._progress_at = -LOOK_EVERY_S
        self._stepped_at = clock.monotonic()
        self._taken_at: dict[tuple[str, int], float] = {}  # record time of the last record, by partition
        self._unknown: dict[int, int] = {}
        self._partial: dict[int, dict[str, int]] = {}  # partial matches by partition, as of the last look
        self.ready = False
        self.stopped = ""  # why consuming has stopped, if it has

    def batch(self, taken: Taken, counts: Mapping[str, Mapping[str, int]], told: Changes, s: float) -> None:
        """A batch of one partition was matched."""
        metrics, messages = self._metrics, taken.messages
        for topic, count in taken.counts().items():
            metrics.add("arcfleet_events_total", count, topic=topic)
        for name, indices in (("arcfleet_late_total", told.late), ("arcfleet_bad_total", told.bad)):
            for topic, count in Counter(messages[index].topic() for index, _ in indices).items():
                metrics.add(name, count, topic=topic)
        self.changes(counts)
        metrics.observe("arcfleet_batch_seconds", s)
        for topic, message in taken.last().items():
            self._taken_at[topic, taken.number] = message.timestamp()[1] / 1000

    def changes(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Changes were told."""
        for pattern, of_pattern in counts.items():
            for op, count in of_pattern.items():
                if op in _OPS:
                    self._metrics.tell(_OPS[op], count, pattern)

    def committed(self, seconds: float) -> None:
        self._metrics.observe("arcfleet_commit_seconds", seconds)

    def look(self, partitions: Iterable[Partition], coming: int, *, joined: bool) -> None:
        """After every step; gauges are set once a second."""
        now = self._clock.monotonic()
        self._stepped_at = now
        partitions = list(partitions)
        live = [partition for partition in partitions if partition.phase is Phase.LIVE]
        assigned = len(partitions) + coming
        self.ready = joined and not self.stopped and len(live) == assigned
        if now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        metrics = self._metrics
        metrics.set("arcfleet_restore_ratio", len(live) / assigned if assigned else float(joined))
        gauges = [partition.engine.gauges() for partition in partitions]
        told = (gauge["partial_matches"] for gauge in gauges)
        self._partial = {partition.number: counts for partition, counts in zip(partitions, told, strict=True)}
        metrics.set("arcfleet_keys", sum(gauge["keys"] for gauge in gauges))
        metrics.set("arcfleet_degraded_keys", sum(gauge["degraded_keys"] for gauge in gauges))
        metrics.set("arcfleet_state_bytes", sum(gauge["state_bytes"] for gauge in gauges))
        partial: Counter[str] = Counter()
        for gauge in gauges:
            for pattern, count in gauge["partial_matches"].items():
                partial[pattern] += count
        metrics.set_patterns("arcfleet_partial_matches", partial)
        metrics.set("arcfleet_arc_version", max((part.table.version for part in partitions), default=0))
        for partition in live:
            self._look_at(partition)

    def _look_at(self, partition: Partition) -> None:
        wall = self._clock.wall()
        unknown = partition.engine.stats()["errors"]
        # An engine with new patterns begins to count anew.
        self._metrics.add("arcfleet_unknown_values_total", max(0, unknown - self._unknown.get(partition.number, 0)))
        self._unknown[partition.number] = unknown
        for topic in partition.reads:
            labels = {"topic": topic, "partition": str(partition.number)}
            lag = self._ends.lag(partition, topic)
            self._metrics.set("arcfleet_lag_records", lag, **labels)
            taken = self._taken_at.get((topic, partition.number))
            self._metrics.set(
                "arcfleet_lag_seconds", 0.0 if taken is None or not lag else max(0.0, wall - taken), **labels
            )
            punctuation = partition.mark.punctuations.get(topic)
            if punctuation is not None:
                behind = wall - punctuation / self._units_per_s
                self._metrics.set("arcfleet_punctuation_seconds", behind, **labels)

    def progress(self, partitions: Iterable[Partition], publisher: Publisher) -> None:
        """Progress records, in the transaction of the commit that is about to be made, at most once a second."""
        now = self._clock.monotonic()
        if now - self._progress_at < LOOK_EVERY_S:
            return
        self._progress_at = now
        at = utc_text(self._clock.wall())
        for partition in partitions:
            if partition.phase is not Phase.LIVE:
                continue
            # As of the last look: another one would cost as much as everything else here.
            partial = self._partial.get(partition.number)
            if partial is None:
                partial = partition.engine.gauges()["partial_matches"]
            for topic, position in partition.reads.items():
                record = {
                    "topic": topic,
                    "partition": partition.number,
                    "offset": position,
                    "largest_ts": partition.largest_ever(topic),
                    "punctuation": partition.mark.punctuations.get(topic),
                    "arc_version": partition.table.version or None,
                    "lag": self._ends.lag(partition, topic),
                    "instance": self._instance,
                    "at": at,
                    "partial_matches": partial,
                }
                if partition.told_progress.get(topic, {}) | {"at": at} != record:
                    partition.told_progress[topic] = record
                    publisher.progress(topic, partition.number, record)

    def forget(self, topics: Iterable[str], number: int) -> None:
        """A partition went elsewhere."""
        self._unknown.pop(number, None)
        for topic in topics:
            self._taken_at.pop((topic, number), None)
            for name in ("arcfleet_lag_records", "arcfleet_lag_seconds", "arcfleet_punctuation_seconds"):
                self._metrics.forget(name, topic, str(number))

    def alive(self) -> tuple[bool, dict[str, object]]:
        """Making progress, or nothing to do."""
        silent_s = self._silent_s()
        if self.stopped:
            return True, {"alive": True, "stopped": self.stopped}
        return silent_s < STALLED_S, {"alive": silent_s < STALLED_S, "seconds_since_last_step": round(silent_s, 3)}

    def is_ready(self) -> tuple[bool, dict[str, object]]:
        """A member of the group, with all that is assigned restored, and not waiting for a broker."""
        ready = self.ready and self._silent_s() < WAITING_S
        return ready, {"ready": ready} | ({"stopped": self.stopped} if self.stopped else {})

    def _silent_s(self) -> float:
        return self._clock.monotonic() - self._stepped_at
