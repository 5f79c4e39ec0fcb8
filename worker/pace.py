"""How many snapshots a commit takes.

Keys that changed together come due together: after a restart, a backlog or a silence all of a partition do, and again
in every interval from then on. Written in one commit, they would hold up each match that is found meanwhile. So each
commit takes a share of them, with which all that are due now are written within a while; the next time they come due
one after the other.
"""

from __future__ import annotations

from math import ceil
from typing import Final

SNAPSHOTS_PER_COMMIT_MAX: Final = 20_000  # of one partition


class Pace:
    """That of one partition."""

    def __init__(self) -> None:
        self._peak = 0  # the most keys that were dirty since none was left that was due

    def most(self, dirty: int, share: float) -> int:
        """How many to take of those that are due, if so many are dirty and this share of the while has passed."""
        # Of the most: by a share of what is left it would never be done. What comes due meanwhile is dirty now, and so
        # it counts, too.
        self._peak = max(self._peak, dirty)
        return min(ceil(self._peak * share), SNAPSHOTS_PER_COMMIT_MAX)

    def took(self, count: int, most: int) -> None:
        """So many were due, of so many that might have been taken."""
        if count < most:
            self._peak = 0
