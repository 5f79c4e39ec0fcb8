"""The clients of one process of a fleet, on a fake log: what `worker/clients.py` makes on a real one."""

from __future__ import annotations

from typing import Any

from arcfleet.fleet import clients
from arcfleet.fleet.document import Fleet
from support.fake_log.broker import FakeLog, Host


class FakeClients:
    """Has the methods of KafkaClients; made anew for each process."""

    def __init__(self, broker: FakeLog, fleet: Fleet, name: str, instance: str | None) -> None:
        self.broker = broker
        self.host = Host(name)
        self._fleet = fleet
        self._instance = instance

    def group_consumer(self) -> Any:
        return self.broker.consumer(clients.consumer_settings(self._fleet, instance=self._instance), self.host)

    def producer(self, transactional_id: str | None) -> Any:
        settings = clients.producer_settings(self._fleet, transactional_id=transactional_id)
        return self.broker.producer(settings, self.host)

    def transactional_producer(self, transactional_id: str) -> Any:
        return self.producer(transactional_id)

    def reader(self) -> Any:
        return self.broker.consumer(clients.reader_settings(self._fleet), self.host)

    def restore_reader(self) -> Any:
        return self.reader()

    def group_view(self) -> FakeGroupView:
        return FakeGroupView(self.broker, self._fleet)

    def query(self) -> Any:
        return self.broker.consumer(clients.reader_settings(self._fleet, isolation="read_uncommitted"), self.host)


class FakeGroupView:
    """Who has what."""

    def __init__(self, broker: FakeLog, fleet: Fleet) -> None:
        self._group, self._topic, self._is_asked = broker.group(fleet.name), fleet.sources[0].topic, False

    def ask(self) -> None:
        self._is_asked = True

    def answer(self) -> dict[str, set[int]] | None:
        if not self._is_asked:
            return None
        self._is_asked = False
        if self._group.is_rebalancing:
            return {}
        members = self._group.members.values()
        return {member.id: {number for topic, number in member.assigned if topic == self._topic} for member in members}
