"""A steady load of ticks, and when what comes of each is seen: one loop that produces what is due and reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from arcfleet.bench.kafka import PARTITIONS, SOURCE
from arcfleet.bench.ticks import HIT, Ticks
from arcfleet.fleet.clients import open_consumer, open_producer, producer_settings
from arcfleet.fleet.document import Fleet
from arcfleet.fleet.tailing import assign, tail_settings

_WAIT_S: Final = 0.001
_FLUSH_S: Final = 30.0
_READ_RECORDS: Final = 1_000

Position = Callable[[bytes], int]  # of the event that a record of the matches topic is about


@dataclass
class Load:
    """Ticks from a position on, so many a second."""

    fleet: Fleet
    ticks: Ticks
    per_s: int
    position: int
    sent_s: dict[int, float] = field(default_factory=dict)  # by position, of those that end a match

    def run(self, seconds: float | None = None) -> Iterator[None]:
        """Produces what is due at each step, for so long or until the ticks are through."""
        producer = open_producer(producer_settings(self.fleet) | {"partitioner": "murmur2_random"})
        first, began_s = self.position, time.perf_counter()
        while seconds is None or time.perf_counter() - began_s < seconds:
            due = min(first + int((time.perf_counter() - began_s) * self.per_s), len(self.ticks.key))
            for number, (key, value) in enumerate(self.ticks.records(self.position, due), self.position):
                if self.ticks.x[number] == HIT:
                    self.sent_s[number] = time.perf_counter()
                producer.produce(SOURCE, value, key)
            self.position = due
            producer.poll(0)
            yield
            if due == len(self.ticks.key):
                break
        producer.flush(_FLUSH_S)

    def latencies(self, seconds: float, warm_s: float, position_of: Position) -> list[float]:
        """Seconds from producing an event to reading the first record about it; those of the beginning do not count."""
        seen: dict[int, float] = {}
        with closing(open_consumer(tail_settings(self.fleet))) as reader:
            assign(reader, self.fleet.topic("matches"), PARTITIONS, latest=True)
            while reader.poll(1.0) is not None:
                pass  # at the ends
            began_s = time.perf_counter()
            for _ in self.run(warm_s + seconds):
                _note(reader, seen, position_of)
            until_s = time.perf_counter() + 1.0
            while time.perf_counter() < until_s:
                _note(reader, seen, position_of)
        counted = [(number, at) for number, at in self.sent_s.items() if at - began_s >= warm_s and number in seen]
        return sorted(seen[number] - at for number, at in counted)


def _note(reader: Any, seen: dict[int, float], position_of: Position) -> None:
    first = reader.poll(_WAIT_S)
    for message in [first, *reader.consume(_READ_RECORDS, 0)] if first else []:
        if message.error() is None and message.key() is not None:
            seen.setdefault(position_of(message.value()), time.perf_counter())
