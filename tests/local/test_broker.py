"""A broker of one's own: stop, crash, restart, ports, settings, errors."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from arcfleet.local import (
    BrokerError,
    Listener,
    LocalBroker,
    LocalKafkaError,
    PortTakenError,
    SettingError,
)
from arcfleet.local import broker as broker_module
from arcfleet.local.admin import create_topic
from arcfleet.local.ports import free_port, is_free

VALUES = [f"value {number}" for number in range(2000)]


@pytest.fixture(scope="module")
def broker():
    """One for the tests that leave it running and care for nothing but their own topic."""
    with LocalBroker() as started:
        yield started


@pytest.fixture
def listening():
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", free_port())) as server:
        yield server.getsockname()[1]


def is_alive(pid):
    """Whether the process runs; a zombie that nobody has reaped yet does not."""
    answer = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip()[:1] not in ("", "Z")


def restarted(broker):
    bootstrap, before = broker.bootstrap, broker.pid
    assert broker.start() is broker
    assert (broker.bootstrap, broker.running) == (bootstrap, True)
    assert broker.pid != before


def test_a_clean_stop_and_a_restart_keep_data_and_ports(broker, client, monkeypatch):
    create_topic(broker.bootstrap, "stopped", 1, {})
    client(broker.bootstrap).produce("stopped", VALUES)
    broker.stop()
    assert (broker.running, broker.pid) == (False, None)
    broker.stop()  # nothing happens
    with socket.create_server(("127.0.0.1", int(broker.bootstrap.split(":")[1]))):
        monkeypatch.setattr(broker_module, "_PORT_WAIT_S", 0.2)
        with pytest.raises(PortTakenError, match=rf"listens on {broker.bootstrap}"):
            broker.start()
    restarted(broker)
    assert client(broker.bootstrap).read("stopped") == VALUES


def test_a_crash_keeps_what_was_acknowledged(broker, client):
    create_topic(broker.bootstrap, "crashed", 1, {})
    client(broker.bootstrap).produce("crashed", VALUES)
    pid = broker.pid
    broker.kill()
    assert not broker.running
    assert not is_alive(pid)
    restarted(broker)
    assert client(broker.bootstrap).read("crashed") == VALUES


def test_a_broker_dies_with_its_guard_and_can_be_started_again(broker, wait_for):
    pid = broker.pid
    guard = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
    os.kill(int(guard), signal.SIGKILL)
    wait_for(lambda: not is_alive(pid), 5)
    assert (broker.running, broker.pid) == (False, None)
    restarted(broker)


def test_two_starts_are_refused(broker):
    with pytest.raises(LocalKafkaError, match="runs already"):
        broker.start()


def test_an_unknown_listener_is_named(broker):
    with pytest.raises(LocalKafkaError, match=r"no listener SASL \(known: PLAINTEXT, CONTROLLER"):
        broker.address("SASL")


def test_the_log_is_at_hand(broker):
    assert "Kafka Server started" in broker.log.read_text()


def test_a_given_folder_keeps_the_data(kafka_broker, tmp_path, client):
    first = kafka_broker(data_dir=tmp_path)
    create_topic(first.bootstrap, "kept", 1, {})
    client(first.bootstrap).produce("kept", VALUES)
    first.close()
    second = kafka_broker(data_dir=tmp_path, port=free_port())
    assert client(second.bootstrap).read("kept") == VALUES


def test_settings_override_the_defaults(client):
    """Automatic topics, a fixed port, an advertised address, in one broker, which leaves nothing behind."""
    port = free_port()
    proxied = Listener("PLAINTEXT", port=port, advertised="127.0.0.1:1")
    with LocalBroker(settings={"auto.create.topics.enable": True}, listeners={"PROXIED": proxied}) as broker:
        assert broker.address("PROXIED") == f"127.0.0.1:{port}"
        client(broker.bootstrap).produce("made-by-itself", VALUES)
        properties = (broker.data_dir / "server.properties").read_text().splitlines()
        assert "auto.create.topics.enable=true" in properties
        assert f"advertised.listeners=PLAINTEXT://{broker.bootstrap},PROXIED://127.0.0.1:1" in properties
    assert not broker.data_dir.exists()
    with pytest.raises(LocalKafkaError, match="closed"):
        broker.start()


def test_a_port_that_is_taken_between_our_look_and_kafka_s_is_replaced(monkeypatch, listening, kafka_broker):
    first = iter([listening])
    monkeypatch.setattr(broker_module, "free_port", lambda avoid: next(first, None) or free_port(avoid))
    broker = kafka_broker()
    assert broker.bootstrap != f"127.0.0.1:{listening}"
    assert "Address already in use" in broker.log.read_text()


def test_a_port_that_must_be_used_and_is_taken_is_named(listening):
    with pytest.raises(PortTakenError, match=rf"127\.0\.0\.1:{listening} \(PLAINTEXT\)"), LocalBroker(port=listening):
        pass


def test_ports_are_below_those_of_outgoing_connections():
    assert all(20_000 <= free_port() < 32_000 for _ in range(50))


def test_a_port_with_a_listener_is_not_free(listening):
    assert not is_free(listening)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"num.partitions": "many"}}, "Invalid value many for configuration num.partitions"),
        ({"settings": {"authorizer.class.name": "no.such.Class"}}, "ClassNotFoundException: no.such.Class"),
        ({"listeners": {"SASL": Listener("SASL_PLAINTEXT")}}, "'sasl.KafkaServer' entry in the JAAS configuration"),
        ({"jvm_options": ["-XX:NoSuchOption"]}, "Unrecognized VM option 'NoSuchOption'"),
    ],
)
def test_a_wrong_setting_is_explained(arguments, message):
    with pytest.raises(BrokerError, match=re.escape(message)) as raised, LocalBroker(**arguments):
        pass
    assert "The end of its log:\n  | " in str(raised.value)


def test_a_broker_that_is_not_ready_in_time_shows_its_log_and_is_ended():
    broker = LocalBroker(ready_deadline_s=0.3)
    with pytest.raises(BrokerError, match=r"did not answer on 127\.0\.0\.1:\d+ within 0\.3 s") as raised:
        broker.start()
    assert "The end of its log:\n  | " in str(raised.value)  # how far it came depends on the machine
    assert not broker.running
    broker.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"log.dirs": "elsewhere"}}, "log.dirs is set by LocalBroker itself"),
        ({"listeners": {"CONTROLLER": Listener("PLAINTEXT")}}, "'CONTROLLER' cannot be an extra listener's name"),
        ({"listeners": {"lower": Listener("PLAINTEXT")}}, "'lower' cannot be an extra listener's name"),
        ({"scram": {"alice": "two words"}}, "SCRAM user 'alice'"),
    ],
)
def test_what_cannot_work_is_refused_at_once(arguments, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        LocalBroker(**arguments)


OWNER = """
import sys, threading, time
from arcfleet.local import LocalBroker
brokers = []
def begin():
    brokers.append(LocalBroker().start())
# The thread that starts the broker ends at once: it is the process that counts.
thread = threading.Thread(target=begin)
thread.start()
thread.join()
print(brokers[0].pid, brokers[0].data_dir, flush=True)
time.sleep(0.6)
assert brokers[0].running
print("still running", flush=True)
{ending}
"""


@pytest.mark.parametrize(
    ("ending", "by"),
    [
        ("time.sleep(600)", signal.SIGKILL),
        ("sys.exit(0)", None),
    ],
)
def test_no_broker_outlives_its_python_process(ending, by, wait_for, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.format(ending=ending)], stdout=subprocess.PIPE, text=True
    ) as owner:
        pid, folder = owner.stdout.readline().split()
        assert is_alive(int(pid))
        assert owner.stdout.readline() == "still running\n"
        if by is not None:
            owner.send_signal(by)
        owner.wait(30)
    wait_for(lambda: not is_alive(int(pid)), 5)
    wait_for(lambda: not Path(folder).exists(), 5)


def test_the_module_runs_a_broker_until_it_is_interrupted(client, tmp_path):
    command = [sys.executable, "-P", "-m", "arcfleet.local"]
    with ExitStack() as stack:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        stack.enter_context(running)
        stack.callback(running.kill)  # whatever fails below, nothing stays behind
        line = running.stdout.readline()
        bootstrap = re.fullmatch(r'\{"bootstrap": "(127\.0\.0\.1:\d+)", "log": ".+"\}\n', line)[1]
        create_topic(bootstrap, "by-hand", 1, {})
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
        assert running.stderr.read() == ""
    assert is_free(int(bootstrap.split(":")[1]))


def test_the_module_says_what_is_wrong_and_exits_with_3(listening, tmp_path):
    command = [sys.executable, "-P", "-m", "arcfleet.local", "--port", str(listening)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert re.match(rf"error: Another program listens on 127\.0\.0\.1:{listening}", answer.stderr)
