"""Keeps the record types of afa/records.py equal to the schemas: names, what is required, types, operations."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from afa.contracts import contract
from afa.document import load_patterns
from afa.reading import Fault
from afa.records import (
    OPERATIONS,
    ArcChange,
    ArcPunctuation,
    ArcRetraction,
    EmittedPunctuation,
    Event,
    Match,
    MatchChange,
    Punctuation,
    match_id,
    read_record,
)
from afa.reference import ReferenceEngine

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
RECORDS = [
    (Event, "event", None),
    (Punctuation, "punctuation", None),
    (ArcChange, "arc", "arc_change"),
    (ArcChange, "arc", "lifetime_change"),
    (ArcRetraction, "arc", "arc_retract"),
    (ArcPunctuation, "arc", "arc_punctuation"),
    (EmittedPunctuation, "match-punctuation", None),
]
JSON_TYPES = {str: {"string"}, int: {"integer"}, float: {"number"}, bool: {"boolean"}, type(None): {"null"}}


def json_types(annotation: Any) -> set[str]:
    """The JSON types that a field of this annotation can hold."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return set().union(*map(json_types, get_args(annotation)))
    if origin is Literal:
        return {"string"}
    if origin is list:
        return {"array"}
    return {"object"} if origin is Mapping else JSON_TYPES[annotation]


def schema_types(body: dict, root: dict) -> set[str]:
    """The JSON types that a schema lets through."""
    if "$ref" in body:
        return schema_types(root["$defs"][body["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in body:
        return set().union(*(schema_types(choice, root) for choice in body["anyOf"]))
    if "enum" in body or "const" in body:
        return {"string"}
    return {body["type"]} if isinstance(body["type"], str) else set(body["type"])


@pytest.mark.parametrize(("record", "name", "definition"), RECORDS)
def test_a_record_type_is_its_schema(record, name, definition):
    root = contract(f"{name}.schema")
    schema = root["$defs"][definition] if definition else root
    hints = get_type_hints(record)
    properties = {key: body for key, body in schema["properties"].items() if key != "op" or key in hints}
    assert set(hints) == set(properties)
    for key, body in properties.items():
        assert json_types(hints[key]) - {"null"} == schema_types(body, root), key


@pytest.mark.parametrize(("record", "name", "definition"), RECORDS)
def test_what_a_record_type_needs_is_required(record, name, definition):
    root = contract(f"{name}.schema")
    schema = root["$defs"][definition] if definition else root
    needed = {field.name for field in fields(record) if field.default is MISSING}
    # An event without id gets its position; a change without body needs a lifetime.
    differs = {"id"} if record is Event else {"valid"} if definition == "lifetime_change" else set()
    assert needed - differs == set(schema["required"]) - {"op"} - differs


def test_defaults_are_equal():
    properties = contract("event")["properties"]
    in_type = {field.name: field.default for field in fields(Event)}
    assert (in_type["op"], in_type["rev"]) == (properties["op"]["default"], properties["rev"]["default"])
    assert properties["seq"]["default"] == 0  # the type keeps None apart, for AFA+O
    assert Event("k", 1, "e").order == (1, 0, b"e")


def test_the_operations_are_those_of_the_schemas():
    event, arc = contract("event")["properties"]["op"]["enum"], contract("arc")["properties"]["op"]["enum"]
    assert set(OPERATIONS) == {*event, contract("punctuation")["properties"]["op"]["const"], *arc}
    assert set(OPERATIONS) == set(contract("pattern")["$defs"]["tape_record"]["properties"]["op"]["enum"])


def a_match(until: int | None = 3000) -> Match:
    return Match("q1", "YHOO", 1000, 1900, until, "q3", (("r1", 0), ("r2", 2)), "e1", "e9")


@pytest.mark.parametrize("until", [3000, None])
@pytest.mark.parametrize("op", ["insert", "retract"])
def test_a_match_change_meets_its_schema(validate, op, until):
    match = a_match(until)
    validate("match", MatchChange(op, match, match.id).as_json())


def test_a_match_prints_as_the_contract_shows_it():
    line = (EXAMPLES / "match/contract.jsonl").read_text(encoding="utf-8").splitlines()[0]
    match = a_match()
    assert json.dumps(MatchChange("insert", match, match.id).as_json(), separators=(",", ":")) == line


def test_an_emitted_punctuation_prints_as_the_contract_shows_it():
    line = (EXAMPLES / "match-punctuation/contract.jsonl").read_text(encoding="utf-8").strip()
    assert json.dumps(EmittedPunctuation("q1", 5000).as_json(), separators=(",", ":")) == line


def test_an_automaton_match_has_all_the_fields_that_are_required():
    schema, hints = contract("match"), get_type_hints(Match)
    assert set(a_match().as_json("insert", "")) == {*schema["required"], "state"}
    for key in ("pattern", "key", "start", "end", "until", "state"):
        assert json_types(hints[key]) == schema_types(schema["properties"][key], schema), key


@pytest.mark.parametrize("vector", contract("match-ids")["vectors"], ids=lambda vector: vector["name"])
def test_the_product_computes_the_vectors(vector):
    assert match_id(vector["list"]) == vector["match"]


@pytest.fixture
def engine() -> ReferenceEngine:
    return ReferenceEngine(load_patterns(EXAMPLES / "pattern/contract-automaton.yaml"))


@pytest.mark.parametrize("name", ["event", "punctuation", "arc"])
def test_the_contract_s_records_are_read(engine, name):
    for line in (EXAMPLES / name / "contract.jsonl").read_text(encoding="utf-8").splitlines():
        engine.feed(read_record(json.loads(line), "000000000001"))


@pytest.mark.parametrize("name", ["event", "punctuation"])
def test_other_good_records_are_read(engine, name):
    for line in (EXAMPLES / name / "more.jsonl").read_text(encoding="utf-8").splitlines():
        engine.feed(read_record(json.loads(line), "000000000001"))


BAD = [file for name in ("event", "punctuation", "arc") for file in sorted((EXAMPLES / name / "bad").glob("*.json"))]


@pytest.mark.parametrize("file", BAD, ids=lambda file: f"{file.parts[-3]}/{file.stem}")
def test_bad_records_are_refused(engine, file):
    with pytest.raises(Fault):
        engine.feed(read_record(json.loads(file.read_text(encoding="utf-8")), "000000000001"))
