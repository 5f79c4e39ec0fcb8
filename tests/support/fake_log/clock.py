"""Time that passes only when somebody waits."""

from __future__ import annotations

from collections.abc import Callable

SLICE_S = 0.05  # what happens in the background is looked at so often


class VirtualClock:
    """Both clocks of a machine; `watchers` are called as time goes on."""

    def __init__(self, wall_s: float = 1_700_000_000.0) -> None:
        self._began_wall_s = wall_s
        self._now_s = 0.0
        self.watchers: list[Callable[[], None]] = []

    def monotonic(self) -> float:
        return self._now_s

    def wall(self) -> float:
        return self._began_wall_s + self._now_s

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Lets time pass, in slices."""
        left = seconds
        while left > 0:
            self._now_s += min(left, SLICE_S)
            left -= SLICE_S
            for watcher in self.watchers:
                watcher()
