"""The attributes of CloudEvents 1.0, as headers of matches in the binary form of its Kafka binding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from uuid import uuid4

from worker.traces import TRACEPARENT

Header = tuple[str, bytes]


class CloudEvents:
    """Those of one fleet. An id is given once: who has seen it may drop its record, and a match that is told again
    after it was taken back must not be dropped."""

    def __init__(self, fleet: str, unique: Callable[[], str] = lambda: uuid4().hex) -> None:
        self._fleet = fleet
        self._stem = unique()
        self._numbers = count()

    def headers(self, key: bytes | None, told: Mapping[str, bytes]) -> list[Header]:
        """What comes beside the headers that a record has."""
        found: list[Header] = [
            ("ce_specversion", b"1.0"),
            ("ce_type", b"arcfleet.match." + told["op"]),
            ("ce_source", f"/arcfleet/{self._fleet}/".encode() + told["pattern"]),
            ("ce_id", f"{self._stem}-{next(self._numbers)}".encode()),
        ]
        if key is not None:
            found.append(("ce_subject", key))
        if TRACEPARENT in told:
            found.append((f"ce_{TRACEPARENT}", told[TRACEPARENT]))
        return found
