"""Settings of the clients: which of librdkafka's properties may be passed through, and what each role gets."""

from __future__ import annotations

import ctypes
import logging
import re
import sys
from pathlib import Path

import confluent_kafka
import pytest

from afa.reading import Fault
from arcfleet.fleet.clients import (
    LOG_INTERVAL_S,
    Seldom,
    admin_settings,
    consumer_settings,
    open_admin,
    open_consumer,
    open_producer,
    producer_settings,
    reader_settings,
)
from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.errors import FleetError
from arcfleet.fleet.kafka_settings import FILE_SUFFIX, RULES, SECRETS, check_setting, secret_in_file

BOOTSTRAP = "127.0.0.1:1"
DANGEROUS = """
    plugin.library.paths ssl.engine.location ssl.engine.id ssl.providers sasl.kerberos.kinit.cmd sasl.kerberos.keytab
    sasl.kerberos.principal enable.sasl.oauthbearer.unsecure.jwt offset.store.path interceptors open_cb connect_cb
    """


def fleet(**kafka):
    return load_fleet(None, {"bootstrap": BOOTSTRAP} | {f"kafka.{name}": value for name, value in kafka.items()})


@pytest.fixture(scope="module")
def properties(tmp_path_factory):
    """Every property of the librdkafka that is installed, as it lists them itself: name to C, P or *."""
    file = tmp_path_factory.mktemp("librdkafka") / "properties"
    folder = Path(confluent_kafka.__file__).parent
    (library,) = [*folder.parent.glob("confluent_kafka.libs/librdkafka*"), *folder.glob(".dylibs/librdkafka*")]
    kafka, system = ctypes.CDLL(str(library)), ctypes.CDLL(None)
    system.fopen.restype = ctypes.c_void_p
    opened = ctypes.c_void_p(system.fopen(str(file).encode(), b"w"))
    kafka.rd_kafka_conf_properties_show(opened)
    system.fclose(opened)
    found = re.findall(r"^(\S+) *\| *([CP*]) *\|", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) > 150
    return dict(reversed(found))  # what stands twice is global and, deprecated, of a topic: the first counts


def test_every_property_of_the_library_is_classified(properties):
    assert {name: rule.scope for name, rule in RULES.items()} == properties


@pytest.mark.parametrize("name", DANGEROUS.split())
def test_what_loads_code_runs_commands_or_keeps_files_is_refused(name):
    with pytest.raises(Fault, match=f"`{name}` may not be set"):
        check_setting(name, "x", ())


def test_a_value_that_loads_code_is_refused():
    with pytest.raises(Fault, match="AWS_IAM"):
        check_setting("sasl.oauthbearer.metadata.authentication.type", "AWS_IAM", ())
    check_setting("sasl.oauthbearer.metadata.authentication.type", "azure_imds", ())


def test_what_is_new_or_mistyped_is_refused():
    with pytest.raises(Fault) as caught:
        check_setting("session.timeout", "1", ())
    assert caught.value.fix == "did you mean `session.timeout.ms`?"
    for name in ("topic.config", "default.topic.config", "error_cb", "logger", "on_delivery", "linger.ms.file"):
        with pytest.raises(Fault):
            check_setting(name, "1", ())


def test_whatever_names_a_secret_is_one():
    named = {name for name in RULES if re.search(r"password|secret|passphrase|key\.pem$", name)}
    assert named == SECRETS
    assert not {name + FILE_SUFFIX for name in SECRETS} & set(RULES)
    assert secret_in_file("sasl.oauthbearer.assertion.private.key.file") is None


def test_each_client_gets_what_is_its_own():
    passed = fleet(**{"linger.ms": "1", "fetch.min.bytes": "2", "socket.timeout.ms": "3000"})
    producer = producer_settings(passed, transactional_id="f-w1")
    consumer = consumer_settings(passed, instance="w1")
    admin = admin_settings(passed)
    assert (producer["linger.ms"], consumer["fetch.min.bytes"], admin["socket.timeout.ms"]) == ("1", "2", "3000")
    for settings, others in ((producer, "C"), (consumer, "P"), (admin, "CP")):
        assert not [name for name in settings if name in RULES and RULES[name].scope in others]


def test_a_member_of_the_group_is_static_when_it_has_a_name():
    assert consumer_settings(fleet(), instance="w1")["group.instance.id"] == "w1"
    assert "group.instance.id" not in consumer_settings(fleet())
    assert consumer_settings(fleet())["group.id"] == "local"


def test_a_producer_has_transactions_when_it_has_an_id():
    assert producer_settings(fleet(), transactional_id="x")["transaction.timeout.ms"] == 10_000
    plain = producer_settings(fleet())
    assert plain["enable.idempotence"] is True
    assert not [name for name in plain if "transaction" in name]


def test_a_reader_is_told_ends_and_may_see_what_is_not_committed():
    settings = reader_settings(fleet(), isolation="read_uncommitted", group="tail")
    assert settings["enable.partition.eof"] is True
    assert (settings["isolation.level"], settings["group.id"]) == ("read_uncommitted", "tail")
    assert reader_settings(fleet())["isolation.level"] == "read_committed"


def test_the_library_takes_the_settings_of_every_role(caplog):
    tuned = fleet(**{"session.timeout.ms": "6000", "linger.ms": "0", "statistics.interval.ms": "0"})
    consumers = [open_consumer(consumer_settings(tuned, instance="w1")), open_consumer(reader_settings(tuned))]
    producers = [open_producer(producer_settings(tuned, transactional_id="x")), open_producer(producer_settings(tuned))]
    for client in (*consumers, *producers, open_admin(admin_settings(tuned))):
        client.poll(0)  # takes the log, where a property of the wrong kind of client would be mentioned
    for consumer in consumers:
        consumer.close()
    assert "CONFWARN" not in caplog.text
    open_producer(producer_settings(tuned) | {"session.timeout.ms": "6000"}).poll(0)
    assert "CONFWARN" in caplog.text


def test_the_same_line_is_logged_seldom():
    now_s = [0.0]
    seldom = Seldom(lambda: now_s[0])

    def passes(line):
        return seldom.filter(logging.LogRecord("kafka", logging.ERROR, "", 0, line, None, None))

    assert passes("broker 1 is down (after 5ms)")
    assert not passes("broker 1 is down (after 12ms)")
    assert passes("another line")
    now_s[0] = LOG_INTERVAL_S
    assert passes("broker 1 is down (after 5ms)")


def test_a_value_that_the_library_refuses_is_named():
    with pytest.raises(FleetError, match='Invalid value "rar"'):
        open_producer(producer_settings(fleet(**{"compression.type": "rar"})))


def test_without_the_library_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(FleetError, match=r"client is missing .*pip install 'arcfleet\[kafka\]'"):
        open_consumer(consumer_settings(fleet()))


def test_a_fleet_without_a_broker():
    with pytest.raises(FleetError, match="names no broker"):
        admin_settings(load_fleet(None))


def test_a_secret_in_a_file_is_read_when_a_client_is_made(tmp_path):
    secret = tmp_path / "password"
    named = fleet(**{"sasl.password.file": str(secret)})
    with pytest.raises(FleetError, match=r"kafka\.sasl\.password\.file: .* cannot be read: No such file"):
        admin_settings(named)
    for password in ("sesame", "changed"):
        secret.write_text(f"{password}\n", encoding="utf-8")
        settings = admin_settings(named)
        assert settings["sasl.password"] == password
        assert "sasl.password.file" not in settings


def test_no_command_is_run_for_a_ticket():
    assert admin_settings(fleet(**{"security.protocol": "SASL_SSL"}))["sasl.kerberos.min.time.before.relogin"] == 0
