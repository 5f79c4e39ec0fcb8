"""A fleet on this machine: a local Kafka, its topics, and workers that are started again when they die.

Nothing of it outlives this process, whatever ends it: each worker has a guard of its own, as the broker has.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from arcfleet.fleet.document import Fleet, load_fleet
from arcfleet.fleet.topic_admin import configure_topics, connect, create_topics, read_topics
from arcfleet.fleet.topics import plan_topics, topic_names
from arcfleet.local.broker import LocalBroker
from arcfleet.local.broker_log import BrokerLog
from arcfleet.local.errors import StackError
from arcfleet.local.guarded import GuardedProcess
from arcfleet.local.ports import free_port
from arcfleet.local.settings import HOST

PARTITIONS: Final = 3  # of a source that is not there yet
_READY_S: Final = 120.0
_STOP_S: Final = 20.0
_KILL_S: Final = 10.0
_REACH_S: Final = 10.0
_LOOK_S: Final = 0.1
_PROBE_S: Final = 2.0
_RESTART_S: Final = (0.0, 1.0, 2.0, 5.0, 10.0)  # before the first restart in a row, the second, ...
_LASTED_S: Final = 10.0  # whoever ran for so long begins at the first again
# Ends that another start does not change: the input or the command line is not acceptable.
_FOR_GOOD: Final = (1, 2)
_BY_SIGNAL: Final = 128  # statuses from here on

Say = Callable[[str], None]


@dataclass
class StackWorker:
    """A place in the fleet, and the process that fills it now."""

    name: str
    port: int
    log: BrokerLog
    process: GuardedProcess | None = None
    began_s: float = 0.0
    restarts: int = 0
    in_a_row: int = 0
    due_s: float | None = None  # when it is started again; none: it runs
    ended: int | None = None  # its status, if it will not be started again

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Of the worker itself, for signals; None when it does not run."""
        return self.process.pid if self.process is not None and self.process.status is None else None

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=_PROBE_S):  # noqa: S310 - our own worker
                return True
        except (urllib.error.URLError, OSError):
            return False


class LocalStack:
    """A context manager: entered, the fleet is ready; left, all of it has ended.

    - `fleet` is a fleet document, by default that of the fleet `local` with the source `events`. Its `bootstrap` does
      not count.
    - `patterns` is a folder of pattern files.
    - `broker` is one that was made otherwise than usual, and not started yet.
    - `say` is told what happens to workers, from a thread of the stack's own.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        fleet: Path | None = None,
        patterns: Path | None = None,
        broker: LocalBroker | None = None,
        say: Say = lambda _: None,
    ) -> None:
        self._file = None if fleet is None else fleet.absolute()
        self._patterns = None if patterns is None else patterns.absolute()
        load_fleet(self._file, {}, os.environ)  # a mistake in it is told before anything is started
        self._folder = Path(tempfile.mkdtemp(prefix="arcfleet-stack-"))
        self._say = say
        self._broker = broker or LocalBroker()
        self._stopping = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        names = [f"worker-{number}" for number in range(1, workers + 1)]
        ports: list[int] = []
        for _ in names:
            ports.append(free_port(avoid=ports))
        self.workers = [
            StackWorker(name, port, BrokerLog(self._folder / f"{name}.log"))
            for name, port in zip(names, ports, strict=True)
        ]

    @property
    def broker(self) -> LocalBroker:
        return self._broker

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap

    @property
    def logs(self) -> Path:
        """The folder of the workers' logs; it goes with the stack."""
        return self._folder

    @property
    def fleet(self) -> Fleet:
        """As its processes see it; known once the broker runs."""
        return load_fleet(self._file, {"bootstrap": self.bootstrap}, os.environ)

    def __enter__(self) -> Self:
        try:
            self._broker.start()
            self._make_topics()
            for worker in self.workers:
                self._start(worker)
            self._supervisor.start()
            self.await_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def await_ready(self) -> None:
        """Blocks until every worker is. Raises StackError if one will not be."""
        until = time.monotonic() + _READY_S
        for worker in self.workers:
            while not worker.is_ready():
                self.check()
                if time.monotonic() > until:
                    raise StackError(f"{worker.name} was not ready within {_READY_S:g} s. {worker.log.explain()}")
                time.sleep(_LOOK_S)

    def check(self) -> None:
        """Raises StackError if a worker has ended for good, or the broker has died."""
        for worker in self.workers:
            if worker.ended is not None:
                raise StackError(
                    f"{worker.name} ended with status {worker.ended}. {worker.log.explain()}", worker.ended
                )
        if not self._broker.running:
            raise StackError("The broker has died")

    def close(self) -> None:
        """Stops the workers, then the broker; blocks until nothing of it runs any more."""
        self._stopping.set()
        if self._supervisor.ident is not None:
            self._supervisor.join()
        processes = [worker.process for worker in self.workers if worker.process is not None]
        with ThreadPoolExecutor(len(self.workers)) as together:
            list(together.map(_end, processes))
        self._broker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_topics(self) -> None:
        fleet = self.fleet
        admin = connect(fleet, _REACH_S)
        plan = plan_topics(fleet, read_topics(admin, topic_names(fleet)), PARTITIONS)
        create_topics(admin, [one.topic for one in plan.create])
        configure_topics(admin, plan.configure)

    # Workers ---------------------------------------------------------------------------------------------------------

    def _start(self, worker: StackWorker) -> None:
        worker.log.mark()
        worker.process = GuardedProcess(
            self._command(worker), folder=self._folder, log=worker.log.path, remove=self._folder
        )
        worker.began_s, worker.due_s = time.monotonic(), None

    def _command(self, worker: StackWorker) -> Sequence[str]:
        about = ["--bootstrap", self.bootstrap, "--instance", worker.name, "--port", str(worker.port)]
        if self._file is not None:
            about += ["--fleet", str(self._file)]
        if self._patterns is not None:
            about += ["--patterns", str(self._patterns)]
        return [sys.executable, "-P", "-m", "arcfleet", "worker", *about]

    def _supervise(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            for worker in self.workers:
                self._look_after(worker)

    def _look_after(self, worker: StackWorker) -> None:
        """Starts it again if it has died: at once the first time, later and later if it goes on dying."""
        now = time.monotonic()
        if worker.due_s is not None and now >= worker.due_s:
            worker.restarts += 1
            self._start(worker)
        status = None if worker.process is None else worker.process.status
        if status is None or worker.due_s is not None or worker.ended is not None:
            return
        if status in _FOR_GOOD:
            worker.ended = status
            return
        worker.in_a_row = 0 if now - worker.began_s > _LASTED_S else worker.in_a_row
        wait_s = _RESTART_S[min(worker.in_a_row, len(_RESTART_S) - 1)]
        worker.in_a_row += 1
        worker.due_s = now + wait_s
        when = f" in {wait_s:g} s" if wait_s else ""
        why = f". {worker.log.explain()}" if 0 < status < _BY_SIGNAL else ""
        self._say(f"{worker.name} has ended with status {status}; it is started again{when}{why}")


def _end(process: GuardedProcess) -> None:
    if process.status is None and not process.terminate(_STOP_S):
        process.kill(_KILL_S)
