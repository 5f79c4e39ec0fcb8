"""State by partition where patterns are queries."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

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
