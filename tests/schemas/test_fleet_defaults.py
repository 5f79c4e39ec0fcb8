"""The fleet document that the contract prints consists of defaults: the schema must name the same ones."""

from __future__ import annotations

from pathlib import Path

import yaml

from afa.contracts import contract

DOCUMENT = Path(__file__).parents[2] / "schemas/examples/fleet/contract.yaml"
PRINTED = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))
SCHEMA = contract("fleet")
# What has no default: names, addresses, and where punctuations come from.
WITHOUT_DEFAULT = {"fleet", "bootstrap", "sources", "topic", "punctuation"}


def defaults(properties: dict) -> dict:
    return {name: body["default"] for name, body in properties.items() if "default" in body}


def test_the_printed_document_is_the_defaults():
    found = defaults(SCHEMA["properties"])
    assert found.pop("start_deadline") == "60s"
    assert found.pop("headers") == "plain"
    assert found == {name: value for name, value in PRINTED.items() if name not in WITHOUT_DEFAULT}


def test_the_printed_source_is_the_defaults():
    (source,) = PRINTED["sources"]
    found = defaults(SCHEMA["$defs"]["source"]["properties"])
    assert found == {name: value for name, value in source.items() if name not in WITHOUT_DEFAULT}


def test_limits_have_the_defaults_of_the_contract():
    assert defaults(SCHEMA["$defs"]["limits"]["properties"]) == {
        "max_partial_matches_per_key": 100_000,
        "max_bytes_per_key": 67_108_864,
        "max_events_per_key": 1_000_000,
        "max_keys": 10_000_000,
        "max_program_arcs": 100_000,
    }
