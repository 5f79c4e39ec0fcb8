"""Bringing a partition back: its snapshots, verified, then a replay of what they do not hold.

1. What was committed for it: offsets, and in their metadata the restore point. Nothing: a new partition.
2. The state partition, to its end as of now. That end is asked for without regard to open transactions: committed
   snapshots can lie behind somebody's open one, and a restore that stopped before them would publish wrong matches.
3. Count and checksum of the snapshots have to be those of the metadata.
4. An engine with the arcs as they were applied then, the snapshots, the punctuations as of the restore point.
5. The late topic from the restore point on says which records are to be left out of the replay.
6. The replay, by the ordinary loop, up to what was committed, with output suppressed; then the committed punctuations.

Later arc records are ordinary corrections. A dead owner's transaction is not waited for: it is fenced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from afa import Engine
from afa.errors import AfaError
from afa.reading import Fault
from arcfleet.fleet.arcs import ArcTable
from worker.binding import Binding, Mark
from worker.checkpoint import ARC_TABLE_KEY
from worker.clock import Clock
from worker.errors import WorkerError
from worker.partition import Partition, Phase, Snapshots
from worker.reactions import raise_for, reaction_of_consumer

ASK_S: Final = 1.0  # for committed offsets; unstable ones time out
STUCK_S: Final = 0.5  # an open transaction that holds a partition back for so long belongs to somebody dead
SLICE_RECORDS: Final = 20_000
SLICE_S: Final = 0.02
LOST_STATE: Final = "restart with --accept-lost-state: partial matches of this partition begin anew"

MakeEngine = Callable[[ArcTable], Engine]


@dataclass
class _Reading:
    """A partition of the state or late topic that is being read to an end."""

    topic: str
    number: int
    position: int
    end: int
    moved_at: float = 0.0


@dataclass
class _Restoration:
    """What has been found out so far of one partition."""

    number: int
    binding: Binding
    values: dict[bytes, tuple[bytes, bytes]]  # by key: snapshot, and the offsets that it holds
    state: _Reading
    late: _Reading
    left_out: set[tuple[str, int]]
    read_again: bool = False


@dataclass(frozen=True)
class Sources:
    """Where a restore gets what it needs."""

    consumer: Any  # of the group, for committed offsets
    reader: Any  # of committed records
    query: Any  # of ends, open transactions included
    topics: Sequence[str]
    prefix: str
    make_engine: MakeEngine
    clock: Clock
    fence: Callable[[str], None]  # ends the transaction of an owner that is gone
    start_of: Callable[[str, int], int]  # where a new fleet starts in a partition of a topic


class Restorer:
    """Restores one partition after the other, in slices, so that those that are live go on."""

    def __init__(self, sources: Sources, *, verify: bool, accept_lost_state: bool) -> None:
        self._from = sources
        self._state, self._late = f"{sources.prefix}.state", f"{sources.prefix}.late"
        self._verify = verify
        self._accept_lost_state = accept_lost_state
        self._now: _Restoration | None = None
        self._left_out: dict[int, set[tuple[str, int]]] = {}

    def step(self, coming: Sequence[int], table: ArcTable) -> Partition | None:
        """One slice of work for the first partition that is coming; the partition, once it is ready to be assigned."""
        if self._now is not None and self._now.number not in coming:
            self._now = None
        if self._now is None:
            if not coming:
                return None
            begun = self._begin(coming[0], table)
            if not isinstance(begun, _Restoration):
                return begun
            self._now = begun
        restoration = self._now
        if self._read(restoration.state, self._take_state) and self._read(restoration.late, self._take_late):
            self._now = None
            return self._finish(restoration)
        return None

    def left_out(self, number: int) -> set[tuple[str, int]]:
        """Topic and offset of the records that a replay leaves out."""
        return self._left_out.get(number, set())

    def _begin(self, number: int, table: ArcTable) -> _Restoration | Partition | None:
        asked = [TopicPartition(topic, number) for topic in self._from.topics]
        try:
            committed = self._from.consumer.committed(asked, ASK_S)
        except KafkaException as error:
            reaction = reaction_of_consumer(error.args[0])
            raise_for(reaction, error.args[0], "asking for committed offsets")
            return None  # unstable: an open transaction holds them; asked again
        first = committed[0]
        end = self._end(self._state, number)
        if first.offset < 0:
            return self._new(number, table, end)
        try:
            binding = Binding.read(first.metadata or "")
        except Fault as fault:
            raise WorkerError(f"partition {number}: {fault.what}", fix=fault.fix or LOST_STATE) from None
        if end == 0 and binding.snapshots:
            what = f"{self._state}/{number} is empty, but {binding.snapshots} snapshots were committed"
            if not self._accept_lost_state:
                raise WorkerError(what, fix=LOST_STATE)
        now = self._from.clock.monotonic()
        state = _Reading(self._state, number, 0, end, now)
        late = _Reading(self._late, number, binding.restore.late, self._end(self._late, number), now)
        self._from.reader.assign([TopicPartition(self._state, number, 0)])
        return _Restoration(number, binding, {}, state, late, set())

    def _end(self, topic: str, number: int) -> int:
        _, end = self._from.query.get_watermark_offsets(TopicPartition(topic, number), timeout=ASK_S * 5)
        return int(end)

    def _new(self, number: int, table: ArcTable, state_end: int) -> Partition:
        if state_end > 0 and self._verify and not self._accept_lost_state:
            what = f"{self._state}/{number} has records, but the group has no offsets for partition {number}"
            raise WorkerError(what, fix=LOST_STATE)
        positions = {topic: self._from.start_of(topic, number) for topic in self._from.topics}
        mark = Mark(positions, dict.fromkeys(positions), self._end(self._late, number))
        partition = Partition(number, self._from.make_engine(table), table.copy(), mark)
        partition.move(Phase.LIVE)
        return partition

    def _read(self, reading: _Reading, take: Callable[[_Restoration, Any], None]) -> bool:
        """A slice of a partition; whether its end is reached."""
        assert self._now is not None
        if reading.position >= reading.end:
            return True
        for message in self._from.reader.consume(SLICE_RECORDS, SLICE_S):
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise_for(reaction_of_consumer(error), error, f"reading {reading.topic}/{reading.number}")
                continue
            if message.topic() != reading.topic or message.partition() != reading.number:
                continue  # of the partition that was read before
            reading.moved_at = self._from.clock.monotonic()
            if error is not None:
                reading.position = max(reading.position, message.offset())
                continue
            take(self._now, message)
            reading.position = message.offset() + 1
        if reading.position < reading.end and self._from.clock.monotonic() - reading.moved_at > STUCK_S:
            self._from.fence(self._now.binding.owner)
            reading.moved_at = self._from.clock.monotonic()
        if reading.position >= reading.end and reading is self._now.state:
            late = self._now.late
            late.moved_at = self._from.clock.monotonic()
            self._from.reader.assign([TopicPartition(late.topic, late.number, late.position)])
        return reading.position >= reading.end

    @staticmethod
    def _take_state(restoration: _Restoration, message: Any) -> None:
        key, value = message.key() or b"", message.value()
        if value is None:
            restoration.values.pop(key, None)
        else:
            held = dict(message.headers() or ()).get("held", b"{}")
            restoration.values[key] = (value, held)

    @staticmethod
    def _take_late(restoration: _Restoration, message: Any) -> None:
        headers = dict(message.headers() or ())
        restoration.left_out.add((headers["arcfleet.topic"].decode(), int(headers["arcfleet.offset"])))

    def _finish(self, restoration: _Restoration) -> Partition | None:
        number, binding = restoration.number, restoration.binding
        snapshots = Snapshots()
        for key, (value, _) in restoration.values.items():
            snapshots.put(key, value)
        if self._verify and (len(snapshots), snapshots.total) != (binding.snapshots, binding.checksum):
            self._check_again(restoration, len(snapshots))
            return None
        table = self._table(restoration)
        engine = self._engine(restoration, table)
        partition = Partition(number, engine, table, binding.restore, snapshots=snapshots, table_written=table.offset)
        partition.move(Phase.RESTORING)
        partition.replay_to = binding.committed
        self._left_out[number] = restoration.left_out
        return partition

    def _check_again(self, restoration: _Restoration, found: int) -> None:
        """What was committed may have been read before the last owner's commit; once."""
        committed = self._from.consumer.committed([TopicPartition(self._from.topics[0], restoration.number)], ASK_S)
        if Binding.read(committed[0].metadata or "") != restoration.binding:
            return  # it begins anew
        what = (
            f"{self._state}/{restoration.number} is damaged: {found} snapshots with another checksum than the "
            f"{restoration.binding.snapshots} that were committed"
        )
        raise WorkerError(what, fix="look for who else writes or deletes there; " + LOST_STATE)

    def _table(self, restoration: _Restoration) -> ArcTable:
        packed = restoration.values.pop(ARC_TABLE_KEY, None)
        return ArcTable() if packed is None else ArcTable.unpacked(packed[0])

    def _engine(self, restoration: _Restoration, table: ArcTable) -> Engine:
        number = restoration.number
        engine = self._from.make_engine(table)
        offsets: dict[bytes, list[tuple[str, int]]] = {}
        for _, held in restoration.values.values():
            if held not in offsets:
                offsets[held] = list(json.loads(held).items())
        try:
            engine.restore_keys(
                number, [(key.decode(), value, offsets[held]) for key, (value, held) in restoration.values.items()]
            )
        except AfaError as error:
            raise WorkerError(f"{self._state}/{number}: {error.what}", fix=error.fix or LOST_STATE) from None
        punctuate(engine, number, restoration.binding.restore)
        return engine


def punctuate(engine: Engine, number: int, mark: Mark) -> Any:
    """Lets an engine come as far as a mark says; what it tells."""
    told = None
    for topic, ts in mark.punctuations.items():
        if ts is not None:
            told = engine.punctuate(ts, partition=(topic, number))
    return told
