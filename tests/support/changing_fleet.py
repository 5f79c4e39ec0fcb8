"""A fleet of one worker and one partition on a fake log that ends, and starts again with something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from afa.source import Source
from arcfleet.fleet.document import load_fleet
from support.fleets import audit
from support.simulation import Chances, Simulation, Slot
from worker.binding import Binding, Mark
from worker.partition import Partition, Phase

PAIR = {
    "pattern": "pair",
    "within": 100_000,
    "start": "s",
    "final": ["f"],
    "arcs": [
        {"id": "one", "from": "s", "to": "m", "when": "e.x == 1"},
        {"id": "skip", "from": "m", "to": "m", "when": "e.x != 2"},
        {"id": "two", "from": "m", "to": "f", "when": "e.x == 2"},
    ],
}


def event(name: str, ts: int, x: int, key: str = "k") -> dict[str, Any]:
    return {"id": name, "key": key, "ts": ts, "type": "t", "data": {"x": x}}


class ChangingFleet:
    """All is calm; what changes is what a test says."""

    def __init__(self, *sources: Source, documents: Sequence[Mapping[str, Any]] = (PAIR,), **settings: str) -> None:
        fleet = load_fleet(None, {"bootstrap": "fake:9092", "snapshot_interval": "60s"} | settings)
        fleet = replace(fleet, sources=sources)
        plain = [dict(document) for document in documents]
        self.simulation = Simulation(1, fleet, plain, partitions=1, workers=1, chances=Chances.none())
        self.simulation._is_calm = True

    @property
    def slot(self) -> Slot:
        return self.simulation.slots[0]

    def publish(self, topic: str, *records: dict[str, Any]) -> None:
        for record in records:
            self.simulation.publish(record, [source.topic for source in self.simulation.fleet.sources].index(topic))

    def settle(self, seconds: float = 2.0) -> Partition:
        until = self.simulation.clock.monotonic() + seconds
        while self.simulation.clock.monotonic() < until:
            self.simulation._turn()
        assert self.slot.process is not None
        assert self.slot.process.loop is not None
        (partition,) = self.slot.process.loop.partitions.values()
        assert partition.phase is Phase.LIVE
        return partition

    def end(self, *, crash: bool = False) -> None:
        """It starts again with the next turn."""
        process = self.slot.process
        if not crash and process is not None and process.loop is not None:
            process.stop("stop")
            process.finish(process.loop)
        self.simulation._gone(self.slot, "ended")
        self.slot.back_at = 0.0

    def change(self, *sources: Source, removed: Sequence[str] = (), crash: bool = False) -> None:
        """It starts again with another document."""
        self.end(crash=crash)
        for source in sources:
            if source.topic not in self.simulation.broker.partitions:
                self.simulation.broker.create_topic(source.topic)
        self.simulation.fleet = replace(self.simulation.fleet, sources=sources, removed=tuple(removed))

    def net(self) -> list[tuple[str, ...]]:
        """Pattern, first and last event of the matches that stand."""
        net = audit(self.simulation.changes()).net.values()
        return sorted((match["pattern"], *match["events"].values()) for match in net)

    def committed(self, topic: str) -> Mark:
        return Binding.read(self.simulation.broker.group("local").offsets[topic, 0][1]).committed

    def said(self, what: str) -> list[str]:
        return [line for line in self.simulation.trace if what in line]
