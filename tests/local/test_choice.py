"""Which Kafka the fixture picks."""

import pytest

from arcfleet.local import LocalKafkaError, pytest_plugin
from arcfleet.local.pytest_plugin import choose, container_settings, docker_answers

NAMED = {"ARCFLEET_TEST_BOOTSTRAP": "127.0.0.1:9092"}


@pytest.mark.parametrize(
    ("environment", "answers", "chosen"),
    [
        (NAMED, True, "environment"),
        (NAMED, False, "environment"),
        ({}, True, "docker"),
        ({}, False, "local"),
        ({"ARCFLEET_TEST_BOOTSTRAP": ""}, False, "local"),
    ],
)
def test_the_order_of_choice(environment, answers, chosen):
    assert choose(environment, lambda: answers) == chosen


def test_a_named_kafka_needs_no_ping():
    assert choose(NAMED, lambda: pytest.fail("pinged")) == "environment"


def test_a_client_without_an_engine_is_not_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    assert not docker_answers()


def test_a_named_kafka_that_does_not_answer_is_said(monkeypatch, start_kafka):
    monkeypatch.setenv("ARCFLEET_TEST_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setattr(pytest_plugin, "_EXTERNAL_DEADLINE_S", 1.0)
    with pytest.raises(LocalKafkaError, match=r"127\.0\.0\.1:1, but no Kafka answers"):
        next(start_kafka())


def test_a_named_kafka_is_used_as_it_is(monkeypatch, start_kafka, kafka):
    monkeypatch.setenv("ARCFLEET_TEST_BOOTSTRAP", kafka.bootstrap)
    shared = next(start_kafka())
    assert (shared.bootstrap, shared.source) == (kafka.bootstrap, "environment")


def test_a_container_gets_the_local_broker_s_settings():
    settings = container_settings("localhost", 21_000)
    assert settings["KAFKA_LISTENERS"] == "PLAINTEXT://:21000,CONTROLLER://127.0.0.1:9093"
    assert settings["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://localhost:21000"
    assert settings["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert settings["KAFKA_NODE_ID"] == "1"


@pytest.fixture
def start_kafka():
    """The fixture's own function, to be called by hand."""
    return pytest_plugin.kafka.__wrapped__
