"""Many keys whose events are interleaved: each is taken the shortest way, and rests when nothing of it is left."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from support.automata import EACH, arc, automaton, event, punctuation

from afa import Engine, SnapshotError
from afa.document import build_pattern

# Falls, then rises: lists of some words, which end, begin and go in all orders.
FALL = build_pattern(
    automaton(
        arc("first", "a", "b", "e.x < 3", set={"n": "1"}),
        arc("down", "b", "b", "e.x < 5", set={"n": "r.n + 1"}),
        arc("turn", "b", "c", "e.x >= 5 and r.n < 5"),
        arc("up", "c", "z", "e.x >= 4", set={"n": "r.n - 1"}),
        registers={"n": 0},
        within=60,
    )
)


def stream(seed: int, length: int, keys: int, late: float) -> list[dict[str, Any]]:
    """Events of keys drawn at random; some are late, some come twice, some are taken back."""
    chance = random.Random(seed)
    records = []
    for number in range(length):
        ts = number - chance.randrange(1, 12) if chance.random() < late else number
        key = f"key {chance.randrange(keys):0{chance.choice([1, 12])}}" if keys > 1 else "k"
        record = event(f"e{number % 50}" if late else f"e{number}", ts, chance.randrange(8)) | {"key": key}
        records.append(record)
        if late and chance.random() < 0.02:
            records.append({"op": "retract", "id": record["id"], "key": key, "ts": ts, "rev": 1})
        if number % 16 == 15:
            records.append(punctuation(number - 10))
    return records


def as_batch(records: list[dict[str, Any]]) -> pa.RecordBatch:
    def column(name: str) -> list[Any]:
        return [record.get(name) for record in records]

    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(column("key")).dictionary_encode(),
            "ts": pa.array(column("ts"), pa.int64()),
            "op": pa.array(column("op"), pa.string()),
            "id": pa.array(column("id"), pa.string()),
            "rev": pa.array(column("rev"), pa.int64()),
            "x": pa.array([record.get("data", {}).get("x") for record in records], pa.int64()),
        }
    )


@pytest.mark.parametrize("keys", [2, 12, 150])
@pytest.mark.parametrize("late", [0.0, 0.1])
def test_interleaved_keys_equal_the_reference(keys: int, late: float) -> None:
    for seed in range(4):
        records = stream(seed, 600, keys, late)
        native, reference, raw = Engine([FALL]), Engine([FALL], "reference"), Engine([FALL])
        for begin in range(0, len(records), 97):
            part = records[begin : begin + 97]
            lines = [json.dumps(record).encode() for record in part]
            told, expected = native.feed(as_batch(part)), reference.feed(lines)
            assert told.to_records() == expected.to_records()
            assert raw.feed(lines).to_records() == expected.to_records()
            assert [index for index, _ in told.late] == [index for index, _ in expected.late]
        keys_left = native.keys()
        assert keys_left == raw.keys()
        for key in keys_left:
            assert native.snapshot(key) == raw.snapshot(key)


def test_a_key_that_rests_is_unknown() -> None:
    engine = Engine([build_pattern(EACH)], limits={"max_keys": 10})
    for round_ in range(100):
        ts = 1000 * round_
        records = [event(f"e{key}", ts, 1) | {"key": f"{(round_ + key) % 25}"} for key in range(10)]
        told = engine.feed(as_batch([*records, punctuation(ts + 500), punctuation(ts + 501)]))
        assert told.bad == []
        with pytest.raises(SnapshotError):
            engine.snapshot(f"{round_ % 25}")
        assert engine.keys() == []
    assert engine.stats()["refused_keys"] == 0
    records = [event(f"e{key}", 10**6, 1) | {"key": f"{key}"} for key in range(12)]
    told = engine.feed(as_batch([*records, punctuation(10**6 - 1)]))
    assert [index for index, _ in told.bad] == [10, 11]
    assert len(engine.keys()) == 10
