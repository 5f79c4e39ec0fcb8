"""The loop of one worker: take records, match, publish, commit.

Callbacks of a rebalance note what they saw and never raise: an exception that leaves them would destroy fetched
records. Whatever goes wrong ends in one of two ways: WorkerError, the process ends; or ResetError, everything since the
last commit is void, and every partition is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Consumed

from afa.changes import Changes
from worker.arc_feed import ArcFeed
from worker.checkpoint import Checkpoint
from worker.clock import Clock
from worker.ends import Ends
from worker.errors import ResetError, WorkerError
from worker.observing import Observer
from worker.orphans import Orphans
from worker.partition import MakeEngine, Partition, Phase
from worker.publishing import Publisher
from worker.punctuality import Idle
from worker.reactions import raise_for, reaction_of_consumer
from worker.records import Message, Needed, Taken, by_partition
from worker.restore import Restorer
from worker.sides import Sides

BATCH_RECORDS_MAX: Final = 5_000
BATCH_RECORDS_MIN: Final = 50
BATCH_BYTES_MAX: Final = 2_000_000  # of values, as far as a sample tells: engines keep what they read for a while
BATCH_SAMPLE: Final = 64  # one record of so many is asked how large it is
BATCH_S: Final = 0.2  # of matching, in one step: longer ones make the next batches smaller
WAIT_S: Final = 0.05  # for a first record
REVOKE_S: Final = 5.0  # for the commit before partitions go


@dataclass
class Parts:
    """What a loop is put together from; a reset replaces producer, publisher and checkpoint."""

    consumer: Any
    publisher: Publisher
    checkpoint: Checkpoint
    restorer: Restorer
    arcs: ArcFeed
    sides: Sides
    observer: Observer
    ends: Ends
    idle: Idle
    clock: Clock
    topics: Sequence[str]
    needed: Needed
    make_engine: MakeEngine
    wall_units: Callable[[], int]  # the wall clock in the fleet's unit
    orphans: Orphans
    me: Callable[[], str | None]  # the member id by which the group knows this worker
    say: Callable[..., None]
    renew: Callable[[bool], None]  # after a reset: a new producer if asked for, its transactions made ready


class Loop:
    """One worker's work, a step at a time."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.partitions: dict[int, Partition] = {}
        self.coming: list[int] = []  # assigned, not restored yet
        self.assigned: set[int] = set()
        self.joined = False  # the group has told us what is ours, if only that nothing is
        self._failure: Exception | None = None
        self._batch_records = self._batch_room = BATCH_RECORDS_MAX // 10  # until it is known what they are like

    # Rebalances ------------------------------------------------------------------------------------------------------

    def subscribe(self) -> None:
        """Joins the group, by the first topic: the owner of its partition n has partition n of the others."""
        self.parts.consumer.subscribe(
            [self.parts.topics[0]], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        self._noting(lambda: self._take_up(consumer, [partition.partition for partition in partitions]))

    def _take_up(self, consumer: Any, numbers: list[int]) -> None:
        self.joined = True
        consumer.incremental_assign([])  # else the client would assign by itself; ours comes after the restore
        for number in numbers:
            if number not in self.partitions and number not in self.coming:
                self.coming.append(number)

    def _on_revoke(self, _: Any, partitions: list[Any]) -> None:
        self._noting(lambda: self._give_up([partition.partition for partition in partitions]))
        # Also what was lost comes here, if a reset gave it back before the client told of it.
        self.joined &= bool(self.partitions or self.coming)

    def _give_up(self, numbers: list[int]) -> None:
        ours = frozenset(numbers) & self.partitions.keys()
        try:
            if ours and self._failure is None:
                for number in ours:
                    self.parts.publisher.punctuations(all_of=number)
                self.parts.checkpoint.commit(self.partitions.values(), leaving=ours)
        finally:
            self._drop(numbers)

    def _on_lost(self, _: Any, partitions: list[Any]) -> None:
        numbers = [partition.partition for partition in partitions]
        self.joined = False  # the group has left us behind: it tells anew what is ours
        self._noting(lambda: self._drop(numbers))
        if numbers:
            self._failure = self._failure or ResetError(f"partitions {numbers} were lost to another worker")

    def _noting(self, work: Callable[[], None]) -> None:
        try:
            work()
        except KafkaException as error:
            self._failure = self._failure or ResetError(f"in a rebalance: {error.args[0].str()}")
        except (ResetError, WorkerError, OSError, RuntimeError) as error:
            self._failure = self._failure or error

    def _drop(self, numbers: list[int]) -> None:
        """Partitions that are not ours any more: fetching ends, and what is known of them goes."""
        gone = [
            TopicPartition(topic, number)
            for number in numbers
            for topic in self.parts.topics
            if number in self.assigned
        ]
        # Also with nothing to give back: in a callback the client would else unassign by itself, what it never had.
        with suppress(KafkaException):
            self.parts.consumer.incremental_unassign(gone)
        for number in numbers:
            self.assigned.discard(number)
            self.partitions.pop(number, None)
            if number in self.coming:
                self.coming.remove(number)
            self.parts.publisher.forget(number)
            self.parts.checkpoint.forget(number)
            self.parts.idle.forget(number)
            self.parts.restorer.abandon(number)
            self.parts.observer.forget(self.parts.topics, number)

    # Steps -----------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One round. Raises ResetError, WorkerError."""
        messages, ends = self._consume()
        started = self.parts.clock.monotonic()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        for number, taken in by_partition(messages, self.parts.topics).items():
            partition = self.partitions.get(number)
            # Others come after a partition went, or came back.
            if partition is not None and (new := taken.since(partition.mark.positions)).messages:
                self._process(partition, new)
        for end in ends:  # not before: the records of the same batch come before it
            self._at_end(end)
        for partition in self.partitions.values():
            partition.held.clear()
        self._bound_batches(messages, self.parts.clock.monotonic() - started)
        self._restore()
        self._apply_arcs()
        self.parts.checkpoint.settle()
        if self.parts.checkpoint.is_due():
            self._advance_idle()
            self.commit()
        self._look_for_orphans()
        self.look()

    def look(self) -> None:
        """Lets whoever observes see how things are."""
        self.parts.observer.look(self.partitions.values(), len(self.coming), joined=self.joined)

    def _look_for_orphans(self) -> None:
        orphans = self.parts.orphans.found(self.parts.me)
        if not orphans:
            return
        self.parts.say("joining again", why=f"nobody has the partitions {sorted(orphans)}")
        self.parts.consumer.unsubscribe()
        until = self.parts.clock.monotonic() + REVOKE_S
        while (self.partitions or self.coming) and self.parts.clock.monotonic() < until:
            # Records are left to who comes next: only bad news counts.
            event = self.parts.consumer.poll(WAIT_S)
            if event is not None and event.error() is not None:
                raise_for(reaction_of_consumer(event.error()), event.error(), "joining again")
        if self.partitions or self.coming:
            raise WorkerError(f"partitions were not given up within {REVOKE_S:g} s to join again", fix="restart it")
        self.joined = False
        self.subscribe()

    def _bound_batches(self, messages: Sequence[Message], took_s: float) -> None:
        """A pattern that costs much must not keep the worker from its commits, nor large records fill its memory."""
        if took_s > BATCH_S:
            self._batch_records = max(BATCH_RECORDS_MIN, self._batch_records // 2)
        elif self._batch_records < BATCH_RECORDS_MAX:
            self._batch_records = min(BATCH_RECORDS_MAX, self._batch_records * 5 // 4)
        sizes = [len(message.value() or b"") for message in messages[::BATCH_SAMPLE]]
        if sizes:
            self._batch_room = max(BATCH_RECORDS_MIN, BATCH_BYTES_MAX * len(sizes) // max(1, sum(sizes)))

    def _consume(self) -> tuple[list[Message], list[Message]]:
        """Records, and where ends of partitions were seen; bad news of the consumer raises."""
        consumer = self.parts.consumer
        wait = 0.0 if self.coming else WAIT_S
        first = consumer.poll(wait)
        most = min(self._batch_records, self._batch_room)
        messages = [] if first is None else [first, *consumer.consume(most - 1, 0)]
        # So, and not one by one, because nearly always there is none.
        if not any(map(Consumed.error, messages)):
            return messages, []
        events = [message for message in messages if message.error() is not None]
        for event in events:
            raise_for(reaction_of_consumer(event.error()), event.error(), "consuming")
        ends = [event for event in events if event.error().code() == KafkaError._PARTITION_EOF]
        return [message for message in messages if message.error() is None], ends

    def _at_end(self, event: Message) -> None:
        """Markers of transactions take offsets that nobody is given: an end counts as read."""
        topic, end = event.topic(), event.offset()
        partition = self.partitions.get(event.partition())
        if partition is None or topic in partition.held:  # the end comes again behind the records that do
            return
        partition.ends[topic] = end
        if partition.phase is Phase.REPLAYING:
            if end > partition.mark.positions[topic]:
                partition.advance({topic: end})
            if partition.is_replayed():
                self._finish_replay(partition)

    def _process(self, partition: Partition, taken: Taken) -> None:
        if partition.phase is Phase.REPLAYING:
            taken = self._replay(partition, taken)
        if taken.messages and partition.phase is Phase.LIVE:
            self._match(partition, taken)

    def _match(self, partition: Partition, taken: Taken) -> None:
        parts = self.parts
        started = parts.clock.monotonic()
        changes = partition.feed(taken, parts.needed, parts.checkpoint.stamp, parts.wall_units())
        counts = parts.publisher.changes(partition.number, changes, partition.traces)
        parts.sides.set_aside(taken.messages, changes)
        parts.publisher.serve()
        parts.idle.note(taken, parts.clock.monotonic())
        parts.observer.batch(taken, counts, changes, parts.clock.monotonic() - started)
        parts.sides.check()

    # Restoring -------------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        partition = self.parts.restorer.step(self.coming, self.parts.arcs.table)
        if partition is None:
            return
        partition.begin(self.parts.checkpoint.stamp)
        self.coming.remove(partition.number)
        self.partitions[partition.number] = partition
        self.assigned.add(partition.number)
        if partition.phase is Phase.RESTORING:
            partition.move(Phase.REPLAYING)
        self.parts.consumer.incremental_assign(
            [TopicPartition(topic, partition.number, offset) for topic, offset in partition.reads.items()]
        )
        if partition.phase is Phase.REPLAYING and partition.is_replayed():
            self._finish_replay(partition)

    def _replay(self, partition: Partition, taken: Taken) -> Taken:
        """Feeds what had been processed before, without publishing; the rest is returned."""
        assert partition.replay_to is not None
        known = partition.replay_to.positions
        left_out = self.parts.restorer.left_out(partition.number)
        before = taken.until(known)
        again = before.pick(lambda topic, offset: (topic, offset) not in left_out) if left_out else before
        if again.messages:
            partition.feed(again, self.parts.needed, self.parts.checkpoint.stamp, self.parts.wall_units())
        if before.messages:
            partition.advance(before.positions())
        rest = taken.since(known) if before is not taken else Taken(partition.number, [], [], [])
        for topic in rest.counts():  # what is missing below the committed offset does not exist
            position = partition.mark.positions[topic]
            partition.advance({topic: max(position, known[topic])})
        if partition.is_replayed():
            self._finish_replay(partition)
            return rest
        return self._hold(partition, rest)

    def _hold(self, partition: Partition, rest: Taken) -> Taken:
        """Records of one topic that come before another topic is replayed are fetched again then."""
        for topic in rest.counts():
            first = min(rest.of_topic(topic).offsets)
            place = [TopicPartition(topic, partition.number, first)]
            self.parts.consumer.incremental_unassign(place)
            self.parts.consumer.incremental_assign(place)
            partition.held.add(topic)
        return rest.pick(lambda *_: False)

    def _finish_replay(self, partition: Partition) -> None:
        assert partition.replay_to is not None
        partition.come_to(partition.replay_to, partition.engine)
        partition.apply_conditions()  # not before: what they call late, and came before them, is not
        partition.engine.end_replay(partition.number)
        partition.mark = replace(partition.replay_to, positions=partition.mark.positions)
        partition.due_before = self.parts.checkpoint.stamp + 1
        partition.move(Phase.LIVE)
        if partition.untold:
            self._tell(partition, partition.engine.emitted(partition.number, partition.untold))
        for told in partition.release(partition.engine, partition.mark.positions):
            partition.advance({})
            self._tell(partition, told)

    # Arcs and time ---------------------------------------------------------------------------------------------------

    def _apply_arcs(self) -> None:
        arcs = self.parts.arcs
        arcs.poll()
        newest = arcs.table.offset
        live = [partition for partition in self.partitions.values() if partition.phase is Phase.LIVE]
        for partition in [each for each in live if arcs.has_news_for(each.table, each.taken_up)]:
            records, partition.taken_up = arcs.news_for(partition.table), arcs.taken_up
            if partition.knows_all(records):
                for told in partition.apply_arcs(records, newest):
                    self._tell(partition, told)
            else:
                self.parts.checkpoint.commit(self.partitions.values(), leaving=frozenset({partition.number}))
                for told in partition.rebuilt(records, newest, self.parts.make_engine):
                    self._tell(partition, told)

    def _tell(self, partition: Partition, told: Changes) -> None:
        """What no record led to."""
        self.parts.observer.changes(self.parts.publisher.changes(partition.number, told, partition.traces))

    def _advance_idle(self) -> None:
        now = self.parts.clock.monotonic()
        for partition in self.partitions.values():
            if partition.phase is Phase.LIVE:
                for topic, ts in self.parts.idle.due(partition, now):
                    self._tell(partition, partition.punctuate(topic, ts))
        self.parts.publisher.punctuations()

    # Commit and reset ------------------------------------------------------------------------------------------------

    def commit(self, *, waits: bool = False) -> None:
        """Commits what is processed. Raises ResetError, WorkerError."""
        self.parts.observer.progress(self.partitions.values(), self.parts.publisher)
        self.parts.checkpoint.commit(self.partitions.values(), waits=waits)

    def reset(self, error: ResetError) -> None:
        """The one way back: drop what is in memory, and restore what was committed."""
        numbers = [*self.partitions, *self.coming]
        self._drop(list(self.partitions))
        self.coming = sorted(set(numbers))
        self.parts.renew(not error.keeps_producer)

    def close(self) -> None:
        """Commits, so that the next owner need not replay; the caller closes the consumer."""
        ours = frozenset(self.partitions)
        for number in ours:
            self.parts.publisher.punctuations(all_of=number)
        self.parts.checkpoint.commit(self.partitions.values(), leaving=ours, waits=True)
