"""Engines whose keys are kept in a state topic: they crash, take over partitions from each other and go on.

Beside them runs an engine to which nothing ever happens; nobody may tell them from it. Everything is a function of the
seed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from afa import Engine, RecordError
from afa.changes import Changes
from afa.pattern import Pattern
from support.long_tapes import Record, encoded

TOPIC = "t"


@dataclass
class Partition:
    """A partition's records, what became of them, and its part of the state topic."""

    number: int
    values: list[bytes]
    next: int = 0
    """The first offset that was not processed."""
    punctuation: int | None = None
    late: set[int] = field(default_factory=set)
    """Offsets."""
    stamps: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """By stamp, the offset and the punctuation as of its batch's begin."""
    state: dict[str, tuple[bytes | None, list[tuple[str, int]]]] = field(default_factory=dict)
    restore_point: tuple[int, int | None] = (0, None)
    """An offset, and the punctuation as of it."""

    def note_punctuation(self, ts: int) -> None:
        self.punctuation = ts if self.punctuation is None else max(self.punctuation, ts)

    def take(self, count: int) -> list[int]:
        """The offsets of the next records, which are processed now."""
        offsets = list(range(self.next, min(self.next + count, len(self.values))))
        self.next += len(offsets)
        return offsets


class StateTopic:
    """Partitions with their tapes, an engine for each, and the engine that never crashes."""

    def __init__(self, seed: int, patterns: list[Pattern], tapes: list[list[Record]], net: str) -> None:
        self.rng = Random(seed)
        self.patterns = patterns
        self.net: Any = net
        self.partitions = [Partition(number, encoded(tape)) for number, tape in enumerate(tapes)]
        self.steady = self._engine()
        first = self._engine()
        self.owners = [first for _ in tapes]
        self.arcs: list[Record] = []
        self.stamp = 0
        self.skipped = 0

    def _engine(self) -> Engine:
        return Engine(self.patterns, net=self.net)

    def run(self, arcs: list[Record]) -> None:
        """Until all records are taken; arc records come in between."""
        arcs = list(arcs)
        if any(record["op"] == "arc-punctuation" for record in arcs):
            # As in a fleet, where arcs are read first. How far a partition came without one, nothing else tells.
            self.change_arc({"op": "arc-punctuation", "ts": 0})
        while any(each.next < len(each.values) for each in self.partitions):
            if arcs and self.rng.random() < 0.4:
                self.change_arc(arcs.pop(0))
            self.feed()
            if self.rng.random() < 0.3:
                self.punctuate(self.rng.choice(self.partitions))
            self.commit()
            if self.rng.random() < 0.3:
                self.shake()
        self.compare_states()

    def feed(self) -> None:
        """A batch of some records of every partition."""
        self.stamp += self.rng.choice([0, 1, 1, 3])
        offsets = [(each, offset) for each in self.partitions for offset in self._take(each)]
        places = [[place for place, (one, _) in enumerate(offsets) if one is each] for each in self.partitions]
        # Those of a partition stay in order.
        mixed = [each for each, _ in offsets]
        self.rng.shuffle(mixed)
        rests = {id(each): iter([offsets[place] for place in places[each.number]]) for each in self.partitions}
        offsets = [next(rests[id(each)]) for each in mixed]
        told = self._feed_to(self.steady, offsets)
        for index, _ in told.late:
            each, offset = offsets[index]
            each.late.add(offset)
        for each, offset in offsets:
            record = json.loads(each.values[offset])
            if record.get("op") == "punctuation":
                each.note_punctuation(record["ts"])
        for owner in self._engines():
            own = [(each, offset) for each, offset in offsets if self.owners[each.number] is owner]
            self._compare(told, self._feed_to(owner, own), owner)

    def _take(self, each: Partition) -> list[int]:
        each.stamps.setdefault(self.stamp, (each.next, each.punctuation))
        return each.take(self.rng.choice([0, 1, 4, 12]))

    def _feed_to(self, engine: Engine, offsets: list[tuple[Partition, int]], *, replay: bool = False) -> Changes:
        return engine.feed(
            [each.values[offset] for each, offset in offsets],
            partitions=[(TOPIC, each.number) for each, _ in offsets],
            offsets=[offset for _, offset in offsets],
            stamp=self.stamp,
            replay=replay,
        )

    def change_arc(self, record: Record) -> None:
        try:
            told = self.steady.change_arc(record)
        except RecordError:
            return
        if told.late:
            return
        self.arcs.append(record)
        for owner in self._engines():
            self._compare(told, owner.change_arc(record), owner)

    def punctuate(self, each: Partition) -> None:
        """Out of band."""
        if each.punctuation is None:
            return
        ts = each.punctuation + self.rng.choice([0, 1, 3])
        each.note_punctuation(ts)
        told = self.steady.punctuate(ts, partition=(TOPIC, each.number))
        owner = self.owners[each.number]
        self._compare(told, owner.punctuate(ts, partition=(TOPIC, each.number)), owner)

    def _engines(self) -> list[Engine]:
        return list({id(owner): owner for owner in self.owners}.values())

    def _compare(self, expected: Changes, told: Changes, owner: Engine) -> None:
        for each in self.partitions:
            if self.owners[each.number] is owner:
                assert of_partition(told, each.number) == of_partition(expected, each.number), f"stamp {self.stamp}"

    def commit(self) -> None:
        """Keys that are dirty go into the state topic, some of them or all."""
        for each in self.partitions:
            owner = self.owners[each.number]
            before = self.rng.choice([0, self.stamp, self.stamp + 1, self.rng.randint(0, self.stamp)])
            dirty = owner.dirty_keys(each.number)
            taken = owner.take_dirty(each.number, before, self.rng.choice([0, 1, 2, 100]))
            assert len(taken) <= dirty
            for key, snapshot in taken:
                each.state[key] = (snapshot, [(TOPIC, each.next)])
            oldest = owner.oldest_dirty(each.number)
            assert (owner.dirty_keys(each.number) == 0) == (oldest is None)
            each.restore_point = (each.next, each.punctuation) if oldest is None else each.stamps[oldest]

    def shake(self) -> None:
        """An engine crashes, or partitions go to another one, or away and back."""
        what = self.rng.choice(["crash", "move", "back"])
        if what == "crash":
            gone = self.rng.choice(self._engines())
            moved, heir = [each for each in self.partitions if self.owners[each.number] is gone], self._new_engine()
        else:
            moved = self.rng.sample(self.partitions, self.rng.randint(1, len(self.partitions)))
            heir = self.rng.choice([*self._engines(), self._new_engine()])
        for each in moved:
            if what != "crash":
                self.owners[each.number].drop_partition(each.number)
                assert self.owners[each.number].oldest_dirty(each.number) is None
            if what != "back":
                self.owners[each.number] = heir
        for each in moved:
            self._restore(each)
        self.compare_states()

    def _new_engine(self) -> Engine:
        engine = self._engine()
        for record in self.arcs:
            assert not engine.change_arc(record).late
        return engine

    def _restore(self, each: Partition) -> None:
        engine, position = self.owners[each.number], (TOPIC, each.number)
        kept = [(key, snapshot, held) for key, (snapshot, held) in each.state.items()]
        self.rng.shuffle(kept)
        # What the restore itself makes dirty has a stamp, too.
        engine.feed([], stamp=self.stamp)
        engine.restore_keys(each.number, kept)
        offset, punctuation = each.restore_point
        if punctuation is not None:
            engine.punctuate(punctuation, partition=position)
        records = [(each, place) for place in range(offset, each.next) if place not in each.late]
        while records:
            count = self.rng.choice([1, 5, 50])
            told = self._feed_to(engine, records[:count], replay=True)
            assert not told.late
            records = records[count:]
        if each.punctuation is not None:
            engine.punctuate(each.punctuation, partition=position)
        engine.end_replay(each.number)
        self.skipped += engine.stats()["skipped"]
        # Stamps of the replay are newer than what they stand for: nothing of it may be left out.
        each.stamps[self.stamp] = each.restore_point

    def compare_states(self) -> None:
        keys = self.steady.keys()
        owned = [(engine, engine.keys()) for engine in self._engines()]
        assert sorted(key for _, own in owned for key in own) == keys
        hashes = {key: engine.state_hash(key) for engine, own in owned for key in own}
        assert hashes == {key: self.steady.state_hash(key) for key in keys}


def of_partition(changes: Changes, number: int) -> list[Record]:
    told = zip(changes.to_records(), changes.partitions, strict=True)
    return [record for record, partition in told if partition == number]
