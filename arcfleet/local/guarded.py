"""A child process that cannot outlive this one: starts `guard.py` with a command and talks to it by signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_GUARD = Path(__file__).with_name("guard.py")


class GuardedProcess:
    """Runs `command` in `folder`, its output appended to `log`. If this process ends first, in whatever way, the
    command is killed and the folder `remove` deleted."""

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path, remove: Path | None) -> None:
        # -I -S: nothing of the user's environment or site packages, which would only make the guard's start slower. A
        # session of its own: Ctrl-C in a terminal is for the parent, which then decides in what order things end.
        guard = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), str(remove or "")]
        with log.open("ab") as output:
            self._guard = subprocess.Popen(  # noqa: S603 - our own guard and a command of ours
                [*guard, *command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        with self._guard.stdout as answer:
            self.pid = int(answer.readline() or -1)  # -1: could not be started, and the guard has ended

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._guard.poll()

    def terminate(self, deadline_s: float) -> bool:
        """SIGTERM; whether it ended within the deadline."""
        return self._end(signal.SIGTERM, deadline_s)

    def kill(self, deadline_s: float) -> bool:
        """SIGKILL; whether it was gone within the deadline."""
        return self._end(signal.SIGUSR1, deadline_s)

    def _end(self, by: signal.Signals, deadline_s: float) -> bool:
        self._guard.send_signal(by)
        try:
            self._guard.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return False
        return True
