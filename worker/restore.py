"""Bringing a partition back: its snapshots, verified, then a replay of what they do not hold.

1. What was committed for it: offsets, and in their metadata the restore point. Nothing: a new partition.
2. The state partition, to its end as of now. That end is asked for without regard to open transactions: committed
   snapshots can lie behind somebody's open one, and a restore that stopped before them would publish wrong matches.
3. Count and checksum of the snapshots have to be those of the metadata.
4. An engine with the arcs as they were applied then, the snapshots, the punctuations as of the restore point.
5. The late topic from the restore point on says which records are to be left out of the replay. What a dead owner left
   open on the topics that are not read here is ended, too: nobody could read what comes behind it.
6. The replay, by the ordinary loop, up to what was committed, with output suppressed; then the committed punctuations.

Later arc records are ordinary corrections. A dead owner's transaction is not waited for: it is fenced.

What is damaged ends the process; with `--accept-lost-state` the partition gives its state up and goes on from what was
committed, and its first commit takes the snapshots away that nobody can use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgpack
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from afa.errors import AfaError
from afa.reading import Fault
from afa.source import Source
from arcfleet.fleet.arcs import ArcTable
from worker.binding import Binding, Mark
from worker.clock import Clock
from worker.cluster import partitions_changed
from worker.errors import ResetError, WorkerError
from worker.partition import ARC_TABLE_KEY, CONDITIONS_KEY, MakeEngine, Partition, Phase, Snapshots
from worker.reactions import raise_for, reaction_of_consumer
from worker.records import Message, headers_of
from worker.source_changes import Regroup, added, check_gone, fitted, gone, regrouping
from worker.traces import Traces

ASK_S: Final = 1.0  # for committed offsets; unstable ones time out
STUCK_S: Final = 0.5  # an open transaction that holds a partition back for so long belongs to somebody dead
SLICE_RECORDS: Final = 20_000
SLICE_S: Final = 0.02
FILL_KEYS: Final = 20_000  # restored in one slice
END_S: Final = 5.0
UNREAD: Final = (
    "it is not in this worker's fleet document: its records wait, and punctuations for them, until a worker that has it"
    " takes the partition; if it is to be read no more, name it in `removed`"
)
LOST_STATE: Final = "restart with --accept-lost-state: partial matches of this partition begin anew"


class DamagedError(Exception):
    """The state of a partition is not what was committed, or cannot be read."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix or LOST_STATE


Held = list[tuple[str, int]]  # by topic: the first offset that a snapshot does not hold


@dataclass
class _Reading:
    """A partition that is being read to an end; or, if nothing of it is needed, whose readers have to get there."""

    topic: str
    number: int
    position: int
    end: int
    moved_at: float
    is_needed: bool = True


@dataclass
class _Restoration:
    """What has been found out so far of one partition."""

    number: int
    committed: tuple[int, str]  # offset and metadata of the first topic
    binding: Binding | None  # none: nothing was ever committed for it
    damage: DamagedError | None  # of the metadata
    readings: list[_Reading]  # the first is being read; none left: the engine is being filled
    # By key its last record: the snapshot, none if it is back at the start; in headers the offsets that it holds, and
    # traces of its events. Most records are followed by one of the same key, so nothing is read of them before.
    records: dict[bytes, Message] = field(default_factory=dict)
    left_out: set[tuple[str, int]] = field(default_factory=set)
    stored: Sequence[bytes] = ()  # keys with something in the state topic
    partition: Partition | None = None
    waiting: Iterator[tuple[bytes, Message]] = field(default_factory=lambda: iter(()))
    regroup: Regroup = lambda snapshot: snapshot

    def pop(self, key: bytes) -> bytes | None:
        """The value of a record that is no key's."""
        record = self.records.pop(key, None)
        return None if record is None else record.value()


@dataclass(frozen=True)
class Sources:
    """Where a restore gets what it needs."""

    consumer: Any  # of the group, for committed offsets
    reader: Any  # of committed records
    query: Any  # of ends and owners, open transactions included
    sources: Sequence[Source]
    removed: Collection[str]  # topics that were sources
    partitions: int | None  # that the sources had at the start, if that was asked
    prefix: str
    owner: str  # as this worker commits
    make_engine: MakeEngine
    clock: Clock
    fence: Callable[[str], None]  # ends the transaction of an owner that is gone
    start_of: Callable[[str, int, int | None], int]  # of a topic's partition: where a new fleet starts, or goes on
    say: Callable[..., None]
    count_lost: Callable[[], None]  # a partition gave its state up

    @property
    def topics(self) -> list[str]:
        return [source.topic for source in self.sources]


class Restorer:
    """Restores one partition after the other, in slices, so that those that are live go on."""

    def __init__(self, sources: Sources, *, verify: bool, accept_lost_state: bool) -> None:
        self._from = sources
        self._state, self._late = f"{sources.prefix}.state", f"{sources.prefix}.late"
        self._told = [f"{sources.prefix}.matches", f"{sources.prefix}.dead-letter"]
        self._verify, self._accepts = verify, accept_lost_state
        self._now: _Restoration | None = None
        self._left_out: dict[int, set[tuple[str, int]]] = {}

    def step(self, coming: Sequence[int], table: ArcTable) -> Partition | None:
        """One slice of work for the first partition that is coming; the partition, once it is ready to be assigned."""
        if self._now is not None and self._now.number not in coming:
            self._now = None
        if self._now is None:
            if coming:
                self._now = self._begin(coming[0])
            return None
        restoration = self._now
        if restoration.readings:
            self._read(restoration, restoration.readings[0])
            return None
        try:
            if restoration.partition is None:
                restoration.partition = self._made(restoration, table)
            if restoration.partition is None or self._fill(restoration, restoration.partition):
                self._now = None
        except DamagedError as damage:
            restoration.partition, self._now = self._given_up(restoration, damage, table), None
        return restoration.partition if self._now is None else None

    def abandon(self, number: int) -> None:
        """What was found out of a partition does not count any more: somebody else may have it meanwhile."""
        if self._now is not None and self._now.number == number:
            self._now = None

    def left_out(self, number: int) -> set[tuple[str, int]]:
        """Topic and offset of the records that a replay leaves out."""
        return self._left_out.get(number, set())

    # What was committed ----------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> _Restoration | None:
        if self._verify and not self._accepts and self._from.partitions is not None and number >= self._from.partitions:
            raise partitions_changed(number + 1, self._from.partitions)
        try:
            first = self._from.consumer.committed([TopicPartition(self._from.topics[0], number)], ASK_S)[0]
        except KafkaException as error:
            raise_for(reaction_of_consumer(error.args[0]), error.args[0], "asking for committed offsets")
            self._fence_owner(number)  # unstable: an open transaction holds them, and is not waited for
            return None
        binding, damage = None, None
        try:
            binding = self._binding(number, first)
        except DamagedError as found:
            damage = found
        now = self._from.clock.monotonic()
        readings = [_Reading(self._state, number, 0, self._end(self._state, number), now)]
        if binding is not None:
            readings.append(_Reading(self._late, number, binding.restore.late, self._end(self._late, number), now))
            # What this worker itself had left open was ended when it started.
            told = self._told if binding.owner != self._from.owner else []
            readings += [_Reading(topic, number, 0, self._end(topic, number), now, is_needed=False) for topic in told]
        self._assign(readings[0])
        return _Restoration(number, (first.offset, first.metadata or ""), binding, damage, readings)

    def _binding(self, number: int, committed: Any) -> Binding | None:
        if committed.offset < 0:
            return None
        try:
            return Binding.read(committed.metadata or "")
        except Fault as fault:
            raise DamagedError(f"partition {number}: {fault.what}", fault.fix) from None

    def _fence_owner(self, number: int) -> None:
        """Whoever reads without regard to transactions learns who committed last."""
        try:
            first = self._from.query.committed([TopicPartition(self._from.topics[0], number)], ASK_S)[0]
            binding = self._binding(number, first)
        except (KafkaException, DamagedError):
            return
        if binding is not None:
            self._from.fence(binding.owner)

    def _end(self, topic: str, number: int) -> int:
        return _end_for(self._from.query, topic, number)

    # Reading ---------------------------------------------------------------------------------------------------------

    def _stable(self, reading: _Reading) -> int:
        """To where its committed records can be read."""
        return _end_for(self._from.reader, reading.topic, reading.number)

    def _assign(self, reading: _Reading) -> None:
        if reading.is_needed:
            self._from.reader.assign([TopicPartition(reading.topic, reading.number, reading.position)])
        else:
            self._from.reader.unassign()
        reading.moved_at = self._from.clock.monotonic()

    def _read(self, restoration: _Restoration, reading: _Reading) -> None:
        """A slice of a partition; at its end the next one is begun."""
        if not reading.is_needed:
            reading.position = self._stable(reading)
            if reading.position < reading.end:
                self._from.clock.sleep(SLICE_S)
        elif reading.position < reading.end:
            self._take(restoration, reading, self._from.reader.consume(SLICE_RECORDS, SLICE_S))
        is_behind = reading.position < reading.end
        if is_behind and restoration.binding and self._from.clock.monotonic() - reading.moved_at > STUCK_S:
            if self._stable(reading) < reading.end:  # else it is only slow, and has to find the leader first, perhaps
                self._from.fence(restoration.binding.owner)
                if not reading.is_needed:  # whoever else may hold readers back there holds no restore back
                    reading.position = reading.end
            reading.moved_at = self._from.clock.monotonic()
        if reading.position >= reading.end:
            restoration.readings.pop(0)
            if restoration.readings:
                self._assign(restoration.readings[0])
            else:
                self._from.reader.unassign()

    def _take(self, restoration: _Restoration, reading: _Reading, messages: Sequence[Message]) -> None:
        place = (reading.topic, reading.number)
        ends = [message for message in messages if message.error() is not None]
        for message in ends:
            if message.error().code() != KafkaError._PARTITION_EOF:
                raise_for(reaction_of_consumer(message.error()), message.error(), f"reading {place[0]}/{place[1]}")
        # Others are of what was read before.
        own = [message for message in messages if (message.topic(), message.partition()) == place]
        records = [message for message in own if message.error() is None] if ends else own
        if not own:
            return
        reading.moved_at = self._from.clock.monotonic()
        reached = [message.offset() for message in ends if message in own]
        reading.position = max(reading.position, *reached, *(message.offset() + 1 for message in records[-1:]))
        if reading.topic == self._state:
            restoration.records.update(zip(map(_key, records), records, strict=True))
        else:
            restoration.left_out.update(filter(None, map(_late_place, records)))

    # Making the partition --------------------------------------------------------------------------------------------

    def _made(self, restoration: _Restoration, table: ArcTable) -> Partition | None:
        number, binding = restoration.number, restoration.binding
        restoration.stored = [key for key, record in restoration.records.items() if record.value() is not None]
        if restoration.damage is not None:
            raise restoration.damage
        if binding is None:
            return self._new(restoration, table)
        snapshots = Snapshots()
        for key, record in restoration.records.items():
            snapshots.put(key, record.value())
        if self._verify and (len(snapshots), snapshots.total) != (binding.snapshots, binding.checksum):
            self._check_again(restoration, binding, len(snapshots))
            return None
        applied = self._applied(restoration)
        now, unread = self._of_now(binding, number)
        restoration.regroup = regrouping(applied.heads.values(), binding.committed.positions, now.committed.positions)
        engine, traces = self._from.make_engine(applied, unread), Traces(self._from.sources)
        partition = Partition(number, engine, applied, now.restore, traces, snapshots=snapshots, unread=unread)
        partition.ended = now.ended
        partition.table_written = applied.offset
        partition.conditions = restoration.pop(CONDITIONS_KEY)
        partition.replay_to = now.committed
        partition.committed_largest = binding.largest
        names = enumerate(sorted(applied.heads))
        partition.untold = frozenset(name for bit, name in names if binding.untold >> bit & 1)
        partition.move(Phase.RESTORING)
        restoration.waiting = iter(restoration.records.items())
        self._left_out[number] = restoration.left_out
        partition.come_to(now.restore, engine)
        return partition

    def _applied(self, restoration: _Restoration) -> ArcTable:
        """The arcs as they were applied."""
        packed = restoration.pop(ARC_TABLE_KEY)
        try:
            return ArcTable.unpacked(packed) if packed else ArcTable()
        except AfaError as error:
            raise DamagedError(f"{self._state}/{restoration.number}: {error.what}", error.fix) from None

    def _of_now(self, binding: Binding, number: int) -> tuple[Binding, list[str]]:
        """What was committed, for the sources of now; those of them that are unread."""
        topics = self._from.topics
        removed, unread = gone(binding, topics, self._from.removed)
        if not self._accepts:
            check_gone(binding, removed, unread, number)
        for topic in removed:
            self._from.say("source removed", topic=topic, partition=number)
        for topic in unread:
            self._from.say("source unread", topic=topic, partition=number, why=UNREAD)
        starts = {
            topic: self._from.start_of(topic, number, binding.ended.get(topic)) for topic in added(binding, topics)
        }
        for topic, offset in starts.items():
            self._from.say("source added", topic=topic, partition=number, offset=offset)
        return fitted(binding, [*topics, *unread], starts, unread), unread

    def _new(self, restoration: _Restoration, table: ArcTable) -> Partition | None:
        number = restoration.number
        if self._verify and any(record.value() for record in restoration.records.values()):
            if self._was_committed_since(restoration):
                return None
            raise DamagedError(
                f"{self._state}/{number} holds state, but the group has no offsets for partition {number}: they "
                "expired, or went with a source that was deleted and made again"
            )
        positions = {topic: self._from.start_of(topic, number, None) for topic in self._from.topics}
        mark = Mark(positions, dict.fromkeys(positions), self._end(self._late, number))
        traces = Traces(self._from.sources)
        partition = Partition(number, self._from.make_engine(table), table.copy(), mark, traces)
        partition.move(Phase.LIVE)
        return partition

    def _given_up(self, restoration: _Restoration, damage: DamagedError, table: ArcTable) -> Partition:
        """The partition without its state, from what was committed on. Raises WorkerError if that was not accepted."""
        number = restoration.number
        if not self._accepts:
            raise WorkerError(damage.what, fix=damage.fix)
        self._from.say("state given up", partition=number, keys=len(restoration.stored), why=damage.what)
        self._from.count_lost()
        unread, ended = list[str](), dict[str, int]()
        if restoration.binding is not None:
            now, unread = self._of_now(restoration.binding, number)
            mark, ended = now.committed, dict(now.ended)
        else:
            positions = self._committed_positions(number)
            mark = Mark(positions, dict.fromkeys(positions), self._end(self._late, number))
        engine, traces = self._from.make_engine(table, unread), Traces(self._from.sources)
        partition = Partition(number, engine, table.copy(), mark, traces, given_up=restoration.stored, unread=unread)
        partition.ended = ended
        if restoration.binding is not None:
            partition.committed_largest = restoration.binding.largest
        partition.come_to(mark, engine)
        partition.release(engine, mark.positions)
        partition.move(Phase.LIVE)
        return partition

    def _committed_positions(self, number: int) -> dict[str, int]:
        """Of each topic the offset that the group has, whoever committed it; else where a new fleet starts."""
        places = [TopicPartition(topic, number) for topic in self._from.topics]
        offsets = {place.topic: place.offset for place in self._from.consumer.committed(places, ASK_S)}
        return {topic: at if at >= 0 else self._from.start_of(topic, number, None) for topic, at in offsets.items()}

    def _check_again(self, restoration: _Restoration, binding: Binding, found: int) -> None:
        if not self._was_committed_since(restoration):
            what = f"{self._state}/{restoration.number} is damaged: {found} snapshots with another checksum than the "
            fix = "look for who else writes or deletes there; " + LOST_STATE
            raise DamagedError(f"{what}{binding.snapshots} that were committed", fix)

    def _was_committed_since(self, restoration: _Restoration) -> bool:
        """What was committed may have been read before the last owner's commit; then all is read anew."""
        first = self._from.consumer.committed([TopicPartition(self._from.topics[0], restoration.number)], ASK_S)[0]
        return (first.offset, first.metadata or "") != restoration.committed

    def _fill(self, restoration: _Restoration, partition: Partition) -> bool:
        """Restores a slice of the keys; whether all are."""
        slice_ = self._slice(restoration, partition)
        try:
            partition.engine.restore_keys(partition.number, slice_)
        except AfaError as error:
            raise DamagedError(f"{self._state}/{partition.number}: {error.what}", error.fix) from None
        if len(slice_) == FILL_KEYS:
            return False
        partition.release(partition.engine, partition.mark.punctuations)
        return True

    def _slice(self, restoration: _Restoration, partition: Partition) -> list[tuple[str, bytes | None, Held]]:
        """Some keys with their snapshots, and what these hold."""
        known: dict[bytes, Held] = {}
        taken: list[tuple[str, bytes | None, Held]] = []
        try:
            for key, record in islice(restoration.waiting, FILL_KEYS):
                value, headers = record.value(), dict(headers_of(record))
                # A tombstone may be of what a stranger wrote.
                name = key.decode(errors="strict" if value is not None else "replace")
                partition.traces.restore(name, headers.get("traces"))
                if (held := headers.get("held") or b"{}") not in known:
                    places = json.loads(held).items()
                    known[held] = [place for place in places if place[0] in partition.mark.positions]
                taken.append((name, restoration.regroup(value), known[held]))
        except (AfaError, ValueError, TypeError, AttributeError, msgpack.UnpackException) as error:
            raise DamagedError(f"{self._state}/{partition.number}: a damaged record: {error}") from None
        return taken


def _key(record: Message) -> bytes:
    return record.key() or b""


def _late_place(record: Message) -> tuple[str, int] | None:
    """Topic and offset of a late record; none: no worker wrote this."""
    headers = dict(headers_of(record))
    topic, offset = headers.get("arcfleet.topic"), headers.get("arcfleet.offset")
    try:
        return None if topic is None or offset is None else (topic.decode(), int(offset))
    except ValueError:
        return None


def _end_for(client: Any, topic: str, number: int) -> int:
    """Where a partition ends for whoever reads as this client does. Raises ResetError."""
    try:
        _, end = client.get_watermark_offsets(TopicPartition(topic, number), timeout=END_S)
    except KafkaException as error:
        raise ResetError(f"asking where {topic}/{number} ends: {error.args[0].str()}") from None
    return int(end)
