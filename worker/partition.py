"""One partition of the fleet's key space: the partitions of this number of all sources, with an engine of its own.

An engine per partition makes the partition the unit that is restored, moved and dropped, each with the arcs as of its
own commit. Phases and legal moves:

    COMING ──> RESTORING ──> REPLAYING ──> LIVE
       └────────── (new, or nothing to replay) ──^

A partition that is taken away, or reset, is dropped whole.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol
from zlib import crc32

from afa import Engine
from afa.changes import Changes
from arcfleet.fleet.arcs import ArcPromise, ArcRecord, ArcTable, Head
from worker.binding import Binding, Mark, Positions, Times
from worker.pace import Pace
from worker.records import Needed, Taken
from worker.traces import Traces


class Phase(Enum):
    """Where a partition stands."""

    COMING = "assigned, nothing read yet"
    RESTORING = "reading snapshots"
    REPLAYING = "replaying what they do not hold"
    LIVE = "matching"


ARC_TABLE_KEY: Final = b"\xffarcs"  # no event key: those are UTF-8
CONDITIONS_KEY: Final = b"\xffconditions"
NEVER: Final = -(2**63)
FOREVER: Final = 2**63 - 1

MOVES: Final = {
    Phase.COMING: {Phase.RESTORING, Phase.LIVE},
    Phase.RESTORING: {Phase.REPLAYING, Phase.LIVE},
    Phase.REPLAYING: {Phase.LIVE},
    Phase.LIVE: set[Phase](),
}


class MakeEngine(Protocol):
    """Makes an engine with the arcs of a table, which waits for unread sources, too."""

    def __call__(self, table: ArcTable, unread: Collection[str] = (), /) -> Engine: ...


@dataclass
class Snapshots:
    """What the state topic holds of a partition: the checksum of each key's snapshot, to verify a restore by."""

    sums: dict[bytes, int] = field(default_factory=dict)
    total: int = 0

    def put(self, key: bytes, value: bytes | None) -> None:
        """A record of the state topic."""
        self.total -= self.sums.pop(key, 0)
        if value is not None:
            self.sums[key] = checksum = crc32(value, crc32(key))
            self.total += checksum

    def __len__(self) -> int:
        return len(self.sums)


@dataclass
class Partition:
    """Its engine, and how far it has come."""

    number: int
    engine: Engine
    table: ArcTable
    mark: Mark  # what has been processed
    traces: Traces
    phase: Phase = Phase.COMING
    snapshots: Snapshots = field(default_factory=Snapshots)
    history: deque[tuple[int, Mark]] = field(default_factory=deque)  # the mark at which each stamp began
    replay_to: Mark | None = None
    untold: frozenset[str] = frozenset()  # patterns whose punctuation the owner before this one could not tell yet
    due_before: int = 0  # keys dirtied by a stamp below it are due at once
    ends: dict[str, int] = field(default_factory=dict)  # by topic, where its end was seen last
    held: set[str] = field(default_factory=set)  # topics whose records of this batch are fetched again later
    quiet_commits: int = 0  # since the last record
    pace: Pace = field(default_factory=Pace)
    told_progress: dict[str, dict[str, object]] = field(default_factory=dict)  # by topic, the last progress record
    table_written: int = -1  # the offset of the arc table that the state topic holds
    taken_up: int = -1  # how often patterns had come when this one looked last
    given_up: Sequence[bytes] = ()  # keys whose snapshots the next commit takes away
    conditions: bytes | None = None  # of punctuations, as the state topic holds them
    brought_before: dict[str, int] = field(default_factory=dict)  # the largest times that an engine before this one saw
    committed_largest: Times = field(default_factory=dict)  # those that the owner before this one has committed
    unread: Collection[str] = ()  # sources of another worker's document: see `source_changes.py`
    ended: Positions = field(default_factory=dict)  # of removed sources, where they were read to

    def move(self, phase: Phase) -> None:
        """Raises AssertionError if that is no legal move."""
        assert phase in MOVES[self.phase], f"partition {self.number}: {self.phase.name} to {phase.name}"
        self.phase = phase

    def begin(self, stamp: int) -> None:
        """Keys that change from here on have this stamp, or a later one."""
        self.history.append((stamp, self.mark))
        self.engine.feed([], stamp=stamp)

    def feed(self, taken: Taken, needed: Needed, stamp: int, now: int) -> Changes:
        """Takes records of this partition; what they say is published unless they were replayed."""
        if not self.history or self.history[-1][0] < stamp:
            self.history.append((stamp, self.mark))
        changes = self.engine.feed(
            **taken.columns(needed),
            stamp=stamp,
            replay=self.phase is Phase.REPLAYING,
            # A replay knows what was late, and where it ends: no clock may judge its records a second time.
            trusted_until=NEVER if self.phase is Phase.REPLAYING else None,
            now=None if self.phase is Phase.REPLAYING else now,
        )
        messages = taken.messages
        if aside := {index for index, _ in [*changes.bad, *changes.late]}:
            messages = [message for at, message in enumerate(messages) if at not in aside]
        self.traces.note(messages)
        self.advance(taken.positions())
        self.quiet_commits = 0
        return changes

    def advance(self, positions: dict[str, int]) -> None:
        """Notes how far records were processed."""
        reached = dict(self.mark.positions) | positions
        told = self.engine.punctuations()
        punctuations = {topic: told.get((topic, self.number)) for topic in reached}
        self.mark = Mark(reached, punctuations, self.mark.late)

    def punctuate(self, topic: str, ts: int) -> Changes:
        """The clock moves the punctuation of a silent source."""
        changes = self.engine.punctuate(ts, partition=(topic, self.number))
        self.advance({})
        return changes

    def largest_ts(self, topic: str) -> int | None:
        """The greatest event time that a source brought since the partition was taken up."""
        told = (self.engine.largest().get((topic, self.number)), self.brought_before.get(topic))
        return max((ts for ts in told if ts is not None), default=None)

    def largest_ever(self, topic: str) -> int | None:
        """The greatest event time that a source ever brought."""
        told = (self.largest_ts(topic), self.committed_largest.get(topic))
        return max((ts for ts in told if ts is not None), default=None)

    def conditions_changed(self) -> bool:
        """Notes the conditions of punctuations, which are in no key's snapshot; whether they have to be written."""
        known = sorted(self.engine.conditions().items())
        before, self.conditions = self.conditions, json.dumps([[*at, *held] for at, held in known]).encode()
        if not known:
            self.conditions = None
        self.snapshots.put(CONDITIONS_KEY, self.conditions)
        return self.conditions != before

    def apply_conditions(self) -> None:
        """Lets the engine know them as they were committed."""
        for topic, number, *held in json.loads(self.conditions or b"[]"):
            for ts, when in held if topic in self.mark.positions else ():  # else it is a source no more
                self.engine.punctuate(ts, when, partition=(topic, number))

    def apply_arcs(self, records: Iterable[ArcRecord], offset: int) -> list[Changes]:
        """Takes up later records of the arcs topic; what each tells."""
        new = [record for record in records if self.table.apply(record)]
        self.table.offset = offset
        return [self.engine.change_arc(record.as_change()) for record in new if not isinstance(record, Head)]

    def knows_all(self, records: Iterable[ArcRecord]) -> bool:
        """Whether none of these brings in a pattern that the engine does not have yet."""
        return not any(isinstance(record, Head) and record.pattern not in self.table.heads for record in records)

    def rebuilt(self, records: Sequence[ArcRecord], offset: int, make: MakeEngine) -> list[Changes]:
        """An engine with new patterns takes the place of this one. Everything dirty has been written before.

        What the new patterns find among the stored events is told by an engine of theirs alone: what the others find
        there was told before.
        """
        known = set(self.table.heads)
        self.table_written = -1  # it changes, perhaps at the same offset
        new = [record for record in records if not isinstance(record, ArcPromise) and record.pattern not in known]
        told = self.apply_arcs([record for record in records if record not in new], offset)
        for record in new:
            self.table.apply(record)
        held = list(self.mark.positions.items())
        names = self.engine.keys()
        kept = [(key, self.engine.snapshot(key), held) for key in names]
        largest = ((topic, self.largest_ts(topic)) for topic in self.mark.positions)
        self.brought_before = {topic: ts for topic, ts in largest if ts is not None}
        beginning = make(self.table.without(known), self.unread)
        self.engine = make(self.table, self.unread)
        told.append(beginning.restore_keys(self.number, kept, tells=True))
        self.engine.restore_keys(self.number, kept)
        self.engine.end_replay(self.number)
        told += self.come_to(self.mark, beginning)
        self.come_to(self.mark, self.engine)
        told += self.release(beginning, self.mark.positions)
        self.release(self.engine, self.mark.positions)
        self.apply_conditions()
        return told

    def come_to(self, mark: Mark, engine: Engine) -> list[Changes]:
        """Lets an engine come as far as a mark says; what that tells."""
        reached = [(topic, ts) for topic, ts in mark.punctuations.items() if ts is not None]
        return [engine.punctuate(ts, partition=(topic, self.number)) for topic, ts in reached]

    @property
    def reads(self) -> Positions:
        """By topic that is read here: the next offset."""
        return {topic: offset for topic, offset in self.mark.positions.items() if topic not in self.unread}

    def release(self, engine: Engine, told_of: Collection[str]) -> list[Changes]:
        """Topics that nobody tells of any more hold no punctuation back: snapshots name sources that are gone."""
        gone = [place for place in engine.places() if place[1] == self.number and place[0] not in told_of]
        return [engine.punctuate(FOREVER, partition=place) for place in gone]

    def is_at_end(self) -> bool:
        """Whether nothing is left to read, as far as was seen."""
        return all(self.ends.get(topic, -1) >= offset for topic, offset in self.reads.items())

    def is_replayed(self) -> bool:
        """Whether all that was committed has been read again."""
        assert self.replay_to is not None
        wanted = self.replay_to.positions
        return all(self.mark.positions.get(topic, 0) >= offset for topic, offset in wanted.items())

    def share(self, passed: float) -> int:
        """How many of the keys that are due a commit takes, after this share of the time that all of them have."""
        return self.pace.most(self.engine.dirty_keys(self.number), passed)

    def take_snapshots(self, before: int, most: int) -> Sequence[tuple[bytes, bytes | None]]:
        """State records of the keys that were dirtied by a stamp below `before`, longest dirty first; they count as
        written from here on."""
        taken = self.engine.take_dirty(self.number, max(before, self.due_before), most)
        self.pace.took(len(taken), most)
        records = [(key.encode(), snapshot) for key, snapshot in taken]
        for (name, _), (key, snapshot) in zip(taken, records, strict=True):
            self.snapshots.put(key, snapshot)
            if snapshot is None:
                self.traces.forget(name)
        return records

    def binding(self, owner: str, partitions: int | None, untold: Collection[str] = ()) -> Binding:
        """What the next commit says of the partition, with the patterns whose punctuations wait to be told."""
        oldest = self.engine.oldest_dirty(self.number)
        while self.history and (oldest is None or self.history[0][0] < oldest):
            self.history.popleft()
        restore = self.history[0][1] if self.history else self.mark
        return Binding(
            restore,
            self.mark,
            self.table.offset,
            len(self.snapshots),
            self.snapshots.total,
            owner,
            partitions,
            {topic: self.largest_ever(topic) for topic in self.mark.positions},
            untold=sum(1 << bit for bit, name in enumerate(sorted(self.table.heads)) if name in untold),
            ended=self.ended,
        )
