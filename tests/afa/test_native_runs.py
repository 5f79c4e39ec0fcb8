"""Raw records that look alike are read in runs: what they lead to is the same as one by one, and by the reference."""

from __future__ import annotations

import random

import pytest

from afa import Engine
from afa.document import build_pattern

PATTERN = build_pattern(
    {
        "pattern": "p",
        "start": "a",
        "final": ["c"],
        "within": 6,
        "registers": {"n": 0},
        "arcs": [
            {"id": "x", "from": "a", "to": "b", "when": "e.change < 0"},
            {"id": "y", "from": "b", "to": "b", "when": "e.name == 'flat'", "set": {"n": "r.n + 1"}},
            {"id": "z", "from": "b", "to": "c", "when": "e.change > 0 and e.name != 'flat' and r.n < 3"},
        ],
    }
)


def line(chance: random.Random, ts: int, key: str = "YHOO") -> bytes:
    change = chance.choice(["-0.80", "0.950", "-1.00", "7.125"])
    name = chance.choice(["flat", "up  ", "down"])
    return f'{{"key":"{key}","ts":{ts},"data":{{"change":{change},"name":"{name}","price":49999.20}}}}'.encode()


def odd(chance: random.Random, ts: int) -> bytes:
    """Mostly as long as a line, and nearly one."""
    good = line(chance, ts)
    return chance.choice(
        [
            line(chance, ts, "MSFT"),
            line(chance, ts, "A"),
            b'{"op":"punctuation","ts":%d}' % (ts - 3),
            good.replace(b"0.", b"00"),
            good.replace(b"flat", b"fl\\t"),
            good.replace(b"flat", b"\xc3\xa9\xc3\xa9"),
            good.replace(b"flat", b"fl\xc3t"),
            good.replace(b"49999.20", b"4999e-20"),
            good.replace(b"49999.20", b"49999.2x"),
            good.replace(b"49999.20", b"49999.2"),
            good.replace(b'"price"', b'"type"'),
            good.replace(b'"price":49999.20', b'"id":"e%06d"' % (ts % 7)),
            good.replace(b',"data":', b',"type":"t","data":'),
            good.replace(b',"data":', b',"seq":5,"rev":1,"data":'),
            good.replace(b',"data":', b',"op":"insert","data":'),
            good.replace(b'"change"', b'"chance"'),
            good.replace(b"}}", b"}"),
            good.replace(b"}}", b"}}}"),
            good.replace(b'"name"', b'"change"'),
            good.replace(b"%d" % ts, b"%d" % (ts - 2)),
            good.replace(b"%d" % ts, b"1.5e003"),
            good.replace(b"%d" % ts, b"-%d" % (ts % 1_000_000)),
        ]
    )


def stream(seed: int, length: int, odd_ones: float) -> list[bytes]:
    chance = random.Random(seed)
    make = [odd if chance.random() < odd_ones else line for _ in range(length)]
    return [one(chance, 1_000_000 + ts) for ts, one in enumerate(make)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("odd_ones", [0.02, 0.3])
def test_runs_lead_to_what_single_records_lead_to(seed: int, odd_ones: float) -> None:
    records = stream(seed, 250, odd_ones)
    together, reference, single = Engine([PATTERN]), Engine([PATTERN], "reference"), Engine([PATTERN])
    told, expected = together.feed(records), reference.feed(records)
    assert told.to_records() == expected.to_records()
    assert [index for index, _ in told.bad] == [index for index, _ in expected.bad]
    assert told.late == expected.late
    for record in records:
        single.feed([record])
    keys = together.keys()
    assert keys == single.keys()
    for key in keys:
        assert together.snapshot(key) == single.snapshot(key)


def test_runs_go_on_where_chunks_end() -> None:
    records = stream(7, 9_000, 0.0005)
    records.insert(5_000, b'{"op":"punctuation","ts":1004990}')
    whole, parts = Engine([PATTERN]), Engine([PATTERN])
    told = whole.feed(records)
    split = [parts.feed(records[at : at + 97]) for at in range(0, len(records), 97)]
    assert len(told.to_records()) > 1_000
    assert told.to_records() == [change for part in split for change in part.to_records()]
    assert whole.snapshot("YHOO") == parts.snapshot("YHOO")


def test_records_without_a_value_end_a_run() -> None:
    chance = random.Random(1)
    records: list[bytes | None] = [line(chance, 1_000_000 + ts) for ts in range(10)]
    records[5] = None
    told = Engine([PATTERN]).feed(records)
    assert [index for index, _ in told.bad] == [5]


def test_fields_that_are_wanted_later_are_read_from_records_of_a_run() -> None:
    engine, reference = Engine([PATTERN]), Engine([PATTERN], "reference")
    records = stream(3, 50, 0)
    arc = (
        b'{"op":"arc","pattern":"p","arc":{"id":"w","from":"b","to":"c","when":"e.price > 1 and e.name == \'down\'"},'
        b'"valid":[1000000,null]}'
    )
    engine.feed(records)
    reference.feed(records)
    told = engine.feed([arc]).to_records()
    assert told
    assert told == reference.feed([arc]).to_records()
