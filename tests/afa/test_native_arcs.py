"""Arcs that change between nearly all events of a record batch: mostly ahead of them, sometimes into the past.

What changes only later events is applied while earlier ones of the batch still wait; nobody may notice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support.lawful import assert_lawful, netted

from afa import Engine
from afa.document import build_pattern
from afa.pattern import Pattern

WORD = "UDU"
LIMITS = (0, 2, 4)
LINEAR: dict[str, Any] = {
    "pattern": "linear",
    "start": "q0",
    "final": [f"q{len(WORD)}"],
    "within": 15,
    "arcs": [
        {"id": f"s{step}", "from": f"q{step}", "to": f"q{step + 1}", "when": "e.x > -2" if tick == "U" else "e.x < 1"}
        for step, tick in enumerate(WORD)
    ],
}
LISTED: dict[str, Any] = LINEAR | {
    "pattern": "listed",
    "registers": {"n": 0},
    "arcs": [arc | {"set": {"n": "r.n + e.x"}} for arc in LINEAR["arcs"]],
}


class Tape:
    """Events of a few keys, and arcs of the second step that take turns."""

    def __init__(self, seed: int, keys: int) -> None:
        self.rng, self.keys, self.now = Random(seed), keys, 0
        self.known: dict[str, list[str]] = {"linear": ["s1"], "listed": ["s1"]}
        self.le: dict[tuple[str, str], int | None] = {}
        self.records: list[dict[str, Any]] = []

    def event(self) -> None:
        self.now += self.rng.choice([0, 1, 1, 1, 2])
        late = self.rng.choice([0] * 12 + [1, 5])
        key = f"k{self.rng.randrange(self.keys)}"
        record = {"key": key, "ts": self.now - late, "id": f"e{len(self.records)}"}
        self.records.append(record | {"data": {"x": self.rng.randint(-4, 5)}})

    def swap(self) -> None:
        """One arc ends and another begins, most often right after the newest event."""
        name = self.rng.choice(list(self.known))
        at = self.now + self.rng.choice([1, 1, 1, 1, 3, 0, -2])
        old, new = self.known[name][-1], f"n{len(self.records)}"
        ended = {"op": "arc", "pattern": name, "arc": {"id": old}, "valid": [self.le.get((name, old)), at]}
        body = {"id": new, "from": "q1", "to": "q2", "when": f"e.x < {self.rng.choice(LIMITS)}"}
        if name == "listed":
            body["set"] = {"n": "r.n + 1"}
        begun = {"op": "arc", "pattern": name, "arc": body, "valid": [at, None]}
        self.records += [ended, begun] if self.rng.random() < 0.9 else [begun, ended]
        self.known[name].append(new)
        self.le[name, new] = at

    def again(self) -> None:
        """An arc of long ago changes, is said again, or goes."""
        name = self.rng.choice(list(self.known))
        id_ = self.rng.choice(self.known[name])
        le = self.le.get((name, id_))
        if self.rng.random() < 0.2 and id_ != self.known[name][-1]:
            self.records.append({"op": "arc-retract", "pattern": name, "arc": {"id": id_}})
            self.known[name].remove(id_)
        else:
            end = self.now + self.rng.randint(-10, 4)
            self.records.append({"op": "arc", "pattern": name, "arc": {"id": id_}, "valid": [le, end]})

    def written(self, length: int, stretches: Sequence[int] = (0, 1, 3, 8)) -> list[dict[str, Any]]:
        while len(self.records) < length:
            for _ in range(self.rng.choice(stretches)):
                self.event()
            self.swap()
            if self.rng.random() < 0.1:
                self.again()
            if self.rng.random() < 0.15:
                self.records.append({"op": "punctuation", "ts": self.now - self.rng.randint(1, 15)})
        return self.records


def record_batch(records: list[dict[str, Any]]) -> pa.RecordBatch:
    """Keys are a dictionary in which arc records have none."""

    def column(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([record.get(name) for record in records], kind)

    return pa.RecordBatch.from_pydict(
        {
            "key": column("key", pa.string()).dictionary_encode(),
            "ts": column("ts", pa.int64()),
            "id": column("id", pa.string()),
            "op": column("op", pa.string()),
            "arc": pa.array([json.dumps(record) if "arc" in record else None for record in records], pa.string()),
            "x": pa.array([record.get("data", {}).get("x") for record in records], pa.int64()),
        }
    )


def patterns(which: str) -> list[Pattern]:
    return [build_pattern(document) for document in (LINEAR, LISTED) if document["pattern"] in which]


@pytest.mark.parametrize("net", ["record", "batch"])
@pytest.mark.parametrize("seed", range(12))
def test_arcs_that_change_within_a_batch(seed: int, net: str) -> None:
    chosen = patterns(["linear", "listed", "linear listed"][seed % 3])
    names = {pattern.name for pattern in chosen}
    tape = Tape(seed, keys=[1, 1, 3][seed // 3 % 3]).written(250)
    records = [record for record in tape if record.get("pattern", next(iter(names))) in names]
    told = assert_lawful(chosen, [json.dumps(record).encode() for record in records], every=10)
    records = records[: len(told)]
    engine, rng, begin = Engine(chosen, net=net), Random(seed), 0  # type: ignore[arg-type]
    while begin < len(records):
        end = min(len(records), begin + rng.choice([1, 20, 200]))
        changes = engine.feed(record_batch(records[begin:end]))
        if net == "batch":
            assert changes.to_records() == netted(told[begin:end])
        else:
            parts = enumerate(told[begin:end])
            assert changes.told == [(index, change) for index, part in parts for change in part]
        late = [(index, reason) for index, part in enumerate(told[begin:end]) for _, reason in part.late]
        assert changes.late == late
        assert not changes.bad
        begin = end
    assert sum(len(part) for part in told) > 20


@pytest.mark.parametrize("seed", range(9))
def test_arcs_that_change_between_long_stretches(seed: int) -> None:
    chosen = patterns(["linear", "listed", "linear listed"][seed % 3])
    names = {pattern.name for pattern in chosen}
    tape = Tape(seed, keys=[1, 1, 3][seed // 3]).written(1_500, stretches=(1, 60, 64, 150, 400))
    records = [record for record in tape if record.get("pattern", next(iter(names))) in names]
    alone, together = Engine(chosen), Engine(chosen)
    told, late = [], []
    for index, record in enumerate(records):
        changes = alone.feed(record_batch([record]))
        told += [(index, change) for _, change in changes.told]
        late += [(index, reason) for _, reason in changes.late]
    changes = together.feed(record_batch(records))
    assert (changes.told, changes.late, changes.bad) == (told, late, [])
    assert len(told) > 100


def test_bodies_that_come_and_go() -> None:
    """So many that what was computed for the first of them is forgotten, and their predicates' numbers are others'."""
    chosen, rng, records = patterns("linear listed"), Random(3), []
    for number in range(600):
        records += [
            {"key": "k", "ts": 10 * number + step, "id": f"e{number}-{step}", "data": {"x": rng.randint(-4, 5)}}
            for step in range(3)
        ]
        for pattern in chosen:
            limit = rng.choice([0, 2, 4]) + number / 10_000
            body = {"id": f"n{number}", "from": "q1", "to": "q2", "when": f"e.x < {limit}"}
            valid = [10 * number + 1, 10 * number + 10]
            records.append({"op": "arc", "pattern": pattern.name, "arc": body, "valid": valid})
        if number % 20 == 0:
            records.append({"op": "punctuation", "ts": 10 * number - 15})
    values = [json.dumps(record).encode() for record in records]
    told = assert_lawful(chosen, values, every=1500)
    engine, changes = Engine(chosen), []
    for begin in range(0, len(records), 700):
        changes += engine.feed(record_batch(records[begin : begin + 700])).told
    assert [change for _, change in changes] == [change for part in told for change in part]
    assert len(told) == len(records)
    assert len(changes) > 500


def denied(key: int, x: int) -> dict[str, Any]:
    """An arc that waits: the event is not known to be of the run and to have this value."""
    wanted = f"e.k == r.k and e.x == {x} and e.k < {key}"
    return {"from": "seen", "to": "seen", "when": f"true if ({wanted}) == null else not ({wanted})"}


WAITING: dict[str, Any] = {
    "pattern": "p",
    "start": "none",
    "final": ["hit"],
    "within": 12,
    "registers": {"k": 0},
    "arcs": [
        {"id": "first", "from": "none", "to": "seen", "when": "e.x == 0", "set": {"k": "e.k"}},
        {"id": "waits", **denied(3, 1)},
        {"id": "hit", "from": "seen", "to": "hit", "when": "e.k == r.k and e.x == 1"},
    ],
}


def test_what_is_denied_stays_when_arcs_that_ended_are_forgotten() -> None:
    """So many arcs come and go where no partial match ever is that what is known of them is let go again and again."""
    rng = Random(1)
    pattern = build_pattern(WAITING)
    changing, quiet = Engine([pattern]), Engine([pattern])
    for number in range(2000):
        arc = {"id": f"n{number}", **denied(number, number % 7), "from": "far", "to": "far"}
        changing.change_arc({"op": "arc", "pattern": "p", "arc": arc, "valid": [number, number + 1]})
        data = {"x": rng.randrange(3), "k": rng.randrange(4)}
        line = json.dumps({"key": "a", "ts": number, "id": f"e{number}", "data": data}).encode()
        assert changing.feed([line]).to_records() == quiet.feed([line]).to_records(), number
        told = [engine.punctuate(number - 20).to_records() for engine in (changing, quiet)]
        assert told[0] == told[1]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_denied_of_an_event_and_a_register_changes(seed: int) -> None:
    """Part of such a condition is the event's class: it goes with the last arc that asks for it, and not before."""
    rng = Random(seed)
    pattern = build_pattern(WAITING)
    native, reference = Engine([pattern]), Engine([pattern], engine="reference")
    waits: tuple[str, int | None] = ("waits", None)
    for number in range(100):
        data = {name: rng.randrange(4) for name in ("x", "k") if rng.random() < 0.95}
        records: list[dict[str, Any]] = [{"key": "a", "ts": number, "id": f"e{number:03}", "data": data}]
        if rng.random() < 0.6:
            ended = {"op": "arc", "pattern": "p", "arc": {"id": waits[0]}, "valid": [waits[1], number + 1]}
            waits = (f"w{number}", number + 1)
            arc = {"id": waits[0], **denied(rng.randrange(1, 4) + number % 50, rng.randrange(4))}
            records += [ended, {"op": "arc", "pattern": "p", "arc": arc, "valid": [number + 1, None]}]
        if rng.random() < 0.2:
            records.append({"op": "punctuation", "ts": number - 6})
        for record in records:
            line = json.dumps(record).encode()
            assert native.feed([line]).to_records() == reference.feed([line]).to_records(), (number, record)
