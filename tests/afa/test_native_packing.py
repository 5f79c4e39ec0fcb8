"""Keys that came in a crowd and went: their room is given back, and nobody else notices."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest

from afa import Engine
from afa.document import build_pattern

CROWD, STAYING = 6_000, 40
PAIR: Final[dict[str, Any]] = {
    "pattern": "pair",
    "within": 100,
    "start": "a",
    "final": ["c"],
    "registers": {"n": 0},
    "arcs": [
        {"id": "begins", "from": "a", "to": "b", "when": "e.x == 1"},
        {"id": "stays", "from": "b", "to": "b", "when": "e.x != 2", "set": {"n": "r.n + 1"}},
        {"id": "ends", "from": "b", "to": "c", "when": "e.x > 1"},
    ],
}
ALONE: Final[dict[str, Any]] = {
    "pattern": "alone",
    "query": "PATTERN SEQ(ANY a, ~ANY b) WHERE skip_till_next_match(a, b) { a.x == 1 AND b.x == 2 } WITHIN 50 ms",
}

Rows = list[tuple[str, int, int]]  # key, ts, x


def batches(seed: int) -> Iterator[tuple[Rows, int]]:
    """Rows, and the punctuation after them. Twice a crowd comes, whose keys are new, and goes."""
    rnd = random.Random(seed)
    for number in range(60):
        ts = 40 * number
        staying = [f"staying-{rnd.randrange(STAYING)}" for _ in range(60)]
        crowd = [f"crowd-{number}-{place}" for place in range(CROWD)] if number in (5, 30) else []
        keys = staying + crowd
        rnd.shuffle(keys)
        yield [(key, ts + rnd.randrange(-30, 40), rnd.randrange(4)) for key in keys], ts - 30


def batch_of(rows: Sequence[tuple[str, int, int]], kind: str) -> Any:
    """Equal rows have equal ids, whoever else is there."""
    keys, times, values = zip(*rows, strict=True)
    ids = [f"{key}/{ts}/{x}" for key, ts, x in rows]
    texts = pa.array(keys)
    column = texts.dictionary_encode() if kind == "dictionary" else texts
    return pa.record_batch({"key": column, "ts": pa.array(times), "id": pa.array(ids), "x": pa.array(values)})


class Run:
    """An engine, and what it tells of the keys that stay."""

    def __init__(self, documents: Sequence[dict[str, Any]], net: Any) -> None:
        self.engine = Engine([build_pattern(document) for document in documents], net=net)
        self.told: list[dict[str, Any]] = []
        self.snapshots: dict[str, bytes | None] = {}
        self.bytes: list[int] = []
        self.stamp = 3

    def take(self, rows: Rows, punctuation: int, kind: str) -> None:
        self.stamp += 1
        self.note(self.engine.feed(batch_of(rows, kind), stamp=self.stamp))
        self.note(self.engine.punctuate(punctuation))
        self.snapshots.update(self.engine.take_dirty(0, self.stamp - 3, 1 << 30))
        self.bytes.append(self.engine.gauges()["state_bytes"])

    def restored(self, documents: Sequence[dict[str, Any]]) -> Engine:
        """From the snapshots of what was dirty, each taken when its key had been so for a while, or is still so."""
        self.snapshots.update(self.engine.take_dirty(0, self.stamp + 1, 1 << 30))
        engine = Engine([build_pattern(document) for document in documents])
        engine.restore_keys(0, [(key, snapshot, []) for key, snapshot in self.snapshots.items()])
        for place, ts in self.engine.punctuations().items():
            engine.punctuate(ts, partition=place)
        return engine

    def note(self, changes: Any) -> None:
        records = changes.to_records()
        self.told += [
            record for record in records if record["op"] != "punctuation" and record["key"].startswith("staying")
        ]


@pytest.mark.parametrize("net", ["batch", "record"])
@pytest.mark.parametrize("kind", ["dictionary", "texts"])
@pytest.mark.parametrize("documents", [[PAIR], [ALONE], [PAIR, ALONE]], ids=["folded", "candidates", "both"])
def test_those_that_stay_do_not_notice_a_crowd_that_comes_and_goes(documents: Any, kind: str, net: Any) -> None:
    crowded, calm = Run(documents, net), Run(documents, net)
    for rows, punctuation in batches(len(documents)):
        crowded.take(rows, punctuation, kind)
        calm.take([row for row in rows if row[0].startswith("staying")], punctuation, kind)
    assert crowded.told == calm.told != []
    names, of_both = calm.engine.keys(), crowded.engine.keys()
    restored = crowded.restored(documents)
    assert [name for name in of_both if name.startswith("staying")] == names != []
    for name in names:
        assert crowded.engine.state_hash(name) == restored.state_hash(name) == calm.engine.state_hash(name)


def test_the_room_of_keys_that_went_is_given_back() -> None:
    run = Run([PAIR], "batch")
    for rows, punctuation in batches(1):
        run.take(rows, punctuation, "texts")
    most = max(run.bytes)
    assert run.bytes[4] < most / 20
    assert run.bytes[29] < most / 10
    assert run.bytes[-1] < most / 10


def test_a_key_is_not_taken_for_one_that_had_its_number() -> None:
    """A dictionary of keys stays the same for many batches, and its texts are looked up once."""
    engine = Engine([build_pattern(PAIR)])
    names = pa.array([f"k{number}" for number in range(4_000)])
    told: list[dict[str, Any]] = []

    def feed(numbers: Sequence[int], ts: int, x: int) -> None:
        keys = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)
        columns = {"key": keys, "ts": pa.array([ts] * len(numbers)), "x": pa.array([x] * len(numbers))}
        told.extend(engine.feed(pa.record_batch(columns)).to_records())

    feed(range(4_000), 0, 0)
    for ts in range(200, 6_000, 200):  # they go, a few at a time
        feed([3_999], ts, 0)
        engine.punctuate(ts)
    for number in range(3_990, 4_000):
        feed([number], 10_000, 1)
    feed(range(100), 10_001, 2)
    assert not told
    feed(range(3_990, 4_000), 10_002, 2)
    assert [record["key"] for record in told] == [f"k{number}" for number in range(3_990, 4_000)]
