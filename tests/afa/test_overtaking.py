"""Punctuations within a record batch overtake rows that they do not reach: nobody sees a difference."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.long_tapes import documents, plain_values, record_batch

from afa import Engine
from afa.document import build_pattern

Record = dict[str, Any]


def tape_in_order(rng: Random, length: int) -> list[Record]:
    """Events of some keys, most in order, and punctuations that lag behind the newest: by little, or by nothing."""
    keys = [f"k{number}" for number in range(rng.choice([1, 1, 2, 5]))]
    late, lag = rng.choice([0.0, 0.05, 0.4]), rng.choice([0, 3, 20])
    tape: list[Record] = []
    for ts in range(length):
        if rng.random() < 0.15:
            tape.append({"op": "punctuation", "ts": ts - lag - rng.randint(0, 3)})
            continue
        behind = rng.randint(1, 12) if rng.random() < late else 0
        data = {"x": rng.randint(0, 3), "y": rng.randint(0, 3)}
        tape.append({"id": f"e{ts}", "key": rng.choice(keys), "ts": ts - behind, "type": "a", "data": data})
    return tape


@pytest.mark.timeout(300)  # the reference takes its time over 300 records
@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["l", "ll", "r", "rr", "lr"]), st.sampled_from([60, 60, 300]))
def test_a_batch_says_what_its_records_say(seed: int, kinds: str, length: int) -> None:
    rng = Random(seed)
    patterns = [build_pattern(document) for document in documents(rng, kinds, length)]
    tape = plain_values(tape_in_order(rng, length))
    alone, together = Engine(patterns), Engine(patterns)
    told, late = [], []
    for index, record in enumerate(tape):
        changes = alone.feed(record_batch(rng, [record]))
        told += [(index, change) for _, change in changes.told]
        late += [index for _ in changes.late]
    batch = record_batch(rng, tape)
    changes = together.feed(batch)
    assert changes.bad == []
    assert [index for index, _ in changes.late] == late
    assert changes.told == told
    assert Engine(patterns, "reference").feed(batch).told == told
    known = alone.keys()
    assert together.keys() == known
    assert [together.state_hash(key) for key in known] == [alone.state_hash(key) for key in known]


RISES = {
    "pattern": "rises",
    "within": 100,
    "start": "a",
    "final": ["c"],
    "arcs": [
        {"id": "one", "from": "a", "to": "b", "when": "e.x == 1"},
        {"id": "two", "from": "b", "to": "c", "when": "e.x == 2"},
    ],
}


@pytest.mark.parametrize("option", [{}, {"hold": "output"}, {"speculation": 0}])
def test_what_a_punctuation_says_stands_after_the_rows_before_it(option: Record) -> None:
    columns = {
        "key": pa.array(["k", "k", None, "k", "k", None]),
        "ts": pa.array([1, 2, 1, 3, 4, 4]),
        "op": pa.array([None, None, "punctuation", None, None, "punctuation"]),
        "x": pa.array([1, 2, None, 1, 2, None]),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    pattern = build_pattern(RISES | option)
    told, by_reference = (Engine([pattern], name).feed(batch).told for name in ("native", "reference"))  # type: ignore[arg-type]
    assert told == by_reference
    assert [index for index, _ in told][-1] == 5


def batch_of(*rows: tuple[str | None, int, int | None], when: dict[int, str] | None = None) -> pa.RecordBatch:
    """Key, time and x of events; without a key a punctuation."""
    keys, times, numbers = zip(*rows, strict=True)
    columns = {"key": pa.array(keys, pa.string()), "ts": pa.array(times), "x": pa.array(numbers, pa.int64())}
    columns["op"] = pa.array([None if key else "punctuation" for key in keys], pa.string())
    if when:
        columns["when"] = pa.array([when.get(row) for row in range(len(rows))], pa.string())
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize(
    ("rows", "origins", "limits"),
    [
        # A key that moves to another partition, once nothing of it need be kept in its own.
        ([("j", 100, 1), (None, 50, None), ("k", 20, 1), ("k", 21, 2)], [0, 0, 1, 1], {}),
        # A new key in the place of one of which nothing need be kept.
        ([("j", 100, 1), (None, 50, None), ("z", 101, 1), ("z", 102, 2)], [0] * 4, {"max_keys": 2}),
        # No more than so many events at a time.
        (
            [row for ts in range(2_000) for row in (("k", ts, 1), (None, ts - 600, None))],
            None,
            {"max_events_per_key": 900},
        ),
    ],
)
def test_what_is_let_go_makes_room_for_what_comes(
    rows: list[tuple[str | None, int, int | None]], origins: list[int] | None, limits: dict[str, int]
) -> None:
    pattern = build_pattern(RISES | {"within": 10})
    batch, places = batch_of(*rows), [("t", number) for number in origins or [0] * len(rows)]
    told = []
    for cut in (len(rows), 1):
        engine = Engine([pattern], limits=limits)
        engine.feed(batch_of(("k", 1, 1)), partitions=[("t", 0)])
        found = [engine.feed(batch.slice(at, cut), partitions=places[at : at + cut]) for at in range(0, len(rows), cut)]
        changes = [change for part in found for _, change in part.told]
        stats = engine.stats()
        told.append((changes, sum(len(part.late) + len(part.bad) for part in found), stats["degraded_keys"]))
    assert told[0] == told[1]


def test_what_an_overtaking_punctuation_lets_go_is_gone_though_the_batch_ends_with_a_question() -> None:
    engine = Engine([build_pattern(RISES | {"within": 10})])
    engine.feed(batch_of(("k", 1, 1)))
    engine.feed(batch_of(("j", 100, 1), (None, 50, None), (None, 60, None), when={2: "e.x == 1"}))
    assert engine.gauges()["keys"] == 1
