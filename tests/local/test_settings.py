"""The text of server.properties."""

import pytest

from arcfleet.local.settings import DEFAULTS, Listener, container_environment, properties_text, server_properties

PORTS = {"PLAINTEXT": 21_000, "CONTROLLER": 21_001, "SASL": 21_002}


def test_a_plain_broker():
    properties = server_properties("data", {name: PORTS[name] for name in ("PLAINTEXT", "CONTROLLER")}, {}, {})
    assert {name: value for name, value in properties.items() if name not in DEFAULTS} == {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": "PLAINTEXT://127.0.0.1:21000,CONTROLLER://127.0.0.1:21001",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:21000",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:21001",
        "log.dirs": "data",
    }


def test_a_listener_s_settings_are_its_own():
    door = Listener("SASL_PLAINTEXT", {"sasl.enabled.mechanisms": "PLAIN"})
    properties = server_properties("data", PORTS, {"SASL": door}, {})
    assert properties["listener.name.sasl.sasl.enabled.mechanisms"] == "PLAIN"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:21000,SASL://127.0.0.1:21002,CONTROLLER://127.0.0.1:21001"
    assert (
        properties["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    )


def test_the_user_s_settings_win():
    properties = server_properties("data", PORTS, {}, {"auto.create.topics.enable": True})
    assert properties["auto.create.topics.enable"] is True


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("a.b", True, "a.b=true"),
        ("a.b", 5, "a.b=5"),
        ("a b", "c=d:e", "a\\ b=c=d:e"),
        ("a=b:c", "", "a\\=b\\:c="),
        ("#a", " #b", "\\#a=\\ #b"),
        ("path", "C:\\kafka\t", "path=C:\\\\kafka\\t"),
        ("pem", "one\ntwo\r\n", "pem=one\\ntwo\\r\\n"),
        ("name", "é 😀", "name=\\u00e9 \\ud83d\\ude00"),
    ],
)
def test_special_characters_are_written_as_java_reads_them(name, value, line):
    assert properties_text({name: value}) == f"{line}\n"


def test_the_spelling_of_a_container_s_environment():
    environment = container_environment({"node.id": 1, "a.b_c-d": True})
    assert environment == {"KAFKA_NODE_ID": "1", "KAFKA_A_B__C___D": "true"}
