"""Ends a process whose transaction call hangs: some ignore their time-out, and only what has ended is restarted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

HANG_S: Final = 20.0
_LOOK_EVERY_S: Final = 1.0


def _end() -> None:
    os._exit(3)


class Watchdog:
    """Looks on from a thread of its own."""

    def __init__(
        self, monotonic: Callable[[], float], complain: Callable[[str], None], end: Callable[[], None] = _end
    ) -> None:
        self._monotonic = monotonic
        self._complain = complain
        self._end = end
        self._watched: tuple[str, float] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    @contextmanager
    def watching(self, what: str) -> Iterator[None]:
        """The call inside has to return in time."""
        self._watched = (what, self._monotonic())
        try:
            yield
        finally:
            self._watched = None

    def look(self) -> None:
        """Ends the process if what is watched has taken too long."""
        watched = self._watched
        if watched is not None and self._monotonic() - watched[1] > HANG_S:
            self._complain(f"{watched[0]} took more than {HANG_S:.0f} s; a new process will go on")
            self._end()

    def _look(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            self.look()
