"""Stands between a Python process and its broker, so that the broker never outlives it, not even after `kill -9`.

Run as a file of its own, `guard.py PARENT_PID FOLDER_TO_REMOVE COMMAND...`: it imports nothing of the project, so it
starts in less than 0.1 s. It writes the broker's process id to stdout and ends with the broker's exit status.

| signal | does |
|---|---|
| SIGTERM | asks the broker to stop |
| SIGUSR1 | kills the broker |
| SIGALRM, by timer | kills the broker if the parent is gone, and then removes the folder, if one is named |

Why does the broker not ask the kernel for a signal on its parent's death? That watches the *thread* that started it,
and takes code between fork and exec, which is not safe in a process with threads. The guard has one thread, so here it
is done (Linux): whoever kills the guard kills the broker. A pipe to the parent would stay open in the parent's forks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

PARENT_CHECK_INTERVAL_S = 0.25  # how long a broker may live on after its parent; a check costs one system call
_PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def _die_with(guard: int) -> Callable[[], None] | None:
    """What the broker's process does before it becomes Java: binds its life to the guard's."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # died before the call above
            os._exit(1)

    return bind


def main(parent: int, folder: str, command: list[str]) -> int:
    # A fixed command line from LocalBroker. One thread only, so code between fork and exec is safe here.
    broker = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=2,
        preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509
    )
    orphaned = False

    def check_parent(_signal: int, _frame: FrameType | None) -> None:
        nonlocal orphaned
        if os.getppid() != parent:
            orphaned = True
            broker.kill()

    signal.signal(signal.SIGTERM, lambda _signal, _frame: broker.terminate())
    signal.signal(signal.SIGUSR1, lambda _signal, _frame: broker.kill())
    signal.signal(signal.SIGALRM, check_parent)
    signal.setitimer(signal.ITIMER_REAL, PARENT_CHECK_INTERVAL_S, PARENT_CHECK_INTERVAL_S)
    with contextlib.suppress(BrokenPipeError):  # a parent that is gone already: the timer sees to it
        os.write(1, b"%d\n" % broker.pid)
    status = broker.wait()
    if orphaned and folder:
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
