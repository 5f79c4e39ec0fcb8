"""One run of Maven: copies what a pom asks for, and all that hangs on it, into a folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from arcfleet.local.errors import DownloadError, MavenMissingError

# By full coordinates: the version that a bare plugin name means differs from one Maven to the next.
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_DEADLINE_S = 900.0  # 66 MB over a very slow line; Maven's own time-outs end a dead connection long before
_LINES_SHOWN = 5
_DOWNLOADED = re.compile(r"(?:\[INFO\] )?Downloaded from ")
_UNREACHABLE = re.compile(
    r"Could not transfer|unknown ?host|connection refused|timed out|no route to host|unreachable|name resolution",
    re.IGNORECASE,
)


class MavenFailedError(DownloadError):
    """Maven failed for a reason other than the network: it may do better with an empty repository."""


def find_maven() -> Path:
    """The `mvn` on the PATH; raises MavenMissingError."""
    found = shutil.which("mvn")
    if found is None:
        raise MavenMissingError(
            "No mvn on the PATH; it fetches Kafka's jars. Install Maven (Debian: apt-get install maven; macOS: brew "
            "install maven)."
        )
    return Path(found)


def copy_dependencies(pom: Path, repository: Path, target: Path, on_file: Callable[[], None]) -> None:
    """Blocks until all that `pom` names is in `target`; `on_file` is called for each file that came from outside.

    The user's own Maven settings (mirrors, proxies) apply. Raises DownloadError when the registry is out of reach, else
    MavenFailedError; `target` may then be partly filled.
    """
    command = [
        *(str(find_maven()), "--batch-mode", "-Dstyle.color=never", "--file", str(pom)),
        "--update-snapshots",  # else a failure of the last run is remembered for a day and not tried again
        f"-Dmaven.repo.local={repository}",
        *(_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={target}"),
    ]
    output, status = _run(command, pom.parent, on_file)
    if status == 0:
        return
    complaint = _complaint(output)
    if _UNREACHABLE.search(complaint):
        raise DownloadError(
            f"Maven could not reach its registry:\n{complaint}\n"
            "Check the network, or name your mirror or proxy in Maven's settings.xml; then run: "
            "python -m arcfleet.local.jars"
        )
    raise MavenFailedError(f"Maven failed (exit {status}):\n{complaint}")


def _complaint(output: list[str]) -> str:
    """Maven's error, without its advice on how to call Maven, which follows after an empty line."""
    errors = (line.removeprefix("[ERROR]").strip() for line in output if line.startswith("[ERROR]"))
    return "\n".join([*takewhile(bool, errors)][:_LINES_SHOWN] or output[-_LINES_SHOWN:])


def _run(command: list[str], folder: Path, on_file: Callable[[], None]) -> tuple[list[str], int]:
    output = []
    # A fixed program with arguments of our own. A session of its own: mvn is a script, and its JVM has to end with it.
    with subprocess.Popen(  # noqa: S603
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as maven:
        watchdog = threading.Timer(_DEADLINE_S, _end, [maven])
        watchdog.start()
        try:
            assert maven.stdout is not None
            for line in maven.stdout:
                output.append(line.rstrip())
                if _DOWNLOADED.match(line):
                    on_file()
            status = maven.wait()
        finally:
            watchdog.cancel()
            _end(maven)
    return output, status


def _end(maven: subprocess.Popen[str]) -> None:
    if maven.poll() is None:
        os.killpg(maven.pid, signal.SIGKILL)
