"""The fleet document: what is read, what is refused and where, what goes before what."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afa.contracts import contract
from afa.engine import LIMITS as ENGINE_LIMITS
from afa.source import Source
from arcfleet.fleet.document import INTERVALS, LIMITS, MAX_FLEET_CHARACTERS, SCALARS, Fleet, load_fleet, start_time
from arcfleet.fleet.errors import FleetError, OptionError

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples" / "fleet"
GOOD = sorted(EXAMPLES.glob("*.*"))
BAD = sorted((EXAMPLES / "bad").glob("*.*"))
SCHEMA = contract("fleet")

# `¦` marks the place that is named; it is taken out before the document is written.
REFUSED = {
    "¦[]": "must be a mapping",
    "¦sources: [{topic: t}]": "needs `fleet`",
    "fleet: ¦5\nsources: [{topic: t}]": "`fleet` must be a text",
    "fleet: ¦a/b\nsources: [{topic: t}]": "is no name of a fleet",
    f"fleet: ¦{'a' * (MAX_FLEET_CHARACTERS + 1)}\nsources: [{{topic: t}}]": "is no name of a fleet",
    "fleet: f\n¦sorces: [{topic: t}]\nsources: [{topic: t}]": "no field `sorces`",
    "fleet: f\nsources: ¦{topic: t}": "`sources` must be a list",
    "fleet: f\nsources: ¦[]": "at least one source",
    "fleet: f\nsources:\n  - {topic: a}\n  - {topic: b}\n  - {topic: ¦a}": "`a` is there twice",
    "fleet: f\nsources: [{topic: ¦f.matches}]": "a topic of the fleet itself",
    "fleet: f\nsources: [{topic: t}]\nremoved: ¦t": "`removed` must be a list",
    "fleet: f\nsources: [{topic: t}]\nremoved: [a, ¦5]": "must be a text",
    "fleet: f\nsources: [{topic: t}]\nremoved: [¦a/b]": "is no name of a topic",
    "fleet: f\nsources: [{topic: t}]\nremoved: [a, ¦t]": "`t` is a source, too",
    "fleet: f\nsources: [{topic: t, punctuation: {slack: ¦500us}}]": "`500us` is not a whole number of ms",
    "fleet: f\nsources: [{topic: t, punctuation: {max_ahead: ¦999999999999999999d}}]": "outside 64 bits of ms",
    "fleet: f\nsources: [{topic: t, start: ¦2025-02-30}]": "`2025-02-30` is no time",
    "fleet: f\nsources: [{topic: t}]\nlimits: {max_keys: ¦0}": "must be at least 1",
    "fleet: f\nsources: [{topic: t}]\nlimits: {max_keys: ¦1.0}": "`max_keys` must be an integer",
    "fleet: f\nsources: [{topic: t}]\nlimits: {max_keys: ¦9223372036854775808}": "outside 64 bits",
    "fleet: f\nsources: [{topic: t}]\nlimits: {¦max_key: 1}": "no field `max_key`",
    "fleet: f\nsources: [{topic: t}]\nbootstrap: ¦''": "is no address of a broker",
    "fleet: f\nsources: [{topic: t}]\nbootstrap: ¦a:1,b:70000": "`b:70000` is no address of a broker",
    "fleet: f\nsources: [{topic: t}]\ncommit_interval: ¦5 minutes": "`5 minutes` is not a duration",
    "fleet: f\nsources: [{topic: t}]\nsnapshot_interval: ¦0.5ns": "is not a whole number of ns",
    "fleet: f\nsources: [{topic: t}]\nstart_deadline: ¦366d": "is longer than 365d",
    "fleet: f\nsources: [{topic: t}]\ncommit_interval: ¦6s": "more than half of transaction.timeout.ms (10000)",
    "fleet: f\nsources: [{topic: t}]\nkafka: ¦[]": "`kafka` must be a mapping",
    "fleet: f\nsources: [{topic: t}]\nkafka: {linger.ms: ¦[5]}": "must be a text, a number, true or false",
    "fleet: f\nsources: [{topic: t}]\nkafka: {¦group.id: g}": "the product owns it: it is the fleet's name",
    "fleet: f\nsources: [{topic: t}]\nkafka: {¦lingerms: 5}": "is no setting of Kafka's client",
    "fleet: f\nsources: [{topic: t}]\nkafka: {sasl.password: a, ¦sasl.password.file: b}": "stands here and in a file",
    "fleet: f\nsources: [{topic: t}]\n---\n¦fleet: g": "a second document",
    "¦": "an empty fleet document",
    "fleet: f\n¦fleet: g": "stands twice",
}


def written(folder: Path, text: str) -> Path:
    file = folder / "fleet.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def least(tmp_path):
    return written(tmp_path, "fleet: f\nbootstrap: file:1\nsources: [{topic: t}]\n")


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_what_the_schema_accepts_is_loaded(file):
    assert load_fleet(file).sources


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_what_the_schema_refuses_is_refused(file):
    with pytest.raises(FleetError) as caught:
        load_fleet(file)
    assert caught.value.place
    assert caught.value.fix


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED.values())
def test_a_mistake_is_named_with_its_place_and_a_fix(tmp_path, text):
    before = text.partition("¦")[0]
    file = written(tmp_path, text.replace("¦", ""))
    with pytest.raises(FleetError) as caught:
        load_fleet(file)
    assert REFUSED[text] in caught.value.what
    assert caught.value.fix
    place = (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    assert (caught.value.place.line, caught.value.place.column) == place


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(FleetError, match="cannot be read"):
        load_fleet(tmp_path / "none.yaml")


def test_the_printed_document_is_the_defaults(tmp_path):
    """The contract prints a document that writes every default out; the least one leaves all of them to the code."""
    printed = load_fleet(EXAMPLES / "contract.yaml")
    least = load_fleet(written(tmp_path, "fleet: demo\nbootstrap: 127.0.0.1:9092\nsources: [{topic: trades}]"))
    same = {field.name for field in fields(Fleet)} - {"sources", "origins"}
    assert [getattr(printed, name) for name in same] == [getattr(least, name) for name in same]
    assert (least.commit_interval_s, least.snapshot_interval_s, least.start_deadline_s) == (0.1, 10.0, 60.0)


def test_defaults_are_those_of_the_schema():
    properties = SCHEMA["properties"]
    assert {name: properties[name]["default"] for name in INTERVALS} == INTERVALS
    bodies = SCHEMA["$defs"]["limits"]["properties"]
    assert {name: body["default"] for name, body in bodies.items()} == LIMITS
    assert tuple(LIMITS) == ENGINE_LIMITS
    assert set(SCALARS) == set(properties) - {"kafka", "limits", "removed", "sources"}


def test_without_a_file_it_is_the_local_fleet():
    fleet = load_fleet(None)
    assert (fleet.name, fleet.bootstrap, fleet.sources) == ("local", "", (Source("events"),))
    assert fleet.topic("arcs.log") == "local.arcs.log"
    assert set(fleet.origins.values()) == {"default"}


def test_flags_go_before_the_environment_and_that_before_the_file(least):
    environment = {"ARCFLEET_BOOTSTRAP": "variable:1", "ARCFLEET_UNIT": "us", "ARCFLEET_CACHE": "/elsewhere"}
    fleet = load_fleet(least, {"bootstrap": "flag:1", "kafka.linger.ms": "7"}, environment)
    assert (fleet.name, fleet.bootstrap, fleet.unit, fleet.kafka) == ("f", "flag:1", "us", {"linger.ms": "7"})
    named = {name: fleet.origins[name] for name in ("fleet", "bootstrap", "unit", "kafka.linger.ms", "delivery")}
    assert named == {
        "fleet": f"{least}:1:8",
        "bootstrap": "--bootstrap",
        "unit": "ARCFLEET_UNIT",
        "kafka.linger.ms": "-X linger.ms",
        "delivery": "default",
    }
    assert load_fleet(least).bootstrap == "file:1"
    assert load_fleet(least, {}, environment).bootstrap == "variable:1"


@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_has_a_variable(least, name):
    with pytest.raises(FleetError) as caught:
        load_fleet(least, {}, {f"ARCFLEET_{name.upper()}": "not right/"})
    assert caught.value.what.startswith(f"ARCFLEET_{name.upper()}: ")
    assert not isinstance(caught.value, OptionError)


def test_a_flag_is_blamed_by_its_name(least):
    for overrides, flag in (
        ({"start_deadline": "soon"}, "--start-deadline: "),
        ({"kafka.plugin.library.paths": "x"}, "-X plugin.library.paths: "),
    ):
        with pytest.raises(OptionError) as caught:
            load_fleet(least, overrides)
        assert caught.value.what.startswith(flag)


def test_a_flag_cannot_mend_a_document_of_another_shape(tmp_path):
    for text in ("[]", "fleet: f\nkafka: 5\nsources: [{topic: t}]"):
        with pytest.raises(FleetError, match="must be a mapping"):
            load_fleet(written(tmp_path, text), {"kafka.linger.ms": "5"})


def test_brokers_are_separated_by_commas():
    assert load_fleet(None, {"bootstrap": "a:1, b,c:3"}).bootstrap == "a:1,b,c:3"


def test_where_the_values_of_a_source_came_from(least):
    origins = load_fleet(least).origins
    assert origins["sources.0.topic"] == f"{least}:3:19"
    assert origins["sources.0.punctuation.slack"] == "default"


def test_where_the_name_of_a_removed_source_came_from(tmp_path):
    found = load_fleet(written(tmp_path, "fleet: f\nsources: [{topic: t}]\nremoved: [a, b]"))
    assert found.removed == ("a", "b")
    assert found.origins["removed.1"].endswith("fleet.yaml:3:14")


def test_a_longer_transaction_allows_a_longer_commit_interval(tmp_path):
    text = "fleet: f\nsources: [{topic: t}]\ncommit_interval: 6s\n"
    assert load_fleet(written(tmp_path, text + "kafka: {transaction.timeout.ms: 12000}")).commit_interval_s == 6
    assert load_fleet(written(tmp_path, text + "delivery: at_least_once")).commit_interval_s == 6


def test_settings_are_texts_and_no_password_is_in_the_repr(tmp_path):
    text = "kafka: {linger.ms: 5, socket.keepalive.enable: true, sasl.password: sesame}"
    fleet = load_fleet(written(tmp_path, f"fleet: f\nsources: [{{topic: t}}]\n{text}"))
    assert fleet.kafka == {"linger.ms": "5", "socket.keepalive.enable": "true", "sasl.password": "sesame"}
    assert "sesame" not in repr(fleet)


def test_the_time_that_a_source_starts_from():
    assert start_time(Source("t")) is None
    assert start_time(Source("t", start="2025-01-31")) == datetime(2025, 1, 31, tzinfo=UTC)
    assert start_time(Source("t", start="2025-01-31T02:00:00+02:00")) == datetime(2025, 1, 31, tzinfo=UTC)
