"""The Kafka clients of a worker: the real ones. Tests hand the loop those of a fake log."""

from __future__ import annotations

import struct
import warnings
from contextlib import suppress
from threading import Thread
from typing import Any, Final

from confluent_kafka import KafkaException

from arcfleet.fleet import clients
from arcfleet.fleet.document import Fleet

ASK_S: Final = 4.0  # the end of the process waits for it, and for the next
REFRESH_S: Final = 1.0
RESTORE_WAIT_MS: Final = 5  # a hundred partitions are restored in half the time; between restores nothing is fetched


class KafkaClients:
    """Makes clients for a fleet."""

    def __init__(self, fleet: Fleet, instance: str | None) -> None:
        self._fleet = fleet
        self._instance = instance

    def group_consumer(self) -> Any:
        """The member of the fleet's group."""
        return clients.open_consumer(clients.consumer_settings(self._fleet, instance=self._instance))

    def producer(self, transactional_id: str | None) -> Any:
        return clients.open_producer(clients.producer_settings(self._fleet, transactional_id=transactional_id))

    def transactional_producer(self, transactional_id: str) -> Any:
        return self.producer(transactional_id)

    def reader(self) -> Any:
        """Reads what is committed."""
        return clients.open_consumer(clients.reader_settings(self._fleet))

    def restore_reader(self) -> Any:
        """The same, one partition after the other to its end, and each end is waited for."""
        return clients.open_consumer(clients.reader_settings(self._fleet, wait_ms=RESTORE_WAIT_MS))

    def group_view(self) -> KafkaGroupView:
        """Asks who has which partitions."""
        return KafkaGroupView(self._fleet)

    def query(self) -> Any:
        """Asks where partitions end, open transactions included."""
        return clients.open_consumer(clients.reader_settings(self._fleet, isolation="read_uncommitted"))


class KafkaGroupView:
    """See `orphans.py`. Asks from a thread, because the answer is waited for; and by the older of two calls. A request
    of the newer one (`describe_consumer_groups`) that times out while no broker is within reach ends the process when
    one is back, by an assertion of librdkafka 2.16 (`eonce->refcnt > 0`).

    The older call asks all brokers that the client knows, and fails if one of them is silent, though the others have
    told. The client learns in five minutes that the cluster has given up a broker; asked for the topic's leaders it
    learns it at once."""

    def __init__(self, fleet: Fleet) -> None:
        self._group, self._topic = fleet.name, fleet.sources[0].topic
        self._admin = clients.open_admin(clients.admin_settings(fleet))
        self._asking: Thread | None = None
        self._answer: dict[str, set[int]] | None = None

    def ask(self) -> None:
        """Nothing, while it is being asked."""
        if self._asking is None or not self._asking.is_alive():
            self._asking = Thread(target=self._ask, name="group")
            self._asking.start()

    def _ask(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                groups = self._admin.list_groups(self._group, timeout=ASK_S)
            self._answer = owners_of(groups[0], self._topic) if groups else {}
        except (KafkaException, struct.error, UnicodeDecodeError):  # whoever only looks must not fail
            with suppress(KafkaException):
                self._admin.list_topics(self._topic, timeout=REFRESH_S)
            self._answer = {}

    def answer(self) -> dict[str, set[int]] | None:
        answer, self._answer = self._answer, None
        return answer


def owners_of(group: Any, topic: str) -> dict[str, set[int]]:
    """By member id, the partitions of a topic; nobody, if the group is about to change."""
    if group.error is not None or group.state != "Stable":
        return {}
    return {member.id: assigned(member.assignment, topic) for member in group.members}


def assigned(packed: bytes | None, topic: str) -> set[int]:
    """The partitions of a topic that an assignment names, in the form that all clients of Kafka agree on: a version,
    and the topics, each with its numbers. Raises struct.error, UnicodeDecodeError."""
    found: set[int] = set()
    if not packed:
        return found
    _, topics = struct.unpack_from(">HI", packed)
    at = 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">H", packed, at)
        name = packed[at + 2 : at + 2 + length].decode()
        (count,) = struct.unpack_from(">I", packed, at + 2 + length)
        at += 6 + length
        numbers = struct.unpack_from(f">{count}i", packed, at)
        at += 4 * count
        if name == topic:
            found.update(numbers)
    return found
