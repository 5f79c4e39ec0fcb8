"""Passwords, certificates and tokens are passed through and work: one broker with a door for each."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import TopicPartition

from arcfleet.fleet.clients import (
    consumer_settings,
    open_consumer,
    open_producer,
    producer_settings,
    reader_settings,
)
from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.errors import FleetError, KafkaError
from arcfleet.fleet.topic_admin import check_topics, configure_topics, connect, create_topics, read_topics
from arcfleet.fleet.topics import Configure, Topic, plan_topics, topic_names
from arcfleet.local import Listener, LocalBroker
from arcfleet.local.security import STORE_PASSWORD, authoriser, make_identity, scram_listener, tls_listener

DEADLINE_S = 30.0
PASSWORD = "alice-secret"
LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def oauth_listener():
    """Takes tokens that nobody signed; where they come from is what is tried here."""
    jaas = f'{LOGIN} required unsecuredLoginStringClaim_sub="broker";'
    settings = {"sasl.enabled.mechanisms": "OAUTHBEARER", "oauthbearer.sasl.jaas.config": jaas}
    return Listener("SASL_PLAINTEXT", settings)


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return {name: make_identity(folder, name) for name in ("server", "friend")}


@pytest.fixture(scope="module")
def broker(identities):
    doors = {
        "SASL": scram_listener(identities["server"]),
        "MUTUAL": tls_listener(identities["server"], trusted=[identities["friend"]]),
        "OAUTH": oauth_listener(),
    }
    users = ["alice", "CN=friend", "service"]
    with LocalBroker(
        listeners=doors, scram={"alice": PASSWORD, "bob": PASSWORD}, settings=authoriser(users)
    ) as started:
        yield started


def fleet_at(address, name, **settings):
    kafka = {f"kafka.{name}": str(value) for name, value in settings.items()}
    return load_fleet(None, {"bootstrap": address, "fleet": name} | kafka)


@pytest.fixture
def scram(broker, identities, tmp_path):
    """A fleet whose password lies in a file, as a mounted secret does."""
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n", encoding="utf-8")
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": identities["server"].certificate,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password.file": password,
    }


@pytest.fixture
def mutual(identities):
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": identities["server"].certificate,
        "ssl.keystore.location": identities["friend"].store,
        "ssl.keystore.password": STORE_PASSWORD,
    }


@pytest.fixture
def oauth():
    """The settings of the client-credentials grant, and a server that gives tokens for it."""
    endpoint = HTTPServer(("127.0.0.1", 0), Tokens)
    thread = threading.Thread(target=endpoint.serve_forever)
    thread.start()
    yield {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "fleet",
        "sasl.oauthbearer.client.secret": "sesame",
        "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{endpoint.server_port}/token",
    }
    endpoint.shutdown()
    thread.join()
    endpoint.server_close()


class Tokens(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        now = int(time.time())
        parts = ({"alg": "none"}, {"sub": "service", "iat": now, "exp": now + 300})
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        body = json.dumps(
            {"access_token": ".".join([*encoded, ""]), "token_type": "Bearer", "expires_in": 300}
        ).encode()
        self.send_response(200 if asked == "fleet:sesame" else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def works(fleet):
    """Every kind of client does its work: makes a topic, writes in a transaction, reads, joins the group."""
    topic = fleet.topic("matches")
    create_topics(connect(fleet, DEADLINE_S), [Topic(topic, 1, {})])
    producer = open_producer(producer_settings(fleet, transactional_id=f"{fleet.name}-w1"))
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"value")
    producer.commit_transaction(DEADLINE_S)
    reader = open_consumer(reader_settings(fleet))
    reader.assign([TopicPartition(topic, 0, 0)])
    member = open_consumer(consumer_settings(fleet, instance="w1"))
    joined = []
    member.subscribe([topic], on_assign=lambda _, partitions: joined.extend(partitions))
    values = []
    end_s = time.monotonic() + DEADLINE_S
    while not (values and joined) and time.monotonic() < end_s:
        member.poll(0.1)
        message = reader.poll(0.1)
        values += [message.value()] if message and not message.error() else []
    reader.close()
    member.close()
    return values == [b"value"] and [one.topic for one in joined] == [topic]


def test_passwords_over_tls(broker, scram):
    assert works(fleet_at(broker.address("SASL"), "scram", **scram))


def test_certificates_on_both_sides(broker, mutual):
    assert works(fleet_at(broker.address("MUTUAL"), "mutual", **mutual))


def test_tokens_of_a_client(broker, oauth):
    assert works(fleet_at(broker.address("OAUTH"), "oauth", **oauth))


def test_a_wrong_password_is_named(broker, scram):
    wrong = {name: value for name, value in scram.items() if name != "sasl.password.file"} | {"sasl.password": "wrong"}
    with pytest.raises(KafkaError, match=r"within 1 s: .*authentication error.*correct `bootstrap` and the security"):
        connect(fleet_at(broker.address("SASL"), "wrong", **wrong), 1.0)


def test_rights_that_are_missing_are_named_with_their_fix(broker, scram):
    fleet = fleet_at(broker.address("SASL"), "bobs", **scram | {"sasl.username": "bob"})
    admin = connect(fleet, DEADLINE_S)
    plan = plan_topics(fleet, read_topics(admin, topic_names(fleet)))
    assert {problem.what for problem in plan.blocking} == {
        f"this user may not see the topic {name}" for name in topic_names(fleet)
    }
    change = Configure("bobs.late", "retention.ms", "1", "2")
    for right, call in (
        ("Describe", lambda: check_topics(admin, fleet)),
        ("Create", lambda: create_topics(admin, [Topic("bobs.late", 1, {})])),
        ("AlterConfigs", lambda: configure_topics(admin, [change])),
    ):
        with pytest.raises(FleetError) as caught:
            call()
        assert f"--operation {right} --topic bobs." in caught.value.fix
