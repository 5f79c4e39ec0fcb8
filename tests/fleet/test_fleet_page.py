"""What docs/fleet.md shows is run against a real Kafka, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support.pages import FENCE, follow

from afa.contracts import contract
from arcfleet.fleet.clients import consumer_settings, producer_settings, reader_settings
from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.kafka_settings import RULES, SECRETS

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
TEXT = PAGE.read_text(encoding="utf-8")
SCHEMA = contract("fleet")


def rows(text):
    """The first two columns of the page's tables of fields."""
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE))


@pytest.mark.timeout(300)  # seven processes, one after the other
def test_what_the_page_shows_is_what_happens(kafka, tmp_path):
    """With names that nobody else uses on that Kafka."""
    page = tmp_path / "fleet.md"
    page.write_text(re.sub(r"\b(shop|clicks|orders)\b", kafka.unique(r"\1"), TEXT), encoding="utf-8")
    assert follow(page, tmp_path, {"ARCFLEET_BOOTSTRAP": kafka.bootstrap})


def test_every_field_stands_there_with_its_default():
    fleet, _, source = TEXT.partition("| field of a source |")
    for text, body in ((fleet, SCHEMA), (source, SCHEMA["$defs"]["source"])):
        shown = rows(text)
        for name, field in body["properties"].items():
            default = field.get("default")
            if name in body["required"]:
                assert shown[name] == "needed"
            elif isinstance(default, str):
                assert shown[name] == f"`{default}`"
            assert name in shown


def test_the_settings_that_are_set_are_shown():
    local = load_fleet(None, {"bootstrap": "127.0.0.1:1"})
    roles = [consumer_settings(local), reader_settings(local), producer_settings(local, transactional_id="x")]
    settable = {name: value for role in roles for name, value in role.items() if name in RULES}
    expected = {name: str(value).lower() for name, value in settable.items() if not RULES[name].refusal}
    shown = dict(re.findall(r"`([a-z.]+)=([^`]+)`", TEXT.partition("| of | settings |")[2].partition("\n\n")[0]))
    assert shown == expected | {"client.id": "arcfleet-<fleet>"}


def test_every_secret_is_named():
    assert {name for name in SECRETS if f"`{name}`" in TEXT} == SECRETS


def test_what_the_page_says_of_security_is_accepted(tmp_path):
    documents = [yaml.safe_load(found["body"]) for found in FENCE.finditer(TEXT) if found["info"] == "yaml"]
    assert len(documents) == 3
    for number, document in enumerate(documents):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(document | {"fleet": "f", "sources": [{"topic": "t"}]}), encoding="utf-8")
        assert load_fleet(file).kafka == document["kafka"]
