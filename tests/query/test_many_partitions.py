"""Queries with `[attr]` over more values than the native engine tells apart at once."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa import Engine
from afa.query import parse_query
from afa.query.compiler import compile_query
from afa.query.enumeration import Enumeration
from afa.records import Event

QUERIES = (
    "SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] AND b.x > a.x } WITHIN 100 ms",
    "SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND a[i].x > a[i-1].x AND b.x >= a[1].x } WITHIN 100 ms",
    "SEQ(A a, ~B n, A b) WHERE skip_till_any_match(a, n, b) { [k] AND n.x > a.x } WITHIN 100 ms",
    "SEQ({A a, B+ b[]}, A c) WHERE skip_till_next_match(a, b[], c) { [k] AND c.x > max(b[].x) } WITHIN 100 ms",
    "SEQ(A a, ANY+ b[]) WHERE partition_contiguity(a, b[]) { [k] AND b[i].x >= a.x } WITHIN 100 ms",
    "SEQ(A a, ANY b) WHERE strict_contiguity(a, b) { [k] AND b.x >= a.x } WITHIN 100 ms",
    "SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k, j] AND b.x > a.x } WITHIN 3 events",
    "SEQ(~B n, A a, ANY b, ~A m) WHERE skip_till_next_match(n, a, b, m) { [k] AND n.x < b.x AND m.x > 1 } WITHIN 9 ms",
)


def stream(seed: int) -> list[Event]:
    """Every second value comes once; then a few come often."""
    pick = random.Random(seed)
    values: list[Any] = [*range(0, 80, 2), *(pick.choice((1, 3, 3, 3.0, "3", True, None, 4)) for _ in range(12))]
    return [
        Event("k", ts, f"e{ts:02}", type=pick.choice("AB"), data={"k": value, "j": 1, "x": pick.randrange(3)})
        for ts, value in enumerate(values)
    ]


def line(event: Event) -> bytes:
    return json.dumps({"key": "k", "ts": event.ts, "id": event.id, "type": event.type, "data": event.data}).encode()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), text=st.sampled_from(QUERIES), one_by_one=st.booleans(), late=st.booleans())
def test_what_is_found_is_what_the_second_reference_finds(seed: int, text: str, one_by_one: bool, late: bool) -> None:
    query, events = parse_query(f"PATTERN {text}"), stream(seed)
    expected = [
        {name: [event.id for event in bound] for name, bound in match.bindings.items()}
        for match in Enumeration(query, events, math.inf).matches()
    ]
    lines = [line(event) for event in events]
    if late:
        random.Random(seed).shuffle(lines)
    lines.append(b'{"op": "punctuation", "ts": 1000}')
    engine = Engine([compile_query(query, "q")])
    batches = [[one] for one in lines] if one_by_one else [lines]
    net: list[dict[str, list[str]]] = []
    for change in (change for batch in batches for change in engine.feed(batch).to_records()):
        if change["op"] == "insert":
            net.append(change["bindings"])
        elif change["op"] == "retract":
            net.remove(change["bindings"])
    assert sorted(net, key=in_order) == sorted(expected, key=in_order)


def in_order(bound: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(bound.items())


@pytest.mark.parametrize("values", [20, 400])
def test_runs_do_not_look_at_events_of_other_partitions(values: int) -> None:
    """What such an event leads to is remembered, although the condition reads event and register."""
    engine = Engine([compile_query(parse_query(f"PATTERN {QUERIES[0].replace('100 ms', '1 hour')}"), "q")])
    runs = [Event("k", ts, f"a{ts:03}", type="A", data={"k": ts % values, "x": ts}) for ts in range(400)]
    others = [Event("k", ts, f"b{ts:03}", type="B", data={"k": 1_000 + ts, "x": ts}) for ts in range(400, 520)]
    engine.feed([line(event) for event in [*runs, *others[:20]]])
    before = engine.stats()["condition_evaluations"]
    assert not engine.feed([line(event) for event in others[20:]])
    assert engine.stats()["condition_evaluations"] - before < 10 * 100
