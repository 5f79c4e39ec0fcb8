"""State by partition where patterns are queries."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa import Engine
from afa.query import parse_query
from afa.query.compiler import compile_query
from tests.query.test_native_queries import pattern_of, records_of
from tests.support.state_topic import StateTopic

SEEDS = st.integers(0, 2**32)


def queries(seed: int) -> StateTopic:
    rng = Random(seed)
    patterns = [pattern_of(seed + number, f"q{number}") for number in range(rng.choice([1, 2]))]
    tapes = [records_of(rng.randrange(2**32), rng.choice([3, 8, 14])) for _ in range(rng.choice([2, 3]))]
    for number, tape in enumerate(tapes):
        for record in tape:
            if "key" in record:
                record["key"] = f"{record['key']}{number}"
    return StateTopic(seed, patterns, tapes, rng.choice(["record", "batch"]))


@settings(max_examples=60)
@given(seed=SEEDS)
def test_queries_go_on_where_they_were(seed: int) -> None:
    queries(seed).run([])


WAITING = {
    "a sequence": "SEQ(A a, B b) WHERE skip_till_next_match(a, b) { b.x > a.x }",
    "any match": "SEQ(A a, B b) WHERE skip_till_any_match(a, b) { b.x > a.x }",
    "a Kleene component": "SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [x] }",
    "a leading negation": "SEQ(~C n, A a, B b) WHERE skip_till_next_match(n, a, b) { b.x > a.x }",
    "a trailing negation": "SEQ(A a, B b, ~C n) WHERE skip_till_next_match(a, b, n) { b.x > a.x }",
}


@pytest.mark.parametrize("text", WAITING.values(), ids=WAITING.keys())
def test_keys_that_fall_silent_are_let_go(text: str) -> None:
    """Their partial matches are over once the window has closed, though no event comes that would say so."""
    engine = Engine([compile_query(parse_query(f"PATTERN {text} WITHIN 10 seconds"), "q")], net="batch")
    most = 0
    for second in range(100):
        events = [
            {"key": f"k{second}", "ts": 1000 * second + number, "type": "A", "data": {"x": 1}} for number in range(3)
        ]
        punctuation = {"op": "punctuation", "ts": 1000 * second}
        engine.feed([json.dumps(record).encode() for record in [*events, punctuation]])
        most = max(most, engine.gauges()["keys"])
    assert most < 25
    engine.punctuate(10**6)
    assert engine.keys() == []
    assert engine.gauges()["events"] == 0
