"""What happens only in large engines: sets of configurations and chunks of events are swept, numbers are used again."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support.lawful import LazyReference, NetMatches, follow

from afa import Engine
from afa.document import build_pattern
from afa.pattern import Pattern
from afa.reference_batches import feed_reference

EVENTS = 8_000
KEYS = 150

GROWING: dict[str, Any] = {
    "start": "a",
    "final": ["c"],
    "registers": {"f": 0.0, "n": 0},
    "arcs": [
        {"id": "one", "from": "a", "to": "b", "when": "e.x > 0.3", "set": {"f": "e.x"}},
        {
            "id": "more",
            "from": "b",
            "to": "b",
            "when": "e.x < r.f and r.n < 4",
            "set": {"f": "r.f + e.x", "n": "r.n + 1"},
        },
        {"id": "last", "from": "b", "to": "c", "when": "e.x > r.f"},
    ],
}
LINEAR: dict[str, Any] = {
    "start": "a",
    "final": ["d"],
    "within": 400,
    "arcs": [{"id": f"s{i}", "from": "abc"[i], "to": "bcd"[i], "when": f"e.x > 0.{2 * i}"} for i in range(3)],
}


def tape(seed: int) -> list[dict[str, Any]]:
    """Every event has a value of its own; keys fall silent and come back; punctuations follow behind."""
    rng = Random(seed)
    records: list[dict[str, Any]] = []
    for number in range(EVENTS):
        lag = rng.choice([0, 0, 0, rng.randint(0, 60)])
        key = rng.randrange(KEYS) if number // 1500 % 2 else rng.randrange(KEYS // 3)
        records.append({"key": f"k{key}", "ts": number - lag, "id": f"e{number}", "data": {"x": rng.random()}})
        if number % 100 == 99:
            records.append({"op": "punctuation", "ts": number - 80})
        if number % 37 == 36:
            gone = records[-rng.randint(1, 30)]
            if "key" in gone:
                records.append({"op": "retract", "rev": 1} | {name: gone[name] for name in ("key", "ts", "id")})
    return records


def record_batch(records: list[dict[str, Any]]) -> pa.RecordBatch:
    names = ("op", "key", "ts", "id", "rev")
    columns = {name: [record.get(name) for record in records] for name in names}
    columns["x"] = [record.get("data", {}).get("x") for record in records]
    texts = {name: pa.string() for name in ("op", "key", "id")}
    kinds = {"ts": pa.int64(), "rev": pa.int64(), "x": pa.float64()} | texts
    return pa.RecordBatch.from_pydict({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def patterns(window: Any) -> list[Pattern]:
    within = {} if window is None else {"within": window}
    return [build_pattern(GROWING | within | {"pattern": "p"}), build_pattern(LINEAR | {"pattern": "q"})]


@pytest.mark.parametrize("window", [None, "5 events", 300])
def test_sweeps_change_nothing(window: Any) -> None:
    """Raw in large batches and as many small record batches: the same matches, and those of the reference."""
    records = tape(7)
    nets: list[NetMatches] = [{}, {}]
    raw, arrow = Engine(patterns(window)), Engine(patterns(window), net="batch")
    for begin in range(0, len(records), 5000):
        follow(nets[0], raw.feed([json.dumps(record).encode() for record in records[begin : begin + 5000]]))
    for begin in range(0, len(records), 12):
        follow(nets[1], arrow.feed(record_batch(records[begin : begin + 12])))
    reference = LazyReference(patterns(window))
    feed_reference(reference, records, 0, "record")
    assert set(nets[0]) == set(nets[1]) == reference.match_ids()
    assert len(nets[0]) > 500


def test_shapes_begin_anew_while_a_late_event_compares_two_lists() -> None:
    """So many classes and shapes that they are forgotten; the list beside the one being stepped had one of them."""
    rng, fields = Random(0), 10
    arcs: list[dict[str, Any]] = [{"id": "first", "from": "q0", "to": "q1"}]
    for step in range(fields):
        here, next_one = f"q{step + 1}", f"q{(step + 1) % fields + 1}"
        arcs.append({"id": f"go{step}", "from": here, "to": next_one, "when": f"e.f{step} > 0"})
        arcs.append({"id": f"stay{step}", "from": here, "to": here, "when": f"e.f{(step + 3) % fields} < 1"})
    pattern = build_pattern({"pattern": "p", "start": "q0", "final": ["q4", "q9"], "within": 8, "arcs": arcs})
    values = []
    for number in range(4000):
        record: dict[str, Any] = {"key": "k", "ts": number - rng.choice([0, 0, 3, 5]), "id": f"e{number}"}
        record["data"] = {f"f{field}": rng.randint(0, 1) for field in range(fields)}
        values.append(json.dumps(record).encode())
    net: NetMatches = {}
    engine = Engine([pattern])
    for value in values:
        follow(net, engine.feed([value]))
    reference = LazyReference([pattern])
    feed_reference(reference, values, 0, "record")
    assert set(net) == reference.match_ids()
    assert len(net) > 100
