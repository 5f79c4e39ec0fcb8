"""Several linear patterns at once: the native engine looks at what they share once for all of them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lawful import MOST_CHANGES, assert_lawful
from support.long_tapes import encoded, record_batch

from afa import Engine
from afa.document import build_pattern

FENCES = ("e.x > 0", "e.x < 2", "e.x == 1", "e.x > 0 and e.x < 3", "e.x >= 0")  # an event takes several of them
MOST_EVENTS = 200  # bits are looked at by 64


def words(rng: Random, alphabet: int, count: int) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = []
    for number in range(count):
        length = rng.choice([1, 2, 3, 3, 3, 5])
        lives = [{"valid": sorted(rng.sample(range(300), 2))} if rng.random() < 0.02 else {} for _ in range(length)]
        arcs = [
            {"id": f"s{step}", "from": f"q{step}", "to": f"q{step + 1}", "when": rng.choice(FENCES[:alphabet])} | life
            for step, life in enumerate(lives)
        ]
        within = rng.choice([1, 2, 4, 9, 500])
        frame = {"pattern": f"w{number}", "within": within, "start": "q0", "final": [f"q{length}"]}
        documents.append(frame | {"arcs": arcs})
    return documents


def tape(rng: Random, length: int, keys: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    ts = 0
    for number in range(length):
        ts += rng.choice([1, 1, 1, 2, 0, 5]) if keys > 1 else rng.choice([1, 1, 1, 3])
        late = rng.choice([0] * 60 + [2, 7])
        data = {"x": rng.randrange(-1, 4)}
        records.append({"key": f"k{rng.randrange(keys)}", "ts": ts - late, "id": f"e{number}", "data": data})
        if rng.random() < 0.02:
            records.append({"op": "punctuation", "ts": ts - 10})
        if rng.random() < 0.01:
            arc = {"id": "s0", "from": "q0", "to": "q1", "when": rng.choice(FENCES), "valid": [ts, None]}
            records.append({"op": "arc", "pattern": "w0", "arc": arc})
    return records


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, len(FENCES)), st.integers(1, 2))
def test_several_words_are_found_as_the_reference_finds_them(seed: int, count: int, alphabet: int, keys: int) -> None:
    rng = Random(seed)
    patterns = [build_pattern(document) for document in words(rng, alphabet, count)]
    records = tape(rng, rng.choice([70, MOST_EVENTS]), keys)
    told = assert_lawful(patterns, encoded(records), every=20)
    records = records[: len(told)]
    one_by_one = [change for part in told for change in part.to_records()]
    assert Engine(patterns).feed(encoded(records)).to_records() == one_by_one
    plain = [record for record in records if record.get("op") != "arc"]
    if len(plain) == len(records):
        assert Engine(patterns).feed(record_batch(rng, plain)).to_records() == one_by_one


@pytest.mark.parametrize("count", [1, 2, 300])
def test_each_word_is_found_as_if_it_were_alone(count: int) -> None:
    rng = Random(count)
    patterns = [build_pattern(document) for document in words(rng, 3, count)]
    values = encoded([record for record in tape(rng, MOST_EVENTS, 1) if "op" not in record])
    together = Engine(patterns).feed(values).to_records()
    assert len(together) > 0
    assert count < 300 or len(together) > MOST_CHANGES
    for pattern in patterns[:20]:
        alone = Engine([pattern]).feed(values).to_records()
        assert [change for change in together if change["pattern"] == pattern.name] == alone


@pytest.mark.parametrize("seed", range(4))
def test_rare_steps_are_found_as_if_each_word_were_alone(seed: int) -> None:
    """Most of 400 values are not among 64 events; some steps are common, and many words have those."""
    rng = Random(seed)
    steps = [[rng.choice([rng.randrange(400), rng.randrange(400), None]) for _ in range(3)] for _ in range(150)]
    documents: list[dict[str, Any]] = []
    for number, values in enumerate(steps):
        fences = ["e.x >= 0" if value is None else f"e.x == {value}" for value in values[: rng.choice([1, 2, 3, 3])]]
        arcs = [
            {"id": f"s{step}", "from": f"q{step}", "to": f"q{step + 1}", "when": fence}
            for step, fence in enumerate(fences)
        ]
        frame = {"pattern": f"w{number}", "within": 9, "start": "q0", "final": [f"q{len(fences)}"]}
        documents.append(frame | {"arcs": arcs})
    patterns = [build_pattern(document) for document in documents if len(document["arcs"]) > 1]
    chosen = [value for _ in range(300) for value in rng.choice(steps)]
    stream = [rng.randrange(400) if value is None else value for value in chosen]
    values = encoded([{"key": "k", "ts": ts, "data": {"x": x}} for ts, x in enumerate(stream)])
    together = Engine(patterns).feed(values).to_records()
    found = {pattern.name: [change for change in together if change["pattern"] == pattern.name] for pattern in patterns}
    assert sum(map(bool, found.values())) > 80
    for pattern in patterns[::3]:
        assert Engine([pattern]).feed(values).to_records() == found[pattern.name]


def test_changes_know_their_partition() -> None:
    steps = [{"id": "s", "from": "a", "to": "b", "when": "e.x > 0"}]
    pattern = build_pattern({"pattern": "p", "within": 10, "start": "a", "final": ["b"], "arcs": steps})
    records = [{"key": f"k{number}", "ts": 1, "data": {"x": 1}} for number in (7, 3, 7)]
    records += [{"op": "punctuation", "ts": 5}, {"op": "punctuation", "ts": 6}]
    origins = [("t", number) for number in (7, 3, 7, 3, 7)]
    engine = Engine([pattern])
    changes = engine.feed(encoded(records), partitions=origins)
    keys = [key for key, _, _ in changes.encoded()]
    assert keys == [b"k7", b"k3", b"k7", None, None]
    assert changes.partitions == [7, 3, 7, 3, 7]
    assert engine.feed([]).partitions == []
    alone = Engine([pattern], engine="reference").feed(encoded(records[:1]))
    assert alone.partitions == [0]
