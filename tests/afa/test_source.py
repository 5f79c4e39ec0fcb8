"""Sources: what is read, what is refused and where, and that the schema says the same."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import jsonschema
import msgpack
import pytest
import yaml

from afa import source as module
from afa.contracts import contract
from afa.durations import FLEET_UNITS
from afa.reading import Fault
from afa.source import PARTS, Source, SourcePunctuation, pack_source, read_source

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples" / "fleet"
SCHEMA = contract("fleet")
BODY = SCHEMA["$defs"]["source"]["properties"]


def schema_accepts(value: Any) -> bool:
    return jsonschema.Draft202012Validator({"$ref": "#/$defs/source", "$defs": SCHEMA["$defs"]}).is_valid(value)


def accepts(value: Any) -> bool:
    try:
        read_source(value)
    except Fault:
        return False
    return True


def sources() -> list[Any]:
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(EXAMPLES.glob("*.yaml"))]
    documents += [json.loads(file.read_text(encoding="utf-8")) for file in sorted((EXAMPLES / "bad").glob("*.json"))]
    return [source for document in documents for source in document.get("sources", [])]


VALUES = [
    None, 1, True, "", ".", "..", "a", "a.b", "a..b", ".a", "a.", "a:b", "header:", "header:x", "header:a.b", "record",
    "json", "msgpack", "avro", "earliest", "2025-01-31", "2025-01-31T00:00Z", "2025-1-31", "s", "ns", "iso8601", "h",
    "bad", "a\nb", "x" * 249, "x" * 250, {}, [], {"slack": "5s"}, {"slack": "5"}, {"slack": 5}, {"in_band": True},
    {"in_band": 1}, {"idle": "1.5 h", "max_ahead": "0ns"}, {"other": 1},
]  # fmt: skip


@pytest.mark.parametrize("value", sources(), ids=json.dumps)
def test_the_examples_of_the_schema_are_read_alike(value):
    assert accepts(value) == schema_accepts(value)


@pytest.mark.parametrize("name", [*BODY, "unknown"])
def test_every_field_takes_what_the_schema_takes(name):
    for value in VALUES:
        document = {"topic": "t"} | {name: value}
        assert accepts(document) == schema_accepts(document), value


def test_a_source_is_a_mapping_with_a_topic():
    for value in (None, [], "t", {}):
        assert not accepts(value)
    assert read_source({}, topic="t") == Source("t")
    assert read_source({"topic": "u"}, topic="t") == Source("u")


def test_fields_and_defaults_are_those_of_the_schema():
    assert [field.name for field in fields(Source)] == list(BODY)
    defaults = {name: body["default"] for name, body in BODY.items() if "default" in body}
    assert asdict(read_source({"topic": "t"})) == {"topic": "t", "punctuation": asdict(SourcePunctuation())} | defaults
    assert [field.name for field in fields(SourcePunctuation)] == list(BODY["punctuation"]["properties"])
    assert tuple(SCHEMA["properties"]["unit"]["enum"]) == FLEET_UNITS
    assert tuple(tuple(BODY[name]["enum"]) for name in ("codec", "unit", "tombstone")) == (
        module.CODECS,
        module.UNITS,
        module.TOMBSTONES,
    )


@pytest.mark.parametrize("name", ["time", "id", "key"])
def test_a_tombstone_has_no_value_to_read_from(name):
    outside = {"time": "header:t", "id": "header:i", "key": "record"}
    assert accepts({"topic": "t", "tombstone": "retract"} | outside)
    assert accepts({"topic": "t", "tombstone": "retract"} | outside | {name: "record"})
    with pytest.raises(Fault) as caught:
        read_source({"topic": "t", "tombstone": "retract"} | outside | {name: "payload.x"}, ("sources", 0))
    assert caught.value.path == ("sources", 0, name)


def test_a_fault_says_where_and_how_to_repair_it():
    with pytest.raises(Fault) as caught:
        read_source({"topic": "t", "tim": "ts"}, ("sources", 1))
    assert (caught.value.path, caught.value.fix) == (("sources", 1, "tim"), "did you mean `time`?")
    with pytest.raises(Fault) as caught:
        read_source({"topic": "t", "type": "a..b"})
    assert "header:NAME" in caught.value.fix
    assert '"record"' not in caught.value.fix


def test_the_packed_form():
    tape = [["ts"], ["type"], ["key"], ["id"], ["seq"], ["rev"], ["op"], ["data"]]
    assert msgpack.unpackb(pack_source(None)) == [1, "json", *tape, "ms", "ms", False]
    assert msgpack.unpackb(pack_source(None, "ns", "msgpack")) == [1, "msgpack", *tape, "ns", "ns", False]
    source = read_source(
        {"topic": "t", "time": "record", "type": "record", "id": "header:ce.id", "seq": "a.b", "data": ".", "unit": "s"}
    )
    places = [None, ["record"], None, "ce.id", ["a", "b"], ["rev"], ["op"]]
    assert msgpack.unpackb(pack_source(source, "us")) == [1, "json", *places, [], "s", "us", False]
    assert list(PARTS) == ["time", "type", "key", "id", "seq", "rev", "op"]
