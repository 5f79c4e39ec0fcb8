"""The transaction coordinator: epochs, open transactions, and the markers that end them.

A commit is decided before its markers are written; they come to each partition in their own time. Until they are there
the records lie behind the last stable offset, and the offsets of the group are unstable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any, Final

from support.fake_log.clock import VirtualClock
from support.fake_log.log import PartitionLog, Place, Record

MARKER_S: Final = 0.1  # at most, from the decision to a marker
SLOW_MARKER_S: Final = 3.0  # of one in twenty

Offsets = dict[Place, tuple[int, str]]


class FencedError(Exception):
    """The producer has an old epoch."""


class State(Enum):
    """Of a transactional id."""

    EMPTY = "no transaction"
    ONGOING = "open"
    DECIDED = "its markers are being written"


@dataclass
class Transaction:
    """The present one of a transactional id."""

    producer_id: int
    epoch: int = -1
    timeout_s: float = 60.0
    state: State = State.EMPTY
    commits: bool = False
    began_s: float = 0.0
    offsets: dict[Any, Offsets] = field(default_factory=dict)  # by group
    places: set[Place] = field(default_factory=set)
    markers: list[tuple[float, Any]] = field(default_factory=list)  # when, and a place or a group

    def begin(self, now_s: float) -> None:
        if self.state is State.EMPTY:
            self.state, self.began_s = State.ONGOING, now_s


class Coordinator:
    """Knows all transactional ids."""

    def __init__(self, logs: Mapping[Place, PartitionLog], clock: VirtualClock, random: Random) -> None:
        self._logs = logs
        self._clock = clock
        self._random = random
        self.by_id: dict[str, Transaction] = {}

    def init(self, transactional_id: str, timeout_s: float) -> tuple[int, int]:
        """Fences who had the id before and aborts what that one left open; producer id and epoch."""
        transaction = self.by_id.setdefault(transactional_id, Transaction(producer_id=1000 + len(self.by_id)))
        self._finish(transaction)
        self._abort(transaction)
        transaction.epoch += 1
        transaction.timeout_s = timeout_s
        return transaction.producer_id, transaction.epoch

    def check(self, transactional_id: str, epoch: int) -> Transaction:
        """The transaction of a producer, ready for more. Raises FencedError."""
        transaction = self.by_id[transactional_id]
        if transaction.epoch != epoch:
            raise FencedError
        self._finish(transaction)  # who asks meanwhile is told to try again until it is done
        return transaction

    def append(self, transactional_id: str, epoch: int, place: Place, record: Record) -> None:
        """A record within the transaction. Raises FencedError."""
        transaction = self.check(transactional_id, epoch)
        transaction.begin(self._clock.monotonic())
        transaction.places.add(place)
        self._logs[place].append(record, transaction.producer_id)

    def add_offsets(self, transactional_id: str, epoch: int, group: Any, offsets: Offsets) -> None:
        """Offsets of a group, within the transaction. Raises FencedError."""
        transaction = self.check(transactional_id, epoch)
        transaction.begin(self._clock.monotonic())
        transaction.offsets.setdefault(group, {}).update(offsets)

    def end(self, transactional_id: str, epoch: int, *, commits: bool) -> None:
        """Decides; from here on nothing changes it. Raises FencedError."""
        transaction = self.check(transactional_id, epoch)
        if transaction.state is not State.ONGOING:
            return
        transaction.state, transaction.commits = State.DECIDED, commits
        now = self._clock.monotonic()
        targets = [*sorted(transaction.places), *sorted(transaction.offsets, key=lambda group: group.name)]
        transaction.markers = [(now + self._marker_s(), target) for target in targets]

    def _marker_s(self) -> float:
        return self._random.random() * (SLOW_MARKER_S if self._random.random() < 0.05 else MARKER_S)

    def is_unstable(self, group: Any, place: Place) -> bool:
        """Whether an open transaction holds a group's offset."""
        return any(place in transaction.offsets.get(group, ()) for transaction in self.by_id.values())

    def tick(self) -> None:
        """Markers that are due are written; transactions that took too long are aborted, and their producers fenced."""
        now = self._clock.monotonic()
        for transaction in self.by_id.values():
            if transaction.state is State.DECIDED:
                self._finish(transaction, now)
            elif transaction.state is State.ONGOING and now - transaction.began_s > transaction.timeout_s:
                self._abort(transaction)
                transaction.epoch += 1

    def _abort(self, transaction: Transaction) -> None:
        if transaction.state is State.ONGOING:
            transaction.state, transaction.commits = State.DECIDED, False
            transaction.markers = [(0.0, target) for target in [*sorted(transaction.places), *transaction.offsets]]
            self._finish(transaction)

    def _finish(self, transaction: Transaction, due_s: float | None = None) -> None:
        """Writes the markers that are due, or all."""
        if transaction.state is not State.DECIDED:
            return
        due = [marker for marker in transaction.markers if due_s is None or marker[0] <= due_s]
        transaction.markers = [marker for marker in transaction.markers if marker not in due]
        for _, target in due:
            if isinstance(target, tuple):
                stamp_ms = int(self._clock.wall() * 1000)
                self._logs[target].mark(transaction.producer_id, stamp_ms, commits=transaction.commits)
            else:
                offsets = transaction.offsets.pop(target)
                if transaction.commits:
                    target.offsets.update(offsets)
        if not transaction.markers:
            transaction.state = State.EMPTY
            transaction.places.clear()
            transaction.offsets.clear()
