"""Many patterns that compare one field with constants of their own: the native engine evaluates them together."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa import Engine
from afa.document import build_pattern
from afa.pattern import Pattern

INTS: Final = (-(2**63), -(2**53) - 1, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1)
FLOATS: Final = (-1.7e308, -1.0, -5e-324, -0.0, 0.0, 0.5, 1.0, 2.0, 9007199254740992.0, 9.223372036854775807e18)
TEXTS: Final = ("", "a", "b", "ab", "ä")
OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "==", "==")
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "int": INTS,
    "float": FLOATS,
    "text": TEXTS,
    "bool": (True, False),
}
MOST_EVENTS: Final = 100  # bits are looked at by 64


def literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, int) and not isinstance(value, bool) and value == -(2**63):
        return "(-9223372036854775807 - 1)"
    return json.dumps(value)


def constant(rng: Random) -> Any:
    return rng.choice(VALUES[rng.choice(["int", "int", "float", "float", "text", "bool"])])


def fence(rng: Random) -> str:
    name = rng.choice("xxxy")
    value = constant(rng)
    operator = rng.choice(OPERATORS)
    if isinstance(value, bool):
        operator = rng.choice(["==", "!="])
    if rng.random() < 0.15:
        of_one_type = VALUES[rng.choice(list(VALUES))]
        items = [item for item in rng.choices(of_one_type, k=rng.randint(1, 4)) if item != -(2**63)]
        return f"e.{name} in [{', '.join(map(literal, items)) or '7'}]"
    if rng.random() < 0.3:
        return f"{literal(value)} {operator} e.{name}"
    return f"e.{name} {operator} {literal(value)}"


def document(rng: Random, number: int) -> dict[str, Any]:
    """A word of one or two steps; every third keeps lists."""
    length = rng.choice([1, 2, 2])
    arcs: list[dict[str, Any]] = [
        {"id": f"s{step}", "from": f"q{step}", "to": f"q{step + 1}", "when": fence(rng)} for step in range(length)
    ]
    if length == 2 and rng.random() < 0.2:
        arcs[1]["when"] += " and " + fence(rng)
    frame = {"pattern": f"p{number:03d}", "within": rng.choice([1, 3]), "start": "q0", "final": [f"q{length}"]}
    if number % 3 == 2:
        frame["registers"] = {"n": 0}
        arcs[0]["set"] = {"n": "r.n + 1"}
    return frame | {"arcs": arcs}


def cell(rng: Random, kind: str) -> Any:
    if rng.random() < 0.1:
        return None
    return constant(rng) if kind == "mixed" else rng.choice(VALUES[kind])


def tape(rng: Random, length: int, kinds: dict[str, str]) -> list[dict[str, Any]]:
    records = []
    for number in range(length):
        data = {name: cell(rng, kind) for name, kind in kinds.items() if rng.random() < 0.97}
        records.append({"key": f"k{rng.randrange(6)}", "ts": number, "id": f"e{number}", "data": data})
    return records


def encoded(records: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def reference_records(patterns: list[Pattern], records: list[dict[str, Any]]) -> list[Any]:
    return Engine(patterns, "reference").feed(encoded(records)).to_records()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(30, 50), st.sampled_from(["mixed", *VALUES]), st.integers(1, MOST_EVENTS))
def test_many_predicates_on_one_field(seed: int, count: int, kind: str, length: int) -> None:
    rng = Random(seed)
    patterns = [build_pattern(document(rng, number)) for number in range(count)]
    records = tape(rng, length, {"x": kind, "y": rng.choice([kind, "mixed"])})
    expected = reference_records(patterns, records)
    assert Engine(patterns).feed(encoded(records)).to_records() == expected
    engine, told, begin = Engine(patterns), [], 0
    while begin < length:  # rows are added to a chunk that was looked at before
        end = begin + rng.choice([1, 2, 40, 64])
        told += engine.feed(encoded(records[begin:end])).to_records()
        begin = end
    assert told == expected


ARROW: Final = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_()}


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(30, 50), st.sampled_from(list(ARROW)), st.integers(1, MOST_EVENTS))
def test_many_predicates_on_columns(seed: int, count: int, kind: str, length: int) -> None:
    rng = Random(seed)
    patterns = [build_pattern(document(rng, number)) for number in range(count)]
    kinds = {"x": kind, "y": rng.choice(list(ARROW))}
    records = tape(rng, length, kinds)
    columns = {name: pa.array([record[name] for record in records]) for name in ("key", "ts", "id")}
    for name, own in kinds.items():
        cells = pa.array([record["data"].get(name) for record in records], ARROW[own])
        columns[name] = cells.dictionary_encode() if own == "text" and rng.random() < 0.5 else cells
    batch = pa.RecordBatch.from_pydict(columns)
    assert Engine(patterns).feed(batch).to_records() == reference_records(patterns, records)


@pytest.mark.parametrize("count", [1, 10, 300])
def test_unknown_is_counted_for_each_predicate(count: int) -> None:
    fences = [f"e.x == {number}" for number in range(count)]
    documents = [
        {"pattern": f"p{number}", "within": 5, "start": "a", "final": ["b"]}
        | {"arcs": [{"id": "s", "from": "a", "to": "b", "when": when}]}
        for number, when in enumerate(fences)
    ]
    engine = Engine([build_pattern(document) for document in documents])
    values = [1, None, "1", 2.0, True, 7]
    engine.feed(encoded([{"key": "k", "ts": ts, "data": {"x": value}} for ts, value in enumerate(values)]))
    counters = engine.stats()
    assert (counters["errors"], counters["condition_evaluations"]) == (3 * count, 6 * count)
