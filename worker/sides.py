"""Records set aside: late ones and bad ones, in the same transaction as what came of their neighbours.

A flood of bad records is no accident of single ones: a wrong source document, or another producer's topic. Then the
worker stops, unready and loud, before it has moved a whole topic to the dead letters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from afa.changes import Changes
from worker.publishing import Publisher
from worker.records import Message

BAD_WINDOW_RECORDS: Final = 1_000
BAD_SHARE_MAX: Final = 0.05


class TooManyBadError(Exception):
    """The share of bad records is over the limit: consuming stops."""


class Sides:
    """Sends late and bad records to their topics, and watches how many are bad."""

    def __init__(self, publisher: Callable[[], Publisher]) -> None:
        self._publisher = publisher
        self._recent: deque[tuple[int, int]] = deque()  # of each batch: records, bad ones
        self._records = self._bad = 0
        self._last_reason = ""

    def set_aside(self, messages: Sequence[Message], changes: Changes) -> None:
        """Sends those of a batch."""
        publisher = self._publisher()
        for index, reason in changes.late:
            publisher.late(messages[index], reason)
        for index, reason in changes.bad:
            publisher.dead_letter(messages[index], reason)
        self._note(len(messages), len(changes.bad))
        if changes.bad:
            self._last_reason = changes.bad[-1][1]

    def _note(self, records: int, bad: int) -> None:
        self._recent.append((records, bad))
        self._records, self._bad = self._records + records, self._bad + bad
        while self._records - self._recent[0][0] >= BAD_WINDOW_RECORDS:
            gone_records, gone_bad = self._recent.popleft()
            self._records, self._bad = self._records - gone_records, self._bad - gone_bad

    def check(self) -> None:
        """Raises TooManyBadError. Not before a batch is counted: who is stopped by a flood wants to see it."""
        if self._bad > BAD_SHARE_MAX * max(self._records, BAD_WINDOW_RECORDS):
            what = f"{self._bad} of the last {self._records} records are bad"
            raise TooManyBadError(f"{what}; the last one: {self._last_reason}")
