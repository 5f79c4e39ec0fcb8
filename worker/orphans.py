"""Partitions that nobody has, though the group is stable.

A static member may die amid a rebalance, when it has given partitions up and not said so yet. Started again it gets the
rest of its place back at once, and nobody hears of those that are free: they stay so until the group shares out anew
for another reason. So every worker asks now and then who has what, and one of them leaves and joins again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from worker.clock import Clock

LOOK_EVERY_S: Final = 5.0
REST_S: Final = 60.0  # after joining again: what that moves belongs to nobody for a while, too

Owners = Mapping[str, set[int]]  # by member id, the partitions of the first topic


class GroupView(Protocol):
    """Asks the group who has what; the answer comes later."""

    def ask(self) -> None: ...
    def answer(self) -> Owners | None:
        """None: there is none yet. Nobody: the group is about to change, or did not say."""


class Orphans:
    """Finds them, and who has to act."""

    def __init__(self, view: GroupView, clock: Clock, partitions: int | None) -> None:
        self._view = view
        self._clock = clock
        self._all = set(range(partitions or 0))
        self._asked_at = clock.monotonic()
        self._before: set[int] = set()
        self._rests_until = clock.monotonic()

    def found(self, me: Callable[[], str | None]) -> set[int]:
        """What nobody had twice in a row, if it is on me to act: several would only disturb each other. Who I am
        is asked only then: the client waits for the answer of another thread."""
        if self._all and self._clock.monotonic() - self._asked_at >= LOOK_EVERY_S:
            self._asked_at = self._clock.monotonic()
            self._view.ask()
        owners = self._view.answer()
        if owners is None:
            return set()
        free = self._all - set().union(*owners.values()) if owners else set[int]()
        again, self._before = free & self._before, free
        now = self._clock.monotonic()
        if not again or now < self._rests_until or me() != min(owners):
            return set()
        self._before, self._rests_until = set(), now + REST_S
        return again
