"""The topic definitions meet their schema and say what the contract says."""

from __future__ import annotations

import pytest

from afa.contracts import contract

TOPICS = {topic["suffix"]: topic for topic in contract("topics")["topics"]}


def test_the_definitions_meet_their_schema(validate):
    validate("topics", contract("topics"))


def test_the_topics_are_those_of_the_contract():
    assert list(TOPICS) == ["arcs", "arcs.log", "arcs.requests", "matches", "state", "late", "dead-letter", "progress"]


@pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
def test_a_definition_names_schemas_that_exist(topic):
    for name in [*topic["value"]["schemas"], *filter(None, [topic.get("headers", {}).get("schema")])]:
        contract(f"{name}.schema")


@pytest.mark.parametrize("suffix", ["matches", "state", "late", "dead-letter"])
def test_what_goes_to_the_partition_number_of_its_source_has_as_many(suffix):
    assert TOPICS[suffix]["partitions"] == "same as sources"


@pytest.mark.parametrize("suffix", ["arcs", "arcs.log", "arcs.requests"])
def test_what_has_one_order_has_one_partition(suffix):
    assert TOPICS[suffix]["partitions"] == 1


def test_policies():
    compacted = {suffix for suffix, topic in TOPICS.items() if topic["config"]["cleanup.policy"] == "compact"}
    assert compacted == {"arcs", "state", "progress"}
    assert TOPICS["arcs.log"]["config"]["retention.ms"] == "-1"
    assert TOPICS["matches"]["envelopes"]["upsert"]["config"]["cleanup.policy"] == "compact"
