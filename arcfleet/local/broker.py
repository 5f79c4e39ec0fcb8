"""A real single-node Kafka (KRaft, combined roles) on loopback ports: for tests, trials and the local stack."""

from __future__ import annotations

import atexit
import base64
import os
import re
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from arcfleet.local.admin import cluster_id_when_ready
from arcfleet.local.broker_log import BrokerLog
from arcfleet.local.errors import BrokerError, LocalKafkaError, PortTakenError
from arcfleet.local.guarded import GuardedProcess
from arcfleet.local.jar_cache import ensure
from arcfleet.local.java import find_java
from arcfleet.local.ports import free_port, is_free
from arcfleet.local.settings import (
    CONTROLLER,
    HOST,
    MAIN,
    SCRAM_MECHANISM,
    Listener,
    Setting,
    check,
    properties_text,
    server_properties,
)

# The quick compiler and the simple collector make a start shorter (1.6 s against 2.1 s on two cores). Whoever measures
# throughput passes others.
QUICK_START_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
HEAP = "256m"  # the broker's data is in the page cache, not in its heap
READY_DEADLINE_S = 60.0  # 2 s on an idle machine, 21 s were seen on two busy cores
_START_ATTEMPTS = 5  # each failure means that somebody took a port in the moment between our look and Kafka's
_PORT_WAIT_S = 5.0  # at a restart: what is left of the last run may still go away
_FORMAT_DEADLINE_S = 60.0
_STOP_DEADLINE_S = 30.0
_KILL_DEADLINE_S = 10.0
_PORT_TAKEN = "Address already in use"
_PROPERTIES = "server.properties"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


class LocalBroker:
    """One broker. `start` and `stop` or `kill` may alternate as often as wanted: ports and data stay. `close` ends it.

    As a context manager it is started on entry and closed on exit. The JVM dies with the Python process, however that
    ends.

    - `settings` add to server.properties or override its defaults.
    - `listeners` are further doors by name: see `Listener` and `arcfleet.local.security`.
    - `scram` are users with passwords, made when the data is formatted, not later.
    - `port` is that of the plain listener, 0 for any free one.
    - `data_dir` keeps data, log and settings; by default a temporary folder that `close` removes.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, Setting] | None = None,
        listeners: Mapping[str, Listener] | None = None,
        scram: Mapping[str, str] | None = None,
        port: int = 0,
        data_dir: Path | None = None,
        heap: str = HEAP,
        jvm_options: Sequence[str] = QUICK_START_JVM,
        ready_deadline_s: float = READY_DEADLINE_S,
    ) -> None:
        self._settings = dict(settings or {})
        self._listeners = dict(listeners or {})
        self._scram = dict(scram or {})
        check(self._settings, self._listeners, self._scram)
        self._fixed_ports = {MAIN: port, CONTROLLER: 0, **{name: door.port for name, door in self._listeners.items()}}
        self._ports: dict[str, int] = {}
        self._ports_are_known = False  # once ready, clients know the ports: they stay
        self._temporary = data_dir is None
        self._folder = Path(tempfile.mkdtemp(prefix="arcfleet-kafka-")) if data_dir is None else data_dir.absolute()
        self._jvm_options = (f"-Xmx{heap}", *jvm_options)
        self._ready_deadline_s = ready_deadline_s
        self._log = BrokerLog(self._folder / "broker.log")
        self._process: GuardedProcess | None = None
        self._owner = os.getpid()
        self._closed = False
        atexit.register(self.close)

    @property
    def bootstrap(self) -> str:
        """host:port of the plain listener; known from the first start on."""
        return self.address(MAIN)

    def address(self, listener: str) -> str:
        """host:port of one listener by name; known from the first start on."""
        if listener not in self._ports:
            known = ", ".join(self._ports) or "none before the first start"
            raise LocalKafkaError(f"There is no listener {listener} (known: {known})")
        return f"{HOST}:{self._ports[listener]}"

    @property
    def data_dir(self) -> Path:
        return self._folder

    @property
    def log(self) -> Path:
        """What the broker wrote, over all its starts."""
        return self._log.path

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.status is None

    @property
    def pid(self) -> int | None:
        """Of the JVM itself, for signals such as SIGSTOP; None when it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    def start(self) -> Self:
        """Blocks until the broker answers an admin call. Formats the data first if it is new.

        Raises JavaMissingError, MavenMissingError or DownloadError if it cannot be run here, PortTakenError if a port
        that it has to use is taken, else BrokerError with the end of the log; it is then not running.
        """
        if self._closed or self.running:
            raise LocalKafkaError("This broker is closed" if self._closed else "This broker runs already")
        java, jars = find_java(), ensure()
        (self._folder / "tmp").mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._settle_ports()
            try:
                self._start_once(java, jars)
            except PortTakenError:
                if attempt == _START_ATTEMPTS:
                    raise
            else:
                break
        self._ports_are_known = True
        return self

    def stop(self) -> None:
        """Blocks until the broker has shut down in good order; nothing happens if it does not run."""
        if self._process is not None and not self._process.terminate(_STOP_DEADLINE_S):
            self.kill()
            raise BrokerError(
                f"Kafka did not stop within {_STOP_DEADLINE_S:.0f} s and was killed. {self._log.explain()}"
            )
        self._process = None

    def kill(self) -> None:
        """A crash: SIGKILL, blocks until the process is gone; nothing happens if it does not run."""
        if self._process is not None and not self._process.kill(_KILL_DEADLINE_S):
            raise BrokerError(f"Kafka (process {self.pid}) survived SIGKILL for {_KILL_DEADLINE_S:.0f} s")
        self._process = None

    def close(self) -> None:
        """Stops the broker and removes its folder, unless that was given. Nothing happens the second time."""
        if self._closed or os.getpid() != self._owner:  # a fork of the owner must not end the owner's broker
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            self.stop()
        finally:
            if self._temporary:
                shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _settle_ports(self) -> None:
        """New ports where we may choose; where we may not, they have to be free."""
        wished = self._ports if self._ports_are_known else self._fixed_ports
        kept = {name: port for name, port in wished.items() if port}
        end_s = time.monotonic() + (_PORT_WAIT_S if self._ports_are_known else 0)
        while taken := [f"{HOST}:{port} ({name})" for name, port in kept.items() if not is_free(port)]:
            if time.monotonic() > end_s:
                raise PortTakenError(f"Another program listens on {', '.join(taken)}: end it or choose another port")
            time.sleep(0.1)
        ports = dict(kept)
        for name in self._fixed_ports:
            ports.setdefault(name, free_port(avoid=ports.values()))
        self._ports = {name: ports[name] for name in self._fixed_ports}

    def _start_once(self, java: Path, jars: Sequence[Path]) -> None:
        data = self._folder / "data"
        properties = server_properties(str(data), self._ports, self._listeners, self._settings)
        (self._folder / _PROPERTIES).write_text(properties_text(properties), encoding="ascii")
        self._log.mark()
        command = self._command(java, jars)
        if not (data / "meta.properties").exists():
            self._format(command)
        remove = self._folder if self._temporary else None
        self._process = GuardedProcess(
            [*command, "kafka.Kafka", _PROPERTIES], folder=self._folder, log=self.log, remove=remove
        )
        try:
            self._await_ready(_cluster_id(data))
        except BaseException:
            self.kill()
            raise

    def _command(self, java: Path, jars: Sequence[Path]) -> list[str]:
        return [
            *(str(java), *self._jvm_options),
            "-XX:-UsePerfData",  # no file in the system's temporary folder, which a kill would leave behind
            f"-Djava.io.tmpdir={self._folder / 'tmp'}",  # native compression libraries are unpacked there
            f"-Dlog4j2.configurationFile={_LOG_SETTINGS}",
            *("-cp", os.pathsep.join(map(str, jars))),
        ]

    def _format(self, command: Sequence[str]) -> None:
        arguments = ["kafka.tools.StorageTool", "format", f"--cluster-id={_new_cluster_id()}", "-c", _PROPERTIES]
        for user, password in self._scram.items():
            arguments += ["--add-scram", f"{SCRAM_MECHANISM}=[name={user},password={password}]"]
        with self.log.open("ab") as log:
            try:
                # The Java that was found, our own jars and settings; no shell.
                answer = subprocess.run(  # noqa: S603
                    [*command, *arguments],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=_FORMAT_DEADLINE_S,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                what = f"Kafka needed more than {_FORMAT_DEADLINE_S:.0f} s to format its data. {self._log.explain()}"
                raise BrokerError(what) from error
        if answer.returncode != 0:
            raise BrokerError(f"Kafka could not format its data. {self._log.explain()}")

    def _await_ready(self, cluster_id: str) -> None:
        answered = cluster_id_when_ready(self.bootstrap, self._ready_deadline_s, lambda: self.running)
        if answered == cluster_id:
            return
        if answered is not None:
            raise PortTakenError(f"Another Kafka, cluster {answered}, answers on {self.bootstrap}")
        if _PORT_TAKEN in self._log.text():
            raise PortTakenError(f"Kafka could not have its ports. {self._log.explain()}")
        status = None if self._process is None else self._process.status
        if status is None:
            what = f"Kafka did not answer on {self.bootstrap} within {self._ready_deadline_s:g} s"
        else:
            what = f"Kafka ended with status {status} before it was ready"
        raise BrokerError(f"{what}. {self._log.explain()}")


def _new_cluster_id() -> str:
    """Kafka's spelling of a UUID; without a dash at its head, which would look like an option."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=").replace("-", "_")


def _cluster_id(data: Path) -> str:
    """What the data was formatted with."""
    text = (data / "meta.properties").read_text(encoding="utf-8")
    found = re.search(r"^cluster\.id=(\S+)$", text, re.MULTILINE)
    if found is None:
        raise BrokerError(f"{data / 'meta.properties'} names no cluster.id: this is not the data of a Kafka broker")
    return found[1]
