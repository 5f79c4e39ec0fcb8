"""Real runs of the `arcfleet` command that is installed beside this Python."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from arcfleet.fleet.document import SCALARS

COMMAND = Path(sys.executable).with_name("arcfleet")
_OWN_SETTINGS = {
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "TERM",
    "LANG",
    "LC_ALL",
    "PYTHONUTF8",
    "PYTHONUNBUFFERED",
    *(f"ARCFLEET_{name.upper()}" for name in SCALARS),
}
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """The JSON lines of stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def stats(self) -> dict[str, Any]:
        """The JSON object that is the last line of stderr."""
        stats: dict[str, Any] = json.loads(self.err.splitlines()[-1])
        return stats


def environment(**more: str) -> dict[str, str]:
    """Of this process, without what a terminal, a locale or a test machine would change."""
    return {name: value for name, value in os.environ.items() if name not in _OWN_SETTINGS} | more


def arcfleet(*arguments: str | Path, stdin: str | bytes = b"", **env: str) -> Ran:
    """One run; never a traceback."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    command = [str(COMMAND), *map(str, arguments)]
    done = subprocess.run(
        command, input=data, capture_output=True, timeout=_TIMEOUT_SECONDS, env=environment(**env), check=False
    )
    ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ran.err, ran.err
    return ran


# Starting Python and importing the command takes longer than most runs: one process does that and forks for each run.
_FORK_FOR_EACH = """
import json, os, sys, traceback
import typer.rich_utils
from contextlib import redirect_stdout, suppress
from io import StringIO
from arcfleet.cli import main

def run(arguments, folder):
    sys.argv = ["arcfleet", *arguments]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(f"{folder}/{stream}", os.O_CREAT | os.O_WRONLY), stream)
    try:
        main()
    except SystemExit as ended:
        return ended.code or 0
    except BaseException:
        traceback.print_exc()
        return 99
    return 0

sys.argv = ["arcfleet", "schema", "pattern"]
with redirect_stdout(StringIO()), suppress(SystemExit):
    main()  # imports what it needs only when it runs
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = run(*json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _forking() -> subprocess.Popen[str]:
    """The process that forks; it ends when this one does."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _FORK_FOR_EACH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    atexit.register(process.communicate)
    return process


def together(commands: Iterable[Sequence[str | Path]]) -> list[Ran]:
    """Many runs, each a process of its own with its own stdout, stderr and exit code; none has a traceback."""
    return [_forked(arguments) for arguments in commands]


def _forked(arguments: Sequence[str | Path]) -> Ran:
    process = _forking()
    assert process.stdin
    assert process.stdout
    with TemporaryDirectory() as folder:
        process.stdin.write(json.dumps([[str(argument) for argument in arguments], folder]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        ran = Ran(code, *(Path(folder, stream).read_text("utf-8") for stream in ("1", "2")))
    assert "Traceback" not in ran.err, ran.err
    return ran


def write_tape(file: Path, records: Iterable[dict[str, Any] | str]) -> Path:
    """JSON lines; a text is a line as it stands."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file
