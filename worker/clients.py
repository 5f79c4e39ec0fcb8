"""The Kafka clients of a worker: the real ones. Tests hand the loop those of a fake log."""

from __future__ import annotations

from typing import Any

from arcfleet.fleet import clients
from arcfleet.fleet.document import Fleet


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

    def query(self) -> Any:
        """Asks where partitions end, open transactions included."""
        return clients.open_consumer(clients.reader_settings(self._fleet, isolation="read_uncommitted"))
