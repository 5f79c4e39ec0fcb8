"""The commit: outputs, snapshots and offsets become visible together, or not at all.

Exactly once, step by step:

1. The longest-dirty keys, arc table and conditions if they changed, and progress are produced.
2. Flush: every record of the transaction is in its partition. A delivery error resets.
3. For each partition: our own next offsets, and in their metadata what a restore needs.
4. `send_offsets_to_transaction`, with fresh group metadata: a worker that lost its partitions is refused here.
5. `commit_transaction`: the point of no return.

At least once has no transaction: what was produced is visible at once, snapshots follow when all else is delivered, and
offsets when they are, too. A snapshot that came before what its records led to would keep that from being told again.
The loop goes on meanwhile, up to the next commit, which waits for the one before. A crash amid them repeats changes
(their ids make that harmless), and may leave an insert that nobody retracts.

Only steps 1 to 3 may be retried by doing them again; any error in 2, 4 or 5 takes the one reset path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from worker.binding import Binding
from worker.clock import Clock
from worker.observing import Observer
from worker.partition import ARC_TABLE_KEY, CONDITIONS_KEY, Partition, Phase
from worker.publishing import Publisher, Sent
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


# Of the state topic: key, value, the offsets that it holds, traces of its events.
StateRecord = tuple[bytes, bytes | None, bytes, bytes | None]


@dataclass(frozen=True)
class _Begun:
    """A commit whose records may be on their way."""

    at: float
    sent: Sent
    bindings: dict[int, tuple[Partition, Binding]]  # by number
    state: dict[int, list[StateRecord]]  # by number: what is sent when all else is delivered


class Checkpoint:
    """Commits, for all partitions that this worker owns."""

    def __init__(
        self,
        settings: CommitSettings,
        consumer: Any,
        publisher: Publisher,
        clock: Clock,
        watchdog: Watchdog,
        *,
        observer: Observer,
    ) -> None:
        self._settings = settings
        self._consumer = consumer
        self._publisher = publisher
        self._clock = clock
        self._watchdog = watchdog
        self._observer = observer
        self.stamp = 1  # of the keys that change until the next commit
        self._stamped_at: list[tuple[int, float]] = [(1, clock.monotonic())]
        self._committed: dict[int, Any] = {}  # by partition: the mark of the last commit
        self._began_at = self._offsets_at = clock.monotonic()
        self._begun: _Begun | None = None

    def begin(self) -> None:
        """What is produced from here on belongs together."""
        if self._settings.exactly_once:
            with self._calling("begin_transaction"):
                self._publisher.producer.begin_transaction()

    def is_due(self) -> bool:
        return self._clock.monotonic() - self._began_at >= self._settings.commit_interval_s

    def commit(
        self, partitions: Iterable[Partition], *, leaving: frozenset[int] = frozenset(), waits: bool = False
    ) -> None:
        """Commits all that is processed; of partitions that leave, all that is dirty is written. Without a transaction
        `settle` ends it, unless somebody waits for it, as those do that leave. Raises ResetError or WorkerError; then
        nothing since the last commit counts."""
        self._settle(waits=True)
        now = self._clock.monotonic()
        passed_s, self._began_at = now - self._began_at, now
        live = [partition for partition in partitions if partition.phase is Phase.LIVE]
        state = {each.number: list(self._state(each, passed_s, leaves=each.number in leaving)) for each in live}
        moved = [partition for partition in live if self._committed.get(partition.number) != partition.mark]
        is_old = bool(live) and now - self._offsets_at >= RECOMMIT_S
        if not moved and not self._publisher.sent.count and not any(state.values()) and not is_old:
            return
        bindings = {each.number: (each, self._binding(each)) for each in live}
        self._begun = _Begun(now, self._publisher.next(), bindings, state)
        self._next_stamp()
        if self._settings.exactly_once:
            self._send_state(self._begun)
        if self._settings.exactly_once or leaving or waits:
            self._settle(waits=True)

    def settle(self) -> None:
        """Ends the commit that was begun, if all of its records are delivered. Raises as `commit`."""
        if self._begun is not None:
            self._publisher.serve()
            self._settle(waits=False)

    def _settle(self, *, waits: bool) -> None:
        begun = self._begun
        if begun is None:
            return
        if not self._is_delivered(begun, waits=waits):
            return
        self._send_state(begun)
        if not self._is_delivered(begun, waits=waits):
            return
        self._begun = None
        offsets = [offset for number in begun.bindings for offset in self._bound(begun, number)]
        is_committed = self._commit_offsets(offsets)
        marks = {number: binding.committed if is_committed else None for number, (_, binding) in begun.bindings.items()}
        self._committed.update(marks)
        self._offsets_at = begun.at
        self._observer.committed(self._clock.monotonic() - begun.at)
        self.begin()

    def _is_delivered(self, begun: _Begun, *, waits: bool) -> bool:
        self._raise_failure()
        if begun.sent.on_their_way and waits:
            self._flush()
        return not begun.sent.on_their_way

    def _send_state(self, begun: _Begun) -> None:
        for number, records in begun.state.items():
            for record in records:
                self._publisher.snapshot(number, *record, sent=begun.sent)
        begun.state.clear()

    def _bound(self, begun: _Begun, number: int) -> list[Any]:
        """Offsets of a partition, with what they bind: now it is known where its late records are."""
        partition, binding = begun.bindings[number]
        late = begun.sent.late_next.get(number, binding.committed.late)
        partition.mark = replace(partition.mark, late=late)
        binding = replace(binding, committed=replace(binding.committed, late=late))
        begun.bindings[number] = partition, binding
        metadata, positions = binding.text(), binding.committed.positions
        read = [topic for topic in positions if topic not in partition.unread]
        return [TopicPartition(topic, number, positions[topic], metadata) for topic in read]

    def _binding(self, partition: Partition) -> Binding:
        untold = self._publisher.waiting(partition.number)
        return partition.binding(self._settings.owner, self._settings.partitions, untold)

    def forget(self, partition: int) -> None:
        """A partition that is not ours any more."""
        self._committed.pop(partition, None)
        if self._begun is not None:
            self._begun.bindings.pop(partition, None)
            self._begun.state.pop(partition, None)

    def _state(self, partition: Partition, passed_s: float, *, leaves: bool) -> Iterator[StateRecord]:
        """Its share of what is due, so long after the last commit; all, if the partition leaves."""
        # Under load partitions are read in turns: one with a backlog is not quiet, only not its turn.
        is_quiet = partition.quiet_commits >= QUIET_COMMITS and partition.is_at_end()
        partition.quiet_commits += 1
        interval_s = self._settings.snapshot_interval_s
        before = self.stamp + 1 if leaves or is_quiet else self._stamp_before(interval_s)
        spread_s = min(SPREAD * interval_s, QUIET_SPREAD_S) if is_quiet else SPREAD * interval_s
        most = 1 << 31 if leaves else partition.share(passed_s / spread_s if passed_s < spread_s else 1.0)
        held = json.dumps(dict(partition.mark.positions), separators=(",", ":")).encode()
        for key in partition.given_up:  # before what is written anew
            yield key, None, held, None
        partition.given_up = ()
        for key, snapshot in partition.take_snapshots(before, most):
            yield key, snapshot, held, partition.traces.packed(key.decode())
        if partition.table_written != partition.table.offset:
            table = partition.table.packed()
            partition.snapshots.put(ARC_TABLE_KEY, table)
            yield ARC_TABLE_KEY, table, held, None
            partition.table_written = partition.table.offset
        if partition.conditions_changed():
            yield CONDITIONS_KEY, partition.conditions, held, None

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

    def _flush(self) -> None:
        with self._watchdog.watching("flush"):
            left = self._publisher.flush(FLUSH_S)
        self._raise_failure()
        if left:
            error = KafkaError(KafkaError._MSG_TIMED_OUT)
            raise_for(reaction_of_producer(error), error, f"{left} records were not delivered in {FLUSH_S:.0f} s")

    def _raise_failure(self) -> None:
        """If a record was not delivered: whatever else is tried, until a reset brings another publisher."""
        if self._publisher.failure is not None:
            error, topic = self._publisher.failure
            raise_for(reaction_of_producer(error), error, f"a record was not delivered to {topic}")

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
        if not offsets:  # all partitions that were to be committed went elsewhere
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
