"""Graphs of the native engine, which it makes without the matches that they stand for, against the reference."""

from __future__ import annotations

import json
import math
import random
import time
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from afa import Engine
from afa.document import parse_patterns
from afa.pattern import Pattern
from arcfleet.expansion import expand, number_of_matches
from tests.query.test_native_queries import lines, pattern_of, records_of

SEEDS = st.integers(0, 2**32)
Told = dict[str, Any]


def compressed(seed: int, name: str = "q") -> Pattern:
    """A query whose matches are told as graphs: mostly all of them, and often as soon as they are there."""
    pick, pattern = random.Random(seed), pattern_of(seed, name)
    assert pattern.query is not None
    pattern = replace(pattern, query=replace(pattern.query, compressed=True))
    if pick.random() < 0.8:
        pattern = replace(pattern, output="all")
    if pick.random() < 0.5:
        pattern = replace(pattern, hold_output=False, speculation=math.inf, gap_free=False)
    return pattern


@settings(max_examples=300)
@given(seed=SEEDS, count=st.integers(1, 10))
def test_every_record(seed: int, count: int) -> None:
    patterns = [compressed(seed, "q0"), pattern_of(seed + 1, "q1")]
    native, reference = Engine(patterns), Engine(patterns, engine="reference")
    for number, line in enumerate(lines(records_of(seed, count))):
        told, expected = native.feed([line]), reference.feed([line])
        assert told.to_records() == expected.to_records(), (number, line)
        assert told.encoded() == expected.encoded()
        assert told.to_arrow(ids=True).to_pylist() == expected.to_arrow(ids=True).to_pylist()


@settings(max_examples=200)
@given(seed=SEEDS, count=st.integers(1, 10), size=st.integers(2, 9))
def test_every_batch(seed: int, count: int, size: int) -> None:
    patterns = [compressed(seed)]
    native, reference = Engine(patterns, net="batch"), Engine(patterns, engine="reference", net="batch")
    fed = lines(records_of(seed, count))
    for begin in range(0, len(fed), size):
        batch = fed[begin : begin + size]
        told, expected = native.feed(batch), reference.feed(batch)
        assert told.to_records() == expected.to_records(), (begin, batch)


def any_choice(components: str, **options: Any) -> Engine:
    query = f"PATTERN SEQ({components}) WHERE skip_till_any_match(LIST) {{ }} WITHIN 1000 ms"
    names = [part.split()[-1].rstrip("})") for part in components.split(",")]
    [(pattern, _)] = parse_patterns(
        f"pattern: any\nquery: {json.dumps(query.replace('LIST', ', '.join(names)))}\nencoding: compressed\n"
    )
    return Engine([pattern], **options)


def event(name: str, ts: int, kind: str) -> Told:
    return {"id": name, "key": "k", "ts": ts, "type": kind}


def fed(engine: Engine, *records: Told) -> list[Told]:
    return engine.feed([json.dumps(record).encode() for record in records]).to_records()


def test_a_graph_is_made_where_its_matches_could_not_be_listed() -> None:
    engine = any_choice("A+ a[], B b")
    [told] = fed(engine, *(event(f"a{ts:02}", ts, "A") for ts in range(40)), event("b", 90, "B"))
    assert number_of_matches(told) == 2**40 - 1
    assert len(told["graph"]["nodes"]) == 41
    assert "degraded" not in told
    assert engine.gauges()["degraded_keys"] == 0


def test_a_late_event_replaces_a_graph_whose_matches_could_not_be_listed() -> None:
    engine = any_choice("A+ a[], B b")
    fed(engine, *(event(f"a{ts:02}", ts, "A") for ts in range(0, 40, 2)), event("b", 90, "B"))
    [told] = fed(engine, event("a07", 7, "A"))
    assert number_of_matches(told) == 2**21 - 1
    [told] = fed(engine, {"op": "retract", "id": "a07", "key": "k", "ts": 7})
    assert number_of_matches(told) == 2**20 - 1


def test_events_of_one_time_are_listed_by_variable_whatever_their_order() -> None:
    records = [event(name, ts, "AB"[name in "xv"]) for name, ts in (("z", 5), ("x", 5), ("y", 5), ("v", 5), ("w", 6))]
    records = [record | {"seq": number} for number, record in enumerate(records)]
    for first in range(3):
        engines = any_choice("{A+ a[], B+ b[]}"), any_choice("{A+ a[], B+ b[]}", engine="reference")
        told, expected = ([fed(engine, record) for record in records[first:]] for engine in engines)
        assert told == expected
        assert any(len(expand(change)) > 1 for changes in told for change in changes)


def test_a_graph_whose_matches_return_different_values_takes_no_longer_than_they_do() -> None:
    """Every way is one of its own, and is not looked for among all."""
    query = "PATTERN SEQ(A a, A b, B c) WHERE skip_till_any_match(a, b, c) { } WITHIN 1000 ms RETURN a.x + b.x AS x"
    found, took = [], []
    for encoding in ("verbose", "compressed"):
        [(pattern, _)] = parse_patterns(f"pattern: any\nquery: {query}\nencoding: {encoding}\n")
        engine = Engine([pattern])
        fed(engine, *(event(f"a{ts:03}", ts, "A") | {"data": {"x": ts**3}} for ts in range(160)))
        before = time.process_time()
        told = fed(engine, event("b", 200, "B"))
        took.append(time.process_time() - before)
        found.append(
            {match["match"] for change in told for match in (expand(change) if "graph" in change else [change])}
        )
    assert found[0] == found[1]
    assert len(found[0]) == math.comb(160, 2)
    assert took[1] < 5 * took[0] + 0.2


def test_a_graph_beyond_the_limit_is_not_told() -> None:
    engine = any_choice("A+ a[], B b", limits={"max_partial_matches_per_key": 100})
    few = [event(f"a{ts:02}", ts, "A") for ts in range(12)]
    [told] = fed(engine, *few, event("b", 12, "B"))
    # 13 nodes, and 66 + 12 steps between them.
    assert (number_of_matches(told), told.get("degraded")) == (2**12 - 1, None)
    assert fed(engine, *(event(f"c{ts}", ts, "A") for ts in range(13, 16)), event("d", 16, "B")) == []
    assert engine.gauges()["degraded_keys"] == 1
    [told] = fed(engine, event("other", 2000, "A"), event("end", 2001, "B"))
    assert (number_of_matches(told), told["degraded"]) == (1, True)


def test_a_limit_marks_the_key_that_meets_it_and_at_once() -> None:
    [(pattern, _)] = parse_patterns(
        "pattern: any\nquery: PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { } WITHIN 1000 ms\n"
    )
    engine = Engine([pattern], limits={"max_partial_matches_per_key": 100})
    told = fed(engine, *(event(f"a{ts}", ts, "A") for ts in range(8)), event("b", 9, "B"))
    assert [change.get("degraded") for change in told] == [True] * 100
    other = [event("c", 10, "A") | {"key": "l"}, event("d", 11, "B") | {"key": "l"}]
    assert [change.get("degraded") for change in fed(engine, *other)] == [None]
    assert engine.gauges()["degraded_keys"] == engine.stats()["degraded_keys"] == 1
