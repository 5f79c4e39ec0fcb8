"""Settings of the Kafka clients by their role: the product's own, then those that the fleet document passes through.

What the product owns cannot be passed through (`kafka_settings.py`), so a fleet's document cannot change it here.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from arcfleet.fleet.document import TRANSACTION_TIMEOUT_MS, TRANSACTION_TIMEOUT_SETTING, Fleet
from arcfleet.fleet.errors import FleetError
from arcfleet.fleet.kafka_settings import Scope, passed, secret_in_file

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

Settings: TypeAlias = dict[str, Any]
Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]

SESSION_TIMEOUT_MS: Final = 10_000
MAX_SECRET_BYTES: Final = 1_048_576

# A record with all that it has, on its way to one of the fleet's topics, which take a little more (`topics.json`).
MAX_RECORD_BYTES: Final = 64_000_000
MAX_RECORD_SETTING: Final = "message.max.bytes"
QUEUE_KBYTES: Final = 65_536  # of records on their way; when it is full, whoever produces waits

LOG_INTERVAL_S: Final = 10.0
_LOG_LINES: Final = 1000  # different ones that are remembered


class Seldom(logging.Filter):
    """Lets a line through at most once in `LOG_INTERVAL_S`, whatever its numbers: librdkafka mentions a broker that is
    down tens of times a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        line, now_s = re.sub("[0-9]+", "0", record.getMessage()), self._clock()
        if now_s - self._last_s.get(line, -LOG_INTERVAL_S) < LOG_INTERVAL_S:
            return False
        if len(self._last_s) >= _LOG_LINES:
            self._last_s.clear()
        self._last_s[line] = now_s
        return True


# What librdkafka logs. It says nothing unless the process sets up logging; without a logger it would write to stderr.
LOGGER: Final = logging.getLogger("arcfleet.kafka")
LOGGER.addHandler(logging.NullHandler())
LOGGER.addFilter(Seldom())

# A broker that comes back is looked for at least once a second.
_EVERY_CLIENT: Final[Settings] = {"reconnect.backoff.max.ms": 1000}
_EVERY_CONSUMER: Final[Settings] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # A start offset that is not there must never be guessed: it would skip or double.
    "auto.offset.reset": "error",
    # The default of a second stops a busy consumer each time its queue is full: a fifth of the speed.
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 16_384,
}
_GROUP_MEMBER: Final[Settings] = {
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "cooperative-sticky",
    # Markers of transactions take offsets that nobody is given: only so the end of a partition is known.
    "enable.partition.eof": True,
    "session.timeout.ms": SESSION_TIMEOUT_MS,
    "heartbeat.interval.ms": 1000,
}
_READER: Final[Settings] = {"enable.partition.eof": True, "check.crcs": True}
READER_WAIT_MS: Final = 50
_PRODUCER: Final[Settings] = {
    "enable.idempotence": True,
    "linger.ms": 5,
    "compression.type": "lz4",
    MAX_RECORD_SETTING: MAX_RECORD_BYTES,
    "queue.buffering.max.kbytes": QUEUE_KBYTES,
}


def admin_settings(fleet: Fleet) -> Settings:
    return _settings(fleet, "*", {})


def producer_settings(fleet: Fleet, *, transactional_id: str | None = None) -> Settings:
    """Of a producer whose records arrive once and in order; with an id it writes in transactions."""
    transactions: Settings = {}
    if transactional_id is not None:
        transactions = {"transactional.id": transactional_id, TRANSACTION_TIMEOUT_SETTING: TRANSACTION_TIMEOUT_MS}
    return _settings(fleet, "P", _PRODUCER | transactions)


def consumer_settings(fleet: Fleet, *, instance: str | None = None) -> Settings:
    """Of a member of the fleet's group; with an instance it is a static one, whose place is kept for a session."""
    static: Settings = {} if instance is None else {"group.instance.id": instance}
    return _settings(fleet, "C", {**_EVERY_CONSUMER, **_GROUP_MEMBER, "group.id": fleet.name, **static})


def reader_settings(
    fleet: Fleet,
    *,
    isolation: Isolation = "read_committed",
    group: str | None = None,
    wait_ms: int = READER_WAIT_MS,
) -> Settings:
    """Of a consumer that is assigned its partitions by hand, and told where each ends, after `wait_ms`. It joins no
    group; `group`, by default the fleet's, is only what it may be given rights by."""
    own = {"isolation.level": isolation, "group.id": group or fleet.name, "fetch.wait.max.ms": wait_ms}
    return _settings(fleet, "C", {**_EVERY_CONSUMER, **_READER, **own})


def open_admin(settings: Settings) -> AdminClient:
    """Raises FleetError if the library does not take a setting, as the next two; a broker out of reach is none."""
    with _explained():
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an extra, which most commands do without

        return AdminClient(settings)


def open_producer(settings: Settings) -> Producer:
    with _explained():
        from confluent_kafka import Producer  # noqa: PLC0415 - as above

        return Producer(settings)


def open_consumer(settings: Settings) -> Consumer:
    with _explained():
        from confluent_kafka import Consumer  # noqa: PLC0415 - as above

        return Consumer(settings)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - as above
    except ImportError:
        raise FleetError("Kafka's client is missing", fix="pip install 'arcfleet[kafka]'") from None
    try:
        yield
    except KafkaException as error:
        what = f"Kafka's client does not take these settings: {error.args[0].str()}"
        raise FleetError(what, fix="correct `kafka` in the fleet document, or -X") from None


def _settings(fleet: Fleet, scope: Scope, role: Mapping[str, Any]) -> Settings:
    if not fleet.bootstrap:
        fix = "write `bootstrap: host:port` in the fleet document, or give --bootstrap or ARCFLEET_BOOTSTRAP"
        raise FleetError("the fleet names no broker", fix=fix)
    own: Settings = {"bootstrap.servers": fleet.bootstrap, "client.id": f"arcfleet-{fleet.name}", "logger": LOGGER}
    if fleet.kafka.get("security.protocol", "").lower().startswith("sasl"):
        # Without a mechanism librdkafka takes Kerberos and has a shell run `kinit`; 0 means never.
        own["sasl.kerberos.min.time.before.relogin"] = 0
    mine = passed(fleet.kafka, scope)
    return {**own, **_EVERY_CLIENT, **role, **dict(_with_secret(name, value) for name, value in mine.items())}


def _with_secret(name: str, value: str) -> tuple[str, str]:
    """The setting; a secret that lies in a file is read each time a client is made, so that it may be exchanged."""
    secret = secret_in_file(name)
    if secret is None:
        return name, value
    try:
        with Path(value).open("rb") as opened:
            content = opened.read(MAX_SECRET_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        what = f"kafka.{name}: {value} cannot be read: {reason}"
        raise FleetError(what, fix=f"write the path of the file that holds {secret}") from None
    return secret, content.rstrip("\r\n")
