"""The commit: outputs, snapshots and offsets become visible together, or not at all.

Exactly once, step by step:

1. The longest-dirty keys, arc table and conditions if they changed, and progress are produced.
2. Flush: every record of the transaction is in its partition. A delivery error resets.
3. For each partition: our own next offsets, and in their metadata what a restore needs.
4. `send_offsets_to_transaction`, with fresh group metadata: a worker that lost its partitions is refused here.
5. `commit_transaction`: the point of no return.

At least once has no transaction: what was produced is visible at once, and the offsets follow after the flush. A crash
between the two repeats changes (their ids make that harmless), and may leave an insert that nobody retracts.

Only steps 1 to 3 may be retried by doing them again; any error in 2, 4 or 5 takes the one reset path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from worker.clock import Clock
from worker.partition import ARC_TABLE_KEY, CONDITIONS_KEY, Partition, Phase
from worker.publishing import Publisher
from worker.reactions import producing, raise_for, reaction_of_consumer, reaction_of_producer
from worker.watchdog import Watchdog

QUIET_COMMITS: Final = 2  # without a record, after which all that is dirty is due
# In which what is due is written, as shares of the snapshot interval; all that is dirty in no more than a second.
SPREAD: Final = 0.5
QUIET_SPREAD_S: Final = 1.0
RECOMMIT_S: Final = 6 * 3600.0  # offsets of topics that the group does not subscribe to expire, after a day or more
FLUSH_S: Final = 10.0
CALL_S: Final = 15.0


@dataclass(frozen=True)
class CommitSettings:
    """What a commit needs to know of the fleet."""

    owner: str  # the transactional id; without transactions the instance
    exactly_once: bool
    commit_interval_s: float
    snapshot_interval_s: float
    partitions: int | None  # of the sources, if that was asked


class Checkpoint:
    """Commits, for all partitions that this worker owns."""

    def __init__(
        self, settings: CommitSettings, consumer: Any, publisher: Publisher, clock: Clock, watchdog: Watchdog
    ) -> None:
        self._settings = settings
        self._consumer = consumer
        self._publisher = publisher
        self._clock = clock
        self._watchdog = watchdog
        self.stamp = 1  # of the keys that change until the next commit
        self._stamped_at: list[tuple[int, float]] = [(1, clock.monotonic())]
        self._committed: dict[int, Any] = {}  # by partition: the mark of the last commit
        self._committed_at = self._offsets_at = clock.monotonic()

    def begin(self) -> None:
        """What is produced from here on belongs together."""
        if self._settings.exactly_once:
            with self._calling("begin_transaction"):
                self._publisher.producer.begin_transaction()

    def is_due(self) -> bool:
        return self._clock.monotonic() - self._committed_at >= self._settings.commit_interval_s

    def commit(self, partitions: Iterable[Partition], *, leaving: frozenset[int] = frozenset()) -> bool:
        """Commits all that is processed; of partitions that leave, all that is dirty is written. Whether there was
        something to commit. Raises ResetError or WorkerError; then nothing since the last commit counts."""
        passed_s, self._committed_at = self._clock.monotonic() - self._committed_at, self._clock.monotonic()
        live = [partition for partition in partitions if partition.phase is Phase.LIVE]
        for partition in live:
            self._write_state(partition, passed_s, leaves=partition.number in leaving)
        moved = [partition for partition in live if self._committed.get(partition.number) != partition.mark]
        is_old = bool(live) and self._committed_at - self._offsets_at >= RECOMMIT_S
        if not moved and not self._publisher.sent and not is_old:
            return False
        self._flush()
        for partition in live:
            late = self._publisher.late_next.pop(partition.number, partition.mark.late)
            partition.mark = replace(partition.mark, late=late)
        if self._commit_offsets([offset for partition in live for offset in self._offsets(partition)]):
            self._committed.update({partition.number: partition.mark for partition in live})
            self._publisher.sent = 0
        self._offsets_at = self._committed_at
        self._next_stamp()
        self.begin()
        return True

    def forget(self, partition: int) -> None:
        """A partition that is not ours any more."""
        self._committed.pop(partition, None)

    def _write_state(self, partition: Partition, passed_s: float, *, leaves: bool) -> None:
        """Its share of what is due, so long after the last commit; all, if the partition leaves."""
        # Under load partitions are read in turns: one with a backlog is not quiet, only not its turn.
        is_quiet = partition.quiet_commits >= QUIET_COMMITS and partition.is_at_end()
        partition.quiet_commits += 1
        interval_s = self._settings.snapshot_interval_s
        before = self.stamp + 1 if leaves or is_quiet else self._stamp_before(interval_s)
        spread_s = min(SPREAD * interval_s, QUIET_SPREAD_S) if is_quiet else SPREAD * interval_s
        most = 1 << 31 if leaves else partition.share(passed_s / spread_s)
        held = json.dumps(dict(partition.mark.positions), separators=(",", ":")).encode()
        for key in partition.given_up:  # before what is written anew
            self._publisher.snapshot(partition.number, key, None, held)
        partition.given_up = ()
        for key, snapshot in partition.take_snapshots(before, most):
            self._publisher.snapshot(partition.number, key, snapshot, held, partition.traces.packed(key.decode()))
        if partition.table_written != partition.table.offset:
            table = partition.table.packed()
            partition.snapshots.put(ARC_TABLE_KEY, table)
            self._publisher.snapshot(partition.number, ARC_TABLE_KEY, table, held)
            partition.table_written = partition.table.offset
        if partition.conditions_changed():
            self._publisher.snapshot(partition.number, CONDITIONS_KEY, partition.conditions, held)

    def _stamp_before(self, age_s: float) -> int:
        """The first stamp that is younger than this."""
        bound = self._clock.monotonic() - age_s
        while len(self._stamped_at) > 1 and self._stamped_at[1][1] <= bound:
            self._stamped_at.pop(0)
        stamp, at = self._stamped_at[0]
        return stamp + 1 if at <= bound else 0

    def _next_stamp(self) -> None:
        self.stamp += 1
        self._stamped_at.append((self.stamp, self._clock.monotonic()))

    def _offsets(self, partition: Partition) -> list[Any]:
        untold = self._publisher.waits(partition.number)
        metadata = partition.binding(self._settings.owner, self._settings.partitions, untold=untold).text()
        return [TopicPartition(topic, partition.number, offset, metadata) for topic, offset in partition.reads.items()]

    def _flush(self) -> None:
        with self._watchdog.watching("flush"):
            left = self._publisher.flush(FLUSH_S)
        if self._publisher.failure is not None:
            (error, topic), self._publisher.failure = self._publisher.failure, None
            raise_for(reaction_of_producer(error), error, f"a record was not delivered to {topic}")
        if left:
            error = KafkaError(KafkaError._MSG_TIMED_OUT)
            raise_for(reaction_of_producer(error), error, f"{left} records were not delivered in {FLUSH_S:.0f} s")

    def _commit_offsets(self, offsets: Sequence[Any]) -> bool:
        """Whether they are committed; without a transaction they may have to wait for the next time."""
        if self._settings.exactly_once:
            producer = self._publisher.producer
            with self._calling("send_offsets_to_transaction"):
                metadata = self._consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction(list(offsets), metadata, CALL_S)
            with self._calling("commit_transaction"):
                producer.commit_transaction(CALL_S)
            return True
        try:
            with self._watchdog.watching("commit"):
                self._consumer.commit(offsets=list(offsets), asynchronous=False)
        except KafkaException as error:
            raise_for(reaction_of_consumer(error.args[0]), error.args[0], "the offsets were not committed")
            return False
        return True

    @contextmanager
    def _calling(self, what: str) -> Iterator[None]:
        """A call of the transactional producer, watched; its errors become reactions."""
        with self._watchdog.watching(what), producing(what):
            yield
