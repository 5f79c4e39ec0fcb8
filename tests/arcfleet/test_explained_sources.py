"""`arcfleet explain --fleet FILE`: where the parts of an event come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.commands import together

SOURCES = [
    {"topic": "clicks", "punctuation": {"slack": "500ms", "idle": "60s"}},
    {
        "topic": "orders",
        "codec": "msgpack",
        "start": "latest",
        "time": "header:ce_time",
        "unit": "iso8601",
        "type": "header:ce_type",
        "key": "order.customer",
        "id": "record",
        "seq": "order.number",
        "data": ".",
        "punctuation": {"in_band": False},
    },
    {"topic": "sensors", "time": "record", "unit": "s", "id": "header:id", "tombstone": "retract"},
]
PATTERN = {"pattern": "p", "start": "a", "final": ["b"], "arcs": [{"id": "x", "from": "a", "to": "b"}]}


def written(folder: Path, **pattern: Any) -> list[Any]:
    """The arguments of `explain`."""
    fleet, file = folder / "fleet.yaml", folder / "p.yaml"
    fleet.write_text(yaml.safe_dump({"fleet": "shop", "unit": "us", "sources": SOURCES}))
    file.write_text(json.dumps(PATTERN | pattern))
    return ["explain", file, "--fleet", fleet]


def test_each_part_of_each_source_is_told(tmp_path, validate):
    arguments = written(tmp_path)
    words, facts, bare = together([arguments, [*arguments, "--json"], [*arguments[:2], "--json"]])
    assert (words.code, words.err, facts.code, facts.err) == (0, "", 0, "")
    (told,) = facts.records
    validate("explain", told)
    assert told["fleet"] == "shop"
    clicks, orders, sensors = told["sources"]
    assert clicks["time"] == "ts of the value, without one it is bad"
    assert (clicks["unit"], clicks["key"]) == ("ms, as us of the fleet", "the record's key, without one it is bad")
    assert clicks["id"] == "id of the value, else the record's position"
    assert clicks["seq"] == "seq of the value, else none"
    assert (clicks["rev"], clicks["op"]) == ("rev of the value, else 0", "op of the value, else insert")
    assert clicks["punctuation"] == [
        "among the records",
        "500ms behind the largest time",
        "by the clock, after 60s without a record",
        "not by a time that is more than 1h ahead of the clock",
    ]
    assert (orders["codec"], orders["start"]) == ("msgpack", "behind the latest record")
    assert orders["time"] == "the header ce_time, without one it is bad"
    assert orders["unit"] == "iso8601, as us of the fleet"
    assert orders["type"] == "the header ce_type, without one it has no type"
    assert orders["key"] == "order.customer of the value, without one it is bad"
    assert (orders["id"], orders["data"]) == ("the record's position", "the value itself")
    assert orders["punctuation"] == ["none: nothing is ever final"]
    assert (sensors["time"], sensors["unit"]) == ("the record's timestamp", "ms, as us of the fleet")
    assert sensors["tombstone"] == "takes back the event of its key, time and id"
    for source in told["sources"]:
        for said in [*source["punctuation"], *(text for part, text in source.items() if part != "punctuation")]:
            assert said in words.out
    validate("explain", bare.records[0])
    assert "sources" not in bare.records[0]


def test_a_time_that_a_broker_may_stamp_is_noted(tmp_path):
    (told,) = together([[*written(tmp_path), "--json"]])
    (note,) = (note for note in told.records[0]["notes"] if "LogAppendTime" in note)
    assert note.startswith("the source sensors:")


def test_only_what_the_pattern_sees_is_told(tmp_path):
    (told,) = together([[*written(tmp_path, sources=["orders"]), "--json"]])
    assert [source["topic"] for source in told.records[0]["sources"]] == ["orders"]


def test_durations_are_those_of_the_fleet(tmp_path):
    (told,) = together([[*written(tmp_path, within="2s"), "--json"]])
    assert told.records[0]["window"] == "an event is consumed only if its ts < start + 2000000"


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ({"sources": ["order"]}, "names the source `order`, which the fleet does not have"),
        ({"key": "customer"}, "is keyed by `customer`, but the source orders by `order.customer`"),
    ],
)
def test_what_the_fleet_cannot_run_is_refused(tmp_path, pattern, what):
    (told,) = together([written(tmp_path, **pattern)])
    assert (told.code, told.out) == (1, "")
    assert what in told.err
