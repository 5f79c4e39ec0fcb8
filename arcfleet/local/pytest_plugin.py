"""pytest fixtures with a real Kafka: `pytest_plugins = ["arcfleet.local.pytest_plugin"]` in the top conftest.py.

- `kafka`: one Kafka for the whole test run, shared; take fresh names from it.
- `kafka_broker`: makes brokers that the test has for itself, to be crashed, secured or set otherwise.
"""

from __future__ import annotations

import contextlib
import gc
import os
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pytest

from arcfleet.local.admin import cluster_id_when_ready, create_topic
from arcfleet.local.broker import READY_DEADLINE_S, LocalBroker
from arcfleet.local.errors import LocalKafkaError
from arcfleet.local.jar_cache import KAFKA
from arcfleet.local.ports import free_port
from arcfleet.local.settings import CONTROLLER, HOST, MAIN, container_environment, server_properties

BOOTSTRAP_VARIABLE = "ARCFLEET_TEST_BOOTSTRAP"
IMAGE = f"apache/kafka:{KAFKA.version}"
_PING_TIMEOUT_S = 5
_EXTERNAL_DEADLINE_S = 10.0
_CONTROLLER_PORT = 9093  # inside the container only

Source = Literal["environment", "docker", "local"]


@dataclass(frozen=True)
class SharedKafka:
    """A Kafka that other tests use as well."""

    bootstrap: str
    source: Source

    def unique(self, stem: str = "test") -> str:
        """A name that nobody else uses: for topics, groups, transactional ids."""
        return f"{stem}-{uuid.uuid4().hex[:12]}"

    def create_topic(self, stem: str = "test", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Makes a topic with a unique name, which is returned."""
        name = self.unique(stem)
        create_topic(self.bootstrap, name, partitions, config or {})
        return name


class BrokerFactory(Protocol):
    """Takes LocalBroker's arguments; the broker that it returns is started, and closed after the test."""

    def __call__(self, **arguments: Any) -> LocalBroker: ...


def docker_answers() -> bool:
    """Whether a Docker engine answers a ping; the mere presence of a client says nothing."""
    try:
        from testcontainers.core.docker_client import DockerClient  # noqa: PLC0415 - not every user of this has it
    except ImportError:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the client leaves its socket open when nobody answers
        try:
            engine = DockerClient(timeout=_PING_TIMEOUT_S).client
            with contextlib.closing(engine):
                return bool(engine.ping())
        except Exception:  # of several libraries, and all say the same: there is no engine that we could use
            return False
        finally:
            gc.collect()


def choose(environment: Mapping[str, str], ping: Callable[[], bool] = docker_answers) -> Source:
    """The Kafka that is named, else one in Docker, else one on this machine's Java."""
    if environment.get(BOOTSTRAP_VARIABLE):
        return "environment"
    return "docker" if ping() else "local"


@pytest.fixture(scope="session")
def kafka() -> Iterator[SharedKafka]:
    """One real Kafka for the whole run: `$ARCFLEET_TEST_BOOTSTRAP`, Docker, or the local JVM, in this order."""
    source = choose(os.environ)
    if source == "environment":
        bootstrap = os.environ[BOOTSTRAP_VARIABLE]
        if cluster_id_when_ready(bootstrap, _EXTERNAL_DEADLINE_S, lambda: True) is None:
            raise LocalKafkaError(f"{BOOTSTRAP_VARIABLE} is {bootstrap}, but no Kafka answers there")
        yield SharedKafka(bootstrap, source)
        return
    with _in_docker() if source == "docker" else _on_this_machine() as bootstrap:
        yield SharedKafka(bootstrap, source)


@pytest.fixture
def kafka_broker() -> Iterator[BrokerFactory]:
    """`kafka_broker(settings={...})` starts a broker of the test's own; see LocalBroker for the arguments."""
    with contextlib.ExitStack() as stack:
        yield lambda **arguments: stack.enter_context(LocalBroker(**arguments))


@contextlib.contextmanager
def _on_this_machine() -> Iterator[str]:
    with LocalBroker() as broker:
        yield broker.bootstrap


@contextlib.contextmanager
def _in_docker() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - as above
    from testcontainers.core.docker_client import DockerClient  # noqa: PLC0415

    # Kafka tells clients where it is, so the port has to be known before the container starts.
    host, port = DockerClient().host(), free_port()
    container = DockerContainer(IMAGE).with_bind_ports(port, port).with_envs(**container_settings(host, port))
    with container:
        if cluster_id_when_ready(f"{host}:{port}", READY_DEADLINE_S, lambda: True) is None:
            output = b"\n".join(container.get_logs()).decode("utf-8", "replace")
            raise LocalKafkaError(f"{IMAGE} did not answer on {host}:{port}; its log:\n{output}")
        yield f"{host}:{port}"


def container_settings(host: str, port: int) -> dict[str, str]:
    """The local broker's settings for a container that clients reach as host:port."""
    ports = {MAIN: port, CONTROLLER: _CONTROLLER_PORT}
    properties = server_properties("/tmp/kafka-data", ports, {}, {})  # noqa: S108 - in the container, gone with it
    properties["listeners"] = str(properties["listeners"]).replace(f"{MAIN}://{HOST}:", f"{MAIN}://:")
    properties["advertised.listeners"] = f"{MAIN}://{host}:{port}"
    return container_environment(properties)
