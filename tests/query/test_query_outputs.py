"""What a query says when: absence, open candidates, timeouts, RETURN values that change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from afa import Engine
from afa.document import parse_patterns
from afa.engine import EngineName
from arcfleet.cli.explain import describe, in_words

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
    """What each record led to, on both engines."""
    patterns = [pattern for pattern, _ in parse_patterns(document)]
    native, reference = Engine(patterns), Engine(patterns, engine="reference")
    told = []
    for line in (json.dumps(record).encode() for record in records):
        told.append(native.feed([line]).to_records())
        assert told[-1] == reference.feed([line]).to_records()
    return told


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


ALONE = """
pattern: alone
query: |
  PATTERN SEQ(~N n, A a, B b)
  WHERE skip_till_next_match(n, a, b) { }
  WITHIN 10 ms
"""


def test_what_a_leading_negation_forbids_stays_forbidden_after_a_cleanup() -> None:
    told = fed(
        ALONE,
        event("n", 0, "N"),
        event("a", 5, "A"),
        event("b", 8, "B"),
        punctuation(10),
        event("z", 11, "Z"),
        punctuation(12),
        event("y", 13, "Z"),
        punctuation(100),
        event("x", 101, "Z"),
    )
    assert [one["op"] for step in told for one in step] == ["punctuation"] * 3


APART = """
pattern: apart
query: |
  PATTERN SEQ(A a, B b, ~N n)
  WHERE skip_till_any_match(a, b, n) { a.x = b.x AND n.x = b.x }
  WITHIN 10 ms
output: non_overlapping
"""


def test_a_candidate_that_ends_earlier_takes_the_place_of_one_that_closed_earlier() -> None:
    events = [event("a0", 0, "A", x=1), event("a1", 1, "A", x=2), event("b3", 3, "B", x=2), event("b8", 8, "B", x=1)]
    *_, first, second = fed(APART, *events, punctuation(10), punctuation(11))
    assert said(first) == [("insert", {"a": ["a0"], "b": ["b8"]}), ("punctuation", 3)]
    assert said(second) == [
        ("retract", {"a": ["a0"], "b": ["b8"]}),
        ("insert", {"a": ["a1"], "b": ["b3"]}),
        ("punctuation", 11),
    ]


VALUE = """
pattern: value
query: PATTERN SEQ(A a) WHERE strict_contiguity(a) { } RETURN a.x
"""


def test_one_and_true_and_a_float_are_three_values() -> None:
    told = fed(
        VALUE,
        event("a", 0, "A", x=1),
        event("a", 0, "A", x=True) | {"rev": 1},
        event("a", 0, "A", x=1.0) | {"rev": 2},
        event("a", 0, "A", x=1.0, y=2) | {"rev": 3},
    )
    values = [[(one["op"], repr(one["registers"]["a.x"])) for one in step] for step in told]
    assert values == [
        [("insert", "1")],
        [("retract", "1"), ("insert", "True")],
        [("retract", "True"), ("insert", "1.0")],
        [],
    ]


@pytest.mark.parametrize("name", ["native", "reference"])
def test_another_value_is_told_net_per_batch_too(name: EngineName) -> None:
    engine = Engine([pattern for pattern, _ in parse_patterns(VALUE)], engine=name, net="batch")
    engine.feed([json.dumps(event("a", 0, "A", x=1)).encode()])
    revised = [event("a", 0, "A", x=rev) | {"rev": rev} for rev in (2, 3)]
    told = engine.feed([json.dumps(one).encode() for one in revised]).to_records()
    assert [(one["op"], one["registers"]) for one in told] == [("retract", {"a.x": 1}), ("insert", {"a.x": 3})]
    revised = [event("a", 0, "A", x=value) | {"rev": rev} for rev, value in ((4, 9), (5, 3))]
    assert engine.feed([json.dumps(one).encode() for one in revised]).to_records() == []


EITHER = """
pattern: either
query: |
  PATTERN SEQ({ANY a, ANY b, ANY c}, Z z)
  WHERE skip_till_any_match(a, b, c, z) { }
  WITHIN 10 ms
timeouts: true
"""


def test_of_runs_with_the_same_events_a_timeout_tells_the_variables_declared_first() -> None:
    *_, closed = fed(EITHER, event("e1", 1, "A"), event("e2", 2, "A"), punctuation(20))
    assert said(closed)[:2] == [("timeout", {"a": ["e1"], "b": ["e2"]}), ("timeout", {"a": ["e2"]})]


def test_timeouts_of_one_event_are_told_by_pattern_whichever_came_first() -> None:
    document = EITHER.replace("{ANY a, ANY b, ANY c}", "ANY a, ANY b, ANY c")
    documents = [document.replace("either", name).replace("10", length) for name, length in (("p", "9"), ("q", "5"))]
    for name in ("native", "reference"):
        engine = Engine([parse_patterns(one)[0][0] for one in documents], engine=name, net="batch")
        records = (event("e1", 1, "A"), punctuation(7), punctuation(20))
        told = engine.feed([json.dumps(record).encode() for record in records]).to_records()
        assert [one["pattern"] for one in told if one["op"] == "timeout"] == ["p", "q"]


def test_another_lifetime_leaves_an_arc_of_a_query_what_it_binds() -> None:
    lifetime = {"op": "arc", "pattern": "value", "arc": {"id": "start:begin-a"}, "valid": [5, None]}
    _, early, matched = fed(VALUE, lifetime, event("a", 4, "A"), event("b", 5, "A"))
    assert (said(early), said(matched)) == ([], [("insert", {"a": ["b"]})])


@pytest.mark.parametrize("name", ["start:begin-a", "another"])
@pytest.mark.parametrize("engine_name", ["native", "reference"])
def test_arcs_of_a_query_come_from_its_text(engine_name: EngineName, name: str) -> None:
    engine = Engine([pattern for pattern, _ in parse_patterns(VALUE)], engine=engine_name)
    arc = {"id": name, "from": "start", "to": "a", "when": "e.type == 'B'"}
    changes = engine.feed([json.dumps({"op": "arc", "pattern": "value", "arc": arc}).encode()])
    assert changes.bad == [(0, "`value` is a query: its arcs come from its text")]


def test_explain_says_what_a_query_binds_returns_and_forbids() -> None:
    [(steps, _), (unpaid, _)] = [parse_patterns(document)[0] for document in (STEPS, ORDER)]
    told = in_words(steps)
    assert "a query, as an automaton of" in told
    assert "  binds      a, b, c\n  returns    total = r.sum(b.x)\n" in told
    assert "binds b, if" in told
    assert "no event   after it, within the window, with" in in_words(unpaid)
    assert "a match when its window has closed" in in_words(unpaid)
    assert describe(unpaid)["absent after"] == ["e.order == r.[order] and e.type == 'Payment'"]


OWN = """
pattern: own
key: symbol
within: 100
output: non_overlapping
start: q0
final: [q2]
arcs:
  - {id: a, from: q0, to: q1, when: "true"}
  - {id: b, from: q1, to: q2, when: "e.x > 0"}
"""


def test_a_revision_that_a_pattern_does_not_see_takes_its_matches_back() -> None:
    """The event is another key's now, as far as the pattern is concerned: what began before it may count again."""
    events = [
        {"key": "k", "id": f"e{ts}", "ts": ts, "data": {"symbol": "k", "x": x}} for ts, x in ((1, 0), (2, 1), (3, 1))
    ]
    revision = events[1] | {"rev": 1, "data": {"symbol": "other", "x": 1}}
    told = fed(OWN, *events[:2], revision, events[2])
    assert [[change["op"] for change in changes] for changes in told] == [[], ["insert"], ["retract"], ["insert"]]
