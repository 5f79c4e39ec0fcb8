"""Batches told net: whatever the order of arrival within them, they lead to what their records lead to one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support.lawful import netted

from afa import Engine
from afa.changes import Changes
from afa.document import build_pattern
from afa.pattern import Pattern

COUNTING: dict[str, Any] = {
    "pattern": "counting",
    "start": "a",
    "final": ["c"],
    "within": 40,
    "registers": {"n": 0},
    "arcs": [
        {"id": "down", "from": "a", "to": "b", "when": "e.x < 3"},
        {"id": "up", "from": "b", "to": "b", "when": "e.x > 4 and r.n < 4", "set": {"n": "r.n + 1"}},
        {"id": "end", "from": "b", "to": "c", "when": "e.x == 3 and r.n > 0"},
    ],
}
# No column decides these: they are evaluated event by event.
READING: dict[str, Any] = {
    "pattern": "reading",
    "start": "a",
    "final": ["c"],
    "within": "6 events",
    "arcs": [
        {"id": "even", "from": "a", "to": "b", "when": "e.ts % 2 == 0 and e.x + 1 > 4"},
        {"id": "named", "from": "b", "to": "c", "when": "e.id > '5' or e.x % 4 == 1"},
    ],
}
LINEAR: dict[str, Any] = {
    "pattern": "word",
    "start": "a",
    "final": ["d"],
    "within": 50,
    "arcs": [{"id": f"s{i}", "from": "abc"[i], "to": "bcd"[i], "when": f"e.x > {2 * i}"} for i in range(3)],
}
NEW_ARC = {"id": "more", "from": "b", "to": "c", "when": "e.x % 5 == 2"}


def tape(rng: Random, length: int, keys: int, ties: bool) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for number in range(length):
        ts = (number - rng.choice([0, 0, 0, rng.randint(1, 700)])) // (3 if ties else 1)
        record = {"key": f"k{rng.randrange(keys)}", "ts": ts, "id": f"{number * 7919 % 10_007}"}
        if ties and rng.random() < 0.1:
            record |= {"id": f"{ts % 5}", "rev": rng.randint(0, 2)}
        records.append(record | {"data": {"x": rng.randint(0, 6)}})
        if rng.random() < 0.01:
            records.append({"op": "punctuation", "ts": ts - 650})
    return records


def record_batch(records: list[dict[str, Any]]) -> pa.RecordBatch:
    names = {"op": pa.string(), "key": pa.string(), "ts": pa.int64(), "id": pa.string(), "rev": pa.int64()}
    columns = {name: pa.array([record.get(name) for record in records], kind) for name, kind in names.items()}
    columns["x"] = pa.array([record.get("data", {}).get("x") for record in records], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def patterns(which: int) -> list[Pattern]:
    chosen = [[COUNTING], [COUNTING, READING], [LINEAR, COUNTING], [LINEAR]][which]
    return [build_pattern(document) for document in chosen]


@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_batches_in_any_order(seed: int, arrow: bool) -> None:
    """Also those of several chunks; an arc that comes later reads events that were numbered anew, as snapshots do."""
    rng = Random(seed)
    records = tape(rng, 9_000, keys=[1, 1, 4, 300][seed % 4], ties=seed > 3)
    chosen = patterns(seed // 2)
    net, single = Engine(chosen, net="batch"), Engine(chosen)
    begin = changed = 0
    while begin < len(records):
        part = records[begin : begin + rng.choice([3, 100, 1_000, 4_096, 7_000])]
        values = [json.dumps(record).encode() for record in part]
        told = net.feed(record_batch(part) if arrow else values)
        expected = single.feed(values)
        assert told.to_records() == netted([expected]), f"from {begin} on"
        assert told.late == expected.late
        begin += len(part)
        if seed < 6 and (rng.random() < 0.3 or begin == len(records)):
            since = max(record["ts"] for record in part) - rng.randint(0, 500)
            change = {"op": "arc", "pattern": "counting", "arc": NEW_ARC, "valid": [since, None]}
            changes = [engine.feed([json.dumps(change).encode()]) for engine in (net, single)]
            assert changes[0].to_records() == netted(changes[1:])
            changed += len(changes[1])
    keys = net.keys()
    assert keys == single.keys()
    assert [net.state_hash(key) for key in keys] == [single.state_hash(key) for key in keys]
    assert changed > 0 or seed > 5


def interleaved(rng: Random, late: float, ties: bool, keys: int = 500) -> Iterator[list[dict[str, Any]]]:
    """Batches in which few keys have more than a row. Where keys are few, they have many before a punctuation comes."""
    number, behind = 0, 650 if keys == 500 else 1_500
    for size in [*[keys * 4 // 5] * 30, 3, 1, 900, *[keys * 2 // 5] * 20 * (500 // keys)]:
        part: list[dict[str, Any]] = []
        for _ in range(size):
            number += 1
            ts = (number - (rng.randint(1, 900) if rng.random() < late else 0)) // (3 if ties else 1)
            record = {"key": f"k{rng.randrange(keys)}", "ts": ts, "id": f"{number * 7919 % 100_003}"}
            part.append(record | {"data": {"x": rng.randint(0, 6)}})
            if rng.random() < 0.002:
                part.append({"op": "punctuation", "ts": ts - behind})
        yield part


def feed_beside(engine: Engine, records: list[dict[str, Any]]) -> Changes:
    values = [json.dumps(record).encode() for record in records]
    return engine.feed(values, partitions=[("t", 0)], offsets=list(range(len(values))))


@pytest.mark.parametrize("late", [0, 0.02, 0.5])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("keys", "within"), [(500, 1_500), (500, 4_000), (100, 300), (100, 1_500)])
def test_batches_of_many_keys(late: float, ties: bool, keys: int, within: int) -> None:
    """Their rows are taken as they come, also after arcs have changed."""
    chosen = [build_pattern(COUNTING | {"within": within})]
    net, single = Engine(chosen, net="batch"), Engine(chosen)
    told = 0
    for number, part in enumerate(interleaved(Random(7), late, ties, keys)):
        if number % 9 == 8:
            since = max(record["ts"] for record in part) - 3 * keys
            arc = NEW_ARC | {"when": f"e.x % 5 == {number % 2}"}
            change = {"op": "arc", "pattern": "counting", "arc": arc, "valid": [since, None]}
            part.insert(0, change)
        expected = feed_beside(single, part)
        found = feed_beside(net, part)
        assert found.to_records() == netted([expected])
        assert found.late == expected.late
        told += len(found)
    known = net.keys()
    assert known == single.keys()
    assert [net.state_hash(key) for key in known] == [single.state_hash(key) for key in known]
    assert told > 100


@pytest.mark.parametrize("late", [0, 0.1])
def test_what_stands_beside_records_does_not_matter_where_it_is_not_read(late: float) -> None:
    """Names of keys are then looked up together: also of those that are one too many, among records that are bad."""
    chosen = [build_pattern(COUNTING)]
    beside, alone = (Engine(chosen, net="batch", limits={"max_keys": 480}) for _ in range(2))
    refused = 0
    for part in interleaved(Random(5), late, ties=False):
        part[len(part) // 2 :: 90] = [{"key": 1} for _ in part[len(part) // 2 :: 90]]
        found = feed_beside(beside, part)
        expected = alone.feed([json.dumps(record).encode() for record in part])
        assert found.to_records() == expected.to_records()
        assert (found.bad, found.late) == (expected.bad, expected.late)
        refused += sum("max_keys" in reason for _, reason in found.bad)
    assert beside.stats()["refused_keys"] == alone.stats()["refused_keys"] == refused > 10
