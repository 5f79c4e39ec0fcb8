"""Every schema is one, every example under schemas/examples meets its schema, every bad one does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from afa.contracts import contract

SCHEMAS = Path(__file__).parents[2] / "schemas"
EXAMPLES = SCHEMAS / "examples"
NAMES = sorted(file.name.removesuffix(".schema.json") for file in SCHEMAS.glob("*.schema.json"))


def values(file: Path) -> list[object]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".yaml":
        return list(yaml.safe_load_all(text)) or [None]
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]


def cases(glob: str) -> list:
    return [
        pytest.param(name, value, id=f"{file.relative_to(EXAMPLES)}:{number}")
        for name in NAMES
        for file in sorted((EXAMPLES / name).glob(glob))
        for number, value in enumerate(values(file), 1)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_schema(name):
    schema = contract(f"{name}.schema")
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == f"arcfleet:{name}"


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_has_good_and_bad_examples(name):
    assert list((EXAMPLES / name).glob("*.*"))
    assert list((EXAMPLES / name).glob("bad/*.*"))


def test_no_example_is_left_out():
    seen = {EXAMPLES / case.id.rsplit(":", 1)[0] for case in cases("*.*") + cases("bad/*.*")}
    assert seen == {file for file in EXAMPLES.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("name", "value"), cases("*.*"))
def test_a_good_example_is_valid(validate, name, value):
    validate(name, value)
    assert Draft202012Validator(contract(f"{name}.schema")).is_valid(value)


@pytest.mark.parametrize(("name", "value"), cases("bad/*.*"))
def test_a_bad_example_is_not(name, value):
    assert not Draft202012Validator(contract(f"{name}.schema")).is_valid(value)


def undescribed(schema: object, path: str = "") -> list[str]:
    """The properties of a document's schema that an editor could show nothing about."""
    if isinstance(schema, list):
        return [missing for item in schema for missing in undescribed(item, path)]
    if not isinstance(schema, dict):
        return []
    silent = [
        f"{path}/{name}"
        for name, body in schema.get("properties", {}).items()
        if isinstance(body, dict) and not {"description", "$ref", "const", "enum"} & set(body)
    ]
    return silent + [missing for name, body in schema.items() for missing in undescribed(body, f"{path}/{name}")]


@pytest.mark.parametrize("name", ["pattern", "fleet"])
def test_editors_have_something_to_show(name):
    schema = contract(name)
    allowed = {"final", "arcs", "registers", "first", "last"}  # conditions on fields that are described above
    assert [path for path in undescribed(schema) if path.rsplit("/", 1)[1] not in allowed] == []


def test_definitions_of_one_name_are_equal():
    """The schemas are self-contained for editors; what they share must not drift apart."""
    seen: dict[str, object] = {}
    for name in NAMES:
        for key, body in contract(f"{name}.schema").get("$defs", {}).items():
            assert seen.setdefault(key, body) == body, f"{name}: {key}"


def test_a_contract_that_is_not_there():
    with pytest.raises(LookupError, match="no contract named 'patern'"):
        contract("patern")
