"""Batches told net: whatever the order of arrival within them, they lead to what their records lead to one by one."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support.lawful import netted

from afa import Engine
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
