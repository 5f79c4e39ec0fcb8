"""What is checked of a case: every way to feed the native engine tells what the reference told record by record."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from afa import Engine
from afa.changes import Changes
from afa.document import build_pattern
from afa.reference_batches import feed_reference
from support.lawful import netted
from support.long_tapes import Record, cuts, encoded, record_batch, shifted
from support.random_cases import RandomCase, RememberingReference

MOST_CHANGES = 1_500  # what follows would only take time


def reference_told(case: RandomCase, most: int = MOST_CHANGES) -> list[Changes]:
    """What each record leads to; fewer than the tape has if that is very much."""
    reference, told, count = RememberingReference(case.patterns), [], 0
    for index, value in enumerate(encoded(case.tape)):
        told.append(feed_reference(reference, [value], index, "record"))
        count += len(told[-1])
        if count > most:
            break
    return told


def check_single(case: RandomCase, told: list[Changes]) -> None:
    """Record by record; each as a batch of its own."""
    engine = Engine(case.patterns)
    for index, expected in enumerate(told):
        assert_told(engine.feed(encoded(case.tape[index : index + 1])), [expected], "record", index)


def check_batches(case: RandomCase, told: list[Changes], net: str, arrow: bool) -> None:
    engine = Engine(case.patterns, net=net)  # type: ignore[arg-type]
    for begin, end in cuts(case.rng, len(told)):
        records = case.tape[begin:end]
        changes = engine.feed(record_batch(case.rng, records) if arrow else encoded(records))
        assert_told(changes, told[begin:end], net, begin)


def check_restored(case: RandomCase, told: list[Changes]) -> None:
    """Now and then another engine takes over from the snapshots of the keys."""
    net = case.rng.choice(["record", "batch"])
    engine = Engine(case.patterns, net=net)  # type: ignore[arg-type]
    for begin, end in cuts(case.rng, len(told)):
        changes = engine.feed(encoded(case.tape[begin:end]))
        assert_told(changes, told[begin:end], net, begin)
        if case.rng.random() < 0.3:
            engine = taken_over(case, engine, case.tape[:end], net)


def taken_over(case: RandomCase, engine: Engine, before: list[Record], net: str) -> Engine:
    other = Engine(case.patterns, net=net)  # type: ignore[arg-type]
    other.feed(encoded([record for record in before if record.get("op", "insert") not in ("insert", "retract")]))
    keys = engine.keys()
    for key in case.rng.sample(keys, len(keys)):
        snapshot = engine.snapshot(key)
        other.restore(key, snapshot)
        assert other.snapshot(key) == snapshot, f"the snapshot of {key} after {len(before)} records"
        assert other.state_hash(key) == engine.state_hash(key)
    return other


def assert_told(changes: Changes, parts: list[Changes], net: str, begin: int) -> None:
    where = f"records {begin} to {begin + len(parts)}, net per {net}"
    if net == "batch":
        assert changes.to_records() == netted(parts), where
    else:
        found = [(index, change.as_json()) for index, change in changes.told]
        expected = [(index, change.as_json()) for index, part in enumerate(parts) for change in part]
        assert found == expected, where
    for name in ("late", "bad"):
        expected_places = [index for index, part in enumerate(parts) for _ in getattr(part, name)]
        assert [index for index, _ in getattr(changes, name)] == expected_places, f"{name}, {where}"


class Partitions:
    """Keys of several partitions, some of which appear late and far behind: each partition is an engine of its own.

    Arcs change only above every punctuation, so that no partition finds a change late that another one takes.
    """

    def __init__(self, seed: int) -> None:
        self.case = RandomCase(seed, calm=True, length=60)
        rng = self.rng = Random(seed + 1)
        count = rng.choice([2, 2, 3, 4])
        by = rng.choice([0, 0, -(2**63)])
        tapes = [self._tape(number) for number in range(count)]
        documents, _ = shifted(self.case.documents, [], by)
        self.tapes = [shifted([], tape, by)[1] for tape in tapes]
        self.documents = documents
        self.patterns = [build_pattern(document) for document in documents]
        self.engine = Engine(self.patterns)
        self.references = [RememberingReference(self.patterns) for _ in tapes]
        self.places = [0] * count
        self.begins = [number * rng.choice([5, 40, 90]) for number in range(count)]
        self.changes = rng.choice([0.0, 0.05, 0.2])
        self.ends: dict[tuple[str, str], int | None] = {}
        self.begun: dict[tuple[str, str], int] = {}

    def _tape(self, number: int) -> list[Record]:
        tape = self.case.tape if number == 0 else RandomCase(self.rng.randrange(2**32), calm=True, length=60).tape
        records = [record for record in tape if "arc" not in record.get("op", "")]
        return [record | ({"key": f"{record['key']} of {number}"} if "key" in record else {}) for record in records]

    def check(self) -> None:
        total = 0
        while total < 400 and any(map(self._is_left, range(len(self.tapes)))):
            batch: list[bytes] = []
            origins: list[tuple[str, int]] = []
            expected: list[Changes] = []
            begin = sum(self.places)
            for _ in range(self.rng.choice([1, 5, 30])):
                awake = [n for n, least in enumerate(self.begins) if sum(self.places) >= least or not self._is_left(0)]
                choice = self.rng.choice(awake)
                if self.rng.random() < self.changes:
                    value = json.dumps(self._arc()).encode()
                    expected.append(together([feed_reference(each, [value], 0, "record") for each in self.references]))
                elif self._is_left(choice):
                    value = json.dumps(self.tapes[choice][self.places[choice]]).encode()
                    self.places[choice] += 1
                    expected.append(feed_reference(self.references[choice], [value], 0, "record"))
                else:
                    continue
                batch.append(value)
                origins.append(("t", choice))
            told = self.engine.feed(batch, partitions=origins)
            total += len(told)
            assert_told(told, expected, "record", begin)

    def _is_left(self, number: int) -> bool:
        return self.places[number] < len(self.tapes[number])

    def _arc(self) -> Record:
        """A new arc, or another end of one that has not ended."""
        bound = max(reference.effective_punctuation for reference in self.references)
        newest = [tape[place - 1].get("ts", 0) for tape, place in zip(self.tapes, self.places, strict=True) if place]
        least = int(max(bound, min(newest, default=0), -(2**63) + 1))
        le, re = (min(least + self.rng.choice(far), 2**63 - 1) for far in ([0, 0, 3, 9], [1, 5, 30]))
        document = self.rng.choice(self.documents)
        name = document["pattern"]
        open_ones = [id_ for (pattern, id_), end in self.ends.items() if pattern == name and end is None]
        if open_ones and self.rng.random() < 0.5:
            id_ = self.rng.choice(open_ones)
            begun = self.begun[name, id_]
            self.ends[name, id_] = max(re, begun + 1)
            return {"op": "arc", "pattern": name, "arc": {"id": id_}, "valid": [begun, self.ends[name, id_]]}
        id_ = f"n{len(self.ends)}"
        end = self.rng.choice([None, re])
        self.ends[name, id_], self.begun[name, id_] = end, le
        like = self.rng.choice([arc for arc in document["arcs"] if not arc.get("epsilon")])
        body = {field: value for field, value in like.items() if field != "valid"} | {"id": id_}
        return {"op": "arc", "pattern": name, "arc": body, "valid": [le, end]}


def together(parts: list[Changes]) -> Changes:
    """What one record leads to in several engines, as one engine says it."""
    told = [change for part in parts for change in part]
    gone = sorted((change for change in told if change.op == "retract"), key=lambda change: change.order)
    come = sorted((change for change in told if change.op == "insert"), key=lambda change: change.order)
    return Changes([(0, change) for change in [*gone, *come]], parts[0].bad, parts[0].late)


def checks(case: RandomCase, told: list[Changes]) -> dict[str, Callable[[], Any]]:
    ways: dict[str, Callable[[], Any]] = {"single": lambda: check_single(case, told)}
    for net in ("record", "batch"):
        ways[f"raw {net}"] = lambda net=net: check_batches(case, told, net, arrow=False)  # type: ignore[misc]
        ways[f"arrow {net}"] = lambda net=net: check_batches(case, told, net, arrow=True)  # type: ignore[misc]
    ways["restored"] = lambda: check_restored(case, told)
    return ways
