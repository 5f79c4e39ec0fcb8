"""The Kafka clients of a worker: the real ones. Tests hand the loop those of a fake log."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import ConsumerGroupState, KafkaException

from arcfleet.fleet import clients
from arcfleet.fleet.document import Fleet

ASK_S: Final = 10.0


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

    def group_view(self) -> KafkaGroupView:
        """Asks who has which partitions."""
        return KafkaGroupView(self._fleet)

    def query(self) -> Any:
        """Asks where partitions end, open transactions included."""
        return clients.open_consumer(clients.reader_settings(self._fleet, isolation="read_uncommitted"))


class KafkaGroupView:
    """See `orphans.py`."""

    def __init__(self, fleet: Fleet) -> None:
        self._group, self._topic = fleet.name, fleet.sources[0].topic
        self._admin = clients.open_admin(clients.admin_settings(fleet))
        self._asked: Future[Any] | None = None

    def ask(self) -> None:
        with suppress(KafkaException):  # whoever only looks must not fail
            self._asked = self._admin.describe_consumer_groups([self._group], request_timeout=ASK_S)[self._group]

    def answer(self) -> dict[str, set[int]] | None:
        if self._asked is None or not self._asked.done():
            return None
        asked, self._asked = self._asked, None
        try:
            group = asked.result()
        except KafkaException:
            return {}
        if group.state != ConsumerGroupState.STABLE:
            return {}
        return {
            member.group_instance_id or member.member_id: {
                place.partition for place in member.assignment.topic_partitions if place.topic == self._topic
            }
            for member in group.members
        }
