"""SASL, TLS, mutual TLS and the authoriser: one broker with a door for each."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from arcfleet.local import LocalBroker, LocalKafkaError, SettingError
from arcfleet.local.admin import create_topic
from arcfleet.local.security import authoriser, make_identity, scram_listener, tls_listener

USERS = {"alice": "alice-secret", "bob": "bob-secret", "root": "root-secret"}
VALUES = ["one", "two"]


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return {name: make_identity(folder, name) for name in ("server", "friend", "stranger")}


@pytest.fixture(scope="module")
def broker(identities):
    """Alice may write and read the topic `hers`, the friend may read it, root everything, nobody else anything."""
    server = identities["server"]
    listeners = {
        "SASL": scram_listener(),
        "SASL_TLS": scram_listener(server),
        "TLS": tls_listener(server),
        "MUTUAL": tls_listener(server, trusted=[identities["friend"]]),
    }
    with LocalBroker(listeners=listeners, scram=USERS, settings=authoriser(["root"])) as started:
        create_topic(started.bootstrap, "hers", 1, {})
        grant(started, "User:alice", AclOperation.ALL)
        grant(started, "User:CN=friend", AclOperation.READ)
        yield started


def grant(broker, principal, operation):
    anywhere = (ResourcePatternType.LITERAL, principal, "*")
    rights = [
        AclBinding(ResourceType.TOPIC, "hers", *anywhere, operation, AclPermissionType.ALLOW),
        AclBinding(ResourceType.GROUP, "*", *anywhere, AclOperation.ALL, AclPermissionType.ALLOW),
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.create_acls(rights).values():
        done.result(30)


def sasl(user, password, **more):
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    return {**settings, "sasl.username": user, "sasl.password": password, **more}


def first_error(client, wait_for):
    """What the library reports of an attempt to connect."""
    producer = Producer(client.settings())
    wait_for(lambda: producer.poll(0.05) or client.errors)
    return client.errors[0].name()


def refusal(client, topic):
    """Why a record was not taken."""
    reasons = []
    producer = Producer(client.settings())
    producer.produce(topic, "x", on_delivery=lambda error, _: reasons.append(error and error.name()))
    assert producer.flush(30) == 0
    return reasons[0]


def test_a_user_with_the_right_password_writes_and_reads(broker, client):
    alice = client(broker.address("SASL"), sasl("alice", USERS["alice"]))
    alice.produce("hers", VALUES)
    assert alice.read("hers")[-2:] == VALUES


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
def test_a_wrong_password_or_name_is_refused(broker, client, wait_for, user, password):
    assert first_error(client(broker.address("SASL"), sasl(user, password)), wait_for) == "_AUTHENTICATION"


def test_what_no_acl_allows_is_refused(broker, client):
    bob = client(broker.address("SASL"), sasl("bob", USERS["bob"]))
    assert refusal(bob, "hers") == "TOPIC_AUTHORIZATION_FAILED"
    alice = client(broker.address("SASL"), sasl("alice", USERS["alice"]))
    create_topic(broker.bootstrap, "not-hers", 1, {})
    assert refusal(alice, "not-hers") == "TOPIC_AUTHORIZATION_FAILED"


def test_a_super_user_and_the_plain_listener_may_do_everything(broker, client):
    root = client(broker.address("SASL"), sasl("root", USERS["root"]))
    root.produce("hers", ["by root"])
    client(broker.bootstrap).produce("hers", ["by nobody in particular"])


def test_passwords_over_tls(broker, client, identities):
    trust = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(identities["server"].certificate)}
    alice = client(broker.address("SASL_TLS"), sasl("alice", USERS["alice"], **trust))
    alice.produce("hers", VALUES)
    assert alice.read("hers")[-2:] == VALUES


def test_a_server_that_is_not_trusted_is_refused(broker, client, identities, wait_for):
    right, wrong = (str(identities[name].certificate) for name in ("server", "stranger"))
    trusting = client(broker.address("TLS"), {"security.protocol": "SSL", "ssl.ca.location": right})
    trusting.produce("hers", VALUES)
    doubting = client(broker.address("TLS"), {"security.protocol": "SSL", "ssl.ca.location": wrong})
    assert first_error(doubting, wait_for) == "_SSL"


def test_mutual_tls_takes_the_client_s_name_from_its_certificate(broker, client, identities, wait_for):
    server, tls = identities["server"].certificate, {"security.protocol": "SSL"}
    client(broker.bootstrap).produce("hers", VALUES)
    friend = client(broker.address("MUTUAL"), {**tls, **identities["friend"].client_settings(server)})
    assert friend.read("hers")[-2:] == VALUES
    assert refusal(friend, "hers") == "TOPIC_AUTHORIZATION_FAILED"
    stranger = client(broker.address("MUTUAL"), {**tls, **identities["stranger"].client_settings(server)})
    assert first_error(stranger, wait_for) in ("_SSL", "_TRANSPORT", "_ALL_BROKERS_DOWN")


def test_an_identity_s_name_is_checked(tmp_path):
    with pytest.raises(SettingError, match="letters, digits"):
        make_identity(tmp_path, "a, O=b")


def test_a_failing_key_tool_is_quoted(tmp_path):
    with pytest.raises(LocalKafkaError, match="keytool -genkeypair failed: keytool error"):
        make_identity(tmp_path / "missing", "server")
