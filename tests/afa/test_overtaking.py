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


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["l", "ll", "r", "rr", "lr"]), st.sampled_from([60, 300]))
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
