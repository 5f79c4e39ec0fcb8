"""What a query says when: absence, open candidates, timeouts, RETURN values that change."""

from __future__ import annotations

import json
from typing import Any

from afa import Engine
from afa.document import parse_patterns

ORDER = """
pattern: unpaid
query: |
  PATTERN SEQ(Order a, ~Payment b)
  WHERE skip_till_next_match(a, b) { [order] }
  WITHIN 10 ms
"""
STEPS = """
pattern: steps
query: |
  PATTERN SEQ(A a, B+ b[], C c)
  WHERE skip_till_next_match(a, b[], c) { b[i].x > a.x }
  WITHIN 10 ms
  RETURN sum(b[].x) AS total
timeouts: true
"""


def fed(document: str, *records: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What each record led to."""
    patterns = [pattern for pattern, _ in parse_patterns(document)]
    engine = Engine(patterns, engine="reference")
    return [engine.feed([json.dumps(record).encode()]).to_records() for record in records]


def event(name: str, ts: int, kind: str, **data: object) -> dict[str, Any]:
    return {"id": name, "key": "k", "ts": ts, "type": kind, "data": data}


def punctuation(ts: int) -> dict[str, Any]:
    return {"op": "punctuation", "ts": ts}


def said(told: list[dict[str, Any]]) -> list[tuple[str, object]]:
    return [(one["op"], one["bindings"] if "bindings" in one else one["ts"]) for one in told]


def test_absence_is_known_when_the_window_has_closed() -> None:
    first, second, early, closed = fed(
        ORDER,
        event("e1", 1, "Order", order=7),
        event("e2", 3, "Order", order=8),
        punctuation(5),
        punctuation(11),
    )
    assert [said(first), said(second)] == [[], []]
    assert said(early) == [("punctuation", 1)]  # a candidate ends there
    assert said(closed) == [("insert", {"a": ["e1"]}), ("punctuation", 3)]


def test_absence_is_assumed_and_taken_back() -> None:
    first, payment, closed = fed(
        ORDER + "absence: speculative\n",
        event("e1", 1, "Order", order=7),
        event("e2", 3, "Payment", order=7),
        punctuation(20),
    )
    assert said(first) == [("insert", {"a": ["e1"]})]
    assert said(payment) == [("retract", {"a": ["e1"]})]
    assert said(closed) == [("punctuation", 20)]


def test_a_timeout_tells_how_far_the_best_run_came() -> None:
    *_, before, closed, after = fed(
        STEPS,
        event("e1", 1, "A", x=1),
        event("e2", 2, "B", x=2),
        event("e3", 3, "B", x=3),
        event("e4", 4, "A", x=9),
        event("e5", 5, "B", x=4),
        punctuation(10),
        punctuation(11),
        punctuation(30),
    )
    assert said(before) == [("punctuation", 10)]
    reached = {"a": ["e1"], "b": ["e2", "e3", "e5"]}
    expected = {"op": "timeout", "pattern": "steps", "key": "k", "start": 1, "until": 11, "reached": "b"}
    assert closed[0] == expected | {"bindings": reached}
    assert said(after) == [("timeout", {"a": ["e4"]}), ("punctuation", 30)]


def test_another_value_of_the_same_match_is_a_retract_and_an_insert() -> None:
    *_, matched, revised, closed = fed(
        STEPS,
        event("e1", 1, "A", x=1),
        event("e2", 2, "B", x=2),
        event("e3", 3, "C"),
        event("e2", 2, "B", x=5) | {"rev": 1},
        punctuation(30),
    )
    assert [(one["op"], one["registers"]) for one in matched + revised] == [
        ("insert", {"total": 2}),
        ("retract", {"total": 2}),
        ("insert", {"total": 5}),
    ]
    assert len({one["match"] for one in matched + revised}) == 1
    assert said(closed) == [("punctuation", 30)]  # it completed: no timeout
